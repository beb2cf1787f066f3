"""What sums at home cost and tell, for the home's people and for machines.

Every ε here is a rational that is rounded up, as the ledger books it: a slot costs R/b, and adds to
what reports of the same slot cost. Source: docs/methods.md, Period sums.
"""

from fractions import Fraction
from math import exp, factorial, log, sqrt
from textwrap import wrap
from typing import Any

from agent.commands.habits import WIDTH, sums_words
from agent.commands.ledger_view import counted, span
from agent.config import AgentConfig
from agent.config.summed_streams import SumTerms, day_cost, sum_terms, window_cost
from agent.curator.sums_journal import SumsJournal
from agent.home_time import local
from agent.state.journal import Journal
from edge_ldp.device.sums_frame import decode_sums
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from edge_ldp.ratio import exact_epsilon

DAY_SECONDS = 86_400
MONTH_DAYS = 28
COSTS = ("a slot", "a window", "a day", "a period", "a year", "so far")
_NORMAL = 1.96  # of many sums' noise; of four it is 2 % more
_MICRO = 10**6
_THOUSANDS = {"Wh": "kWh", "dm3": "m3"}  # of what a slot's value is a rise
_KEPT = {
    "run": "in memory only: a reboot loses the period so far, and no copy of the disk shows it",
    "disk": "ON THE DISK: whoever copies it twice has single readings from between the copies",
}


