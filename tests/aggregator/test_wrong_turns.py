"""The table of wrong turns in docs/first-hour-operator.md: each says what, and what to do.

Brokers, ports and what the system forbids are real.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from aggregator.answers.curve_answer import curve_answer, curve_text
from aggregator.commands.common import EXIT_CONFIG
from aggregator.config import load_config, parse_config
from aggregator.main import main
from aggregator.store.opening import open_store
from edge_ldp import cli
from firmware_stubs.simulator.homes_command import main as simulate_homes
from tests import disk, needs
from tests.aggregator.answers.test_units import curve_of
from tests.aggregator.commands.test_query import two_feeders
from tests.aggregator.engines import Engine
from tests.aggregator.fakes import CONFIG
from tests.forked import Forked
from tests.processes import answers, run_told
from tests.unprivileged import close_to_others, told_to_nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "first-hour-operator.md"
PROCESS_S = 120  # a machine that is busy
TURNS: dict[str, Callable[[Desk], str]] = {}


def table() -> dict[str, tuple[str, str]]:
    """Return message and remedy of each row of the page."""
    part = PAGE.read_text().partition("## Wrong turns")[2]
    rows = [line.split("|")[1:-1] for line in part.splitlines() if line[:2] == "| "]
    cells = [[cell.strip() for cell in row] for row in rows[2:]]
    return {turn.replace("`", ""): (_code(said), _code(remedy)) for turn, said, remedy in cells}


def _code(cell: str) -> str:
    """Return what a cell shows: in two backquotes where there are some in it."""
    return cell[3:-3] if cell[:2] == "``" else cell.strip("`")


def turn(name: str) -> Callable[[Callable[[Desk], str]], None]:
    def add(provoke: Callable[[Desk], str]) -> None:
        TURNS[name] = provoke

    return add


class Desk:
    """An operator's place, which the broker's user may enter; `file` is of a fleet set up there."""

    def __init__(self, place: Path, patch: pytest.MonkeyPatch) -> None:
        self.place = place
        self.patch = patch

    def says(self, *command: str, by: Callable[[Sequence[str]], int] = main) -> str:
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out), suppress(SystemExit):
            by(command)
        return out.getvalue()

    def set_up(self, *options: str) -> Path:
        self.says("setup", str(self.place / "fleet"), "--port", str(free_port()), *options)
        return self.place / "fleet" / "aggregator.toml"

    def changed(self, old: str, new: str, *options: str) -> Path:
        file = self.set_up(*options)
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))
        return file

    def regrouped(self) -> Path:
        """Return the same where nine homes report in one group and fifteen in the other."""
        return self.feeders(moved=3)

    def feeders(self, moved: int = 0) -> Path:
        """Return the configuration of a store with two groups of 12 homes."""
        path = self.place / "a.db"
        text = two_feeders(Engine("sqlite", f'path = "{path}"', path, ""), moved)
        file = self.place / "aggregator.toml"
        file.write_text(text)
        return file


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    place = Path(tempfile.mkdtemp(prefix="desk-", dir=disk.place()))
    place.chmod(0o755)
    yield Desk(place, monkeypatch)
    shutil.rmtree(place)


turn("a misspelled command")(lambda desk: desk.says("agregator", by=cli.main))
turn("a misspelled verb")(lambda desk: desk.says("quary"))
turn("no configuration there")(lambda desk: desk.says("check", "-c", str(desk.place / "no.toml")))


@turn("a configuration of another user")
def _(desk: Desk) -> str:
    file, none = desk.set_up(), str(desk.place / "none.toml")
    close_to_others(file)
    return told_to_nobody("aggregator", ["check", "-c", none], ["check", "-c", str(file)])


turn("a misspelled key")(
    lambda desk: desk.says("check", "-c", str(desk.changed("ceiling =", "ceilin =")))
)


@turn("a directory with something in it")
def _(desk: Desk) -> str:
    return desk.says("setup", str(desk.set_up().parent))


@turn("a place that the broker may not enter")
def _(desk: Desk) -> str:
    desk.patch.setattr("os.geteuid", lambda: 0)  # of others only root's broker is another user
    (desk.place / "closed").mkdir(mode=0o700)
    return desk.says("setup", str(desk.place / "closed" / "fleet"))


@turn("another broker has the port")
def _(desk: Desk) -> str:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        return desk.says("setup", str(desk.place / "fleet"), "--port", str(taken.getsockname()[1]))


@turn("--host without the extra sign")
def _(desk: Desk) -> str:
    """Run where all is installed but what the extra brings: by a path of links to the rest."""
    seen = desk.place / "packages"
    seen.mkdir()
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for package in Path(place).iterdir():
            if not package.name.startswith("cryptography"):
                (seen / package.name).symlink_to(package)
    words = ["setup", str(desk.place / "fleet"), "--host", "x", "--port", str(free_port())]
    done = run_told(
        [sys.executable, "-S", "-m", "edge_ldp.cli", "aggregator", *words],
        timeout=PROCESS_S,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{seen}"},
        cwd=ROOT,
    )
    assert done.returncode == EXIT_CONFIG, done.stderr
    return done.stderr


turn("a ceiling in kW")(
    lambda desk: desk.says("setup", str(desk.place / "fleet"), "--ceiling", "9")
)
turn("ε above 8")(lambda desk: desk.says("check", "-c", str(desk.set_up("--epsilon", "9"))))


@turn("a second aggregator")
def _(desk: Desk) -> str:
    file = desk.set_up()
    with closing(open_store(load_config(file), str(file))):
        return desk.says("run", "-c", str(file))


@turn("an unsynchronised clock")
def _(desk: Desk) -> str:
    # as the kernel says it: no test may step a machine's clock
    desk.patch.setattr("aggregator.running.trial.kernel_synchronised", lambda: False)
    return desk.says("check", "--live", "-c", str(desk.set_up()))


turn("the broker does not run")(lambda desk: run(desk, desk.set_up()))


@turn("the broker stopped while it runs")
def _(desk: Desk) -> str:
    file = desk.set_up()
    with serving(desk) as stops:
        return run(desk, file, then=stops.terminate)


def run(desk: Desk, file: Path, then: Callable[[], None] | None = None) -> str:
    """Return what a service logs until it tries again; `then`: what happens once it is linked."""
    log = desk.place / "log"
    service = Forked(["aggregator", "run", "-c", str(file)], log=log)
    try:
        if then is not None:
            wait_for(": epoch", log)  # until then another link may be what breaks
            then()
        wait_for("connecting again", log)
    finally:
        service.terminate()
        service.wait(PROCESS_S)
    return log.read_text()


@contextmanager
def serving(desk: Desk) -> Iterator[subprocess.Popen[bytes]]:
    """Run the broker of the fleet that was set up; it is there when its port answers."""
    file = desk.place / "fleet" / "broker" / "mosquitto.conf"
    with started([needs.program("mosquitto"), "-c", str(file)], subprocess.DEVNULL) as broker:
        deadline = time.monotonic() + PROCESS_S
        for port in map(int, re.findall(r"^listener (\d+)", file.read_text(), re.MULTILINE)):
            while not answers(port):
                assert broker.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
        yield broker


@contextmanager
def started(command: Sequence[str], out: int | IO[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=out, stderr=out, cwd=ROOT)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PROCESS_S)


def wait_for(words: str, log: Path) -> None:
    deadline = time.monotonic() + PROCESS_S
    while words not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


@turn("TLS against a plain port")
def _(desk: Desk) -> str:
    file = desk.changed('host = "127.0.0.1"', 'host = "127.0.0.1"\ntls = true')
    with serving(desk):
        return run(desk, file)


def met_by_tls(desk: Desk, lines: str) -> str:
    """Return what a service says of its broker's TLS port with these lines in [broker]."""
    port, secure = free_port(), free_port()
    desk.says("setup", str(desk.place / "fleet"), "--host", "localhost",
              "--port", str(port), "--tls-port", str(secure))  # fmt: skip
    file = desk.place / "fleet" / "aggregator.toml"
    plain = f'host = "127.0.0.1"\nport = {port}'
    text = file.read_text()
    assert plain in text
    file.write_text(text.replace(plain, f'host = "localhost"\nport = {secure}\n{lines}'))
    with serving(desk):
        return run(desk, file)


