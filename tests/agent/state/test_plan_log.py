"""Plans in time: how long each stays, what the owner reads of them, what a flood leaves behind."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.main import main
from agent.state.journal import Journal
from agent.state.plan_journal import StoredPlan
from agent.state.plan_log import KEPT, Logged, accepted, too_soon
from edge_ldp import Hybrid, SquareWave, StochasticRounding
from edge_ldp.certify.certify_command import main as certify
from edge_ldp.protocol.plan import Plan, parse_plan
from edge_ldp.protocol.plan_bounds import PlanBounds
from tests.agent.samples import (
    T0,
    StillClock,
    begun,
    config_text,
    local_device,
    make_config,
    make_plan,
)

DAY_S = 86_400
SHAPE = PlanBounds()


class Home:
    """A device under the default [policy.plans], at a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.state = path / "s.db"
        self.clock = StillClock()
        self.begin()

    def begin(self) -> None:
        self.journal = Journal(self.state)
        config = make_config(self.state, plans="", window=(8, 97))
        self.device = local_device(config, self.journal, self.clock)
        self.device.trust_clock()

    def restart(self) -> None:
        self.journal.close()
        self.begin()

    def file(self) -> str:
        """Return the path of its configuration, as its owner has it."""
        path = self.state.with_name("agent.toml")
        path.write_text(config_text(self.state, plans="", window=(8, 97)))
        return str(path)

    def offer(self, plan: Plan) -> str | None:
        return self.device.accept_plan("power", plan.to_json())

    def make(self, reports: int) -> None:
        """Let reports be made: only their number counts here."""
        with self.journal.transaction() as db:
            db.execute(
                "INSERT INTO streams VALUES (1, 1, 1, ?1, 0, 0) ON CONFLICT (stream) DO UPDATE"
                " SET created = created + ?1",
                (reports,),
            )
            self.journal.begin_series(begun(1))

    @property
    def plan(self) -> Plan:
        (stored,) = self.journal.plans()
        return parse_plan(stored.payload)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_plan_dated_ahead_is_refused_and_looked_at_again_until_its_time_PLN_18(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = int(home.clock.now())
    ahead = replace(make_plan(1), issued_s=now_s + 3601, expires_s=now_s + 10 * DAY_S)
    assert home.offer(ahead) == "ahead"
    assert home.journal.plans() == []
    assert [*home.device.status("online").refusals] == ["ahead"]
    home.device.trust_clock()  # as with every slot
    assert caplog.text.count("plan refused: ahead") == 1
    home.clock.pass_s(1)
    home.device.trust_clock()
    assert home.plan == ahead


def test_a_plan_dated_ahead_that_waits_retained_is_judged_once_the_clock_is_sane_PLN_18(
    tmp_path: Path,
) -> None:
    clock = StillClock()
    with closing(Journal(tmp_path / "s.db")) as journal:
        config = make_config(tmp_path / "s.db", plans="", window=(8, 97))
        device = local_device(config, journal, clock)
        ahead = replace(make_plan(1), issued_s=int(clock.now()) + 400 * DAY_S)
        assert device.accept_plan("power", ahead.to_json()) == "held"
        device.trust_clock()
        assert [*device.status("online").refusals] == ["ahead"]
        dated_anew = replace(make_plan(2), issued_s=int(clock.now()))
        assert device.accept_plan("power", dated_anew.to_json()) is None


def test_a_plan_stays_for_its_days_and_reports_and_the_next_one_waits_PLN_14(home: Home) -> None:
    assert home.offer(make_plan(1, theta=1000)) is None
    other = make_plan(2, theta=1000, share=(1, 4))
    assert home.offer(other) == "held"
    home.clock.pass_s(DAY_S)
    home.device.trust_clock()  # as with every slot: the plan that waits is looked at again
    assert home.plan.epoch == 1
    home.make(8)
    home.device.trust_clock()
    assert home.plan.epoch == 2
    assert home.device.status("online").refusals == ()


def test_a_theta_stays_for_a_week_also_over_a_restart_PLN_14(home: Home) -> None:
    assert home.offer(make_plan(1, theta=1000)) is None
    home.make(100)
    home.clock.pass_s(DAY_S * 6)
    home.restart()
    assert home.offer(make_plan(2, theta=1500)) == "held"
    home.clock.pass_s(DAY_S)
    home.device.trust_clock()
    assert home.plan.theta == 1500


def test_a_plan_taken_by_wider_bounds_stops_and_the_raised_one_follows_at_once_PLN_22(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """An older version took it: θ 300 of 4,000 W errs by 103 W, where 138 are the least by now."""
    sharp = make_plan(7, theta=300)
    row = accepted(sharp, at_s=T0, reports=0)
    home.journal.save_plan(StoredPlan("power", 7, sharp.to_json()), row)
    home.restart()
    assert [*home.device.status("online").refusals] == ["sharp"]
    assert "none is in force, so nothing is reported" in caplog.text
    assert home.device.health == "degraded: no plan that this home allows (power)"
    assert home.offer(sharp) == "sharp"
    assert home.offer(make_plan(8, theta=407)) is None
    assert (home.plan.theta, home.device.health) == (407, "ok")


def test_a_survey_between_does_not_hide_which_theta_was_in_force_PLN_14(home: Home) -> None:
    assert home.offer(make_plan(1, theta=1000)) is None
    for epoch, share in ((2, (1, 1)), (3, (1, 2))):
        home.make(8)
        home.clock.pass_s(DAY_S)
        wanted = make_plan(epoch, theta=1500, share=share)
        assert home.offer(wanted) == (None if epoch == 2 else "held")


def test_a_first_theta_follows_a_survey_of_a_day_at_once(home: Home) -> None:
    assert home.offer(make_plan(1, share=(1, 1), theta=4000)) is None
    home.make(8)
    home.clock.pass_s(DAY_S)
    assert home.offer(make_plan(2, theta=1500)) is None


def test_the_same_question_under_a_new_epoch_never_waits_and_makes_no_row(home: Home) -> None:
    for epoch in range(1, 40):
        assert home.offer(make_plan(epoch)) is None
    (row,) = home.journal.plan_log()
    assert (row.code, row.epoch, row.times, row.at_s) == ("accepted", 39, 39, T0)


def test_a_clock_set_back_or_ahead_gives_no_plan_more_reports_PLN_14() -> None:
    plan = make_plan(1)
    before = accepted(plan, at_s=T0, reports=0)
    other = before._replace(question="another", at_s=T0 - 1, reports=7)
    refusal = too_soon(other, [before], SHAPE)
    assert refusal is not None
    assert refusal.words == "reports under the plan: 7, at least 8"
    assert too_soon(other._replace(at_s=T0 + 10**8), [before], SHAPE) is not None


def test_every_plan_of_a_search_is_refused_and_the_log_names_its_numbers_PLN_14(home: Home) -> None:
    """The search that found constant loads exactly: rounding over one watt, moved about."""
    for epoch, middle in enumerate(range(0, 4000, 40), 1):
        probe = StochasticRounding(epsilon=1, low=middle, high=middle + 1)
        code = home.offer(replace(make_plan(epoch), stream_mechanism=probe))
        assert code in ("narrow", "theta")
    rows = {row.code: row for row in home.journal.plan_log()}
    assert rows["theta"].words == "40 to 41: from 0, at most 4000"
    assert rows["narrow"].words == "θ 1: at least 250"
    half = SquareWave(epsilon=1, low=0, high=1999, size=32)
    assert home.offer(replace(make_plan(200), survey_mechanism=half)) == "survey"
    sharp = Hybrid(epsilon=1, low=0, high=250, size=64)
    assert home.offer(replace(make_plan(201), stream_mechanism=sharp)) == "sharp"


def test_a_flood_of_refused_plans_is_a_row_a_reason_written_once_an_hour(home: Home) -> None:
    def written() -> int:
        with home.journal.reading() as db:
            return db.total_changes

    home.offer(make_plan(1, fleet="other"))
    before = written()
    for epoch in range(500):
        home.offer(make_plan(epoch + 1, fleet="other"))
    assert written() == before
    home.clock.pass_s(3600)
    home.offer(make_plan(1, fleet="other"))
    (row,) = home.journal.plan_log()
    assert (row.stream, row.code, row.times) == ("power", "audience", 502)


def test_each_order_to_forget_has_a_row_and_a_refusal_only_its_last(home: Home) -> None:
    kept = {0: [0], 1: [0, 1], 2: [0, 1, 2], 3: [0, 2, 3]}
    for number, code in enumerate(("forgotten", "audience", "forgotten", "audience")):
        row = Logged(number, "power", code, "", number)
        home.journal.forget_plan(row) if code == "forgotten" else home.journal.log_plan(row)
        assert [row.epoch for row in home.journal.plan_log()] == kept[number]


def test_the_log_is_bounded(home: Home) -> None:
    for number in range(KEPT + 50):
        row = Logged(number, "power", "accepted", "", number, question=str(number))
        home.journal.log_plan(row)
    assert [row.epoch for row in home.journal.plan_log()] == list(range(50, KEPT + 50))


def test_a_device_that_took_a_plan_at_the_top_is_repaired_without_its_ledger_PLN_15(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an earlier version would have: a stored plan of epoch 2**32 − 1 mutes the stream."""
    top = make_plan((1 << 32) - 1)
    assert home.offer(make_plan(1)) is None
    home.journal.save_plan(StoredPlan("power", top.epoch, top.to_json()))
    home.restart()
    assert home.offer(make_plan(2, theta=1500)) == "epoch"
    ledger = home.journal.ledger()
    home.journal.close()
    command = ["plans", "forget", "-c", home.file(), "--stream"]
    assert main([*command, "gas"]) == 2
    assert main([*command, "power"]) == 0
    assert "forgotten: by its owner" in capsys.readouterr().out
    home.begin()
    assert home.journal.ledger() == ledger
    assert home.offer(make_plan(2, theta=1500)) is None


def test_a_plan_an_hour_at_the_top_leaves_room_for_the_next_PLN_15(home: Home) -> None:
    """Each as far ahead as is believed, fifty hours long: the hour after has room again."""
    for _ in range(50):
        epoch = 1024 + int(home.clock.now()) // 3600
        assert home.offer(make_plan(epoch)) is None
        assert home.offer(make_plan(epoch + 25)) == "epoch"
        assert home.offer(make_plan(epoch + 1)) == "held"  # until the hour is over
        home.clock.pass_s(3600)


def test_the_owner_reads_what_plans_may_ask_and_what_came(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.offer(make_plan(1))
    home.offer(make_plan(1, theta=41))
    home.offer(make_plan(2, theta=41))
    home.journal.close()
    assert main(["plans", "-c", home.file()]) == 0
    text = capsys.readouterr().out
    assert "power: plans may ask: θ from 250 to 4,000 W" in text
    assert "power, epoch 1  in force: hybrid up to 1000 W, 50% surveys of 0 to 4000 W" in text
    assert "power  refused, narrow: θ 41: at least 250" in text
    assert main(["plans", "-c", home.file(), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["plans"]
    assert [row["code"] for row in rows] == ["accepted", "epoch", "narrow"]


def test_the_plans_in_force_are_exported_as_certify_takes_them_PRV_23(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.journal.close()
    command = ["plans", "export", "-c", home.file(), "--to", str(tmp_path)]
    assert main(command) == 0
    assert capsys.readouterr().out == "No plan is in force.\n"
    home.begin()
    plan = make_plan(1)
    home.offer(plan)
    home.journal.close()
    assert main([*command, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["plans"]
    assert Path(row["file"]).read_bytes() == plan.to_json()
    assert row["prove"] == f"edge-ldp certify --plan {row['file']} --epsilon 1"
    assert certify(row["prove"].split()[2:]) == 0
    assert "NO BOUND" not in capsys.readouterr().out
    assert main(command) == 4  # a file that is there is not written over
    assert "name another directory with --to" in capsys.readouterr().err
