"""A simulated fleet: frames decode to what was drawn, are made once and kept until receipted."""

import io
import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from aggregator.config import parse_config
from edge_ldp import ParameterError
from edge_ldp.device import frame
from edge_ldp.period_sums import PeriodLayout, scale_for
from edge_ldp.protocol.messages import Receipt, StreamReceipt, parse_status, topic
from edge_ldp.protocol.plan import Plan, Policy, plan_tag
from edge_ldp.protocol.presence import Presence
from edge_ldp.ratio import floor_ratio
from edge_ldp.service.clock import Clock
from firmware_stubs.main import main as simulate
from firmware_stubs.simulator.fleet import (
    Confirmed,
    PlanAccepted,
    PlanRefused,
    SimulatedFleet,
    day_frames,
    randomise,
)
from firmware_stubs.simulator.homes_command import (
    configured_broker,
    describe,
    homes_loads,
    named_broker,
    parser,
    simulated_fleet,
    take_over,
)
from firmware_stubs.simulator.homes_command import main as simulate_homes
from firmware_stubs.simulator.outbox import Outbox
from firmware_stubs.simulator.session import DayMade, LinkChanged, NoPlan, NoReceipts
from tests.agent import samples

FIRST_SLOT = 1_922_300
SLOTS = 96
DAY_S = 86_400
NOW_S = FIRST_SLOT * 900


def make_plan(*, epoch: int = 1, share: tuple[int, int] = (1, 4), epsilon: int = 1) -> Plan:
    made = samples.make_plan(
        epoch, fleet="demo", stream_id=3, epsilon=epsilon, theta=8000, ceiling=43_470, share=share
    )
    return replace(made, issued_s=NOW_S, expires_s=NOW_S + 90 * DAY_S)


def make_policy() -> Policy:
    return Policy("demo", "power", "W", 900, 0, 43_470, floor_ratio(1))


def make_fleet(homes: int = 3) -> SimulatedFleet:
    names = [f"home-{number}" for number in range(homes)]
    return SimulatedFleet(make_policy(), names, FIRST_SLOT, float(DAY_S), os.urandom)


def told(fleet: SimulatedFleet, plan: Plan) -> object:
    now_s = max(NOW_S, plan.issued_s)  # nobody hears of it before
    return fleet.on_message(topic("demo", "plan", "power"), plan.to_json(), now_s, 0.0)


def reporting(days: int = 1, *, resend_s: float = 0) -> SimulatedFleet:
    """Return a fleet of one home that made reports on so many days."""
    fleet = make_fleet(1)
    if resend_s:
        fleet.outbox = Outbox(resend_s, lambda _: 0)
    told(fleet, make_plan())
    for _ in range(days):
        fleet.make_day(values_of(1))
    return fleet


def receipt_for(
    fleet: SimulatedFleet, home: str, *ranges: StreamReceipt, now_s: float = 0.0
) -> object:
    payload = Receipt(ranges, "0" * 16, NOW_S, home).to_json()
    return fleet.on_message(topic("demo", "receipt", home), payload, NOW_S, now_s)


def values_of(homes: int = 3) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.arange(homes * SLOTS, dtype=np.int64).reshape(homes, SLOTS) * 100 - 500


def test_frames_decode_to_the_codes_that_were_drawn() -> None:
    plan, entropy = make_plan(), os.urandom(1 << 15)
    codes = randomise(plan, values_of(), io.BytesIO(entropy).read)
    frames = day_frames(plan, values_of(), FIRST_SLOT, 7, io.BytesIO(entropy).read)
    for payload, row in zip(frames, codes, strict=True):
        assert frame.decode(payload) == frame.Frame(
            3, 7, 1, tuple(range(FIRST_SLOT, FIRST_SLOT + SLOTS)), tuple(row.tolist()), 0, 0
        )


@pytest.mark.parametrize(("share", "surveys"), [((1, 1), 1.0), ((0, 1), 0.0)])
def test_the_share_decides_which_codes_are_surveys(share: tuple[int, int], surveys: float) -> None:
    plan = make_plan(share=share)
    codes = randomise(plan, values_of(40), os.urandom)
    assert codes.shape == (40, SLOTS)
    assert np.mean(codes >= plan.stream_mechanism.code_count) == surveys
    assert codes.max() < plan.reporter().code_count


def test_a_day_waits_for_the_first_plan() -> None:
    with pytest.raises(LookupError, match="hold"):
        make_fleet().make_day(values_of())


