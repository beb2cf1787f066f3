"""What the page says: days by the clocks of the home, what became of reports, nothing as markup."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.claims.batches import Batch, Key
from agent.link.uplink import Vitals
from agent.page.facts import Counts, LeftReport, days_of, spans_of
from agent.page.gather import Household
from agent.page.html import message_html, page_html
from agent.page.left import CODE, SUM, LeftItem
from agent.page.picture import picture
from edge_ldp.certify.verdict import judge_file
from edge_ldp.device.sums_frame import SumsFrame, encode_sums
from edge_ldp.protocol.group_month import GroupMean
from edge_ldp.protocol.messages import parse_receipt
from tests.agent.page.at_home import WELL, PageBench, at_home
from tests.agent.samples import T0, make_plan
from tests.agent.state.device_bench import receipt
from tests.agent.summed import BOTH
from tests.edge_ldp.protocol.test_group_month import MONTH

DAY_S = 86_400
MIDNIGHT = T0 // DAY_S * DAY_S


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a home's zone in which midnight is another one."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def code(from_s: int, became: str = "confirmed") -> LeftReport:
    return LeftReport(LeftItem(CODE, 1, from_s, from_s + 900), became, 1.0)


def test_days_are_the_homes_and_sums_are_of_the_day_they_ended(berlin: None) -> None:
    assert berlin is None
    now_s = MIDNIGHT - 1800  # 23:30 in UTC, half past midnight at home
    told = [
        code(now_s - 900, "waiting"),
        code(now_s - 2700),
        code(now_s - DAY_S, "given up"),
        LeftReport(LeftItem(SUM, 512, now_s - 8 * DAY_S, now_s - DAY_S // 2), "confirmed", 0.5),
    ]
    today, yesterday, window, week, month = spans_of(told, now_s, 3600, "window")
    assert today[1:] == (1, 0, 1, 0, 1.0)
    assert yesterday[1:] == (3, 2, 0, 1, 2.5)
    assert window[1:] == (2, 1, 1, 0, 2.0)
    assert week[1:] == month[1:] == (4, 2, 1, 1, 3.5)
    assert [one.made for one in days_of(told, now_s)] == [0] * 26 + [3, 1]


def test_made_is_confirmed_and_waiting_and_given_up(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db", sending="jitter_s = 0\nmax_age_days = 1")
    bench.report(2)
    bench.report(3, confirmed=False)
    bench.clock.pass_s(2 * DAY_S)
    bench.device.housekeeping()
    bench.report(1, confirmed=False)
    bench.live(1, online=False)  # not packed
    ever = bench.household.facts().spans[-1]
    assert ever[:5] == ("ever", 7, 2, 2, 3)
    assert ever == (*("ever", 7), *bench.household.facts().spans[-2][2:])


def test_what_is_wrong_stands_first_and_what_is_well_is_said(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db")
    assert "All is well." in page_html(bench.household.facts())
    bench.vitals = Vitals("degraded: no link", bench.vitals.ages)
    (tmp_path / "s.db.damaged-1800000000").write_bytes(b"x")
    plan = make_plan(4, epsilon=2).to_json()
    assert bench.device.accept_plan("power", plan) is not None
    said = page_html(bench.household.facts())
    warned = re.findall(r'<p class="warning">(.*?)</p>', said)
    assert [one.split()[0] for one in warned] == ["An", "The", "This"]
    assert "was damaged" in warned[0]
    assert "degraded: no link" in warned[2]
    assert "All is well." not in said
    bench.vitals = WELL
    assert "Apart from that, all is well." in page_html(bench.household.facts())


def test_what_the_aggregator_refused_is_told_apart(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db")
    bench.report(3)
    assert "for good: ask" not in page_html(bench.household.facts())
    (account,) = bench.status.streams
    told = receipt(3, series=account.series)._replace(refused=2)
    bench.device.accept_receipt(parse_receipt(told.to_json()))
    facts = bench.household.facts()
    said = "The aggregator refused 2 reports of this home for good: ask its operator."
    assert facts.warnings == (said,)
    assert dict(facts.standing)["refused"] == "2 reports of those confirmed, ever"


def test_what_the_fleet_tells_of_the_group_stands_there_as_its_word(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db")
    assert "your group" not in page_html(bench.household.facts())
    energy = GroupMean("energy_import", "Wh", -9, 1, 1)
    month = MONTH._replace(streams=(MONTH.streams[0], energy))
    told = Household(bench.device, bench.record, lambda: bench.vitals, lambda: month).facts()
    said = (
        "2026-12-01 to 2026-12-31: power, mean of 12 homes: 410 W, give or take 40; energy_import, "
        "mean of 1 home: -9 Wh in each 15 min, give or take 1. The fleet's word: nothing here can "
        "check it"
    )
    assert dict(told.standing)["your group, north"] == said


def test_PRV_28_whatever_a_name_or_a_word_holds_it_is_text(tmp_path: Path) -> None:
    facts = at_home(tmp_path / "s.db").household.facts()
    evil = "\"'><script>alert(1)</script>&amp;"
    said = page_html(
        facts.__class__(
            **{name: getattr(facts, name) for name in facts.__slots__}
            | {"device": evil, "fleet": evil, "warnings": (evil,), "newest": (evil,)}
            | {"standing": ((evil, evil),), "so_far": evil, "never": evil}
            | {"plans": (facts.plans[0]._replace(stream=evil, words=evil, plan=evil),)}
        )
    ) + message_html(evil, evil)
    assert "<script" not in said
    assert said.count("&quot;&#39;&gt;&lt;script&gt;") >= 12
    assert "&amp;amp;" in said


def test_the_picture_fits_whatever_was_made() -> None:
    for most in (0, 1, 2, 7, 96, 999_999):
        days = [
            Counts(f"2027-01-{at + 1:02}", most, most // 2, 0, most - most // 2, 0.0)
            for at in range(28)
        ]
        drawn = picture(days)
        spots = [
            tuple(map(int, one))
            for one in re.findall(r'y="(\d+)" width="\d+" height="(\d+)"', drawn)
        ]
        assert all(y >= 0 and y + height <= 200 for y, height in spots)
        assert len(spots) == (0 if most == 0 else 28 if most == 1 else 56)


def test_the_table_of_habits_is_shown_where_it_was_measured(tmp_path: Path) -> None:
    usual = {"window": (8, 97), "ceiling": 43_470}
    said = page_html(at_home(tmp_path / "a.db", **usual).household.facts())
    assert '<th scope="row">a week away</th><td>75</td>' in said
    for changes in ({"policy": "epsilon = 2"}, {"window": (9, 97)}, {"ceiling": 9000}):
        name = "".join(changes)
        said = page_html(at_home(tmp_path / f"{name}.db", **{**usual, **changes}).household.facts())
        assert "a week away" not in said
        assert "was not measured" in said


async def test_the_owner_can_prove_plan_and_sums_elsewhere(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db", stream=BOTH, window=(8, 97))
    shown = bench.page()
    bench.journal.save_ledger(bench.journal.ledger(), sharing=bench.config.sharing)  # type: ignore[arg-type] # there is one
    files = re.findall(r'href="(/[^"]+)"', page_html(bench.household.facts()))
    assert files == ["/plan/power-3.plan", "/proof/power-3.json", "/proof/sums-power.json"]
    plan, *proofs = [await shown.reply(path) for path in files]
    assert plan.body == make_plan(3).to_json()
    for reply in proofs:
        assert reply.status == 200
        assert judge_file(reply.body).holds
    for path in (
        "/plan/power-4.plan",
        "/proof/sums-x.json",
        "/proof/x.json",
        "/plan/../s.db",
        "//",
    ):
        assert (await shown.reply(path)).status == 404


def test_a_silent_home_is_told_until_when_and_that_no_sum_runs(tmp_path: Path) -> None:
    bench = PageBench(tmp_path / "s.db", stream=BOTH, window=(8, 97))
    bench.live(1)
    facts, said = bench.household.facts(), page_html(bench.household.facts())
    assert facts.silent is not None
    assert f"<p>The agent is {facts.silent}.</p>" in said.partition("<h2>")[0]
    assert facts.silent.startswith("silent until ")
    summed = dict(facts.standing)["sums of power"]
    assert summed.endswith(" is added up once the silence ends; nothing of it left")
    assert "sums every 1 day, noise b" in said
    assert " W × slots" in said
    past = at_home(tmp_path / "past.db").household.facts()
    assert past.silent is None
    assert "The agent is" not in page_html(past)


def test_released_sums_are_counted_by_their_period(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db", stream=BOTH, window=(8, 97))
    bench.journal.save_ledger(bench.journal.ledger(), sharing=bench.config.sharing)  # type: ignore[arg-type] # there is one
    yesterday = int(bench.clock.now()) // DAY_S - 1
    layout = (900, 1, 1, 1, 0)
    frame = SumsFrame(0, 7, 1, yesterday, *layout, 0, 4000, 9000, "W", "power", (96,), (1234,))
    bench.record.made([Batch(Key(512, 1), encode_sums(frame), 0, 1)])
    facts = bench.household.facts()
    assert facts.spans[1].made == 1
    assert facts.newest[0].endswith("a period's sums, with noise; given up")
    assert dict(facts.standing)["sums of power"].endswith("nothing of it left")