turn("no TLS against a TLS port")(lambda desk: met_by_tls(desk, ""))
turn("a private authority, and no ca_file")(lambda desk: met_by_tls(desk, "tls = true"))


@turn("a wrong password")
def _(desk: Desk) -> str:
    file = desk.set_up()
    (file.parent / "aggregator.password").write_text("wrong")
    with serving(desk):
        return run(desk, file)


@turn("a right that the broker does not give")
def _(desk: Desk) -> str:
    file = desk.set_up()
    rights = file.parent / "broker" / "acl"
    lines = rights.read_text().splitlines(keepends=True)
    kept = [line for line in lines if "topic readwrite edge-ldp/v1/homes/plan/" not in line]
    assert len(kept) < len(lines)
    rights.write_text("".join(kept))
    with serving(desk):
        return run(desk, file)


@turn("PostgreSQL is away")
def _(desk: Desk) -> str:
    url = f'url = "postgresql://127.0.0.1:{free_port()}/fleet"'
    file = desk.changed(f'path = "{desk.place}/fleet/aggregator.db"', url)
    return desk.says("status", "-c", str(file))


turn("invited while the broker does not run")(
    lambda desk: desk.says("devices", "invite", "-c", str(desk.set_up()), "home-1")
)


@turn("invited twice")
def _(desk: Desk) -> str:
    invite = ("devices", "invite", "-c", str(desk.set_up()), "home-1")
    desk.says(*invite)
    return desk.says(*invite)


