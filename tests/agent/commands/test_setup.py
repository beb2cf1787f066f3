"""What `agent setup` says where it cannot go on; all of it played: tests/integration."""

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from agent.commands.setup import found_meter
from agent.commands.setup.talk import SetupError, Talk
from agent.config import load_config
from agent.config.doubts import doubt_of_epsilon
from agent.main import main
from edge_ldp.arguments import epsilon_given
from tests.agent.samples import DEVICE
from tests.edge_ldp.protocol.test_invitation import INVITATION

PASSWORD = "Zq7!Xw9#Vk3$"  # noqa: S105 (an example: none of it is in any other word)
INVITED = replace(INVITATION, password=PASSWORD)
LINE, QR = INVITED.to_json().decode(), INVITED.to_text()
PIECE = 4  # characters of it that nothing else has


class Terminal(io.StringIO):
    """A person, and what he types."""

    def isatty(self) -> bool:
        return True


async def nowhere(*_: object) -> list[tuple[str, str]]:
    raise OSError


def without_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be neither a serial port nor a network."""
    monkeypatch.setattr(found_meter, "list_ports", list)
    monkeypatch.setattr("agent.ports.announced.announced_products", nowhere)


def test_an_input_that_ends_is_told_and_that_nothing_was_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    with pytest.raises(SetupError) as ended:
        Talk(is_silent=False).ask("the fleet's name", "--fleet")
    assert str(ended.value) == "setup: the input ended; nothing was written"
    assert capsys.readouterr().out == "the fleet's name: " * 2


def test_enter_is_the_answer_none_where_that_is_offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    without_ports(monkeypatch)
    assert main(["setup", "-c", f"{tmp_path}/agent.toml"]) == 4
    shown = capsys.readouterr()
    assert shown.out == "the invitation's file or text (Enter: none, I know the broker): "
    assert "no serial port was found" in shown.err, "the next step"


def test_whose_meter_it_is_is_asked_until_it_is_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("what?\nNO\n"))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("agent.commands.setup.found_meter.asyncio.run", lambda read: read.close())
    with pytest.raises(SetupError, match="another port"):
        found_meter._show(Talk(is_silent=False), ("[meter]", 'port = "/x"'))  # noqa: SLF001
    assert capsys.readouterr().out.count("is this your meter (y/n) [y]: ") == 2


def test_a_machine_without_a_serial_port_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    without_ports(monkeypatch)
    options = ("--broker", "localhost", "--device", DEVICE, "--yes")
    assert main(["setup", "-c", f"{tmp_path}/agent.toml", *options]) == 4
    assert capsys.readouterr().err.endswith(
        "setup: no serial port was found; plug the meter's adapter in, or name it: --port"
        " /dev/ttyUSB0, a dongle: --port http://ITS-ADDRESS, or your broker: --port mqtt://ITS-ADDRESS\n"
    )


def test_AGT_37_an_invitation_that_ran_out_is_refused_by_its_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    without_ports(monkeypatch)
    text = replace(INVITED, expires_s=1_700_000_000).to_text()
    assert main(["setup", "-c", f"{tmp_path}/agent.toml", "--yes", "--invitation", text]) == 4
    said = capsys.readouterr().err
    assert "--invitation: it was good until 2023-11-1" in said
    assert "ask the operator for another one" in said


def cut(text: str) -> Iterator[list[str]]:
    """Give what is left of a text that was cut at its end, at each place."""
    return ([text[:at]] for at in range(len(text)))


def beheaded(text: str) -> Iterator[list[str]]:
    return ([text[at:]] for at in range(1, len(text), 3))


def split(text: str) -> Iterator[list[str]]:
    """Give a text without quotes around it: the shell makes several arguments of it."""
    return ([text[:at], text[at:]] for at in range(1, len(text), 7))


def spoilt(text: str) -> Iterator[list[str]]:
    """Give a text with a character that no file's name has, or no encoding, at each place."""
    for foreign in ("\0", "\ud800", "\udcff", "/", "\n\n"):
        for at in range(0, len(text), 41):
            yield [text[:at] + foreign + text[at + 1 :]]
            yield [foreign + text[at:]]


