"""What a home has spent and may spend, for its people (text) and for machines (JSON).

Everything comes from the stored ledger, the owner's policy and the time; nothing from a report.
ε of several reports is the sum of ln(num/den) over them: they compose by multiplying their odds.
"""

from collections.abc import Iterable
from math import fsum
from textwrap import wrap
from typing import Any

from agent.claims.silence import BEHIND, FAULTS, WORDS, Silence
from agent.home_time import home_time
from edge_ldp.protocol.ledger import Ledger, Window
from edge_ldp.ratio import Ratio

DAY_SECONDS = 86_400
_DIGITS = 6
_WIDTH = 90
_LAST_S = 253_402_300_799  # the end of the year 9999, the last that has a date
_STATES = {
    "none": "no ledger yet: it begins when the agent runs and the clock is right, with one silent "
    "window",
    "silent": "silent until {}: a new or changed window counts as spent",
    "behind": "silent until {}: the clock is behind slots that have reported",
    "reporting": "reporting",
}


def view(  # noqa: PLR0913 (what is stored, what is configured, and now)
    ledger: Ledger | None,
    window: Window,
    policy: Ratio,
    slot_seconds: int,
    now_s: int,
    *,
    silence: Silence | None = None,
) -> dict[str, Any]:
    """Return the ledger's figures, ready for JSON; the keys are stable.

    `window` and `policy` are the configuration's; `ledger.window` is what reports keep to until the
    agent starts with another; `silence`: why nothing may be reported now, a key of its own after
    a fault. Times in seconds since
    1970, days in UTC, ε rounded to 6 decimals.
    """
    slot = now_s // slot_seconds
    state, from_s = _state(ledger, slot, slot_seconds, silence)
    rows = ledger.spent if ledger else ()
    return {
        "v": 1,
        "now_s": now_s,
        "state": state,
        "reports_from_s": from_s,
        "policy": {"num": policy.num, "den": policy.den, "epsilon": _round(policy.epsilon)},
        "window": _window(ledger, window, policy, slot_seconds, slot),
        "next_window": None
        if ledger is None or ledger.window == window
        else {
            "reports": window.reports,
            "slots": window.slots,
            "streams": window.streams,
            "period": window.period,
        },
        "today": _today(ledger, now_s // DAY_SECONDS),
        "day": _day(ledger.window if ledger else window, policy, slot_seconds),
        "ratios": [
            {
                "num": num,
                "den": den,
                "epsilon": _round(Ratio(num, den).epsilon),
                "reports": count,
                "epsilon_total": _round(Ratio(num, den).epsilon * count),
            }
            for num, den, count in rows
        ],
        "total": {"reports": sum(row[2] for row in rows), "epsilon": _round(_sum(rows))},
        **(
            {"silent_because": WORDS[silence.reason]}
            if silence and silence.reason in FAULTS
            else {}
        ),
    }


def as_text(facts: dict[str, Any], recent: int | None = None) -> str:
    """Return `view`'s figures as aligned lines, ending in what they mean.

    `recent`: how many reports were made in the last window, where that is known.
    """
    lines = [
        ("now", _when(facts["now_s"])),
        ("state", state_text(facts)),
        *_allowed(facts),
        *_made(facts),
    ]
    meaning = "\n".join(wrap(_meaning(facts, recent), _WIDTH))
    return "".join(f"{name:<24}{text}\n" for name, text in lines) + f"\n{meaning}\n"


def state_text(facts: dict[str, Any]) -> str:
    """Return whether this home reports, or until when it does not and why, in words."""
    until = _when(facts["reports_from_s"] or 0)
    if facts["state"] == "silent" and "silent_because" in facts:
        return f"silent until {until}: {facts['silent_because']}"
    return _STATES[facts["state"]].format(until)


def _allowed(facts: dict[str, Any]) -> list[tuple[str, str]]:
    policy, window, day = facts["policy"], facts["window"], facts["day"]
    most = f"at most {_cost(window['reports'], window['epsilon'])}"
    past = f"{window['slots_past']} of {window['period']} slots are past"
    turns = f"{window['cells_past']} of {window['reports']} turns to report"
    expected = f"{day['reports']:g} reports, ε {day['epsilon']:,.2f} expected"
    worst = f"at most {_cost(day['worst_reports'], day['worst_epsilon'])}"
    lines = [
        ("your policy allows", f"ε {policy['epsilon']:g} a report, {_odds(policy)}"),
        ("any window", f"{_slots(window)} ({span(window['seconds'])}): {most}"),
        ("a day", f"{expected}; {worst}"),
    ]
    if facts["state"] != "none":
        lines.append(("this round", f"{past}, and with them {turns}"))
    if changed := facts["next_window"]:
        most = f"at most {counted(changed['reports'], 'report')}, after a silence"
        lines.append(("once run again", f"{_slots(changed)}: {most}"))
    return lines


def _made(facts: dict[str, Any]) -> list[tuple[str, str]]:
    today, total = facts["today"], facts["total"]
    several = " at most" if len(facts["ratios"]) > 1 else ""
    return [
        ("today (UTC)", _cost(today["reports"], today["epsilon_at_most"]) + several),
        *(
            (
                f"at ε {row['epsilon']:g} a report",
                f"{_cost(row['reports'], row['epsilon_total'])}, {_odds(row)} each",
            )
            for row in facts["ratios"]
        ),
        ("since it began", _cost(total["reports"], total["epsilon"])),
    ]


def _meaning(facts: dict[str, Any], recent: int | None) -> str:
    policy, window, total = facts["policy"], facts["window"], facts["total"]
    most = counted(window["reports"], "report")
    lately = "" if recent is None else f"no more than {recent:,} did in the last, "
    return (
        "In plain words: seeing one report makes one guess about what you used then "
        f"at most {policy['num'] / policy['den']:.2f} times likelier than another; "
        f"at most {most} can leave this home in any {span(window['seconds'])}: "
        f"{lately}{total['reports']:,} did since it began. What they tell adds up and is never "
        "taken back."
    )


def _state(
    ledger: Ledger | None, slot: int, seconds: int, silence: Silence | None
) -> tuple[str, int | None]:
    """Return the state, and when reports begin (seconds UTC) if they do not now."""
    if silence is not None:
        return "behind" if silence.reason == BEHIND else "silent", silence.until_s
    state, first = _state_of_slots(ledger, slot)
    return state, None if first is None else first * seconds


def _state_of_slots(ledger: Ledger | None, slot: int) -> tuple[str, int | None]:
    if ledger is None:
        return "none", None
    if slot < ledger.silent_until:
        return "silent", max(ledger.silent_until, ledger.floor + 1)
    if slot < ledger.floor:
        return "behind", ledger.floor + 1
    return "reporting", None


def _window(
    ledger: Ledger | None, window: Window, policy: Ratio, slot_seconds: int, slot: int
) -> dict[str, Any]:
    held = ledger.window if ledger else window
    past = slot % held.period
    cells = ledger.cells if ledger else ()
    return {
        "reports": held.reports,
        "slots": held.slots,
        "streams": held.streams,
        "period": held.period,
        "seconds": held.slots * slot_seconds,
        "epsilon": _round(held.reports * policy.epsilon),
        "slots_past": past,
        "cells_past": sum(cell < past * held.streams for cell in cells),
    }


def _today(ledger: Ledger | None, day: int) -> dict[str, Any]:
    """Return the day's reports, and the most that they can have cost.

    The ledger counts a day's reports without their ratios: the dearest ever charged are taken.
    """
    made = left = ledger.day_reports if ledger and ledger.day == day else 0
    dearest = []
    for num, den, count in sorted(
        ledger.spent if ledger else (), key=lambda row: -Ratio(*row[:2]).epsilon
    ):
        dearest.append((num, den, min(left, count)))
        left -= min(left, count)
    return {"day": day, "reports": made, "epsilon_at_most": _round(_sum(dearest))}


def _day(window: Window, policy: Ratio, slot_seconds: int) -> dict[str, Any]:
    expected = window.reports_in(1) * DAY_SECONDS / slot_seconds
    worst = window.most_in(-(-DAY_SECONDS // slot_seconds))
    return {
        "reports": round(expected, 3),
        "epsilon": _round(expected * policy.epsilon),
        "worst_reports": worst,
        "worst_epsilon": _round(worst * policy.epsilon),
    }


def _sum(rows: Iterable[tuple[int, int, int]]) -> float:
    return fsum(Ratio(num, den).epsilon * count for num, den, count in rows)


def _round(epsilon: float) -> float:
    return round(epsilon, _DIGITS)


def _cost(reports: int, epsilon: float) -> str:
    return f"{counted(reports, 'report')}, ε {epsilon:,.2f}"


def _odds(row: dict[str, Any]) -> str:
    return f"odds at most {row['num']}/{row['den']}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, which takes an s for all but one."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _slots(window: dict[str, Any]) -> str:
    slots = "slot" if window["slots"] == 1 else f"{window['slots']} consecutive slots"
    streams = "" if window["streams"] == 1 else f" of all {window['streams']} streams together"
    return slots + streams


def span(seconds: int) -> str:
    """Return a time's length in hours, minutes and seconds."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "min"), (rest, "s"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def _when(seconds: int) -> str:
    if seconds > _LAST_S:
        return "a time beyond the year 9999"
    return home_time(seconds)
