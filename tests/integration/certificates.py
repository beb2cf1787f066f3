"""A test authority: certificates of any host and time, revoked or not, on disk as PEM."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pair:
    cert: Path
    key: Path
    made: x509.Certificate


class Authority:
    """A certificate authority that lives in a directory; `ca` is its own certificate."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.ca = directory / f"{name}.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        key = self._key.public_key()
        made = (
            _builder(self._name, self._name, key, now - 30 * DAY, now + 30 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(is_authority=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.ca.write_bytes(made.public_bytes(Encoding.PEM))
        self.crl()

    def write_key(self, path: Path) -> None:
        """Write the authority's own private key, for a server that is its own authority."""
        path.write_bytes(self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    def issue(self, name: str, host: str | None = None, *, days: tuple[int, int] = (-1, 2)) -> Pair:
        """Return a certificate of `name`; for a server of `host`, or for a client without one."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        use = ExtendedKeyUsageOID.SERVER_AUTH if host else ExtendedKeyUsageOID.CLIENT_AUTH
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(
                subject, self._name, key.public_key(), now + days[0] * DAY, now + days[1] * DAY
            )
            .add_extension(x509.ExtendedKeyUsage([use]), critical=False)
            .add_extension(issuer, critical=False)
        )
        if host:
            names = x509.SubjectAlternativeName([x509.DNSName(host)])
            builder = builder.add_extension(names, critical=False)
        made = builder.sign(self._key, hashes.SHA256())
        pair = Pair(self.directory / f"{name}.pem", self.directory / f"{name}.key", made)
        pair.cert.write_bytes(made.public_bytes(Encoding.PEM))
        pair.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        pair.key.chmod(0o600)
        return pair

    def crl(self, *revoked: Pair) -> Path:
        """Write the list of these revoked certificates and return its file."""
        now = datetime.now(UTC)
        builder = x509.CertificateRevocationListBuilder(
            issuer_name=self._name, last_update=now - DAY, next_update=now + 30 * DAY
        )
        for pair in revoked:
            row = x509.RevokedCertificateBuilder(
                serial_number=pair.made.serial_number, revocation_date=now - DAY
            )
            builder = builder.add_revoked_certificate(row.build())
        path = self.ca.with_suffix(".crl")
        path.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        return path


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    first: datetime,
    last: datetime,
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=key,
        serial_number=x509.random_serial_number(),
        not_valid_before=first,
        not_valid_after=last,
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )
