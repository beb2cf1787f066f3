"""The command `edge-ldp demo`: the whole main job, checked, with a table and a report."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from edge_ldp.arguments import Parser
from firmware_stubs.data import HOMES
from firmware_stubs.demo import broker as brokers
from firmware_stubs.demo.ask import AskError, ask_command
from firmware_stubs.demo.children import ChildDiedError, Crew
from firmware_stubs.demo.compare import Comparison, compare, to_json
from firmware_stubs.demo.curator.curator_demo import JSON_KEYS as CURATOR_KEYS
from firmware_stubs.demo.curator.curator_demo import play_curator
from firmware_stubs.demo.ended import EXIT_FAILED, Ended, tell
from firmware_stubs.demo.files import aggregator_files, command, fleet_command
from firmware_stubs.demo.page import page
from firmware_stubs.demo.run import Run, TooSlowError
from firmware_stubs.demo.scenario import CEILING_W, EPSILON, HOUR_S, LEADS_S, LOW_W, Scenario
from firmware_stubs.demo.shipped import Expected, expect
from firmware_stubs.demo.table import passed, show
from firmware_stubs.demo.truth import Plain, Truth, find_truth, simulate_plain, true_density
from firmware_stubs.demo.watch import FleetLog, Lines, LiveView, View

EXIT_STOPPED = 130
MAX_WEEKS = 7
NUMBERS: tuple[tuple[str, type[int | float], float, float, float, str], ...] = (
    ("weeks", int, 1, MAX_WEEKS, MAX_WEEKS, "1 to 7 (7)"),
    ("homes", int, 20, HOMES, HOMES, "simulated homes, 20 to 400 (400)"),
    ("days", int, 7, 365, 365, "curator: days that are published, 7 to 365 (365)"),
    ("seconds", float, 5, 86_400, 42.0, "to play in, 5 or more (42)"),
)
CONSOLE_S = 120.0  # to come up in, and for a day of the homes
LOOK_S = 0.1
LIVING = "the homes go on, a day in 24 s, but for the two agents; Ctrl-C ends it"
DESCRIPTION = """\
Runs the main job on bundled real data: a broker on loopback, an aggregator, two agents that read
simulated meters over pseudo-terminals, and a fleet of simulated homes, all on an accelerated clock.
Every reading is randomised before it is stored or sent. At the end the aggregator's answers are
compared with the truth, which only the demo knows.

Exit code: 0 when at most 9 of the 24 hour-of-day intervals miss the truth, every report was counted
exactly once, and no reading was found in what the agents wrote; 1 with the reason when not; 2 for
wrong usage; 130 when interrupted.
"""
JSON_KEYS = """\
--json prints one object; powers are means of one home in W, intervals hold with 95 %:
  ok, reasons     whether it did what it promises, and why not
  run             broker, homes, agents, weeks, readings, clamped_readings, first_day_of_sums, rate,
                  wall_s
  privacy         epsilon_per_report, epsilon_per_day, default_window {reports, slots, period},
                  default_epsilon_per_window, default_epsilon_per_day
  whole, hours[]  (each with its hour) true_mean_w, mean_w, low_w, high_w, half_width_percent, held,
                  true_total_mwh, total_mwh, total_low_mwh, total_high_mwh, untruncated_mean_w,
                  untruncated_low_w, untruncated_high_w, untruncated_held
  held, missed_allowed                       of the 24 hours of the day
  shipped         null, or of the simulated homes at ε 8 in any 97 quarter hours: homes, whole (by
                  daily sums: truth, total {mean, low, high}, MWh, held, percent), days, days_held;
                  reports_whole_percent, reports_day_percent: what 8 reports are expected to tell
  theta[]         epoch, theta, issued_s, survey_share, survey_low, survey_high, influence,
                  shift_per_percent, forecast (question, half_width; null: not of the last revision)
  density         edges, probabilities, low, high (95 % each), n, iterations, method, warnings
  shares[]        low, high (W), share of the readings between, share_low, share_high
  accounting      created, counted, rejected, expired, pending, duplicates, missing, surplus, exact
  search          files, bytes, readings_found
  report          html, png