def told(capsys: pytest.CaptureFixture[str], where: Path, *given: str) -> str:
    """Return what a setup says that cannot go on: there is no port."""
    try:
        code = main(["setup", "-c", f"{where}/agent.toml", "--yes", "--invitation", *given])
    except SystemExit as exc:  # of argparse
        code = int(exc.code or 0)
    assert code
    return "".join(capsys.readouterr())


def shows_a_piece(said: str, text: str) -> bool:
    """Say whether anything of the password is there, or of the QR code's text that holds it."""
    pieces = [PASSWORD[at : at + PIECE] for at in range(len(PASSWORD) - PIECE + 1)]
    if text == QR:
        code = QR.partition(":")[2]
        pieces += [code[at : at + 2 * PIECE] for at in range(len(code) - 2 * PIECE + 1)]
    return any(piece in said for piece in pieces)


@pytest.fixture
def portless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give the directory of a machine without ports."""
    without_ports(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# each try makes the command's parser: all of some 700 places are slow
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("text", [LINE, QR], ids=["line", "qr"])
@pytest.mark.parametrize("damage", [cut, beheaded, split, spoilt])
def test_no_failing_setup_shows_anything_of_an_invitation_s_password(
    damage: Callable[[str], Iterator[list[str]]],
    text: str,
    every: int,
    capsys: pytest.CaptureFixture[str],
    portless: Path,
) -> None:
    for given in islice(damage(text), 0, None, every):
        assert not shows_a_piece(told(capsys, portless, *given), text), given


@pytest.mark.parametrize("text", [LINE, QR], ids=["line", "qr"])
@pytest.mark.parametrize("by", ["file", "stdin", "text"])
def test_an_invitation_that_was_cut_is_asked_for_again_wherever_it_was_cut(
    by: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    file = tmp_path / "home.invitation"
    given = {"file": str(file), "stdin": "-"}
    shown = {"file": str(file), "stdin": "standard input", "text": "--invitation"}[by]
    for at in range(len("edge-ldp:"), len(text), 5):
        file.write_text(text[:at])
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text[:at].encode())))
        said = told(capsys, tmp_path, given.get(by, text[:at]))
        assert f"{shown}: is it whole? If not, ask the operator for it again" in said
        assert not shows_a_piece(said, text)


def test_an_invitation_of_another_version_is_whole(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = told(capsys, tmp_path, '{"version": 2}')
    assert "whole" not in said
    assert "the newer side must wait" in said


def test_a_file_that_is_there_and_cannot_be_read_is_named_and_another_name_is_not(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert f"{tmp_path}: Is a directory; name the invitation's file" in told(
        capsys, tmp_path, str(tmp_path)
    )
    assert "agent: --invitation: No such file or directory; name the invitation's file" in told(
        capsys, tmp_path, PASSWORD
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("--epsilon zero", "--epsilon: expected a number above 2**-16 and at most 32"),
        ("--epsilon NaN", "--epsilon: expected a number above 2**-16 and at most 32"),
        ("--reports x", "--reports: expected a whole number above 0, not 'x'"),
        ("--reports 98", "--reports: expected 1 to slots times streams"),
        ("--slots 1.5", "--slots: expected a whole number above 0"),
        ("--ceiling 0", "--ceiling: expected a whole number above 0"),
        ("--seconds nan", "--seconds: expected seconds, above 0 and at most 604800"),
        ("--broker b:x", "--broker, its port: expected a port, 1 to 65535, not 'x'"),
        ("--device A!", "--device: expected 1 to 63 of a-z"),
        ("--give all", "invalid choice: 'all'"),
        ("--share 1.5", "--share: expected a part of the window's ε, such as 0.75, not '1.5'"),
        ("--give sums --least-b 1 --days 400", "--days: expected `int` >= 1 and <= 366"),
        ("--give sums --days 3", "--give reports, or say how much noise there is at least"),
    ],
)
def test_an_option_that_cannot_be_taken_says_what_is_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, told: str
) -> None:
    file = tmp_path / "agent.toml"
    usual = "--yes --port /dev/null --fleet f --device d --broker b --no-tls --ceiling 9000"
    words = [*usual.split(), "--set", 'protocol = "dsmr"', *given.split()]
    try:
        code = main(["setup", "-c", str(file), *words])
    except SystemExit as ended:
        code = int(ended.code or 0)
    said = capsys.readouterr().err
    assert (code in (2, 4), told in said, "TOML" in said) == (True, True, False), said
    assert not file.exists()


def all_but_epsilon(place: Path, give: str = "--give reports") -> list[str]:
    """Return options that answer every question before that for ε; nothing listens there."""
    password = place / "password"
    password.write_text("x")
    password.chmod(0o600)
    words = "--port /dev/null --fleet f --device d --broker 127.0.0.1:1 --no-tls --username d"
    words += f" {give}"
    return [*words.split(), "--password-file", str(password), "--set", 'protocol = "dsmr"']


def test_a_number_that_is_typed_is_taken_as_strictly_and_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("many\n9000\nzero\n"))
    file = str(tmp_path / "agent.toml")
    assert main(["setup", "-c", file, *all_but_epsilon(tmp_path)]) == 4
    said = capsys.readouterr()
    assert "expected a whole number above 0, not 'many'\nlargest p" in said.out
    told = "expected a number above 2**-16 and at most 32, such as 1 or 0.5, not 'zero'\nε of one"
    assert told in said.out
    assert "the input ended; nothing was written" in said.err


@pytest.mark.parametrize(("reports", "codes"), [("4", "4 codes leave"), ("1", "1 code leaves")])
def test_what_epsilon_means_is_said_before_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    reports: str,
    codes: str,
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(""))
    words = [*all_but_epsilon(tmp_path), "--ceiling", "9000", "--reports", reports]
    assert main(["setup", "-c", f"{tmp_path}/agent.toml", *words]) == 4
    said = " ".join(capsys.readouterr().out.split())
    meant, asked, _ = said.partition("ε of one report:")
    assert asked
    assert "likelier than another: 2.72 with ε 1, 1.65 with ε 0.5, 7.39 with ε 2." in meant
    assert f"At most {codes} this home in any 24 h 15 min." in meant


def test_beside_sums_fewer_codes_leave_and_that_is_said_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("neither\nboth\n7\n1\ny\n"))
    words = [*all_but_epsilon(tmp_path, give=""), "--ceiling", "17250"]
    config = tmp_path / "agent.toml"
    assert main(["setup", "-c", str(config), *words]) == 4  # nothing listens there
    said = " ".join(capsys.readouterr().out.split())
    assert "expected reports, sums or both, not 'neither'" in said
    assert "At most 2 codes leave this home in any 24 h 15 min." in said
    assert "Every 7 days what power added up to leaves this home once" in said
    (stream,) = load_config(config).streams
    assert (stream.mode, stream.sums and stream.sums.days) == ("both", 7)


@pytest.mark.parametrize(
    ("typed", "given", "taken", "asked"),
    [
        ("12\n\n", None, "12", 1),
        ("12\n2\n", None, "2", 1),
        ("12\n0.05\n\n", None, "0.05", 2),
        ("12\nx\n1\n", None, "1", 1),
        ("\n", None, "1", 0),
        ("\n", 9, "9", 1),
    ],
)
def test_an_epsilon_out_of_the_ordinary_is_asked_back_and_enter_keeps_it(  # noqa: PLR0913, PLR0917 (a table)
    typed: str,
    given: int | None,
    taken: str,
    asked: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    talk = Talk(is_silent=False)
    answer = talk.taken("ε", "--epsilon", epsilon_given, "1", given=given, doubt=doubt_of_epsilon)
    assert str(answer) == taken
    assert capsys.readouterr().out.count("1 is usual") == asked


def test_where_nobody_is_there_nothing_is_asked_back() -> None:
    talk = Talk(is_silent=True)
    answer = talk.taken("ε", "--epsilon", epsilon_given, given=12, doubt=doubt_of_epsilon)
    assert answer == 12
