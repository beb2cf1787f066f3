"""Which reasons are refused credentials (NET-11)."""

import pytest

from edge_ldp.service.remedies import is_refused


@pytest.mark.parametrize(
    ("reason", "refused"),
    [
        ("not authorized", True),
        ("bad user name or password", True),
        ("tls: alert unknown ca", True),
        ("tls: alert certificate revoked", True),
        ("Connection refused", False),
        ("server busy", False),
        ("tls: alert handshake failure", False),
    ],
)
def test_credentials_certificates_and_rights_are_told_from_other_ends_NET_11(
    reason: str, *, refused: bool
) -> None:
    assert is_refused(reason) == refused
