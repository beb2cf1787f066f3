"""What to do about a broker that cannot be reached: told from the reason that an attempt ended for.

The reasons are those of `edge_ldp.service.mqtt`. What a remedy tells is advice, never a decision;
whether we are refused for who we say we are decides how soon to try again.
"""

from edge_ldp.service.broker import Broker

LOGIN_REMEDY = (
    "check user name and password in [broker], the files it names and the broker's access list"
)
_REFUSED = (
    "not authorized",
    "bad user name or password",
    "banned",
    "bad authentication method",
    "alert certificate",
    "alert bad certificate",
    "alert unknown ca",
    "alert unknown psk",
)
PLAIN_PORT, TLS_PORT = 1883, 8883
_CUT = ("connection reset", "closed before it answered", "wrong version", "record layer", "eof")
_PRIVATE = ("unable to get local issuer", "self-signed certificate", "self signed certificate")
_UNNAMED = ("name or service not known", "name resolution", "no address associated", "no host can")
_AWAY = ("no answer in time", "timed out", "unreachable", "no route to host")


def is_refused(reason: str) -> bool:
    """Return whether credentials, a certificate or rights are why a link or message was refused.

    To try again at once would only press the broker.
    """
    return any(text in reason for text in _REFUSED)


def remedy_of(reason: str, broker: Broker) -> str:
    """Return what may mend it, in the configuration's words; "" where nothing can be said."""
    lowered = reason.lower()
    if is_refused(lowered):
        return LOGIN_REMEDY
    found = (
        remedy for texts, remedy in _remedies(broker) if any(text in lowered for text in texts)
    )
    return next(found, "")


def _remedies(broker: Broker) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return pairs of texts in a reason and what they mean."""
    if broker.ca_file is None:
        authority = "name the certificate of the broker's own authority in [broker] ca_file"
    else:
        authority = f"{broker.ca_file} is not of the authority that signed the certificate"
    return (
        (_PRIVATE, authority),
        (("not valid for",), "write [broker] host as the broker's certificate names it"),
        (("has expired",), "the broker's certificate must be renewed, or this clock is wrong"),
        (("not yet valid",), "this device's clock is behind, or the certificate is for later"),
        (_CUT, _of_cut(broker)),
        (_UNNAMED, f"check [broker] host ({broker.host}) and this device's network"),
        (
            ("connection refused",),
            f"nothing listens there: check [broker] host and port ({broker.port}), and the broker",
        ),
        (_AWAY, "check this device's network, [broker] host and port, and firewalls between"),
    )


def _of_cut(broker: Broker) -> str:
    if broker.tls:
        return (
            f"does port {broker.port} speak TLS? without it write [broker] tls = false; "
            f"with it the port is mostly {TLS_PORT}"
        )
    return (
        f"does port {broker.port} want TLS? then write [broker] tls = true; "
        f"without it the port is mostly {PLAIN_PORT}"
    )