def upwards(epsilon: Fraction) -> float:
    """Return an ε in 6 decimals that is not below it."""
    return -(-epsilon * _MICRO // 1) / _MICRO


def check_facts(config: AgentConfig) -> dict[str, object]:
    """Return what the streams' sums mean, in words that a household can check."""
    found: dict[str, object] = {}
    for terms in sum_terms(config).values():
        found[f"sums of {terms.name}"] = _layout(terms)
        found[f"noise of {terms.name}"] = _noise(terms)
        if words := sums_words(config, terms):
            found[f"told by {terms.name}"] = words
    return found | {"what runs": f"{_KEPT[config.device.keep or 'run']} ([device] keep)"}


def cost_facts(config: AgentConfig, journal: Journal | None = None) -> list[dict[str, Any]]:
    """Return the ε of each stream's sums, of reports, and of all together: at most, rounded up.

    In a slot, a window, a day, a period and a year; with a journal also `so far`, as one event.
    """
    summed = _by_stream(journal)
    rows: list[dict[str, Any]] = [
        {"name": f"sums of {terms.name}"}
        | costs(config, terms)
        | {"so far": summed.pop(terms.key, Fraction())}
        for terms in sum_terms(config).values()
    ]
    names = {FIRST_SUMS_KEY + at: stream.name for at, stream in enumerate(config.streams)}
    for key, spent in summed.items():  # of streams that make none any more
        name = names.get(key, f"stream {key - FIRST_SUMS_KEY}")
        rows.append({"name": f"earlier sums of {name}", "so far": spent})
    ledger = journal.ledger() if journal else None
    if config.local_streams:
        reported = Fraction(ledger.epsilon_spent if ledger else 0)
        rows.append(_report_costs(config) | {"so far": reported})
    together = {
        key: sum((row.get(key, 0) for row in rows), Fraction())
        for key in COSTS
        if key != "a period"
    }
    rows.append({"name": "together", **together})
    if journal is None:
        rows = [{key: cost for key, cost in row.items() if key != "so far"} for row in rows]
    return [
        {key: upwards(cost) if isinstance(cost, Fraction) else cost for key, cost in row.items()}
        for row in rows
    ]


def cost_text(rows: list[dict[str, Any]], config: AgentConfig) -> str:
    """Return `cost_facts` as a table."""
    columns = [key for key in COSTS if any(key in row for row in rows)]
    lines = [f"{'ε at most, in':<24}" + "".join(f"{key:>11}" for key in columns)]
    for row in rows:
        cells = (f"{row[key]:,.6g}" if key in row else "-" for key in columns)
        lines.append(f"{row['name']:<24}" + "".join(f"{cell:>11}" for cell in cells))
    policy = config.policy
    whole = upwards(exact_epsilon(policy.epsilon) * policy.window.reports)
    seconds = policy.window.slots * config.slot_seconds
    ever = "" if config.lifetime is None else f", and ε {config.lifetime.epsilon:,g} ever"
    said = (
        f"A window is any {counted(policy.window.slots, 'slot')} ({span(seconds)}); you allow "
        f"ε {whole:g} in it{ever}. A value may enter a sum and a report, and costs both."
    )
    return "\n".join([*lines, *wrap(said, WIDTH)]) + "\n"


def _report_costs(config: AgentConfig) -> dict[str, Any]:
    """Return what reports cost: at most, as the window promises."""
    window, epsilon = config.window, exact_epsilon(config.policy.epsilon)
    a_day = -(-DAY_SECONDS // config.slot_seconds)
    most = {
        "a slot": min(window.reports, window.streams),
        "a window": window.reports,
        "a day": window.most_in(a_day),
        "a year": window.most_in(365 * a_day),
    }
    return {"name": "reports"} | {key: epsilon * many for key, many in most.items()}


def _by_stream(journal: Journal | None) -> dict[int, Fraction]:
    """Return what each stream's sums have cost since they began."""
    found: dict[int, Fraction] = {}
    for row in SumsJournal(journal).released() if journal else ():
        found[row.stream] = found.get(row.stream, Fraction()) + row.epsilon
    return found


def told_of_sums(config: AgentConfig) -> list[str]:
    """Return what sums tell of this home, a paragraph for each stream, for who is to allow them."""
    told = []
    for terms in sum_terms(config).values():
        layout, cost = terms.layout, costs(config, terms)
        one = give_or_take(terms.scale, layout.block)
        month = round(_NORMAL * sqrt(2 * max(1, MONTH_DAYS // layout.days)) * terms.scale)
        known = [_amount(off, terms.unit, layout.slot_seconds) for off in (one, max(one, month))]
        parts = "" if layout.cells == 1 else f" in each of {layout.cells} parts of the day"
        over = (
            ""
            if layout.days >= MONTH_DAYS or layout.cells > 1
            else (f", and a month, added up, to give or take {known[1]}")
        )
        text = (
            f"Every {counted(layout.days, 'day') if layout.days > 1 else 'day'} what {terms.name} "
            f"added up to{parts} leaves this home once, with noise: it is known to give or take "
            f"{known[0]} in 95 of 100 cases{over}. Nobody sees single values. A slot costs ε "
            f"{upwards(cost['a slot']):.3g}, any {span(_slots(config) * config.slot_seconds)} ε "
            f"{upwards(cost['a window']):.4g} at most, beside what reports cost."
        )
        words = sums_words(config, terms)
        told.append(f"{text} It tells {words}." if words else text)
    return told


def costs(config: AgentConfig, terms: SumTerms) -> dict[str, Fraction]:
    """Return what a stream's sums cost at most: in a slot, a window, a day, a period, a year."""
    layout, a_day = terms.layout, day_cost(terms)
    return {
        "a slot": terms.per_slot,
        "a window": window_cost(terms, _slots(config)),
        "a day": a_day,
        "a period": min(a_day * layout.days, terms.per_slot * layout.slots),
        "a year": a_day * 365,
    }


def give_or_take(scale: int, block: int) -> int:
    """Return how far 95 of 100 parts are off their sum at the most, by their noise.

    A part of a block is uniform within a radius that weighs r^k·e^(-r/b): see docs/methods.md.
    """
    if block == 1:
        return round(scale * log(20))
    low, high = 0.0, 256.0
    for _ in range(50):
        x = (low + high) / 2
        beyond = exp(-x) * sum(x**i / factorial(i) for i in range(block))
        within = 1 - beyond - exp(-x) * x**block / factorial(block) + x / block * beyond
        low, high = (x, high) if within < 0.95 else (low, x)  # noqa: PLR2004 (as is told)
    return round(scale * high)


def ledger_facts(journal: Journal) -> list[dict[str, Any]]:
    """Return what each stream's sums have cost since they began, rounded up."""
    found: dict[int, dict[str, Any]] = {}
    for row in SumsJournal(journal).released():
        at = row.stream - FIRST_SUMS_KEY
        one = found.setdefault(row.stream, {"stream": at, "periods": 0, "slots": 0})
        one["periods"] += 1
        one["slots"] += row.slots
    spent = _by_stream(journal)
    return [one | {"epsilon": upwards(spent[stream])} for stream, one in found.items()]


def paid_of(journal: Journal) -> dict[tuple[int, int], float]:
    """Return what each released period cost, by stream and end."""
    rows = SumsJournal(journal).released()
    return {(row.stream, row.until_s): float(row.epsilon) for row in rows}


def kept_facts(journal: Journal) -> list[dict[str, Any]]:
    """Return the releases that no receipt covers yet, as whoever reads them does.

    Before them what was made in all, and arrived.
    """
    found = []
    for key in journal.keys():  # noqa: SIM118 (the journal's method, no dictionary)
        if key.stream < FIRST_SUMS_KEY or (payload := journal.payload(key)) is None:
            continue
        one = decode_sums(payload)
        length = one.days * DAY_SECONDS
        first_s = one.period * length + one.offset_s
        found.append(
            {
                "name": one.name,
                "unit": one.unit,
                "from_s": first_s,
                "to_s": first_s + length,
                "slots": list(one.n),
                "sums": [y + one.low * n for n, y in zip(one.n, one.y, strict=True)],
                "give_or_take": give_or_take(one.scale, one.block),
                "slot_seconds": one.slot_seconds,
            }
        )
    accounts = [one for one in journal.status() if one.stream >= FIRST_SUMS_KEY]
    made = sum(one.created for one in accounts)
    expired = sum(one.expired for one in accounts)
    return [{"made": made, "arrived": made - expired - len(found), "expired": expired}, *found]


def kept_text(facts: list[dict[str, Any]]) -> str:
    """Return `kept_facts` as lines."""
    counts, *kept = facts
    lines = (
        f"Periods' sums: {counts['made']} made, {counts['arrived']} arrived, {len(kept)} here "
        f"until a receipt, {counts['expired']} given up unconfirmed.\n"
    )
    for one in kept:
        when = f"{local(one['from_s']):%Y-%m-%d} to {local(one['to_s']):%Y-%m-%d}"
        total, cells = sum(one["sums"]), len(one["sums"])
        each = "" if cells == 1 else f", in {cells} parts of the day"
        told, off = (
            _amount(n, one["unit"], one["slot_seconds"]) for n in (total, one["give_or_take"])
        )
        lines += f"  {when}  sums of {one['name']}{each}: {told}, each part give or take {off}\n"
    return lines


def _layout(terms: SumTerms) -> str:
    layout = terms.layout
    parts = "one sum" if layout.cells == 1 else f"{layout.cells} parts of the day"
    after = f", {span(layout.offset_s)} past midnight UTC" if layout.offset_s else ""
    own = ""
    if terms.parts > 1:
        own = f", in slots of {span(layout.slot_seconds)}, each of {terms.parts} of the home's"
    return (
        f"every {counted(layout.days, 'day')} {parts}{after}{own}; values up to "
        f"{terms.low + terms.span:,} {terms.unit} count in full"
    )


def _noise(terms: SumTerms) -> str:
    seconds, off = terms.layout.slot_seconds, give_or_take(terms.scale, terms.layout.block)
    alike = f", shared by {terms.layout.block} parts" if terms.layout.block > 1 else ""
    return (
        f"b = {terms.scale:,}{alike}: a part is known to give or take "
        f"{_amount(off, terms.unit, seconds)} (95 %); what it gives away follows b, not ε"
    )


def _amount(total: int, unit: str, slot_seconds: int) -> str:
    """Return a sum over slots: of a power as the energy that it makes."""
    if unit in _THOUSANDS:
        return f"{total / 1000:,.1f} {_THOUSANDS[unit]}"
    return f"{total * slot_seconds / 3_600_000:,.1f} k{unit}h"


def _slots(config: AgentConfig) -> int:
    return config.policy.window.slots
