"""TLS as we speak it: always verified, 1.2 or newer, forward-secret suites, reasons kept.

There is no switch that turns verification off. The files are read anew for every connection, so a
certificate that is replaced on disk is used from the next one on.
"""

import socket
import ssl
from collections.abc import Callable
from typing import TypeVar

from edge_ldp.service.broker import Broker, LinkLostError

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2; those of 1.3 are all sound
SECURITY_LEVEL = "@SECLEVEL=2"  # no keys below 112 bits of strength
T = TypeVar("T")


class TlsSocket(ssl.SSLSocket):
    """Remembers the `alert` that ended it, and does not outlive a refused handshake.

    paho would leave such a socket open, and tells nobody why a connection broke. With TLS 1.3 a
    server refuses our certificate after the handshake: only reading shows it.
    """

    alert: str | None = None

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 (overrides ssl's)
        """Shake hands; the socket is closed when that fails."""
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Return received bytes; keeps the reason of what the peer refuses."""
        try:
            return super().recv(buflen, flags)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as exc:
            self.alert = reason_of(exc)
            raise


def make_context(broker: Broker) -> ssl.SSLContext:
    """Return what a broker's connection is made with; raises LinkLostError naming the file."""
    context = _loading(broker, "ca_file", broker.ca_file, _verifying)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(f"{SECURITY_LEVEL}:{CIPHERS}")
    context.sslsocket_class = TlsSocket
    if broker.crl_file is not None:
        crl_file = broker.crl_file
        _loading(broker, "crl_file", crl_file, lambda _: context.load_verify_locations(crl_file))
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    if broker.cert_file is not None:
        chain, key = broker.cert_file, broker.key_file
        _loading(
            broker,
            "cert_file",
            chain,
            lambda _: context.load_cert_chain(chain, key, password=_no_password),
        )
    return context


def valid_until(sock: object, ca_file: str | None) -> int | None:
    """Return when the first of our peer's certificate and our own authorities' expires.

    Seconds UTC, after the handshake; None without TLS. Authorities of the system are not ours.
    """
    if not isinstance(sock, ssl.SSLSocket):
        return None
    ends = [end] if (end := (sock.getpeercert() or {}).get("notAfter")) else []
    if ca_file is not None:
        ends += [made["notAfter"] for made in sock.context.get_ca_certs()]
    return min((ssl.cert_time_to_seconds(str(end)) for end in ends), default=None)


def shown_until(broker: Broker) -> int | None:
    """Return `valid_until` of a broker's listener, by a handshake alone; it blocks.

    None where there is no TLS, or no handshake: then devices are refused, and say so themselves.
    """
    if not broker.tls:
        return None
    try:
        context, at = make_context(broker), (broker.host, broker.port)
        with (
            socket.create_connection(at, broker.connect_timeout_s) as plain,
            context.wrap_socket(plain, server_hostname=broker.host) as sock,
        ):
            return valid_until(sock, broker.ca_file)
    except (OSError, LinkLostError):
        return None


def reason_of(exc: ssl.SSLError) -> str:
    """Return what went wrong, in the words of the one who noticed."""
    reason = getattr(exc, "verify_message", None) or exc.reason or "handshake failed"
    return f"TLS: {str(reason).replace('_', ' ').lower() if reason == exc.reason else reason}"


def _verifying(ca_file: str | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


def _loading(broker: Broker, key: str, path: str | None, load: Callable[[str | None], T]) -> T:
    try:
        return load(path)
    except OSError as exc:  # so is an SSLError
        reason = f"{key} {path}: {exc.strerror or exc}"
        raise LinkLostError(broker.endpoint, reason) from exc


def _no_password() -> str:
    return ""  # never ask a person: a service has none
