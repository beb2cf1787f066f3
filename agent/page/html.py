"""The page itself: from what it tells to one document, without a script. Pure.

Every text goes through `_text`: a plan's words, a name or a path can be no markup.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from agent.home_time import home_time
from agent.page.facts import CAME, GONE, SHOWN_DAYS, WAITS, Counts, PageFacts, PlanFile
from agent.page.picture import picture
from edge_ldp.service.health import OK

STYLE = """
:root { color-scheme: light dark; --ink: #1b2733; --soft: #51606e; --paper: #fff; --line: #c9d3dc;
  --came: #0a5c8a; --waits: #8a5a00; --gone: #a3201d; --shade: #f1f5f8;
  font: 16px/1.5 system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #a9b7c4; --paper: #11181f;
  --line: #3a4754; --came: #6fb9e6; --waits: #e0b34d; --gone: #ff9d94; --shade: #1b252f; } }
body { margin: 0 auto; max-width: 50rem; padding: 1rem; color: var(--ink);
  background: var(--paper); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
a { color: var(--came); } :focus-visible { outline: 3px solid var(--came); }
.lead { font-size: 1.2rem; } .soft { color: var(--soft); }
.warning { border-left: 4px solid var(--gone); background: var(--shade); padding: .5rem .75rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; overflow-wrap: normal; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child { text-align: left; } thead th { color: var(--soft); }
dt { font-weight: 600; } dd { margin: 0 0 .5rem; }
code { background: var(--shade); padding: 0 .25rem; }
svg { width: 100%; height: auto; overflow: visible; } .axis { fill: var(--soft); font-size: 12px; }
.end { text-anchor: end; } .middle { text-anchor: middle; } .grid { stroke: var(--line); }
.confirmed { fill: var(--came); color: var(--came); }
.waiting { fill: var(--waits); color: var(--waits); }
.given { fill: var(--gone); color: var(--gone); }
@media (min-width: 40rem) { dl { display: grid; grid-template-columns: 9rem 1fr; } }
@media (max-width: 30rem) { table { font-size: .78rem; } th, td { padding: .25rem .2rem; }
  .axis { font-size: 22px; } ul { padding-left: 1.2rem; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #333; --paper: #fff;
  --came: #0a5c8a; --waits: #8a5a00; --gone: #a3201d; --line: #999; --shade: #fff; }
  h2, tr, svg { break-inside: avoid; } }
"""
STYLE_HASH = "'sha256-" + b64encode(sha256(STYLE.encode()).digest()).decode() + "'"
_HEADS = ("made", "confirmed", "waiting", "given up", "ε at most")
_SETTLED = (
    "Confirmed: the aggregator counted it, or refused it for good, which is told above. Given up: "
    "older than this device keeps, or beyond its room. A report counts for the day that it is of, "
    "by this device's zone. ε adds up and is never taken back."
)


def page_html(facts: PageFacts) -> str:
    """Return the document."""
    title = f"What left this house: {facts.device}"
    body = [
        *_top(facts),
        *_counts(facts),
        *_habits(facts),
        *_newest(facts),
        "<h2>How it stands</h2>",
        "<dl>",
        *(f"<dt>{_text(name)}</dt><dd>{_text(told)}</dd>" for name, told in facts.standing),
        "</dl>",
        *_proofs(facts.plans),
        "<h2>What never leaves</h2>",
        f"<p>{_text(facts.never)}</p>",
    ]
    return _document(title, body)


def message_html(title: str, words: str) -> str:
    """Return a document that says why there is nothing else."""
    return _document(title, [f"<h1>{_text(title)}</h1>", f"<p>{_text(words)}</p>"])


def _document(title: str, body: Iterable[str]) -> str:
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<link rel="icon" href="data:,">\n<title>{_text(title)}</title>',
            f"<style>{STYLE}</style>\n</head>\n<body>\n<main>",
            *body,
            "</main>\n</body>\n</html>\n",
        ]
    )


def _top(facts: PageFacts) -> Iterator[str]:
    today = facts.spans[0]
    yield "<h1>What left this house</h1>"
    when = home_time(facts.now_s, "%Y-%m-%d %H:%M")
    yield f'<p class="soft">{_text(facts.device)}, of fleet {_text(facts.fleet)}; {when}</p>'
    for warning in facts.warnings:
        yield f'<p class="warning">{_text(warning)}</p>'
    if facts.health == OK:
        yield f"<p>{'Apart from that, all' if facts.warnings else 'All'} is well.</p>"
    yield f'<p class="lead">{_lead(today, facts.spans[-1])}</p>'
    if facts.silent is not None:
        yield f"<p>The agent is {_text(facts.silent)}.</p>"


def _lead(today: Counts, ever: Counts) -> str:
    if not ever.made:
        return "Nothing was ever sent."
    random = "1 random code" if today.made == 1 else f"{today.made:,} random codes"
    return (
        f"From today's use {random} left or will leave, ε {today.epsilon:,.2f} at most; "
        f"{ever.made:,} since it began, ε {ever.epsilon:,.2f}."
    )


def _counts(facts: PageFacts) -> Iterator[str]:
    yield "<h2>How much</h2>"
    yield from _table("What left, by when", facts.spans)
    yield f'<p class="soft">{_SETTLED}</p>'
    yield picture(facts.days)
    keys = (
        f'<span class="{name.partition(" ")[0]}">■</span> {name}' for name in (CAME, WAITS, GONE)
    )
    yield f'<p class="soft">{" ".join(keys)}</p>'
    yield f"<details><summary>The last {SHOWN_DAYS} days as a table</summary>"
    yield from _table("What left, by day", facts.days)
    yield "</details>"


def _table(caption: str, rows: Sequence[Counts]) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{head}</th>' for head in _HEADS)
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}">'
    yield f"<table><caption>{caption}</caption>"
    yield f'<thead><tr><th scope="col">when</th>{heads}</tr></thead><tbody>'
    for one in rows:
        cells = "".join(f"<td>{n:,}</td>" for n in (one.made, one.came, one.waits, one.gone))
        yield f'<tr><th scope="row">{_text(one.name)}</th>{cells}<td>{one.epsilon:,.2f}</td></tr>'
    yield "</tbody></table></div>"


def _habits(facts: PageFacts) -> Iterator[str]:
    yield "<h2>What an attacker could tell by now</h2>"
    yield f"<p>{_text(facts.so_far)}</p>"
    for one in facts.habits:
        caption = f"From a month's {_text(one['of'])}: told rightly, of 100 (50: a guess)"
        yield f"<table><caption>{caption}</caption><tbody>"
        for habit, share in one["found"].items():
            yield f'<tr><th scope="row">{_text(habit)}</th><td>{round(share * 100)}</td></tr>'
        yield "</tbody></table>"
    if facts.habits:
        yield (
            "<p>By somebody who has all that left in a month and knows your usual days, measured "
            "on real homes (docs/results/prying.md). Less time tells less, more tells more.</p>"
        )


def _newest(facts: PageFacts) -> Iterator[str]:
    yield "<h2>The newest</h2>"
    if not facts.newest:
        yield "<p>Nothing of the last weeks is here.</p>"
        return
    yield "<ul>"
    yield from (f"<li>{_text(line)}</li>" for line in facts.newest)
    yield "</ul>"


def _proofs(plans: Sequence[PlanFile]) -> Iterator[str]:
    yield "<h2>What is asked, and its proof</h2>"
    if not plans:
        yield "<p>No plan is in force.</p>"
        return
    yield "<p>Take these along and prove them on a machine that you trust:</p><ul>"
    for one in plans:
        links = [f'<a href="/proof/{_text(one.certificate)}" download>certificate</a>']
        if one.plan:
            links.insert(0, f'<a href="/plan/{_text(one.plan)}" download>plan</a>')
        yield f"<li>{_text(one.stream)}: {_text(one.words)}. {' and '.join(links)}; "
        yield f"<code>{_text(one.prove)}</code></li>"
    yield "</ul>"


def _text(text: str) -> str:
    """Return a text that is nothing but text, in an element or an attribute."""
    for mark, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#39")):
        text = text.replace(mark, f"&{name};")
    return text
