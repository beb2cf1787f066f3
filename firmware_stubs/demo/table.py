"""The result on a terminal: the comparison, the thresholds, the budget and the accounting."""

from collections.abc import Iterable, Sequence
from statistics import mean

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from firmware_stubs.demo.compare import ALLOWED_MISSES, Comparison, Row, privacy
from firmware_stubs.demo.scenario import CEILING_W, DAY_S, DAY_SLOTS
from firmware_stubs.demo.shipped import TITLES, AsShipped

SHIPPED = (
    "The same homes as shipped, at ε 8 in any 97 quarter hours: daily sums\n"
    "with noise (ε 6; from this run), or 8 reports (as forecast)"
)
COLUMNS = (
    "hour\n",
    "true\nW",
    "est.\nW",
    "95 %\nW",
    "held\n",
    "±\n%",
    "θ=B\nW",
    "±\n%",
    "true\nMWh",
    "est.\nMWh",
    "95 %\nMWh",
)


def show(found: Comparison, console: Console) -> None:
    """Print everything but the picture."""
    console.print(comparison_table(found))
    if found.shipped is not None:
        console.print(shipped_table(found.shipped))
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold")
    rows.add_column()
    for topic, text in facts(found).items():
        rows.add_row(topic, text)
    console.print(rows)


def comparison_table(found: Comparison) -> Table:
    """Return the table of the 24 hours of the day and the whole run."""
    title = (
        f"{found.scenario.devices} homes, {found.scenario.weeks} weeks, ε = 1: mean of a "
        "home and total by hour of the day\n"
        f"θ=B: simulated on the same readings without truncation ({CEILING_W / 1000:.1f} kW)"
    )
    rows = [line_texts(row) for row in found.hours]
    return table_of(title, COLUMNS, rows, line_texts(found.whole), padding=0)


def shipped_table(found: AsShipped) -> Table:
    """Return the table of both modes as they ship."""
    return table_of(SHIPPED, TITLES, found.lines)


def table_of(
    title: str,
    columns: Iterable[str],
    rows: Iterable[Sequence[str]],
    last: Sequence[str] | None = None,
    padding: tuple[int, int] | int = (0, 1),
) -> Table:
    """Return a table of figures, set to the right; `last`: a line for all, below."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=padding
    )
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    if last is not None:
        table.add_section()
        table.add_row(*last, style="bold")
    return table


def line_texts(row: Row) -> tuple[str, ...]:
    """Return the texts of one line, for `COLUMNS`."""
    estimate, plain, total = row.estimate, row.untruncated, row.total
    return (
        "all" if row.hour is None else f"{row.hour:02d}-{row.hour + 1:02d}",
        f"{row.truth:,.0f}",
        f"{estimate.mean:,.0f}",
        f"{estimate.low:,.0f}–{estimate.high:,.0f}",
        "yes" if row.held else "NO",
        f"{row.percent(estimate.half_width):.1f}",
        f"{plain.mean:,.0f}",
        f"{row.percent(plain.half_width):.1f}",
        f"{row.true_total:,.1f}",
        f"{total.mean:,.1f}",
        f"{total.low:,.1f}–{total.high:,.1f}",
    )


def facts(found: Comparison) -> dict[str, str]:
    """Return what the table does not say, by topic; the same for terminal and page."""
    account, whole = found.account, found.whole
    average = mean(row.percent(row.estimate.half_width) for row in found.hours)
    first_day = found.first_slot / DAY_SLOTS
    return {
        "Intervals": f"{found.held} of 24 by hour of day hold the truth (fewer than "
        f"{24 - ALLOWED_MISSES} fails); ± {average:.1f} % on average. Of the whole run "
        f"± {whole.percent(whole.estimate.half_width):.1f} %, where no unbiased protocol that "
        "randomises every slot alone comes below about "
        f"± {whole.percent(whole.untruncated.half_width):.1f} %. They assume honest "
        "devices and nothing about how values are distributed, and fall with 1/√homes.",
        "Total": f"{whole.total.mean:,.1f} MWh ({whole.total.low:,.1f} to "
        f"{whole.total.high:,.1f}), {whole.true_total:,.1f} MWh true, from day {first_day:.1f} on: "
        "before, every report was a survey, which no sum is made of.",
        "Readings": f"{found.readings:,}, of which {found.clamped} lay outside 0 to {CEILING_W:,} "
        "W and were clamped, by the devices and in the truth.",
        "θ": _thetas(found),
        "Privacy": _budget(),
        "Accounting": f"{account.created:,} reports and sums created = {account.counted:,} counted "
        f"+ {account.rejected:,} rejected + {account.expired:,} expired + {account.pending:,} "
        f"pending; {account.duplicates:,} came twice and were counted once.",
        "Search": f"{found.searched}, looked at in mid-run, at the end and after it.",
    }


def passed(found: Comparison) -> str:
    """Return in one line that the demo did what it promises."""
    return (
        f"Passed: {found.held} of 24 intervals hold the truth, every report was counted exactly "
        "once, no reading was found in what the agents wrote."
    )


def _thetas(found: Comparison) -> str:
    origin_s = found.scenario.origin_s
    rows = (
        f"epoch {row['epoch']} from day {max(0, row['issued_s'] - origin_s) / DAY_S:.1f}: "
        + (
            "surveys only"
            if row["survey_share"] == 1
            else f"θ {row['theta'] / 1000:.1f} kW, {row['survey_share']:.0%} surveys"
        )
        for row in found.thetas_played
    )
    return "; ".join(rows) + "."


def _budget() -> str:
    spent = privacy()
    window = spent["default_window"]
    return (
        f"ε = {spent['epsilon_per_report']:.4g} a report. Here every slot reports: {DAY_SLOTS} "
        f"reports and ε = {spent['epsilon_per_day']:.4g} a day. What ships allows "
        f"{window['reports']} reports in any {window['slots']} quarter hours: about "
        f"ε = {spent['default_epsilon_per_day']:.2g} a day."
    )
