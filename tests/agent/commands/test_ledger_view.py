"""What a home is told of its ledger: figures, times and the sentence that says what they mean."""

import json
import time
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims.silence import WORDS, Silence
from agent.commands.commissioning import telegram_text
from agent.commands.ledger_view import as_text, view
from agent.meters.reading import Telegram
from edge_ldp.protocol.ledger import Ledger, Window, charge, included, open_ledger
from edge_ldp.ratio import Ratio, floor_ratio
from tests.agent.samples import SLOT, SLOT_S, T0

DAY_S = 86_400
E1, E2, HALF = floor_ratio(1), floor_ratio(2), floor_ratio("0.5")
DEFAULT = Window(8, 97, 1, 107)


def ledger_of(window: Window = DEFAULT, **changes: object) -> Ledger:
    held = open_ledger(window, SLOT - 1000, lambda n: n // 2)
    return replace(held, **{"silent_until": 0, **changes})  # type: ignore[arg-type]


def shown(held: Ledger | None, window: Window = DEFAULT, now_s: int = T0) -> dict[str, object]:
    facts = view(held, window, E1, SLOT_S, now_s)
    assert json.loads(json.dumps(facts)) == facts
    return facts


def test_the_keys_are_these() -> None:
    """Others read them: a change here is a new "v"."""
    facts = shown(charge(ledger_of(), SLOT, 1, [E1]))
    assert list(facts) == [
        *("v", "now_s", "state", "reports_from_s", "policy", "window", "next_window", "today"),
        *("day", "ratios", "total"),
    ]
    assert facts["v"] == 1
    assert {name: list(part) for name, part in facts.items() if isinstance(part, dict)} == {
        "policy": ["num", "den", "epsilon"],
        "window": [
            *("reports", "slots", "streams", "period", "seconds", "epsilon"),
            *("slots_past", "cells_past"),
        ],
        "today": ["day", "reports", "epsilon_at_most"],
        "day": ["reports", "epsilon", "worst_reports", "worst_epsilon"],
        "total": ["reports", "epsilon"],
    }


def test_the_shipped_default_is_eight_a_window_and_never_more_than_eight_a_day_PRV_11() -> None:
    facts = shown(None)
    epsilon = log(178_145) - log(65_536)
    assert facts["policy"] == {"num": 178_145, "den": 65_536, "epsilon": round(epsilon, 6)}
    assert facts["window"] == {
        "reports": 8,
        "slots": 97,
        "streams": 1,
        "period": 107,
        "seconds": 87_300,
        "epsilon": round(8 * epsilon, 6),
        "slots_past": SLOT % 107,
        "cells_past": 0,
    }
    assert facts["day"] == {
        "reports": 7.178,
        "epsilon": round(8 * 96 / 107 * epsilon, 6),
        "worst_reports": 8,
        "worst_epsilon": round(8 * epsilon, 6),
    }


def test_totals_are_sums_of_logarithms_over_every_ratio_ever_charged_PRV_11() -> None:
    held = ledger_of(spent=((HALF.num, HALF.den, 10), (E1.num, E1.den, 3000), (E2.num, E2.den, 7)))
    facts = shown(held)
    exact = 10 * HALF.epsilon + 3000 * E1.epsilon + 7 * E2.epsilon
    assert facts["total"] == {"reports": 3017, "epsilon": pytest.approx(exact, abs=1e-6)}
    assert facts["ratios"] == [
        {
            "num": ratio.num,
            "den": ratio.den,
            "epsilon": round(ratio.epsilon, 6),
            "reports": count,
            "epsilon_total": round(count * ratio.epsilon, 6),
        }
        for ratio, count in ((HALF, 10), (E1, 3000), (E2, 7))
    ]


@given(st.lists(st.tuples(st.sampled_from([HALF, E1, E2]), st.booleans()), max_size=12))
def test_todays_cost_is_exact_for_one_ratio_and_never_below_what_was_spent(
    charges: list[tuple[Ratio, bool]],
) -> None:
    held, true, reports = ledger_of(), 0.0, 0
    for at, (ratio, is_today) in enumerate(sorted(charges, key=lambda c: c[1])):
        day = T0 // DAY_S - (not is_today)
        held = charge(held, SLOT - 500 + at, day, [ratio])
        true += is_today * ratio.epsilon
        reports += is_today
    today = shown(held)["today"]
    assert isinstance(today, dict)
    assert today["reports"] == reports
    assert today["epsilon_at_most"] >= true - 1e-6
    if len({ratio for ratio, _ in charges}) <= 1:
        assert today["epsilon_at_most"] == pytest.approx(true, abs=1e-6)


def test_yesterdays_reports_are_not_todays() -> None:
    held = charge(ledger_of(), SLOT - 96, T0 // DAY_S - 1, [E1])
    assert shown(held)["today"] == {"day": T0 // DAY_S, "reports": 0, "epsilon_at_most": 0.0}


def test_of_the_present_round_it_says_how_many_slots_and_turns_are_past() -> None:
    held = replace(ledger_of(Window(3, 10, 2)), cells=(4, 5, 19))
    for past in range(10):
        first = SLOT - SLOT % 10
        window = shown(held, now_s=(first + past) * SLOT_S)["window"]
        assert isinstance(window, dict)
        assert window["slots_past"] == past
        turns = [pair for slot in range(first, first + past) for pair in included(held, slot)]
        assert window["cells_past"] == len(turns)


def test_a_silence_says_when_it_ends() -> None:
    held = open_ledger(DEFAULT, SLOT, lambda n: n // 2)
    facts = shown(held)
    assert (facts["state"], facts["reports_from_s"]) == ("silent", T0 + 97 * SLOT_S)
    assert "silent until 2027-01-16 08:15:00 UTC" in as_text(facts)
    later = shown(held, now_s=T0 + 97 * SLOT_S)
    assert (later["state"], later["reports_from_s"]) == ("reporting", None)


def test_a_clock_behind_the_ledger_shows_AGT_10() -> None:
    held = ledger_of(floor=SLOT)
    facts = shown(held, now_s=T0 - 3600)
    assert (facts["state"], facts["reports_from_s"]) == ("behind", T0 + SLOT_S)
    assert "the clock is behind" in as_text(facts)


@pytest.mark.parametrize("slot", [SLOT + 10**9, 1 << 62])
def test_a_silence_that_no_calendar_holds_can_be_shown(slot: int) -> None:
    assert "beyond the year 9999" in as_text(shown(ledger_of(silent_until=slot, floor=slot)))


def test_a_window_that_was_configured_since_is_shown_beside_the_one_in_force() -> None:
    assert shown(ledger_of())["next_window"] is None
    facts = shown(ledger_of(), window=Window(4, 97, 2))
    assert facts["next_window"] == {"reports": 4, "slots": 97, "streams": 2, "period": 97}
    window = facts["window"]
    assert isinstance(window, dict)
    assert window["reports"] == 8
    text = as_text(facts)
    assert "97 consecutive slots of all 2 streams together: at most 4 reports" in text


@pytest.mark.parametrize("held", [None, ledger_of(), charge(ledger_of(), SLOT, 1, [E1, E2, HALF])])
def test_the_text_is_aligned_narrow_and_ends_in_plain_words(held: Ledger | None) -> None:
    *lines, empty, first, second, third = as_text(shown(held)).splitlines()
    assert empty == ""
    assert all(len(line) <= 120 and line[22:24].strip() == "" for line in lines)
    assert all(line[24] != " " for line in lines)
    said = f"{first} {second} {third}"
    assert said.startswith("In plain words: seeing one report")
    assert "2.72 times" in said
    assert "at most 8 reports can leave this home in any 24 h 15 min" in said


def test_one_report_is_not_called_reports() -> None:
    text = as_text(shown(None, window=Window(1, 1, 1)))
    assert "slot (15 min): at most 1 report, ε 1.00" in text


# The bound on a day, against every schedule there is


@pytest.mark.parametrize("window", [Window(2, 5, 1), Window(3, 4, 2), Window(4, 4, 1)], ids=str)
def test_the_most_of_a_span_is_reached_by_some_schedule_and_exceeded_by_none(
    window: Window,
) -> None:
    cells = range(window.slots * window.streams)
    for span in range(3 * window.slots):
        found = {
            sum(len(included(held, slot)) for slot in range(start, start + span))
            for chosen in combinations(cells, window.reports)
            for held in [Ledger(window, chosen, floor=-1, silent_until=0)]
            for start in range(window.slots)
        }
        assert max(found) == window.most_in(span)


@pytest.mark.parametrize(("slot_seconds", "worst"), [(900, 8), (86_400, 1), (60, 120), (1000, 8)])
def test_the_worst_day_counts_a_slot_that_it_only_touches(slot_seconds: int, worst: int) -> None:
    facts = view(None, DEFAULT, E1, slot_seconds, T0)
    assert facts["day"]["worst_reports"] == worst
    assert facts["day"]["reports"] == round(
        float(Fraction(8, 107) * Fraction(DAY_S, slot_seconds)), 3
    )


def test_a_silence_after_a_fault_is_named_with_its_end_AGT_23_AGT_24() -> None:
    held = ledger_of(silent_until=SLOT + 9, floor=SLOT)
    for reason in ("clock", "slot", "rollback"):
        silence = Silence(reason, T0 + 12 * SLOT_S)
        facts = view(held, DEFAULT, E1, SLOT_S, T0, silence=silence)
        assert (facts["state"], facts["reports_from_s"]) == ("silent", T0 + 12 * SLOT_S)
        assert facts["silent_because"] == WORDS[reason]
        assert f"silent until 2027-01-15 11:00:00 UTC: {WORDS[reason]}" in as_text(facts)
    plain = view(held, DEFAULT, E1, SLOT_S, T0, silence=Silence("window", T0 + 9 * SLOT_S))
    assert "silent_because" not in plain
    assert "a new or changed window counts as spent" in as_text(plain)
    behind = view(held, DEFAULT, E1, SLOT_S, T0, silence=Silence("behind", T0 + 9 * SLOT_S))
    assert behind["state"] == "behind"


def test_reports_of_the_last_window_and_of_all_time_are_told_apart() -> None:
    facts = shown(ledger_of(spent=((E1.num, E1.den, 45),)))
    said = " ".join(as_text(facts, recent=7).split())
    assert "at most 8 reports can leave this home in any 24 h 15 min: no more than 7 did in" in said
    assert "did in the last, 45 did since it began. What they tell adds up" in said
    assert "in any 24 h 15 min: 45 did since it began." in " ".join(as_text(facts).split())


def test_a_home_reads_its_own_clocks_and_machines_read_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    silent = Silence("new", 1_800_000_000)
    facts = view(None, DEFAULT, Ratio(3, 2), 900, 1_790_000_000, silence=silent)
    telegram = Telegram("m", 1_800_000_000, ())
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        assert "silent until 2027-01-15 09:00:00 CET" in as_text(facts)
        assert "now                     2026-09-21 16:13:20 CEST" in as_text(facts)
        assert "time 2027-01-15T09:00:00+01:00" in telegram_text(telegram)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert "time 2027-01-15T08:00:00Z" in telegram_text(telegram)
    assert facts["reports_from_s"] == 1_800_000_000
