"use strict";
// Fills the pages from the API and keeps them up to date. No number is computed here but a per cent,
// and half of an interval; every cell carries the number as the API gave it in data-value.
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const plain = (value, digits = 1) =>
    value === null || value === undefined ? "–" : value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const said = (node, text) => { if (node && node.textContent !== text) node.textContent = text; };
  const charts = new Map();
  // a zone as browsers name it: one that is UTC+01:00 to us is Etc/GMT-1 to them
  const named = (zone) => zone.replace(/^UTC([+-])(\d\d):00$/, (_all, sign, hours) => `Etc/GMT${sign === "+" ? "-" : "+"}${+hours}`)
    .replace(/^UTC(?=[+-])/, "").replace(/^UTC$/, "Etc/UTC");
  const clocks = new Map();
  // a time as YYYY-MM-DD HH:MM of a zone
  const stamp = (seconds, zone) => {
    if (!clocks.has(zone)) clocks.set(zone, new Intl.DateTimeFormat("sv-SE", { timeZone: named(zone), dateStyle: "short", timeStyle: "short" }));
    return clocks.get(zone).format(seconds * 1e3);
  };
  const when = (seconds, zone) => `${stamp(seconds, zone)} ${zone}`;
  const dateOf = (zone) => (seconds) => uPlot.tzDate(new Date(seconds * 1e3), named(zone));
  const times = (zone) => ({
    space: 90, // a date takes 80
    values: (_chart, splits, _axis, _space, step) => splits.map((at, index) => {
      const [day, hour] = stamp(at, zone).split(" ");
      if (step >= 86400) return day;
      return index && hour !== "00:00" ? hour : `${hour}\n${day}`;
    }),
  });

  // an answer of the API; where there is none, `told` says why
  async function ask(path, told) {
    try {
      const reply = await fetch(path, { headers: { accept: "application/json" } });
      if (reply.status === 401) location.assign("/login");
      const found = await reply.json();
      if (reply.ok) return found;
      said(told, found.error || `status ${reply.status}`);
    } catch (trouble) { said(told, trouble.message); }
    return null;
  }

  function put(cell, value, shown) {
    cell.dataset.value = value === null || value === undefined ? "" : String(value);
    said(cell, shown);
  }

  const COUNTS = ["n", "surveys", "devices", "missing", "readings"];
  // a figure of an answer, and how it is shown: totals as energy where there is one, others in the unit
  function figure(found, name, unit) {
    const kwh = found?.[name.replace("total", "energy_kwh")];
    const value = found?.[name];
    if (value === null || value === undefined) return [null, "–"];
    if (name.startsWith("total")) return [kwh ?? value, kwh === null ? `${plain(value)} ${unit} × slots` : `${plain(kwh)} kWh`];
    return [value, COUNTS.includes(name) ? plain(value, 0) : `${plain(value)} ${unit}`];
  }

  function fill(node, whole) {
    for (const cell of all("[data-cell]", node)) put(cell, ...figure(whole, cell.dataset.cell, node.dataset.unit));
  }

  function rows(table, cells) {
    const body = table.tBodies[0];
    body.replaceChildren(...cells.map((row) => {
      const line = document.createElement("tr");
      row.forEach(([value, shown], at) => {
        const cell = document.createElement(at ? "td" : "th");
        if (!at) cell.scope = "row";
        put(cell, value, shown);
        line.append(cell);
      });
      return line;
    }));
  }

  // draws a chart anew; `tell` says what is at a place of it, to the pointer and the keyboard
  function draw(node, data, options, tell) {
    charts.get(node)?.destroy();
    charts.delete(node);
    node.replaceChildren();
    node.classList.toggle("empty", !data[0].length);
    if (!data[0].length) return null;
    const axis = { stroke: colour("--ink"), grid: { stroke: colour("--shade"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    const made = new uPlot({
      width: node.clientWidth,
      height: node.clientHeight,
      legend: { show: false },
      padding: [null, 40, null, null], // half a date may stand at the right end
      ...(tell && readable(tell)),
      ...options,
      axes: options.axes.map((one) => ({ ...axis, ...one })),
    }, data, node);
    charts.set(node, made);
    if (tell) keys(node, tell);
    return made;
  }

  const line = () => ({ stroke: colour("--mark"), width: 2, points: { size: 5 } });
  const stepped = () => ({ paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } });
  const edge = () => ({ stroke: colour("--mark"), width: 0.5, points: { show: false } });
  const lines = ["--mark", "--good", "--bad", "--plum", "--earth", "--soft"]; // one colour for each line of a chart
  const several = (names, more = {}) => names.map((label, at) => ({
    label, stroke: colour(lines[at % lines.length]), width: 2, points: { size: 6 }, value: (_chart, value) => plain(value), ...more,
  }));
  const logarithmic = (unit) => ({ size: 70, label: unit, values: (_chart, splits) => splits.map((value) => (value === null ? "" : value.toLocaleString("en-GB"))) });

  // a chart whose first line is read, in the band between the other two
  const readable = (tell) => ({
    bands: [{ series: [2, 3], fill: colour("--band") }],
    hooks: {
      setCursor: [(chart) => Number.isInteger(chart.cursor.idx) && tell(chart.cursor.idx)],
      setScale: [(chart, key) => { if (key === "x") chart.root.parentNode.dataset.span = `${chart.scales.x.min} ${chart.scales.x.max}`; }],
    },
  });

  // shows so much of a chart from there on, or as near as there is something
  function view(chart, from, span) {
    const [first, last] = [chart.data[0][0], chart.data[0].at(-1)];
    const min = Math.max(first, Math.min(from, last - span));
    if (last > first) chart.setScale("x", { min, max: Math.min(last, min + span) });
    return min;
  }

  // a chart under the keyboard: arrows move the reading, and what is shown where it leaves that; Page
  // Up and Down move by half of what is shown, + and - zoom about the reading, 0 shows all
  function keys(node, tell) {
    node.onkeydown = (event) => {
      const chart = charts.get(node);
      if (!chart) return;
      const xs = chart.data[0];
      const last = xs.length - 1;
      const pages = { PageUp: -0.5, PageDown: 0.5 }[event.key];
      let { min } = chart.scales.x;
      let span = chart.scales.x.max - min;
      let at = chart.cursor.idx ?? last;
      if (event.key === "ArrowLeft") at = Math.max(0, at - 1);
      else if (event.key === "ArrowRight") at = Math.min(last, at + 1);
      else if (event.key === "Home") at = 0;
      else if (event.key === "End") at = last;
      else if (event.key === "0") [min, span] = [xs[0], xs[last] - xs[0]];
      else if (event.key === "+" || event.key === "-") {
        span *= event.key === "+" ? 0.5 : 2;
        min = xs[at] - span / 2;
      } else if (pages) {
        min = view(chart, min + pages * span, span);
        at = xs.findIndex((x) => x >= min + span / 2);
      } else return;
      event.preventDefault();
      if (xs[at] < min || xs[at] > min + span) min = xs[at] - span / 2;
      view(chart, min, span);
      queueMicrotask(() => chart.setCursor({ left: chart.valToPos(xs[at], "x"), top: 10 })); // once that is so
      tell(at);
    };
  }

  async function curve(node) {
    const told = byId("curve-said");
    const { unit, by, zone } = node.dataset;
    const found = await ask(node.dataset.curve, told);
    if (!found) return;
    const list = found[`${by}s`];
    const shown = list.filter((row) => row.mean !== null);
    said(byId("curve-noise"), [found.noise?.words, ...found.warnings].filter(Boolean).join(". "));
    const tell = (at) => {
      const row = shown[at];
      if (row) said(told, `${when(row.from_s, zone)}: ${plain(row.mean)} ${unit}, 95 % from ${plain(row.low)} to ${plain(row.high)}, ${plain(row.n, 0)} stream reports`);
    };
    rows(byId("curve-table"), list.map((row) => [
      [row.from_s, when(row.from_s, zone)], ...["mean", "low", "high"].map((name) => [row[name], row.withheld ? "withheld" : plain(row[name])]), [row.n, row.withheld ? "withheld" : plain(row.n, 0)],
    ]));
    const before = charts.get(node);
    const { min, max } = before?.scales.x ?? {};
    const made = draw(node, ["from_s", "mean", "high", "low"].map((name) => shown.map((row) => row[name])), {
      tzDate: dateOf(zone),
      cursor: { drag: { x: true, y: false } },
      axes: [times(zone), { size: 70, label: unit }],
      series: [{}, line(), edge(), edge()],
    }, tell);
    if (!made) {
      if (found.mode === "sums") said(told, "No stream reports in this range: homes' own sums are below.");
      else said(told, list.some((row) => row.withheld) ? "Withheld: fewer devices were there than figures are given out of ([query] min_devices)."
        : "No stream reports in this range yet. Another range may have some; a new stream begins with surveys alone, until θ is chosen.");
    } else if (before && (min > before.data[0][0] || max < before.data[0].at(-1))) {
      made.setScale("x", { min, max }); // as it was zoomed
    }
    all("[data-days]").forEach((button) => {
      button.onclick = () => { if (charts.has(node)) view(charts.get(node), Infinity, button.dataset.days * 86400); };
    });
    if (made && !told.dataset.begun) { told.dataset.begun = "1"; tell(shown.length - 1); }
  }

  async function whole(node) {
    const told = byId("whole-said");
    const found = await ask(node.dataset.query, told);
    if (!found) return;
    fill(node, found.whole);
    const one = found.whole;
    let text = `${plain(one.n, 0)} stream reports and ${plain(one.surveys, 0)} surveys; ${plain(one.devices, 0)} devices heard, ${plain(one.missing, 0)} missing.`;
    if (one.withheld) text = "Withheld: the devices that reported, or those left out, are fewer than [query] min_devices.";
    else if (one.mean === null) text = "No stream reports in this range yet.";
    said(told, [text, ...found.warnings].join(" "));
    sums(byId("sums-table"), found);
    rows(byId("quantiles"), found.quantiles.map((row) => [
      [row.share, `${+(row.share * 100).toPrecision(6)} %`], [row.value, plain(row.value)], [row.low, plain(row.low)], [row.high, plain(row.high)],
    ]));
    const parts = found.ranges;
    const share = (value) => plain(100 * value, 1);
    const tell = (at) => {
      const part = parts[Math.min(at, parts.length - 1)];
      said(byId("density-said"), `${plain(part.low, 0)} to below ${plain(part.high, 0)} ${node.dataset.unit}: ${share(part.share)} % of the values, 95 % from ${share(part.share_low)} to ${share(part.share_high)}`);
    };
    const column = (name) => parts.map((part) => 100 * part[name]).concat(parts.length ? 100 * parts.at(-1)[name] : []);
    draw(byId("density"), [[...parts.map((part) => part.low), ...parts.slice(-1).map((part) => part.high)], column("share"), column("share_high"), column("share_low")], {
      scales: { x: { time: false } },
      axes: [{ label: node.dataset.unit }, { size: 70, label: "% of the values" }],
      series: [{}, line(), edge(), edge()].map((one, at) => (at ? { ...one, ...stepped() } : one)),
    }, tell);
  }

  // what homes' own sums say of the range: the whole, each period, each part of the day
  function sums(table, { sums: one, mode }) {
    byId("sums").hidden = !one;
    if (!one) return;
    const { unit, zone } = table.dataset;
    const within = (row, name, low, high) => [row[name], row[name] === null ? "–" : `${plain(row[name])}\u00a0±\u00a0${plain((row[high] - row[low]) / 2)}`];
    const clock = (at) => new Date(at * 1e3).toISOString().slice(11, 16);
    const named = [["all", "all", one.whole], ...one.periods.map((row) => [row.from_s, stamp(row.from_s, zone), row]),
      ...one.parts.map((row) => [row.from_day_s, `${clock(row.from_day_s)} to ${clock(row.to_day_s)} UTC`, row])];
    const energies = table.tHead.rows[0].cells.length > 4 ? ["energy_kwh", "full_kwh"] : [];
    rows(table, named.map(([at, told, row]) => [
      [at, told], row.withheld ? [null, "withheld"] : within(row, "mean", "low", "high"), ...energies.map((name) => within(row, name, `${name}_low`, `${name}_high`)),
      [row.homes, plain(row.homes, 0)], [row.coverage, row.coverage === null ? "–" : `${plain(100 * row.coverage, 0)} %`],
    ]));
    const { mean_sway: moved } = one.whole;
    said(byId("sums-said"), [
      `Known better here: the mean by ${mode === "sums" ? "homes' own sums" : "reports"}.`,
      moved !== null && `Any honest homes, whatever they use; one that lies can move the mean of all by ${plain(moved)} ${unit} (n·R + 56b of each sum).`,
      named.some(([, , row]) => row.withheld) && "Withheld: fewer homes sent sums, or are left out, than [query] min_devices.",
      ...one.warnings,
    ].filter(Boolean).join(" "));
  }

  const CURATED = ["total", "total_low", "total_high", "mean", "readings", "missing"];

  // streams that single devices publish, each for itself
  async function curated(table) {
    const told = byId("curated-said");
    const found = await ask(table.dataset.released, told);
    if (!found) return;
    said(told, [found.note, ...found.released.filter((one) => one.error).map((one) => `${one.device}: ${one.error}`)].join(". "));
    rows(table, found.released.map((one) => {
      const sum = { ...one.sums[0], total_low: one.sums[0]?.low, total_high: one.sums[0]?.high };
      return [[one.device, one.device], ...CURATED.map((name) => figure(sum, name, one.unit)), [one.epsilon_per_reading, String(one.epsilon_per_reading)]];
    }));
  }

  // θ and surveys by the plans' rows, what was expected of them by the looks': all of one unit
  function history(node) {
    const { unit, until, zone } = node.dataset;
    const plans = all("#theta [data-at]").map((row) => ({ at: Number(row.dataset.at), ...JSON.parse(row.dataset.plan) }));
    const looks = new Map(all("#looks [data-at]").map((row) => [Number(row.dataset.at), JSON.parse(row.dataset.halves)]));
    const xs = [...new Set([...plans.map((plan) => plan.at), ...looks.keys(), ...(until ? [Number(until)] : [])])].sort((one, other) => one - other);
    const inForce = xs.map((at) => plans.findLast((plan) => plan.at <= at));
    const questions = [...new Set([...looks.values()].flatMap(Object.keys))];
    const halves = questions.map((question) => xs.map((at) => looks.get(at)?.[question] ?? null));
    const least = Math.min(...plans.map((plan) => plan.theta), ...halves.flat().filter((half) => half > 0));
    const floor = 10 ** Math.floor(Math.log10(Math.max(1, least)));
    const of = (name) => inForce.map((plan) => (plan ? Math.max(floor, plan[name]) : null));
    const step = (name) => ({ ...stepped(), value: (_chart, _drawn, _of, at) => plain(inForce[at]?.[name], 0) }); // 0 is drawn as floor
    const told = byId("history-said");
    const tell = (at) => {
      const halfs = questions.map((question, of_) => halves[of_][at] !== null && `${question} ± ${plain(halves[of_][at])} ${unit}`).filter(Boolean);
      const plan = inForce[at];
      said(told, `${when(xs[at], zone)}: θ ${plain(plan?.theta, 0)} ${unit}, surveys from ${plain(plan?.low, 0)} to ${plain(plan?.high, 0)}${halfs.length ? `; expected: ${halfs.join(", ")}` : ""}`);
    };
    const dotted = [2, 3];
    const key = ({ dash }) => { if (!dash) return "solid"; return dash === dotted ? "dotted" : "dashed"; };
    draw(node, plans.length ? [xs, of("theta"), of("high"), of("low"), ...halves] : [[]], {
      legend: { show: true, markers: { dash: (chart, at) => key(chart.series[at]) } },
      scales: { y: { distr: 3 } },
      tzDate: dateOf(zone),
      axes: [times(zone), logarithmic(unit)],
      series: [
        { value: (_chart, at) => (at === null ? "–" : when(at, zone)) },
        { ...several([`θ`])[0], ...step("theta") },
        { label: "surveys to", ...step("high"), stroke: colour("--ink"), width: 1 },
        { label: "from", ...step("low"), stroke: colour("--ink"), width: 1, dash: dotted },
        ...several(["", ...questions.map((question) => `expected ±, ${question}`)], { spanGaps: true, dash: [6, 4] }).slice(1),
      ],
    }, tell);
  }

  async function day(row) { fill(row, (await ask(row.dataset.query, byId("days-said")))?.whole); }

  const TITLES = { whole: "whole run", week: "week", day: "day", "hour-of-day": "hour of day" };
  const CURVE = [30, 100, 300, 1000, 3000, 10000, 40000]; // homes, as in the picture of `edge-ldp forecast`

  async function forecast(form) {
    const told = byId("forecast-said");
    const { unit, low, ceiling, slots } = form.dataset;
    const given = (homes) => new URLSearchParams({ homes, epsilon: form.epsilon.value, window: form.window.value, days: form.days.value, low, ceiling, "slots-a-day": slots });
    const asked = Number(form.homes.value);
    const homes = [...new Set([...CURVE, asked])].sort((one, other) => one - other);
    said(told, "computing …");
    const [one, many] = await Promise.all([asked, homes].map((count) => ask(`/api/v1/forecast?${given(count)}`, told)));
    if (!one || !many) return;
    byId("forecast-found").hidden = false;
    const [own] = one.forecasts;
    const name = (row) => TITLES[row.horizon] || `whole run, ${plain(row.homes, 0)} homes`;
    rows(byId("forecast-table"), own.rows.map((row) => [
      [row.horizon, name(row) + (row.few ? " (few reports: may be a fifth off)" : "")], [row.half_width, plain(row.half_width)], [row.percent, row.percent === null ? "–" : plain(row.percent)],
    ]));
    const horizons = own.rows.filter((row) => TITLES[row.horizon]).map((row) => row.horizon);
    const at = homes.indexOf(asked);
    draw(byId("forecast-chart"), [homes, ...horizons.map((horizon) => many.forecasts.map((found) => found.rows.find((row) => row.horizon === horizon)?.percent))], {
      legend: { show: true },
      scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
      axes: [{ ...logarithmic("homes"), size: 40 }, logarithmic("± % of the mean")],
      series: [{ label: "homes", value: (_chart, value) => plain(value, 0) }, ...several(horizons.map((horizon) => TITLES[horizon]), { points: { size: 8, filter: () => [at] } })],
    });
    modes(one.modes[0].choices);
    const splits = one.splits;
    const widest = Math.max(...splits.map((split) => half(split).percent));
    rows(byId("splits-table"), splits.map((split) => [
      [split.window.reports, `${split.window.reports} × ${+Number(split.epsilon).toPrecision(3)}`], [half(split).percent, plain(half(split).percent)], [null, ""], [split.guess_right, `${plain(100 * split.guess_right, 2)} %`],
    ]));
    [...byId("splits-table").tBodies[0].rows].forEach((row, index) => {
      const bar = document.createElement("div");
      bar.style.width = `${100 * half(splits[index]).percent / widest}%`;
      row.cells[2].className = "bar";
      row.cells[2].append(bar);
      row.classList.toggle("asked", splits[index].window.reports === own.window.reports);
    });
    said(byId("forecast-command"), `edge-ldp forecast ${[...given(asked)].map(([key, value]) => `--${key} ${value}`).join(" ")}`);
    said(told, `${plain(asked, 0)} homes, ${form.days.value} ${Number(form.days.value) === 1 ? "day" : "days"}, as the forecast knows homes: θ ${plain(own.theta, 0)} ${unit}, ${plain(100 * own.survey_share, 0)} % surveys, ε ${plain(own.epsilon_a_day, 2)} a day.`);
  }

  const ASKED = { total: "a total", "part-of-day": "part of day", density: "how values are spread", theta: "θ", ...TITLES };
  const MODES = { local: "reports", sums: "sums at home" };

  // which mode answers what better, and what one home gives away in each way that was measured
  function modes(choices) {
    const ways = new Map();
    const of = (row) => (row ? [row.percent, plain(row.percent)] : [null, "–"]);
    rows(byId("modes-table"), choices.map(({ question, better, layout, reason, rows: found }) => {
      found.filter((row) => row.habits).forEach((row) => ways.set(row.layout ? `sums of ${row.layout.days} days, ${row.layout.cells} parts` : "reports", row.habits));
      const sums = found.find((row) => row.layout && (!layout || Object.entries(layout).every(([key, value]) => row.layout[key] === value)));
      const shape = sums?.layout;
      const isMean = question !== "density" && question !== "theta";
      const reports = found.find((row) => !row.layout);
      return [[question, ASKED[question]], isMean || !reports ? of(reports) : [reports.percent, "yes"], isMean ? of(sums) : [null, "no"], [shape?.days, shape ? `${shape.periods} × ${shape.days}` : "–"],
        [shape?.cells, shape ? String(shape.cells) : "–"], [better, MODES[better] || "–"], [reason, reason]];
    }));
    [...byId("modes-table").tBodies[0].rows].forEach((row) => { row.cells[6].className = "said"; });
    byId("habits").hidden = !ways.size;
    const [first] = ways.values();
    const names = Object.keys(first || {});
    const [head] = byId("habits-table").tHead.rows;
    head.replaceChildren(head.cells[0], ...names.map((name) => { const cell = document.createElement("th"); cell.scope = "col"; said(cell, name); return cell; }));
    rows(byId("habits-table"), [...ways].map(([way, habits]) => [[way, way], ...names.map((name) => [habits[name], plain(habits[name], 2)])]));
  }

  function half(found) { return found.rows.find((row) => row.horizon === found.horizon); }

  function show() {
    said(byId("days-said"), "");
    all("[data-curve]").forEach(curve);
    all("#history-chart").forEach(history);
    all("table[data-query]").forEach(whole);
    all("[data-released]").forEach(curated);
    all("tr[data-query]").forEach(day);
  }

  // what the server writes is replaced part by part, so that focus, zoom and forms stay
  async function refresh() {
    const reply = await fetch(location.href);
    if (reply.redirected) { location.assign(reply.url); return; }
    const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
    if (fresh.body.dataset.page !== document.body.dataset.page) { location.reload(); return; }
    for (const part of all("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (next && next.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(document.importNode(next, true));
    }
    show();
  }

  // the browser's zone by its name: only here it is known
  function ownZone() {
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    const asked = new URL(location);
    for (const one of all("[name=zone] [value=here]")) {
      if (all("[name=zone] option").some((other) => other.value === timeZone)) one.remove();
      else one.value = timeZone;
    }
    if (asked.searchParams.get("zone") !== "here") return;
    asked.searchParams.set("zone", timeZone);
    location.replace(asked);
  }

  function listen() {
    const node = byId("link");
    const source = new EventSource("/events");
    let waiting = null;
    const soon = () => { waiting ??= setTimeout(() => { waiting = null; refresh().catch(() => {}); }, 50); };
    source.onopen = () => {
      node.classList.remove("lost");
      said(node, "live: figures come as they are counted");
      soon(); // what changed between the page and the listening, nobody told
    };
    source.onerror = () => {
      node.classList.add("lost");
      said(node, "The connection is lost: what is shown is of before. Is `edge-ldp console` running? It is tried again every second.");
    };
    source.addEventListener("commit", soon);
    source.addEventListener("trouble", soon);
  }

  addEventListener("DOMContentLoaded", () => {
    ownZone();
    show();
    byId("forecast")?.addEventListener("submit", (event) => { event.preventDefault(); forecast(event.target); });
    if (document.body.dataset.page !== "login") listen();
    if (document.body.dataset.page === "trouble") setInterval(() => refresh().catch(() => {}), 2000);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    let width = innerWidth;
    addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; show(); } });
  });
})();
