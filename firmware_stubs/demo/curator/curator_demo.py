"""The scenario `edge-ldp demo --mode curator`: a home's year under central DP, and its table.

It passes when the daily intervals hold as they promise, every value was released and counted
exactly once, and no reading was found in what the agent wrote.
"""

import argparse
import time
from functools import partial
from pathlib import Path

from rich.console import Console

from firmware_stubs.demo.children import Crew
from firmware_stubs.demo.curator.compare import Comparison, Row, compare, to_json
from firmware_stubs.demo.curator.run import Run
from firmware_stubs.demo.curator.scenario import EPSILON, LEAD_S, SLOT_S, THETA_DAYS, Scenario
from firmware_stubs.demo.ended import Ended
from firmware_stubs.demo.table import table_of
from firmware_stubs.meters.telegram import p1_telegram

COLUMNS = ("from day", "days", "true kWh", "cut at θ", "released", "95 % from", "to", "held")
TRIES = 3000
COST = 2.5  # of the whole way of a telegram, in makings of one, the slowest process's share
JSON_KEYS = """\
--mode curator --json prints one object; energies in kWh, intervals hold with 95 % and are about
sums of readings cut at θ:
  ok, reasons     whether it did what it promises, and why not
  run             mode, broker, days, theta_days, readings, rate, wall_s
  privacy         epsilon_per_reading, slot_seconds, theta_w, ledger (as `agent ledger`)
  held, missed_allowed                       of the daily intervals
  whole, weeks[], days[]                     day, days, true_kwh, true_cut_kwh, released_kwh,
                  low_kwh, high_kwh, held
  accounting      created, counted, rejected, expired, pending, duplicates
  search          files, bytes, readings_found
  report          png
"""


def play_curator(args: argparse.Namespace, place: Path) -> Ended:
    """Run it in `place`; raises what Run does."""
    begun_s = time.monotonic()
    errors = Console(stderr=True)

    def say(line: str) -> None:
        errors.print(f"{time.monotonic() - begun_s:4.0f} s  {line} …", highlight=False)

    slots = Scenario(args.days, args.seconds, 0.0).slots
    seconds = seconds_for(slots, args.seconds)
    if seconds > args.seconds:
        say(f"this machine is busy or slow: playing in {seconds:.0f} s")
    scenario = Scenario(args.days, seconds, round(time.time() + LEAD_S, 3))
    with Crew() as crew:
        played = Run(scenario, place, crew, say).play(args.broker)
    found = compare(scenario, played)
    return Ended(
        "curator", to_json(found), _drawn(found, args.output), partial(show_weeks, found), "Passed."
    )


def seconds_for(slots: int, asked: float) -> float:
    """Return real seconds to play so many telegrams in: as asked, or more when that is too fast.

    A clock that races ahead of a slow machine would make everything too old. Takes about 0.3 s on
    an idle machine; what others do on it is measured with it.
    """
    begun_s = time.monotonic()
    for at in range(TRIES):
        p1_telegram(meter_id="E1", time_s=1_200_000_000 + at, import_wh=at, power_w=at)
    each_s = (time.monotonic() - begun_s) / TRIES
    return round(max(asked, COST * each_s * slots), 1)


def _drawn(found: Comparison, output: Path) -> dict[str, str]:
    from firmware_stubs.demo.curator.picture import draw  # noqa: PLC0415 (slow, and last)

    output.mkdir(parents=True, exist_ok=True)
    png = output / "curator.png"
    draw(found, png)
    return {"png": str(png)}


def show_weeks(found: Comparison, console: Console) -> None:
    """Print the weeks, and what the table does not say."""
    title = (
        f"One home's weeks in kWh, published at event-level ε = {EPSILON} a reading of\n"
        f"{SLOT_S // 60} minutes, θ = {found.theta_w} W"
    )
    console.print(table_of(title, COLUMNS, map(_cells, found.weeks), _cells(found.whole)))
    for topic, text in _facts(found).items():
        console.print(f"[bold]{topic:<11}[/bold]{text}", highlight=False)


def _facts(found: Comparison) -> dict[str, str]:
    account, ledger = found.account, found.played.ledger["curated"]
    return {
        "Days": f"{found.held} of {len(found.days)} daily intervals hold the sum of readings cut "
        f"at θ ({found.allowed_misses} may miss); days and weeks are in the picture and the JSON.",
        "θ": f"{found.theta_w} W, chosen once from the {THETA_DAYS} days before, which were not "
        "published; what lies above it is cut, and no interval knows of that.",
        "Privacy": f"at most ε {ledger['epsilon_per_slot']:g} for any one reading; all of them "
        f"taken as one event would be ε {ledger['epsilon_if_one']:,.0f}: habits are not hidden.",
        "Accounting": f"{account['created']:,} values released = {account['counted']:,} counted + "
        f"{account['rejected']:,} rejected + {account['expired']:,} expired + "
        f"{account['pending']:,} pending.",
        "Search": f"{found.played.searched}.",
    }


def _cells(row: Row) -> tuple[str, ...]:
    return (
        str(row.day),
        str(row.days),
        *(f"{x:,.1f}" for x in (row.truth, row.cut, row.released, row.low, row.high)),
        "yes" if row.held else "NO",
    )
