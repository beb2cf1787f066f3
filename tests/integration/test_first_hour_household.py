"""docs/first-hour-household.md, played literally: from pip to a counted report in ten minutes.

`$METER` is a simulated meter, and slots take a second, so that the silence of 97 slots takes
minutes and not a day; all of it runs at real speed. Where the machine's clock is not synchronised
(a container), setup is told `--clock assume`. Slow: in a clean Debian that holds only Python, the
broker, the aggregator and the meters being outside of it; what is not on an index yet is built from
this tree. Fast: the same, with what is installed here and a window of five slots. Then the trial
becomes a service, as the page has it: in a clean Debian by packaging/install.sh (AGT-31).
"""

import asyncio
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from agent.meters.protocols import PROTOCOLS
from agent.meters.reading import UNITS
from edge_ldp.protocol.invitation import Invitation, InvitedBroker, InvitedStream
from edge_ldp.protocol.messages import topic
from edge_ldp.service.broker import Broker
from edge_ldp.service.clock import kernel_synchronised
from edge_ldp.service.mqtt import open_link
from tests import needs
from tests.integration.certificates import Authority
from tests.integration.conftest import OPEN, RealBroker, free_port
from tests.packaging.test_clean_root import DEBIAN, play

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "first-hour-household.md"
MOST_S = 600
A_CLONE = 'git clone -q . "$HOME/edge-ldp" && cd "$HOME/edge-ldp"'
MOST_COMMANDS = 10  # seven to a counted report, three more to a service
FLEET, SECRET = "village", "right-horse"
STREAMS = ("power", "apparent_power")
POWERS = {"linky": "apparent_power"}
ALL = ("dsmr", "sml", "linky", "iec62056-21", "modbus", "lines")
DONGLES = ("homewizard-v2", "esphome")
PRESSES_S = 5.0
INSTALLING = 2  # commands that come first
INSTALLED = 'export PATH="$HOME/bin:$PATH"'  # in place of these
BROKER = """
listener {{port}} 127.0.0.1
user root
allow_anonymous false
password_file {0}/passwords
acl_file {0}/acl
"""
AGGREGATOR = """
fleet = "{fleet}"
[broker]
host = "127.0.0.1"
port = {port}
username = "aggregator"
password_file = "{directory}/aggregator.password"
[store]
path = "{directory}/aggregator.db"
[intake]
receipt_interval_s = 5
"""
STREAM = """
[[streams]]
name = "{name}"
id = {id}
unit = "{unit}"
ceiling = 17250
epsilon = 1
slot_seconds = 1
"""
HOUR = """
HOME={home} METER={meter} PIP_DISABLE_PIP_VERSION_CHECK=1
export HOME METER PIP_DISABLE_PIP_VERSION_CHECK
mkdir -p "$HOME" && {place}
printf %s {invitation} > home-0001.invitation
began=$(date +%s)
{first}
echo $! > pid
end() {{ kill $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.2; done; cat run.log; }}
trap end EXIT
until {counted}; do
    [ $(($(date +%s) - began)) -lt {most} ] || exit 1
    sleep 2
done
echo "counted after $(($(date +%s) - began)) s"
{later}
"""
EXPLAINED = "edge-ldp agent explain -c agent.toml | grep -q '[1-9][0-9]* arrived'"
LOOKED = (  # by the household's page alone
    "python3 -c 'from urllib.request import urlopen as get; "
    'print(get("http://127.0.0.1:{}/").read().decode())\' | tee page.html | '
    "grep -Eq '>ever</th><td>[0-9]+</td><td>[1-9]'"
)
SERVICE = """
end
edge-ldp agent ledger -c agent.toml --json
{lines}
edge-ldp agent run -c {file} > run.log 2>&1 &
echo $! > pid
made() {{ edge-ldp agent ledger -c {file} --json; }}
reports() {{ made | sed 's/.*"total": {{"reports": \\([0-9]*\\).*/\\1/'; }}
began_with=$(reports)
until [ $(reports) -gt $began_with ]; do
    [ $(($(date +%s) - began)) -lt {most} ] || exit 1
    sleep 2
done
echo "gone on" && made
"""


def blocks() -> list[list[str]]:
    found = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [block.splitlines() for block in found]


def test_the_page_has_few_commands() -> None:
    assert sum(map(len, blocks())) <= MOST_COMMANDS
    assert len(blocks()) == 3


def test_every_protocol_is_played() -> None:
    assert set(ALL) == set(PROTOCOLS)


@contextmanager
def process(*command: str | Path, log: Path, first: str = "") -> Iterator[subprocess.Popen[str]]:
    """Give a process that has said its first line; end it afterwards."""
    with (
        log.open("ab") as err,
        subprocess.Popen(
            [sys.executable, "-m", "edge_ldp.cli", *map(str, command)],
            stdout=subprocess.PIPE if first else err,
            stderr=err,
            text=True,
        ) as running,
    ):
        try:
            said = running.stdout.readline() if running.stdout else ""
            assert said.startswith(first), log.read_text()
            yield running
        finally:
            running.terminate()
            running.wait(300)


