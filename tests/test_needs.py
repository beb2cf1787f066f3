"""One place decides what a test does without its tool."""

from pathlib import Path

import pytest

from tests import needs

TESTS = Path(__file__).parent


def test_a_program_is_found_where_debian_keeps_its_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = tmp_path / "server"
    server.touch(mode=0o755)
    monkeypatch.setattr(needs, "PLACES", str(tmp_path))
    assert needs.program("server") == str(server)


def test_without_its_tool_a_test_is_skipped_and_the_remedy_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"no-such: NOT TRIED.*install_tools\.sh"):
        needs.program("no-such")


def test_where_ci_is_set_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"no-such: NOT TRIED.*install_tools\.sh"):
        needs.program("no-such")


def test_no_other_file_decides_it() -> None:
    asking = [path for path in TESTS.rglob("*.py") if 'environ.get("CI")' in path.read_text()]
    settings_and_us = {TESTS / "conftest.py", TESTS / "needs.py", Path(__file__)}
    assert set(asking) == settings_and_us
