"""What is shown of twelve homes that report in 8 of 97 slots: nothing of fewer than ten: AGG-30."""

from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from aggregator.answers.crowds import Reported, is_crowd, joined, supposed, withheld
from aggregator.config import parse_config
from aggregator.counting.refusals import Rules, StreamRules, allowed_codes
from aggregator.plans import planner
from aggregator.store.contract import PlanRow
from aggregator.store.opening import open_session
from aggregator.store.rollups import tend
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import topic
from edge_ldp.service.mqtt import Message
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import take
from tests.aggregator.operator import operator

SLOT_S, HOMES, HOURS = 900, 12, 96
FIRST_SLOT = 1_699_920_000 // SLOT_S  # a day of UTC begins
NOW_S = (FIRST_SLOT + HOURS * 4) * SLOT_S
KEPT = "\n[query]\nmin_devices = 10\n[retention]\nbucket_days = 40\nhour_days = 60\n"


@dataclass(frozen=True)
class Twelve:
    """Who sent stream reports in each hour, and how many; what more of them are judged by."""

    who: dict[int, set[str]]
    reports: dict[int, int]
    rules: Rules
    epoch: int


def twelve_homes(engine: Engine) -> Twelve:
    """Fill a store."""
    stream = engine.config().streams[0]
    first = planner.first_plan("demo", stream, epoch=1, now_s=FIRST_SLOT * SLOT_S - 900)
    plan = planner.following(first, stream, stream.sums(1000), share=(1, 4), now_s=first.issued_s)
    assert plan is not None
    last = planner.following(plan, stream, stream.sums(500), share=(1, 4), now_s=first.issued_s)
    assert last is not None
    store = engine.open()
    for row in (first, plan, last):
        store.add_plan(PlanRow(1, row.epoch, row.issued_s, row.to_json()))
    allowed = {one.epoch: allowed_codes(one) for one in (plan, last)}
    rules = Rules(
        streams={1: StreamRules(SLOT_S, 4, allowed)},
        devices=None, max_devices=100, window_s=10**8, tolerance_s=300, now_s=float(NOW_S),
    )  # fmt: skip
    rng = np.random.default_rng(30)
    who: dict[int, set[str]] = defaultdict(set)
    reports: dict[int, int] = defaultdict(int)
    for at in range(HOMES):
        used = plan if at else last  # one home is on a new plan already
        residues = rng.choice(97, 8, replace=False)
        slots = [s for s in range(FIRST_SLOT, FIRST_SLOT + HOURS * 4) if s % 97 in residues]
        streams = used.stream_mechanism.code_count
        codes = rng.integers(0, streams, len(slots))
        surveys = rng.random(len(slots)) < 0.25
        codes = np.where(surveys, streams, codes).tolist()
        for slot, is_survey in zip(slots, surveys.tolist(), strict=True):
            if not is_survey:
                who[slot * SLOT_S // 3600].add(f"home-{at}")
                reports[slot * SLOT_S // 3600] += 1
        payload = encode(1, 1, used.epoch, slots, codes)
        take(store, Message(topic("demo", "report", f"home-{at}"), payload), rules=rules)
    store.close()
    return Twelve(who, reports, rules, plan.epoch)


@pytest.mark.parametrize("tended_after_s", [None, 50 * 86_400, 90 * 86_400])
def test_no_hour_of_fewer_reporters_is_shown_nor_told_by_its_day_AGG_30(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str], tended_after_s: int | None
) -> None:
    """Of these hours most are of a few homes, many of one report; also once they are added up."""
    homes = twelve_homes(engine)
    who, reports = homes.who, homes.reports
    assert sum(n == 1 for n in reports.values()) >= 10
    text = engine.text(more=KEPT)
    desk = operator(tmp_path, text, capsys)
    if tended_after_s is not None:
        config = parse_config(text, "f")
        with closing(open_session(config, "f")) as session:
            while tend(session, config, NOW_S + tended_after_s):
                pass
    hours = desk.json("load-curve")["hours"]
    shown = [row["from_s"] // 3600 for row in hours if not row["withheld"]]
    assert len(hours) == len(who)
    assert all(len(who[hour]) >= 10 for hour in shown)
    for row in hours:
        told = {key for key, value in row.items() if value is not None}
        assert not row["withheld"] or told == {"from_s", "from", "withheld"}
    days = desk.json("load-curve", "--by", "day")["days"]
    assert not any(row["withheld"] for row in days)  # all twelve report in each
    for day in days:
        hidden = [hour for hour in who if hour * 3600 // 86_400 * 86_400 == day["from_s"]]
        hidden = [hour for hour in hidden if hour not in shown]
        others = set[str]().union(*(who[hour] for hour in hidden))
        assert not hidden or len(others) >= 10
    assert not desk.json("query")["whole"]["withheld"]
    quiet = min(who, key=lambda hour: (len(who[hour]), hour)) * 3600
    if tended_after_s is None:
        alone = desk.json("query", "--since", str(quiet), "--until", str(quiet + 3600), code=5)
        told = {key for key, value in alone["whole"].items() if value not in (None, True)}
        assert (told, alone["density"]) == (set(), None)


def test_a_mean_is_of_a_crowd_of_stream_reports_not_of_surveys_AGG_30() -> None:
    one = Reported((1, 40), 4, b"\1\x40\0\0\0\0")
    assert not is_crowd(one, 10)
    assert not is_crowd(one, 10, (0,))
    assert is_crowd(one, 10, (1,))
    assert is_crowd(one, 1)


def test_where_nobody_knows_who_reported_reports_by_slots_bound_it_AGG_30() -> None:
    assert is_crowd(Reported((40, 0), 4), 10)
    assert not is_crowd(Reported((36, 0), 4), 10)
    assert not is_crowd(Reported((40, 36), 4), 10)
    assert is_crowd(joined([Reported((40, 0), 4), Reported((40, 0), 4)]), 10)


def test_beyond_what_is_kept_of_a_crowd_devices_that_were_there_are_asked_for_AGG_30() -> None:
    full = Reported((900, 0), 4, supposed(64), heard=100)
    assert is_crowd(full, 100)
    assert not is_crowd(full, 101 + 900)
    assert not is_crowd(Reported((63, 0), 4, supposed(63), heard=100), 100)


def test_what_is_withheld_together_is_of_a_crowd_whatever_the_parts_are_AGG_30() -> None:
    rng = np.random.default_rng(30)
    for _ in range(200):
        sizes = rng.integers(0, 14, 6).tolist()
        cells = [Reported((n, n), 4, supposed(n)) for n in sizes]
        hidden = withheld(cells, 10)
        assert {at for at, n in enumerate(sizes) if 0 < n < 10} <= hidden
        told = joined(cells[at] for at in hidden)
        assert is_crowd(told, 10) or len(hidden) == len(cells)