class Village:
    """A broker with the shipped access list, an aggregator, and a meter of each protocol."""

    def __init__(self, directory: Path, make_broker: Callable[[str], RealBroker]) -> None:
        self.directory = directory
        program = needs.program("mosquitto_passwd")
        for at, name in enumerate(("aggregator", *ALL, *DONGLES)):
            new = ["-c"] if at == 0 else []
            subprocess.run([program, "-b", *new, directory / "passwords", name, SECRET], check=True)
        (directory / "aggregator.password").write_text(SECRET)
        (directory / "aggregator.password").chmod(0o600)
        rights = (ROOT / "config" / "acl").read_text().replace("v1/demo/", f"v1/{FLEET}/")
        (directory / "acl").write_text(rights)
        self.port = make_broker(BROKER.format(directory)).port
        self.own = make_broker(OPEN).port  # a household's
        self.config = directory / "aggregator.toml"
        text = AGGREGATOR.format(fleet=FLEET, port=self.port, directory=directory)
        for number, name in enumerate(STREAMS, 1):
            text += STREAM.format(name=name, id=number, unit=UNITS[name])
        self.config.write_text(text)

    def invitation(self, protocol: str) -> str:
        """Return what the operator gives to a home; its device is named after its meter."""
        quantity = POWERS.get(protocol, "power")
        stream = InvitedStream(quantity, quantity, UNITS[quantity], 0, 17_250, 1)
        broker = InvitedBroker("127.0.0.1", self.port, tls=False)
        made = Invitation(FLEET, protocol, broker, protocol, SECRET, (), (stream,))
        return made.to_json().decode()

    @contextmanager
    def living(self, *protocols: str) -> Iterator[dict[str, str]]:
        """Run the aggregator and meters; give each meter's port."""
        with ExitStack() as stack:
            log = self.directory / "aggregator.log"
            stack.enter_context(process("aggregator", "run", "-c", self.config, log=log))
            asyncio.run(self._planned())  # a household comes when its fleet is there
            ports = {}
            for protocol in protocols:
                if protocol in DONGLES:
                    ports[protocol] = stack.enter_context(self._dongle(protocol))
                    continue
                link, log = self.directory / protocol, self.directory / f"{protocol}.log"
                meter = ("simulate", "meter", "--link", link, "--protocol", protocol)
                step = ("--data", "constant:378", "--step", "1")
                stack.enter_context(process(*meter, *step, log=log, first="meter at"))
                ports[protocol] = str(link.readlink())  # of this kernel, also in a root
            yield ports

    @contextmanager
    def _dongle(self, product: str) -> Iterator[str]:
        """Run a product; give its address. Somebody presses its button again and again."""
        command = ("simulate", "meter", "--product", product, "--data", "constant:378")
        where: tuple[str, ...] = ("--broker", str(self.own))
        address = f"mqtt://127.0.0.1:{self.own}"
        if product == "homewizard-v2":
            pair = Authority(self.directory / "own").issue("appliance", "appliance")
            file, port = self.directory / "own.pem", free_port()
            file.write_bytes(pair.cert.read_bytes() + pair.key.read_bytes())
            where, address = (
                ("--listen", str(port), "--tls", str(file)),
                f"https://127.0.0.1:{port}",
            )
        log, over = self.directory / f"{product}.log", Event()
        with process(*command, *where, "--step", "1", log=log, first="meter at") as running:

            def press() -> None:
                while not over.wait(PRESSES_S):
                    running.send_signal(signal.SIGUSR1)

            pressing = Thread(target=press)
            if product == "homewizard-v2":
                pressing.start()
            yield address
            over.set()

    async def _planned(self) -> None:
        """Return once the broker holds the plans of all streams."""
        link = await open_link(
            Broker("127.0.0.1", self.port, "waits", username="aggregator", password=SECRET)
        )
        topics = {topic(FLEET, "plan", name) for name in STREAMS}
        await link.subscribe(sorted(topics))
        async with asyncio.timeout(MOST_S):
            while topics:
                topics.discard((await link.receive()).topic)
        await link.close()

    def script(  # noqa: PLR0913 (what the script is made of)
        self,
        protocol: str,
        meter: str,
        home: Path,
        first: list[str],
        *,
        in_clone: bool,
        service: str = "",
        page: int = 0,
    ) -> str:
        """Return the page's commands as one script; `first`: those of its first block."""
        *before, run = (
            line + f" --page {page}" if page and " agent setup " in line else line for line in first
        )
        if protocol in DONGLES:  # which are asked as seldom as no fleet's slots last here
            before.append("sed -i 's/^port = \"https.*/&\\npoll_ms = 200/' agent.toml")
        if protocol == "lines":  # what setup says to add, with the name of what is the power
            setup = before.pop()
            before += [
                f"{setup} > said 2>&1 && exit 1; cat said",
                f"eval {shlex.quote(setup)} \"$(sed -n 's/NAME/power/;s/.*with: //p' said)\"",
            ]
        return "set -e" + HOUR.format(
            home=home,
            meter=meter,
            place=A_CLONE if in_clone else f'cd "$HOME" && {INSTALLED}',
            invitation=shlex.quote(self.invitation(protocol)),
            first="\n".join([*before, f"{run.removesuffix('&')} > run.log 2>&1 &"]),
            most=MOST_S,
            counted=LOOKED.format(page) if page else EXPLAINED,
            later="\n".join([*blocks()[1], service]),
        )


