"""Tokens that let somebody look: whose one is, and a file that lets nobody in."""

from pathlib import Path

import pytest

from aggregator.config import ConfigError
from aggregator.enrolment.tokens import Tokens


def test_tokens_that_others_may_read_let_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    tokens = Tokens(path)
    assert tokens.owner_of("ldp_x") is None
    token = tokens.make("bob", 1, "operator")
    assert Tokens(path).owner_of(token) == ("bob", "operator")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="mode 0600"):
        Tokens(path).owner_of(token)
    path.chmod(0o600)
    path.write_text("[]")
    with pytest.raises(ConfigError, match="console tokens make"):
        Tokens(path).owner_of(token)
    with pytest.raises(ConfigError, match="a-z 0-9"):
        Tokens(tmp_path / "new").make("../bob", 1, "operator")