def test_a_day_before_the_first_plan_was_issued_is_passed_over() -> None:
    fleet = make_fleet()
    told(fleet, replace(make_plan(), issued_s=NOW_S + DAY_S))
    assert not fleet.make_day(values_of())
    assert fleet.summary()["true_mean"] is None
    assert fleet.make_day(values_of())
    (entry, *_) = fleet.outbox.take(0.0)
    made = frame.decode(entry.payload)
    assert (made.batch, made.slots[0]) == (1, FIRST_SLOT + SLOTS)
    assert fleet.summary() == {
        "days": 1,
        "passed_over": 1,
        "reports": {"home-0": SLOTS, "home-1": SLOTS, "home-2": SLOTS},
        "true_mean": round(float(values_of().mean()), 1),
        "created": 3 * SLOTS,
        "confirmed": 0,
        "pending": 3 * SLOTS,
        "expired": 0,
        "resent": 0,
        "epochs": [1],
        "refusals": {},
    }


@pytest.mark.parametrize(("issued", "slots"), [(0, 40), (-1, 39), (+1, 40)])
def test_a_plan_issued_within_a_day_is_for_the_slots_that_end_after_it(
    issued: int, slots: int
) -> None:
    """An aggregator refuses slots that were over before their plan was issued."""
    fleet = make_fleet(1)
    told(fleet, make_plan())
    later = NOW_S + 40 * 900 + issued
    told(fleet, replace(make_plan(epoch=2), issued_s=later))
    assert fleet.make_day(values_of(1))
    made = [frame.decode(entry.payload) for entry in fleet.outbox.take(0.0)]
    assert [(one.epoch, one.batch - 1, len(one.slots)) for one in made] == [
        (1, 0, slots),
        (2, 1, SLOTS - slots),
    ]
    assert all((one + 1) * 900 > later for one in made[1].slots)
    assert made[0].slots[-1] + 1 == made[1].slots[0]
    summary = fleet.summary()
    assert [summary[name] for name in ("days", "created", "passed_over")] == [1, SLOTS, 0]
    stream = parse_status(fleet.status("home-0", "online")[1]).streams[0]
    assert (stream.next, stream.created) == (3, SLOTS)


def test_a_first_plan_issued_within_a_day_leaves_its_slots_before_out() -> None:
    fleet = make_fleet(1)
    told(fleet, replace(make_plan(), issued_s=NOW_S + 40 * 900))
    assert fleet.make_day(values_of(1))
    (entry,) = fleet.outbox.take(0.0)
    assert len(frame.decode(entry.payload).slots) == SLOTS - 40


REHEARSAL = """
fleet = "street"
[broker]
host = "127.0.0.1"
port = 1999
username = "aggregator"
{rehearsal}
[store]
path = "a.db"
[clock]
origin_s = 0.0
started_s = {started}
rate = {rate}
[[streams]]
name = "load"
id = 1
unit = "{unit}"
ceiling = 20000
epsilon = 2
slot_seconds = 300
[streams.home_sums]
share = 0.75
cells = 24
block_hours = 4
"""


