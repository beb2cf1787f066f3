"""Which reasons are refused credentials (NET-11)."""

import pytest

from edge_ldp.service.broker import is_refused
from tests.tables import each


@pytest.mark.parametrize(
    ("refused", "reason"),
    each(
        (True, "not authorized", "bad user name or password", "tls: alert unknown ca"),
        (True, "tls: alert certificate revoked"),
        (False, "Connection refused", "server busy", "tls: alert handshake failure"),
    ),
)
def test_credentials_certificates_and_rights_are_told_from_other_ends_NET_11(
    reason: str, *, refused: bool
) -> None:
    assert is_refused(reason) == refused