def with_clock(commands: list[str], more: str = "") -> list[str]:
    """Return the commands with what setup must be told here."""
    clock = "" if kernel_synchronised() else " --clock assume"
    bounds = " --least-slot 1 --fuse 17250"  # the tests' fleets hurry, and are of small homes
    return [line + clock + bounds + more if " agent setup " in line else line for line in commands]


def as_service(*, installs: bool) -> str:
    """Return the commands by which a trial becomes a service; not `installs`: in another place."""
    _, install, setup = (line.removeprefix("sudo ") for line in blocks()[2])
    file = "/etc/edge-ldp/agent.toml"
    if not installs:
        assert file in setup
        setup = setup.replace(file, "service/agent.toml --state service/state/home.db")
        install, file = "", "service/agent.toml"
    return SERVICE.format(lines=f"{install}\n{setup}", file=file, most=MOST_S)


def goes_on(said: str) -> None:
    """Expect that the service's ledger is the trial's, with more reports and no other silence."""
    rows = [json.loads(line) for line in said.splitlines() if line.startswith('{"v": 1, "now_s"')]
    before, after = rows
    assert before["state"] == after["state"] == "reporting", said
    assert after["total"]["reports"] > before["total"]["reports"] > 0, said
    assert "it goes on, without a new silence" in said
    own = said.partition("\ngone on\n")[2].partition("\nin_root: ")[0]  # not later homes' logs
    assert "silent until" not in own, said


def is_well(said: str) -> None:
    assert re.search(r"[1-9]\d* arrived", said), said
    assert "next: edge-ldp agent run -c agent.toml" in said, said
    assert re.search(r"health +ok", said), said
    assert re.search(r"last telegram +\d+ s ago", said), said
    assert re.search(r"silent until \S+ \S+ UTC: .*no fault", said), said


@pytest.mark.integration
@pytest.mark.timeout(MOST_S)
@pytest.mark.parametrize(
    "protocol",
    [ALL[0], *(pytest.param(one, marks=pytest.mark.slow) for one in (*ALL[1:], *DONGLES))],
)
def test_the_pages_commands_lead_to_a_counted_report_and_a_service_that_goes_on_AGT_31(
    tmp_path: Path, make_broker: Callable[[str], RealBroker], protocol: str
) -> None:
    village, home = Village(tmp_path, make_broker), tmp_path / "home"
    program = home / "bin" / "edge-ldp"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m edge_ldp.cli "$@"\n')
    program.chmod(0o755)
    commands = with_clock(blocks()[0][INSTALLING:], " --reports 2 --slots 5")
    with village.living(protocol) as ports:
        service = as_service(installs=False)
        script = village.script(
            protocol, ports[protocol], home, commands, in_clone=False, service=service
        )
        done = subprocess.run(
            ["sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
        )
        command = f"{program} aggregator completeness --json -c {village.config}"
        asked = subprocess.run(shlex.split(command), check=True, stdout=subprocess.PIPE)
        accounts = json.loads(asked.stdout)
    assert done.returncode == 0, done.stdout
    is_well(done.stdout)
    goes_on(done.stdout)
    assert accounts["holds"], accounts  # one account of one device: nothing was made twice
    assert (accounts["totals"]["conflicts"], accounts["totals"]["rejected"]) == (0, 0)


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.timeout(2 * 3600)
@pytest.mark.parametrize("homes", [ALL, DONGLES], ids=["cables", "dongles"])
@pytest.mark.parametrize("suite", DEBIAN)
def test_in_a_clean_debian_each_home_is_counted_within_ten_minutes(
    tmp_path: Path, make_broker: Callable[[str], RealBroker], suite: str, homes: tuple[str, ...]
) -> None:
    """Homes with a dongle look at nothing but their page."""
    village, commands = Village(tmp_path, make_broker), with_clock(blocks()[0])
    with village.living(*homes) as ports:
        scripts = [
            village.script(
                one,
                ports[one],
                Path("/root") / one,
                commands,
                in_clone=True,
                service=as_service(installs=True) if one == ALL[0] else "",
                page=free_port() if one in DONGLES else 0,
            )
            for one in homes
        ]
        done = play(suite, "", *(f"sh -c {shlex.quote(script)}" for script in scripts))
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stdout[-8000:]
    spent_s = [int(text) for text in re.findall(r"counted after (\d+) s", done.stdout)]
    assert len(spent_s) == len(homes)
    assert max(spent_s) <= MOST_S, spent_s
    if homes == ALL:
        goes_on(done.stdout)
    for said in re.split(r"counted after \d+ s", done.stdout)[1:]:
        assert re.search(r"[1-9]\d* arrived", said), said