"""


def main(argv: Sequence[str]) -> int:
    """Run the demo and return its exit code."""
    args = _parser().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    begun_s = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="edge-ldp-demo-", dir=_directory(args)))
    try:
        return tell(SCENARIOS[args.mode](args, place), args, begun_s)
    except (AskError, ChildDiedError, brokers.NoBrokerError, TooSlowError) as exc:
        sys.stderr.write(f"edge-ldp demo: {exc}\n")
        return EXIT_FAILED
    except KeyboardInterrupt:
        sys.stderr.write("edge-ldp demo: interrupted; every process it started was ended\n")
        return EXIT_STOPPED
    finally:
        if args.keep:
            sys.stderr.write(f"kept: {place}\n")
        else:
            shutil.rmtree(place, ignore_errors=True)


def _play(args: argparse.Namespace, place: Path) -> Ended:
    errors = Console(stderr=True)
    view = LiveView(errors) if errors.is_terminal and not args.json else Lines(errors)
    with ThreadPoolExecutor(1) as aside, view, ExitStack() as crews:
        scenario, run = _begun(args, place, view, crews)
        run.play_half()
        values = scenario.values()
        known = aside.submit(_know, values, scenario)  # not at first, when everything starts
        played = run.play_on()
    found = compare(scenario, played, *known.result())
    edges = np.array(found.density["edges"], np.float64)
    report = _write_report(found, true_density(values, edges), args.output)
    return Ended(
        "demo",
        to_json(found),
        report,
        partial(show, found),
        passed(found),
        partial(look_around, run.config, scenario, args.broker),
    )


def look_around(config: Path, scenario: Scenario, kind: str) -> None:
    """Serve the console until Ctrl-C, while the fleet goes on; say where on standard error.

    The homes play their data again, after the run's last commit and plan, an hour in a second.
    Raises AskError, ChildDiedError, NoBrokerError, TooSlowError.
    """
    place = config.parent
    with Crew() as crew, suppress(KeyboardInterrupt):
        broker = brokers.choose_broker(kind, place, brokers.search_path())
        crew.start("broker", broker.command, place)
        brokers.wait_until_listening(broker.port)
        status = ask_command("aggregator", "status", config)
        issued = [stream["plan"]["issued_s"] for stream in status["streams"] if stream["plan"]]
        last_s = max(status["last_commit_s"], *issued)
        living = scenario.anew(MAX_WEEKS, HOUR_S, last_s, round(time.time(), 3))
        own = str(aggregator_files(place, living, broker))
        crew.start("aggregator", command("aggregator", "run", "-c", own), place)
        homes = crew.start("homes", fleet_command(living, broker), place, may_end=True)
        console = crew.start("console", command("console", "-c", own, "--port", "0"), place)
        log, deadline = FleetLog(homes.stdout), time.monotonic() + CONSOLE_S
        while not ((address := console.stdout.read_text().strip()) and log.created):
            crew.check()
            if time.monotonic() > deadline:
                raise TooSlowError("console: did not answer in time")
            time.sleep(LOOK_S)
            log.update()
        sys.stderr.write(f"look around: {address}  ({LIVING})\n")
        while True:
            crew.check()
            if crew.ended("homes"):
                again = living.once_more(time.time())
                crew.start("homes", fleet_command(again, broker), place, may_end=True)
            time.sleep(1)


def _begun(
    args: argparse.Namespace, root: Path, view: View, crews: ExitStack, late: int = 0
) -> tuple[Scenario, Run]:
    """Start a run; where a machine is too slow for the first slot, again with more time before it.

    What was started ends with `crews`. `late`: how many runs have begun too late.
    """
    lead_s = LEADS_S[late]
    place = root / f"again-{late}" if late else root
    place.mkdir(mode=0o700, exist_ok=True)
    scenario = Scenario(args.weeks, args.homes, args.seconds, round(time.time() + lead_s, 3))
    with ExitStack() as tried:
        run = Run(scenario, place, tried.enter_context(Crew()), view, root)
        if run.begin(args.broker) or lead_s == LEADS_S[-1]:
            crews.push(tried.pop_all())
            return scenario, run
    return _begun(args, root, view, crews, late + 1)


def _directory(args: argparse.Namespace) -> str | None:
    """Return where the demo's files go: a year of commits is played in a minute, so to memory."""
    memory = "/dev/shm"  # noqa: S108 (mkdtemp makes a directory of its own there)
    is_there = args.mode == "curator" and os.access(memory, os.W_OK)
    return memory if is_there else None


def _know(values: NDArray[np.int64], scenario: Scenario) -> tuple[Truth, Plain, Expected]:
    """Return the truth, the run without truncation, and what to expect of what ships.

    Loads the picture's library meanwhile.
    """
    truth = find_truth(values, LOW_W, CEILING_W)
    plain = simulate_plain(values, EPSILON, LOW_W, CEILING_W, os.urandom)
    import_module("firmware_stubs.demo.picture")
    return truth, plain, expect(values[: scenario.homes], scenario)


def _write_report(found: Comparison, density: NDArray[np.float64], output: Path) -> dict[str, str]:
    """Write picture and page and return where they are."""
    from firmware_stubs.demo.picture import draw  # noqa: PLC0415 (slow; loaded during the run)

    output.mkdir(parents=True, exist_ok=True)
    png, html = output / "demo.png", output / "demo.html"
    draw(found, density, png)
    html.write_text(page(found, png.read_bytes()))
    return {"html": str(html), "png": str(png)}


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _bounded(kind: type[int | float], low: float, high: float) -> Any:
    def parse(text: str) -> float:
        number = kind(text)
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(f"expected {low:g} to {high:g}")
        return number

    return parse


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="edge-ldp demo",
        description=DESCRIPTION,
        epilog=JSON_KEYS + CURATOR_KEYS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--mode",
        choices=tuple(SCENARIOS),
        default="fleet",
        help="fleet: many homes under local DP; curator: one home's year under central DP (fleet)",
    )
    for name, kind, low, high, usual, words in NUMBERS:
        add(f"--{name}", type=_bounded(kind, low, high), default=usual, metavar="N", help=words)
    add(
        "--output",
        type=Path,
        default=Path("demo-report"),
        metavar="DIR",
        help="for the report (demo-report)",
    )
    add("--broker", choices=("auto", "mosquitto", "iotcore"), default="auto", help="(auto)")
    add("--keep", action="store_true", help="keep the temporary directory and say where it is")
    stays = "fleet: let the homes go on and the console show it, and say where, until Ctrl-C"
    add("--stay", action="store_true", help=stays)
    add("--json", action="store_true", help="one JSON object on standard output, nothing else")
    return parser


SCENARIOS = {"fleet": _play, "curator": play_curator}
