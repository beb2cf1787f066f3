"""The command hands over to the part that serves, and says what is missing in one sentence."""

import os
import re
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from edge_ldp import cli
from edge_ldp.extras import pip_install
from tests.processes import run_told


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--help"], 0, [f"  {name} " for name in cli.COMMANDS]),
        (["--version"], 0, [f"edge-ldp {version('edge-ldp')}\n"]),
        ([], cli.EXIT_USAGE, ["usage: edge-ldp"]),
        (["fly"], cli.EXIT_USAGE, ["no command 'fly'"]),
    ],
)
def test_what_is_no_command_of_a_part_is_answered_here(
    words: list[str], code: int, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == code
    shown = "".join(capsys.readouterr())
    assert all(one in shown for one in told)


LATER = """
import sys
from threading import Thread
from edge_ldp import cli
before = set(sys.modules)
cli.later("xml.dom")
cli.later("colorsys")
import colorsys, xml, xml.dom
print(sorted({*sys.modules} - before))
threads = [Thread(target=lambda: colorsys.rgb_to_hsv(0, 0, 0)) for _ in range(9)]
for thread in threads: thread.start()
for thread in threads: thread.join()
from colorsys import hsv_to_rgb
print(colorsys.hsv_to_rgb is hsv_to_rgb is sys.modules["colorsys"].hsv_to_rgb)
print(xml.dom.Node.__name__, sys.modules["xml.dom"].__file__ == xml.dom.__file__)
cli.later("colorsys")
print(hasattr(colorsys, "blue"), len(sys.modules["colorsys"].__all__))
"""


def test_what_is_imported_later_is_so_when_something_of_it_is_asked_for_and_then_as_ever() -> None:
    done = run_told([sys.executable, "-c", LATER], check=True, timeout=300)
    told = ["['colorsys', 'xml', 'xml.dom']", "True", "Node True", "False 6"]
    assert done.stdout.splitlines() == told


def test_an_agent_holds_nothing_of_proxies_http_or_the_tap() -> None:
    script = (
        "import sys\nfrom edge_ldp import cli\n"
        "try: cli.main(['agent', '--help'])\nfinally: print(*sorted(sys.modules))"
    )
    done = run_told([sys.executable, "-c", script], timeout=300)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "paho.mqtt.client" in loaded
    assert loaded.isdisjoint({"http.client", "email", "tempfile", "agent.config.tap_faults"})


def test_a_part_that_is_named_alone_says_what_it_can(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["agent"])
    assert stopped.value.code == cli.EXIT_USAGE
    said = capsys.readouterr().err
    assert "Find the meter, take the invitation" in said
    assert said.endswith("edge-ldp agent: which command?\n")


@pytest.mark.parametrize(
    ("words", "usage", "meant"),
    [
        ("aggregator query -c f --sinse 2026-01-01", "aggregator query", "--since"),
        ("aggregator query -c f --zon=UTC", "aggregator query", "--zone"),
        ("aggregator query --confg f", "aggregator query", "--config"),
        ("aggregator devices list -c f --jsn", "aggregator devices list", "--json"),
        ("agent check -c f --liv", "agent check", "--live"),
        ("certify --chek f", "certify", "--check"),
        ("console -c f --prt 1", "console", "--port"),
        ("console tokens make -c f --conf g me", "console tokens make", "--config"),
        ("forecast --hom 20", "forecast", "--homes"),
        ("evaluate --sed 3", "evaluate", "--seeds"),
        ("estimate --sise 3", "estimate", "--size"),
        ("keys show --outt f", "keys show", ""),
        ("simulate homes --off f", "simulate homes", "--of"),
        ("demo --kep", "demo", "--keep"),
    ],
)
def test_an_option_is_a_whole_word_and_a_slip_is_answered_with_the_near_one(
    words: str, usage: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(words.split())
    assert stopped.value.code == cli.EXIT_USAGE
    said = capsys.readouterr().err
    assert said.startswith(f"usage: edge-ldp {usage} ")
    assert said.endswith(f"; did you mean {meant}?\n" if meant else "\n")


def test_an_interrupt_is_no_traceback() -> None:
    master, slave = os.openpty()
    command = [sys.executable, "-m", "edge_ldp.cli", "agent", "setup"]
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    said = b""
    while not said.endswith(b": "):  # it asks
        said += os.read(master, 4096)
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == cli.EXIT_INTERRUPTED
    assert b"Traceback" not in os.read(master, 4096)
    os.close(master)


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        sys.exit(cli.main([command, "--help"]))
    shown = capsys.readouterr().out
    assert not ended.value.code
    assert f"edge-ldp {command}" in shown
    assert not re.search(r"wiring|Return", shown)  # of what the user gets, not of our code


# a process each: that one needs nothing which another has loaded
@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=[] if name == "keys" else pytest.mark.slow) for name in cli.COMMANDS],
)
def test_every_command_has_help_in_a_process_of_its_own(command: str) -> None:
    done = run_told([sys.executable, "-m", "edge_ldp.cli", command, "--help"])
    assert done.returncode == 0, done.stderr
    assert f"edge-ldp {command}" in done.stdout


