"""`setup --from`: what of a trial's file changes, what goes along, and what is refused."""

import io
from contextlib import closing
from pathlib import Path

import pytest

from agent.commands.setup.going_on import TrialFile, rewritten
from agent.commands.setup.talk import SetupError
from agent.config import parse_config
from agent.main import main
from agent.meters.section import AccessTable
from agent.state.journal import Journal
from tests.agent.samples import config_text
from tests.agent.state.test_journal import content, fill
from tests.integration.conftest import free_port

SECRET = "hunter2"  # noqa: S105 (an example)
CA = "no certificate"


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the configuration of a trial that ran, with a password beside it; we are there."""
    home = tmp_path / "home"
    home.mkdir()
    file = home / "agent.toml"
    broker = f'username = "home-7"  # ours\npassword_file = "{home}/agent.password"\n'
    port = free_port()  # nothing listens there
    source = f"https://127.0.0.1:{port}/t"
    access = f'access.token_file = "{home}/agent.meter-token"'
    text = config_text(
        home / "home-7.db", broker_port=port, broker=broker, port=source, meter=access
    )
    file.write_text(text)
    (home / "agent.meter-token").write_text(SECRET)
    (home / "agent.meter-token").chmod(0o600)
    (home / "agent.password").write_text(SECRET)
    (home / "agent.password").chmod(0o600)
    fill(Journal(home / "home-7.db")).close()
    monkeypatch.chdir(home)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return file


def set_up(trial: Path, where: Path, *more: str) -> int:
    given = ("-c", str(where / "agent.toml"), "--from", str(trial), "--yes")
    return main(["setup", *given, "--state", str(where / "state" / "home-7.db"), *more])


def test_a_place_that_run_refuses_is_refused_before_anything_moves_AGT_32(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "etc"
    (where / "state").mkdir(parents=True)
    (where / "state").chmod(0o1777)
    before = sorted(trial.parent.iterdir())
    assert set_up(trial, where) == 4
    assert "others may write to" in capsys.readouterr().err
    assert [*sorted(trial.parent.iterdir()), *where.iterdir()] == [*before, where / "state"]


def test_a_trial_goes_on_with_its_ledger_its_policy_and_its_password_AGT_31(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = parse_config(trial.read_text(), "old")
    with closing(Journal(trial.parent / "home-7.db", create=False)) as journal:
        before = content(journal)
    where = tmp_path / "etc"
    assert set_up(trial, where) == 4  # the broker is not there: written all the same
    said = capsys.readouterr().out
    assert "it goes on, without a new silence" in said
    assert "no new silence begins" in " ".join(said.split())
    assert "leaves after a silence" not in said
    assert "Connection refused" in said
    new = parse_config((where / "agent.toml").read_text(), "new")
    assert new.device.state == str(where / "state" / "home-7.db")
    assert new.broker.password_file == str(where / "agent.password")
    assert (new.policy, new.streams) == (old.policy, old.streams)
    assert new.meter is not None
    assert new.meter.access == AccessTable(token_file=str(where / "agent.meter-token"))
    for name in ("agent.password", "agent.meter-token"):
        assert (where / name).read_text() == SECRET
        assert (where / name).stat().st_mode & 0o777 == 0o600
        assert not (trial.parent / name).exists()  # no secret twice
    assert "# ours" in (where / "agent.toml").read_text()
    with closing(Journal(Path(new.device.state))) as journal:
        assert content(journal) == before
    assert not trial.exists()
    assert trial.with_name("agent.toml.before").exists()
    assert not (trial.parent / "home-7.db").exists()


def test_a_trial_that_runs_is_left_alone_AGT_31(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where, before = tmp_path / "etc", trial.read_text()
    with closing(Journal(trial.parent / "home-7.db")):
        assert set_up(trial, where) == 4
    assert "stop that agent first" in capsys.readouterr().err
    assert trial.read_text() == before
    assert not list(tmp_path.glob("etc/state/*.db"))
    assert not (where / "agent.toml").exists()


def test_a_service_that_has_a_state_of_its_own_keeps_it_AGT_31(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(Journal(tmp_path / "etc" / "state" / "home-7.db")).close()
    assert set_up(trial, tmp_path / "etc") == 4
    assert "another state is there" in capsys.readouterr().err
    assert trial.exists()
    assert not (tmp_path / "etc" / "agent.toml").exists()


@pytest.mark.parametrize(
    "option", [("--epsilon", "0.5"), ("--reports", "4"), ("--port", "/dev/null"), ("--no-tls",)]
)
def test_what_the_trials_file_says_is_not_said_again_AGT_31(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, ...]
) -> None:
    assert set_up(trial, tmp_path / "etc", *option) == 4
    assert f"setup: {option[0]}: the trial's file says it" in capsys.readouterr().err
    assert trial.exists()


def test_what_is_there_is_replaced_only_when_that_is_said_AGT_31(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = tmp_path / "etc"
    where.mkdir()
    (where / "agent.toml").write_text("an example")  # as packaging/install.sh leaves one
    assert set_up(trial, where) == 4
    assert "--replace" in capsys.readouterr().err
    assert set_up(trial, where, "--replace") == 4
    assert (where / "agent.toml.before").read_text() == "an example"
    assert (where / "state" / "home-7.db").exists()


def test_a_damaged_trial_begins_anew_and_says_so_AGT_31(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (trial.parent / "home-7.db").write_bytes(b"x" * 5000)
    assert set_up(trial, tmp_path / "etc") == 4
    said = capsys.readouterr().out
    assert "the state is damaged" in said
    assert "begins with a silence of one window" in said
    assert (trial.parent / "home-7.db").exists()


def test_a_trials_own_file_is_no_place_to_go_on_AGT_31(
    trial: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set_up(trial, trial.parent) == 4
    assert "is the file that would be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ('state = "/a/b.db"  # codes', 'state = "/c d"  # codes'),
        ("state='/a/b.db'", 'state= "/c d"'),
        ('  state  =   "/a\\"b"', '  state  = "/c d"'),
        ('estate = "/a"', 'estate = "/a"'),
        ('# state = "/a"', '# state = "/a"'),
    ],
)
def test_a_path_is_changed_in_its_own_line_and_table_alone_AGT_31(line: str, kept: str) -> None:
    text = f"[other]\n{line}\n[device]  # ours\n{line}\n[[streams]]\n{line}\n"
    assert rewritten(text, {("device", "state"): "/c d"}) == (
        f"[other]\n{line}\n[device]  # ours\n{kept}\n[[streams]]\n{line}\n"
    )


def test_a_file_that_names_its_places_otherwise_is_not_guessed_at_AGT_31(
    trial: Path, tmp_path: Path
) -> None:
    text = trial.read_text()
    head = text[text.index("[device]") : text.index("state =")]
    assert head.startswith("[device]\n")
    state = next(line for line in text.splitlines() if line.startswith("state ="))
    trial.write_text(text.replace(state, f'state = """{trial.parent}/home-7.db"""'))
    with pytest.raises(SetupError, match="a line of its own"):
        TrialFile(trial, tmp_path / "agent.toml", None)


def test_files_elsewhere_stay_where_they_are_AGT_31(trial: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "secrets"
    elsewhere.mkdir()
    (trial.parent / "agent.password").rename(elsewhere / "agent.password")
    old = f"{trial.parent}/agent.password"
    trial.write_text(trial.read_text().replace(old, "../secrets/agent.password"))
    moved = TrialFile(trial, tmp_path / "etc" / "agent.toml", "/var/lib/edge-ldp/home-7.db")
    assert {*moved.files()} == {tmp_path / "etc" / "agent.meter-token"}  # which lies beside
    assert Path(moved.config.broker.password_file or "").resolve() == elsewhere / "agent.password"
    assert Path(moved.config.broker.password_file or "").is_absolute()


@pytest.mark.parametrize(("device", "is_told"), [("home-7", True), ("home-8", False)])
def test_who_sets_up_anew_is_told_of_a_trial_that_lies_there_AGT_31(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], device: str, *, is_told: bool
) -> None:
    where = tmp_path / "etc"
    words = f"--fleet street --device {device} --broker 127.0.0.1:1 --no-tls --ceiling 4000 --yes"
    meter = ("--port", "/dev/null", "--set", 'protocol = "dsmr"')
    given = ("-c", f"{where}/agent.toml", *words.split(), *meter, "--clock", "assume")
    assert main(["setup", *given, "--password-file", str(trial.parent / "agent.password")]) == 4
    said = capsys.readouterr().err
    told = "agent.toml is a trial of home-7, with what it reported; to go on with it: --from"
    assert (told in said) == is_told
    assert (where / "agent.toml").exists() != is_told
    assert trial.exists()