@turn("reinstated, and still refused")
def _(desk: Desk) -> str:
    file = str(desk.set_up())
    desk.says("devices", "invite", "-c", file, "home-1")
    desk.says("devices", "revoke", "-c", file, "home-1")
    return desk.says("devices", "reinstate", "-c", file, "home-1")


def fast_clock() -> str:
    return f"[clock]\norigin_s = 0.0\nstarted_s = {time.time()!r}\nrate = 9000.0\n"


def simulated(file: Path, desk: Desk) -> str:
    return desk.says("--of", str(file), by=simulate_homes)


turn("simulated homes among real ones")(
    lambda desk: simulated(desk.changed("[intake]", fast_clock() + "[intake]"), desk)
)
turn("simulated homes on a real clock")(lambda desk: simulated(desk.set_up(), desk))


@turn("a rehearsal of last week")
def _(desk: Desk) -> str:
    file = desk.set_up("--rehearsal")
    lines = file.read_text().splitlines()
    lines = ["started_s = 1000000000.0" if one[:9] == "started_s" else one for one in lines]
    file.write_text("\n".join(lines))
    return simulated(file, desk)


turn("nothing runs")(lambda desk: desk.says("status", "-c", str(desk.set_up())))
turn("asked too early")(lambda desk: desk.says("query", "-c", str(desk.set_up())))


@turn("asked of few devices")
def _(desk: Desk) -> str:
    return desk.says("query", "-c", str(desk.regrouped()), "--group", "north")


@turn("a group that is nearly all")
def _(desk: Desk) -> str:
    return desk.says("query", "-c", str(desk.regrouped()), "--group", "south")


@turn("a curve of few homes")
def _(_desk: Desk) -> str:
    stream = parse_config(CONFIG.format(path="a.db", intake=""), "x").streams[0]
    return curve_text(curve_answer(stream, curve_of(500.0, 1000.0)))


@turn("a threshold that devices refuse")
def _(desk: Desk) -> str:
    return desk.says("plan", "publish", "-c", str(desk.feeders()), "--theta", "1001")


@turn("a backup over another")
def _(desk: Desk) -> str:
    backup = ("backup", "-c", str(desk.set_up()), str(desk.place / "a.bak"))
    desk.says(*backup)
    return desk.says(*backup)


@turn("what is restored is no backup")
def _(desk: Desk) -> str:
    file, junk = desk.set_up(), desk.place / "junk"
    junk.write_bytes(b"no backup" * 1000)
    before = sorted(file.parent.iterdir())
    told = desk.says("restore", "-c", str(file), str(junk))
    assert sorted(file.parent.iterdir()) == before
    return told


@turn("restored while it runs")
def _(desk: Desk) -> str:
    file, backup = desk.set_up(), desk.place / "a.bak"
    desk.says("backup", "-c", str(file), str(backup))
    with closing(open_store(load_config(file), str(file))):
        return desk.says("restore", "-c", str(file), str(backup))


def test_the_page_has_every_turn_and_no_other() -> None:
    assert list(table()) == list(TURNS)


@pytest.mark.parametrize("name", TURNS)
def test_a_wrong_turn_says_what_and_what_to_do(name: str, desk: Desk) -> None:
    said, remedy = table()[name]
    told = TURNS[name](desk)
    assert said in told, told
    assert remedy in told, told
    assert "Traceback" not in told


def test_setup_warns_of_what_check_warns_of(desk: Desk) -> None:
    told = "power: ε 12 hides little: one report may make one value"
    setup = ("setup", str(desk.place / "fleet"), "--port", str(free_port()))
    assert "--rehearsal: expected no --host" in desk.says(*setup, "--host", "x", "--rehearsal")
    assert told in desk.says(*setup, "--epsilon", "12", "--json")


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("--epsilon", "zero", "expected a number above 2**-16 and at most 32, such as 1 or 0.5"),
        ("--epsilon", "NaN", "expected a number above 2**-16 and at most 32"),
        ("--port", "99999", "expected a port, 1 to 65535, not '99999'"),
        ("--slot-seconds", "0", "expected a whole number above 0"),
        ("--zone", "Mars/X", "expected a time zone"),
        (
            "--zone",
            "berlin",
            'expected a time zone, as "UTC" or "Europe/Berlin", not "berlin"',
        ),
        ("--host", "a b", "expected a name or address"),
        ("--ceiling", "9", "survey_size: expected at most ceiling - low + 1"),
    ],
)
def test_an_option_of_setup_says_what_it_takes(
    desk: Desk, option: str, text: str, told: str
) -> None:
    said = desk.says("setup", str(desk.place / "fleet"), option, text)
    assert f"{option}: {told}" in said
    assert "TOML" not in said
    assert not (desk.place / "fleet").exists()
