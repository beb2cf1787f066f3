"""Secrets named by file or as systemd credentials: read by their owner alone, shown by nobody."""

import re
from pathlib import Path

import pytest

from agent.config import load_config, read_secrets
from agent.errors import ConfigError
from agent.main import main
from tests.agent.samples import config_text

BROKER = 'username = "me"\npassword_file = "credential:broker-password"'
TAP = '[tap]\nhost = "127.0.0.1"\nport = 1999\nusername = "ha"\npassword_file = "credential:tap"\n'


def written(directory: Path, **changes: str) -> Path:
    path = directory / "agent.toml"
    path.write_text(config_text(directory / "s.db", **changes))  # type: ignore[arg-type] # tables' lines
    return path


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    """Give a directory as systemd makes it; files get their reader's access by an ACL: 0440."""
    directory = tmp_path / "credentials"
    directory.mkdir(mode=0o700)
    for name, word in (("broker-password", "right-horse"), ("tap", "other-horse")):
        (directory / name).write_text(word + "\n")
        (directory / name).chmod(0o440)
    return directory


def test_credentials_are_found_where_systemd_placed_them(tmp_path: Path, credentials: Path) -> None:
    path = written(tmp_path, broker=BROKER, tables=TAP)
    config = load_config(path, str(credentials))
    secrets = read_secrets(config, str(path), str(credentials))
    assert (secrets.broker, secrets.tap) == ("right-horse", "other-horse")
    assert "horse" not in repr(secrets)


def test_a_service_without_its_credential_does_not_start_and_says_which(tmp_path: Path) -> None:
    path = written(tmp_path, broker=BROKER)
    config = load_config(path)
    with pytest.raises(ConfigError, match=r"broker\.password_file.*LoadCredential"):
        read_secrets(config, str(path))
    assert read_secrets(config, str(path), is_service=False).broker is None


def test_the_other_commands_do_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, broker=BROKER)
    assert main(["check", "-c", str(path)]) == 0
    assert "signed" in capsys.readouterr().out


def test_a_credential_that_is_missing_in_the_directory_is_named(
    tmp_path: Path, credentials: Path
) -> None:
    (credentials / "broker-password").unlink()
    with pytest.raises(ConfigError, match=r"broker\.password_file.*No such file"):
        load_config(written(tmp_path, broker=BROKER), str(credentials))


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_secret_beside_the_credentials_needs_mode_0600(
    tmp_path: Path, credentials: Path, mode: int
) -> None:
    for key in ("key.pem", "cert.pem"):
        (tmp_path / key).write_text("x")
    (tmp_path / "key.pem").chmod(mode)
    lines = (
        f'tls = true\ncert_file = "{tmp_path / "cert.pem"}"\nkey_file = "{tmp_path / "key.pem"}"'
    )
    with pytest.raises(ConfigError, match=r"broker\.key_file.*chmod 600"):
        load_config(written(tmp_path, broker=lines), str(credentials))
    (tmp_path / "key.pem").chmod(0o600)
    assert load_config(written(tmp_path, broker=lines), str(credentials)).broker.key_file


def test_check_says_loudly_that_readings_leave(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, tables='[tap]\nhost = "127.0.0.1"\nport = 1999\n')
    assert main(["check", "-c", str(path)]) == 0
    assert "LEAVE THIS DEVICE by the local tap" in capsys.readouterr().out
    assert main(["check", "-c", str(written(tmp_path))]) == 0
    assert "stay in this device" in capsys.readouterr().out


def test_no_command_shows_a_secret_or_a_key_PRV_18(
    tmp_path: Path, credentials: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no support bundle; what a user may paste is what the commands print."""
    secret = credentials / "broker-password"
    secret.chmod(0o600)
    path = written(tmp_path, broker=f'username = "me"\npassword_file = "{secret}"')
    expected = {"check": 0, "check --json": 0, "status": 4, "ledger": 4}  # it has not run yet
    for command, code in expected.items():
        assert main([*command.split(), "-c", str(path)]) == code, command
        shown = capsys.readouterr()
        assert "home-7" in shown.out if code == 0 else "there is no state" in shown.err
        assert "horse" not in shown.out + shown.err


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [
        (None, 0, r"key_file.*No such file"),
        ("directory", 0o700, r"key_file.*Is a directory"),
        ("", 0o600, r"cert_file.*a file that can be used"),
        ("-----BEGIN PRIVATE KEY-----\nMC4=\n", 0o600, r"cert_file.*a file that can be used"),
        ("x", 0o640, r"key_file.*chmod 600"),
        ("x", 0o604, r"key_file.*chmod 600"),
    ],
)
def test_a_key_that_is_missing_broken_or_open_stops_the_start_AGT_15(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    mode: int,
    expected: str,
) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_text("-----BEGIN CERTIFICATE-----\n")
    if content == "directory":
        key.mkdir(mode)
    elif content is not None:
        key.write_text(content)
        key.chmod(mode)
    lines = f'tls = true\ncert_file = "{cert}"\nkey_file = "{key}"'
    assert main(["run", "-c", str(written(tmp_path, broker=lines))]) == 2
    said = capsys.readouterr().err
    assert re.search(expected, said)
    assert said.count("\n") == 1
    assert not (tmp_path / "s.db").exists()