def test_an_aggregators_configuration_says_everything(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    login = f'[rehearsal]\nusername = "simulator"\npassword_file = "{password}"'
    config = parse_config(
        REHEARSAL.format(rehearsal=login, rate=9000.0, unit="W", started=time.time()), "f"
    )
    args = parser().parse_args(["--of", "f"])
    take_over(args, config)
    fleet, start_s = simulated_fleet(args, args.homes)
    assert (len(fleet.homes), args.days, start_s % DAY_S) == (50, 28, 0)
    assert 0 < start_s - Clock(0.0, config.clock.started_s, 9000.0).now() <= DAY_S
    wanted = Policy("street", "load", "W", 300, 0, 20_000, floor_ratio(2))
    assert fleet.policy == wanted
    assert (args.sums, args.sums_epsilon) == ((1, 24, 0, 4), "6.00")
    assert fleet.sums is not None
    layout, span = PeriodLayout(300, 1, 24, 0, 4), 20_000
    assert fleet.sums.terms.layout == layout
    assert fleet.sums.terms.scale == scale_for(layout, 97, span, 6)
    broker = configured_broker(config, tmp_path)
    assert (broker.port, broker.username, broker.password) == (1999, "simulator", "secret")


@pytest.mark.parametrize(
    ("age", "rate", "unit", "told"),
    [
        (0, 9000.0, "W", "rehearsal: expected a table with a login: no simulated home may speak"),
        (0, 1.0, "W", "clock.rate: expected 100 or more: a simulated day would take 86,400 s"),
        (0, 9000.0, "Wh", "streams[0].unit: expected W"),
        (86_400 * 9, 9000.0, "W", "clock.started_s: expected a rehearsal that was set up lately"),
    ],
)
def test_homes_are_not_simulated_where_real_ones_are(  # noqa: PLR0913, PLR0917 (a table)
    age: float,
    rate: float,
    unit: str,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "aggregator.toml"
    file.write_text(REHEARSAL.format(rehearsal="", rate=rate, unit=unit, started=time.time() - age))
    assert simulate_homes(["--of", str(file), "--homes", "2", "--days", "1"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"edge-ldp simulate homes: {file}: {told}"), "and no usage before it"


def test_every_home_judges_the_plan_with_its_owners_policy() -> None:
    fleet = make_fleet()
    assert told(fleet, make_plan(epsilon=2)) == PlanRefused("ratio")
    assert told(fleet, replace(make_plan(), fleet="other")) == PlanRefused("audience")
    assert fleet.on_message(topic("demo", "plan", "power"), b"{}", NOW_S, 0.0) == PlanRefused(
        "missing:v"
    )
    assert told(fleet, make_plan(epoch=2)) == PlanAccepted(2, 8000)
    assert told(fleet, make_plan(epoch=2)) is None
    assert told(fleet, make_plan(epoch=1)) == PlanRefused("epoch")
    assert told(fleet, make_plan(epoch=3)) == PlanAccepted(3, 8000)
    assert fleet.summary()["epochs"] == [2, 3]
    refusals = {"ratio": 1, "audience": 1, "missing:v": 1, "epoch": 1}
    assert fleet.summary()["refusals"] == refusals


def test_a_fleet_without_acceptable_plan_says_so_in_its_statuses() -> None:
    fleet = make_fleet()
    told(fleet, make_plan(epsilon=2))
    at, payload = fleet.status("home-1", "online")
    assert at == topic("demo", "status", "home-1")
    assert b'"refusals":["ratio"]' in payload


def test_batches_are_numbered_in_a_series_and_carry_the_plan_in_force() -> None:
    fleet = make_fleet()
    told(fleet, make_plan(epoch=1, share=(1, 1)))
    fleet.make_day(values_of())
    told(fleet, make_plan(epoch=2))
    fleet.make_day(values_of())
    frames = [frame.decode(entry.payload) for entry in fleet.outbox.take(0.0)]
    days = [(1, 1, FIRST_SLOT), (2, 2, FIRST_SLOT + SLOTS)]
    assert [(f.batch, f.epoch, f.slots[0]) for f in frames] == [day for day in days for _ in "123"]
    (series,) = {one.series for one in frames}
    assert series == fleet.series > 0
    assert {one.tag for one in frames if one.epoch == 2} == {plan_tag(make_plan(epoch=2).to_json())}


def sent(fleet: SimulatedFleet, now_s: float) -> list[bytes]:
    went = fleet.outbox.take(now_s)
    for entry in went:
        fleet.outbox.went(entry, now_s)
    return [entry.payload for entry in went]


def test_prv_02_a_frame_is_sent_again_bit_for_bit_and_rarer_and_rarer_NET_25() -> None:
    """By an agent's own rule: two receipt intervals, doubled each time, up to a day."""
    fleet = reporting(resend_s=DAY_S / 24)
    (first,) = sent(fleet, 0.0)
    told(fleet, make_plan(epoch=2))
    hours = [at for at in range(1, 24 * 10) if sent(fleet, at * 3600.0) == [first]]
    assert hours[:4] == [2, 6, 14, 26]
    assert all(b - a == 12 for a, b in pairwise(hours[3:]))
    assert fleet.outbox.resent == len(hours)
    assert fleet.outbox.keepers(silent=True) == ["home-0"]


def test_an_aggregator_that_is_there_ends_a_silence_early_NET_25() -> None:
    fleet = reporting(resend_s=DAY_S / 4)
    assert len(sent(fleet, 0.0)) == 1
    hours = [at for at in range(1, 240) if sent(fleet, at * 3600.0)]
    now_s = (hours[-1] + 1) * 3600.0
    here = Presence(is_online=True).to_json()
    for payload, went in ((b"[", 0), (here, 1), (here, 0)):
        fleet.on_message(topic("demo", "presence", "one"), payload, NOW_S, now_s)
        assert len(sent(fleet, now_s)) == went
    receipt_for(fleet, "home-0", StreamReceipt(3, 1, (), fleet.series), now_s=now_s)
    assert fleet.outbox.pending == 0


def test_a_puback_confirms_nothing_and_a_receipt_does() -> None:
    fleet = reporting(days=3)
    assert len(sent(fleet, 0.0)) == 3
    assert fleet.outbox.pending == 3 * SLOTS
    covering = StreamReceipt(3, 3, ((2, 2),), fleet.series)
    assert receipt_for(fleet, "home-0", covering) == Confirmed("home-0", 2 * SLOTS)
    assert receipt_for(fleet, "home-0", covering) is None
    assert fleet.outbox.oldest("home-0") == 2
    assert fleet.outbox.keepers(silent=False) == ["home-0"]
    receipt_for(fleet, "home-0", StreamReceipt(3, 3, (), fleet.series))
    assert (fleet.outbox.pending, fleet.outbox.keepers(silent=False)) == (0, [])


def test_what_a_lost_link_carried_goes_first_on_the_next() -> None:
    fleet = reporting(days=3)
    lost = fleet.outbox.take(0.0)
    assert fleet.outbox.take(1.0) == []
    fleet.outbox.failed(lost)
    assert fleet.outbox.take(2.0) == lost


def test_foreign_and_damaged_receipts_change_nothing() -> None:
    fleet = reporting()
    everything = StreamReceipt(3, 1 << 31, (), fleet.series)
    sent(fleet, 0.0)
    assert receipt_for(fleet, "home-0", everything._replace(series=0)) is None
    assert receipt_for(fleet, "stranger", everything) is None
    assert receipt_for(fleet, "home-0", everything._replace(stream=4)) is None
    assert fleet.on_message(topic("demo", "receipt", "home-0"), b"[", NOW_S, 0.0) is None
    assert fleet.on_message("elsewhere", b"", NOW_S, 0.0) is None
    assert fleet.outbox.pending == SLOTS


def test_a_status_accounts_for_every_batch() -> None:
    fleet = reporting(days=0)
    stream = parse_status(fleet.status("home-0", "online")[1]).streams[0]
    assert (stream.first, stream.next, stream.oldest, stream.created) == (1, 1, 1, 0)
    for _ in range(2):
        fleet.make_day(values_of(1))
    sent(fleet, 0.0)
    receipt_for(fleet, "home-0", StreamReceipt(3, 1, (), fleet.series))
    status = parse_status(fleet.status("home-0", "offline")[1])
    stream = status.streams[0]
    assert status.state == "offline"
    assert (stream.stream, stream.epoch, stream.expired) == (3, 1, 0)
    assert (stream.next, stream.oldest, stream.created) == (3, 2, 2 * SLOTS)


def test_events_have_documented_fields() -> None:
    fleet = make_fleet()
    plan = {"event": "plan", "epoch": 2, "theta": 8000, "day": 0}
    assert describe(PlanAccepted(2, 8000), fleet) == plan
    assert describe(PlanRefused("ratio"), fleet) == {"event": "refused", "reason": "ratio"}
    assert describe(LinkChanged("up"), fleet) == {"event": "link", "state": "up"}
    lost = {"event": "link", "state": "gone", "remedy": "look"}
    assert describe(LinkChanged("gone", "look"), fleet) == lost
    told = "a plan of power: do the broker and the aggregator run?"
    assert describe(NoPlan(), fleet) == {"event": "waiting", "for": told}
    told = "receipts of 0 reports: does the aggregator run, may they report (`status`)?"
    assert describe(NoReceipts(), fleet) == {"event": "waiting", "for": told, "pending": 0}
    assert describe(Confirmed("home-1", 96), fleet) is None
    day = {"event": "day", "day": 1, "created": 0, "confirmed": 0, "resent": 0}
    assert describe(DayMade(1), fleet) == day


def test_a_home_needs_a_name_that_fits_a_topic() -> None:
    with pytest.raises(ParameterError):
        SimulatedFleet(make_policy(), ["a/b"], FIRST_SLOT, 1.0, os.urandom)


def test_data_comes_from_an_archive_and_must_be_large_enough(tmp_path: Path) -> None:
    file = tmp_path / "load.npz"
    np.savez(file, power=np.zeros((2, 200), np.int16), wrong=np.zeros((2, 200)))
    assert homes_loads(f"{file}:power", 2, 192).shape == (2, 192)
    with pytest.raises(ValueError, match="2 homes of 200 slots"):
        homes_loads(f"{file}:power", 3, 192)
    with pytest.raises(ValueError, match="expected integers"):
        homes_loads(f"{file}:wrong", 2, 192)


def test_simulate_names_its_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(["--help"]) == 0
    assert "fleet" in capsys.readouterr().out
    assert simulate([]) == 2
    assert simulate(["cat"]) == 2


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--broker", "nowhere"], "usage"),
        (["--epsilon", "0"], "usage"),
        (["--data", "no-such-file:power"], "usage"),
        (["--start", "2024-10-28T00:00:01+01:00"], "usage"),
        (["--fleet", "A b"], "usage"),
        (["--homes", "0"], "expected a whole number above 0"),
        (["--days", "-1"], "expected a whole number above 0"),
        (["--sums", "1/1/0/1/9"], "expected DAYS[/CELLS[/OFFSET_S[/BLOCK_HOURS]]], whole numbers"),
        (["--password-file", "none"], "No such file"),
    ],
)
def test_what_cannot_be_played_is_refused_at_once(
    given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        simulate_homes(["--homes", "2", "--days", "1", *given])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_name_and_a_password_go_to_the_broker(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    given = ["--username", "me", "--password-file", str(file)]
    broker = named_broker(parser().parse_args(given))
    assert (broker.username, broker.password) == ("me", "secret")
    assert "secret" not in repr(broker)
