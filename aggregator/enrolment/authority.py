"""A fleet's own certificate authority, and its broker's certificate (extra `sign`)."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from time import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

YEARS = timedelta(days=3650)
EARLY = timedelta(days=1)  # clocks of devices may be behind ours


@dataclass(frozen=True, slots=True)
class Certificates:
    """What a broker needs, PEM each; the authority's private key exists nowhere but in `ca_key`."""

    ca: str
    ca_key: str
    cert: str
    key: str


def make_certificates(fleet: str, host: str) -> Certificates:
    """Return a new authority's certificate, and one of it for a broker that `host` is."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    return _certificates(ca_key, _own(_name(f"{fleet} authority"), ca_key), host)


def renew_certificates(ca: str, ca_key: str, host: str, *, authority: bool) -> Certificates:
    """Return a new certificate for the broker, of the authority that there is.

    `authority`: its own certificate is made anew, too, of the same name and key: whoever trusts
    either trusts the broker, so that devices can change one by one. Raises ValueError where key and
    certificate are not of one authority, or it has expired.
    """
    key = load_pem_private_key(ca_key.encode(), None)
    made = x509.load_pem_x509_certificate(ca.encode())
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != made.public_key():
        raise ValueError("the key is not the authority's")
    if authority:
        made = _own(made.subject, key)
    elif expires_s(ca) <= time():
        raise ValueError("the authority's certificate has expired")
    return _certificates(key, made, host)


def expires_s(certificate: str) -> int:
    """Return when a certificate (PEM) expires, seconds UTC."""
    made = x509.load_pem_x509_certificate(certificate.encode())
    if hasattr(made, "not_valid_after_utc"):  # from version 42 on
        return int(made.not_valid_after_utc.timestamp())
    return int(made.not_valid_after.replace(tzinfo=UTC).timestamp())


def _own(name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return (
        _builder(name, name, key, datetime.now(UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _certificates(
    ca_key: ec.EllipticCurvePrivateKey, ca: x509.Certificate, host: str
) -> Certificates:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    cert = (
        _builder(_name(host), ca.subject, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(issuer, critical=False)
        .add_extension(x509.SubjectAlternativeName([_host(host)]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return Certificates(_pem(ca), _private(ca_key), _pem(cert), _private(key))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(now + YEARS)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(made: x509.Certificate) -> str:
    return made.public_bytes(Encoding.PEM).decode()


def _private(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
