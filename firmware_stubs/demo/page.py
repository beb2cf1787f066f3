"""The report as one HTML file that needs nothing else: picture inside, no external resource."""

from base64 import b64encode
from html import escape

from firmware_stubs.demo.compare import Comparison
from firmware_stubs.demo.ended import verdict
from firmware_stubs.demo.shipped import TITLES
from firmware_stubs.demo.table import SHIPPED, facts, line_texts, passed

_TITLES = (
    "hour",
    "true, W",
    "estimate, W",
    "95 % interval, W",
    "held",
    "± %",
    "no truncation, W",
    "± %",
    "true, MWh",
    "estimate, MWh",
    "95 % interval, MWh",
)
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>edge-ldp demo</title>
<style>
:root {{ color-scheme: light; }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }}
h2 {{ font-size: 1.15rem; margin: 2.2rem 0 .5rem; }}
p.lead {{ margin: 0 0 1.2rem; color: #444; }}
.verdict {{ font-weight: 600; }}
.ok {{ color: #12692b; }} .failed {{ color: #b00020; }}
img {{ width: 100%; height: auto; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }}
th, td {{ padding: .18rem .5rem; text-align: right; }}
td {{ white-space: nowrap; }}
th {{ font-weight: 600; border-bottom: 2px solid #888; vertical-align: bottom; }}
td:first-child, th:first-child {{ text-align: left; padding-left: 0; }}
tbody tr:nth-child(even) {{ background: #f6f6f4; }}
tr.whole td {{ border-top: 2px solid #888; font-weight: 600; background: #fff; }}
td.no {{ color: #b00020; font-weight: 700; }}
dt {{ font-weight: 600; margin-top: .6rem; }}
dd {{ margin: 0; }}
</style>
</head>
<body>
<h1>The main job, end to end, on real readings</h1>
<p class="lead">Simulated and real agents randomised every reading before it left the home; the
aggregator learned the load curve below from the noise. The truth was known to this demo only.</p>
<p class="verdict {state}">{verdict}</p>
<img alt="{alt}" src="data:image/png;base64,{png}">
<h2>By hour of the day</h2>
<div class="wide"><table>
<thead><tr>{titles}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
{shipped}<h2>What else there is to know</h2>
<dl>
{facts}
</dl>
</body>
</html>
"""
_ALT = (
    "Four panels: mean power by hour of the day, true and estimated with intervals; distribution "
    "of readings, true and reconstructed; the threshold θ over time; errors by hour of the day."
)


def page(found: Comparison, png: bytes) -> str:
    """Return the report's HTML."""
    rows = [_row(line_texts(row), "") for row in found.hours]
    return _PAGE.format(
        state="failed" if found.reasons else "ok",
        verdict=escape(verdict(found.reasons, passed(found))),
        alt=escape(_ALT),
        png=b64encode(png).decode(),
        titles="".join(f"<th>{escape(title)}</th>" for title in _TITLES),
        rows="\n".join([*rows, _row(line_texts(found.whole), ' class="whole"')]),
        shipped=_shipped(found),
        facts="\n".join(
            f"<dt>{escape(topic)}</dt><dd>{escape(text)}</dd>"
            for topic, text in facts(found).items()
        ),
    )


def _shipped(found: Comparison) -> str:
    if found.shipped is None:
        return ""
    titles = "".join(f"<th>{escape(title)}</th>" for title in TITLES)
    rows = "\n".join(_row(line, "") for line in found.shipped.lines)
    return (
        f"<h2>As shipped, in both modes</h2>\n<p>{escape(SHIPPED)}</p>\n"
        f'<div class="wide"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n'
        "</table></div>\n"
    )


def _row(texts: tuple[str, ...], attributes: str) -> str:
    fields = "".join(
        f'<td class="no">{text}</td>' if text == "NO" else f"<td>{escape(text)}</td>"
        for text in texts
    )
    return f"<tr{attributes}>{fields}</tr>"
