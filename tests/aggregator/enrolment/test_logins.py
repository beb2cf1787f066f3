"""The broker's passwords file, as Mosquitto reads it: changed whole, by one at a time."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from aggregator.enrolment.logins import (
    changing_logins,
    hashed,
    new_password,
    tell_broker,
    write_secret,
)
from aggregator.errors import ConfigError

SALT = bytes.fromhex("000102030405060708090a0b")


def test_a_hash_has_mosquittos_form_and_another_salt_each_time() -> None:
    kind, iterations, salt, found = hashed("correct horse", SALT).split("$")[1:]
    assert (kind, iterations, salt, len(found)) == ("7", "101", "AAECAwQFBgcICQoL", 88)
    assert hashed("correct horse", SALT) == hashed("correct horse", SALT)
    assert hashed("correct horse") != hashed("correct horse")
    assert hashed("correct horses", SALT) != hashed("correct horse", SALT)


def test_passwords_are_long_and_fit_any_line() -> None:
    made = {new_password() for _ in range(100)}
    assert len(made) == 100
    assert {len(one) for one in made} == {24}
    assert all(one.isprintable() and not set(one) & set(":,\"' $") for one in made)


def test_logins_are_added_and_taken_away_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text("aggregator:$7$101$a$b\nold:x\n")
    path.chmod(0o640)
    with changing_logins(path) as logins:
        logins["home-1"] = "$7$101$c$d"
        del logins["old"]
    assert path.read_text() == "aggregator:$7$101$a$b\nhome-1:$7$101$c$d\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == ["passwords", "passwords.lock"]


def test_a_failure_in_between_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text("a:b\n")
    with suppress(LookupError), changing_logins(path) as logins:
        logins.clear()
        raise LookupError
    assert path.read_text() == "a:b\n"


def test_a_place_that_is_none_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "none" / "passwords"
    with (
        pytest.raises(ConfigError, match=r"devices\.passwords_file: expected a file that can be"),
        changing_logins(missing),
    ):
        pass


def test_only_a_broker_is_told_to_read_again(tmp_path: Path) -> None:
    """The number in an old file may be another process by now: a signal would end it."""
    file = tmp_path / "pid"
    for text in (str(os.getpid()), "0", "-1", "", "nothing"):
        file.write_text(text)
        assert not tell_broker(str(file))
    assert not tell_broker(str(tmp_path / "none"))
    assert not tell_broker(None)


def test_a_secret_is_its_owners_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_secret(tmp_path / "secret", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    with pytest.raises(IsADirectoryError):
        write_secret(tmp_path, "x")
    left = [one.name for one in tmp_path.parent.iterdir() if tmp_path.name in one.name]
    assert left == [tmp_path.name]
