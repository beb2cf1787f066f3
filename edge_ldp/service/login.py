"""A broker that does not take us for who we say we are: told from its reason, and what to do."""

REMEDY = "check user name and password in [broker], the files it names and the broker's access list"
_REASONS = (
    "not authorized",
    "bad user name or password",
    "banned",
    "bad authentication method",
    "alert certificate",
    "alert bad certificate",
    "alert unknown ca",
    "alert unknown psk",
)


def is_refused(reason: str) -> bool:
    """Return whether credentials, a certificate or rights are why a link or message was refused.

    To try again at once would only press the broker.
    """
    return any(text in reason for text in _REASONS)
