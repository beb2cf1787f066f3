"""Messages and recovery after outages: `python -m studies.outages.main [--homes 100000]`.

Two bad weeks of a fleet with the shipped settings: its aggregator is away for a week; or does a
third of what is needed for a day. Afterwards it does three times what is needed. Needed is a unit
of work for each batch and each hourly status. For each: report messages sent for each batch that
was made, all messages for each that a fleet without trouble sends in that time, and how long it
takes until all that was made before the end of the trouble is counted, in multiples of
backlog ÷ capacity: batches not counted then and statuses that waited, each a unit. With `--of` the
homes are a part of so many, with their share of the broker's queue and of the receipts a second:
a hundred thousand at once take ten minutes of one core and 3 GB.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from studies.outages.fleet import DAY_S, INTERVAL_S, QUEUE_BYTES, UNITS_A_DAY, Fleet, Tally

STEP_S = 6 * 3600.0
MOST_DAYS = 30


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trouble cost, as the lines of the table."""

    name: str
    tally: Tally
    messages: float
    all_messages: float
    recovered: float
    days: float


def played(  # noqa: PLR0913 (what a study varies)
    name: str,
    homes: int,
    trouble_s: float,
    share: float,
    *,
    of: int | None = None,
    queue_bytes: int = QUEUE_BYTES,
    seed: int = 1,
) -> Outcome:
    """Return the outcome of a trouble: that long at a share of what is needed, then thrice it."""
    needed = homes * UNITS_A_DAY / DAY_S
    fleet = Fleet(homes, [(0.0, share * needed), (trouble_s, 3 * needed)], seed, of, queue_bytes)
    fleet.run(trouble_s)
    while fleet.recovered_s is None and fleet.now_s < trouble_s + MOST_DAYS * DAY_S:
        fleet.run(fleet.now_s + STEP_S)
    assert fleet.recovered_s is not None, f"{fleet.old} batches were never counted"
    tally, took_s = fleet.tally, fleet.recovered_s - trouble_s
    usual = tally.made + homes * fleet.now_s / INTERVAL_S
    return Outcome(
        name,
        tally,
        tally.reports / tally.made,
        (tally.reports + tally.statuses) / usual,
        took_s / (fleet.backlog / (3 * needed)),
        took_s / DAY_S,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=100_000)
    parser.add_argument("--of", type=int, help="homes in all, of which these are a part")
    parser.add_argument("--queue", type=int, default=QUEUE_BYTES, help="max_queued_bytes")
    args = parser.parse_args()
    homes = args.homes
    head = ["trouble", "batches made", "report messages", "a batch", "all, of usual", "dropped"]
    head += ["duplicates", "most queued", "counted again after", "of backlog ÷ capacity"]
    print("|", " | ".join(head), "|")  # noqa: T201
    for name, days, share in (("away for a week", 7, 0.0), ("a third for a day", 1, 1 / 3)):
        one = played(name, homes, days * DAY_S, share, of=args.of, queue_bytes=args.queue)
        of = one.tally
        numbers = (of.made, of.reports, of.dropped, of.duplicates, of.most_queued)
        made, reports, dropped, duplicates, queued = (f"{number:,}" for number in numbers)
        cells = [name, made, reports, f"{one.messages:.2f}", f"{one.all_messages:.2f}", dropped]
        cells += [duplicates, queued, f"{one.days * 24:.1f} h", f"{one.recovered:.2f}"]
        print("|", " | ".join(cells), "|", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