@pytest.mark.parametrize(
    "command", ["check", "status", "query", "theta", "load-curve", "plan show", "devices list"]
)
def test_the_aggregators_commands_say_what_their_json_holds(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["aggregator", *command.split(), "--help"])
    shown = capsys.readouterr().out
    assert "\n--json, keys:\n  " in shown
    assert "Return" not in shown


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("msgspec", "numpy", "paho", "serial", "scipy"), None))
from edge_ldp.cli import main
sys.exit(main([*sys.argv[1:], "--help"]))
"""


def test_certify_needs_no_extra() -> None:
    done = run_told(
        [sys.executable, "-c", WITHOUT.replace('"--help"', '"hybrid", "--epsilon", "1"'), "certify"]
    )
    assert done.returncode == 0, done.stderr
    assert "all 11 claims hold" in done.stdout


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        ("agent", "edge-ldp-agent"),
        ("aggregator", "edge-ldp-aggregator"),
        ("simulate homes", "edge-ldp-demo"),
        ("simulate fleet", "edge-ldp-studies[fleets]"),
        ("forecast", "edge-ldp[plot]"),
    ],
)
def test_a_missing_package_gives_a_sentence_not_a_traceback(command: str, needs: str) -> None:
    done = run_told([sys.executable, "-c", WITHOUT, *command.split()])
    assert done.returncode == cli.EXIT_USAGE
    assert done.stderr.startswith(f"edge-ldp {command} needs the package ")
    assert f": {pip_install(needs)}\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_part_that_is_not_installed_is_named_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tmp_path, "[edge_ldp.other]\nagent = nowhere:main\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "gone")])
    assert cli.main(["agent", "run"]) == cli.EXIT_USAGE
    shown = capsys.readouterr().err
    assert shown == (
        "edge-ldp agent comes with edge-ldp-agent, which is not installed: pip install"
        " edge-ldp-agent (from a clone: pip install . ./agent)\n"
    )


def test_the_first_entry_point_on_the_path_serves_whatever_else_its_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    plant(
        first, "[console_scripts]\nagent = a:main\n\n[edge_ldp.commands]\nagent = one.main:main\n"
    )
    plant(second, "[edge_ldp.commands]\n# ours\nagent=two.main:main\nreplay = two.replay:main\n")
    monkeypatch.setattr(sys, "path", [str(first), str(second)])
    assert cli.serving("agent") == "one.main"
    assert cli.serving("replay") == "two.replay"
    assert not cli.serving("demo")


def test_a_file_of_somebody_else_that_is_no_text_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "entry_points.txt").write_bytes(b"\xff[\x00")
    plant(tmp_path, "[edge_ldp.commands]\nagent = one.main:main\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert cli.serving("agent") == "one.main"


def plant(folder: Path, entry_points: str) -> None:
    place = folder / "some-1.0.dist-info"
    place.mkdir(parents=True)
    (place / "entry_points.txt").write_text(entry_points)


BEGUN = """
import sys
from edge_ldp import cli
try:
    cli.main(["aggregator", sys.argv[1], "--help"])
except SystemExit:
    print(*sys.modules)
"""


@pytest.mark.parametrize(
    ("verb", "unneeded"),
    [
        ("streams", {"scipy", "paho"}),
        ("query", {"scipy", "paho", "asyncio", "ssl", "edge_ldp.certify", "aggregator.running"}),
    ],
)
def test_a_command_begins_without_what_few_need(verb: str, unneeded: set[str]) -> None:
    """Parts of SciPy take half a second, the service's a tenth."""
    command = [sys.executable, "-c", BEGUN, verb]
    done = run_told(command, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {"numpy", "aggregator.main"} <= loaded
    assert not loaded & unneeded
