"use strict";
// Fills the pages from the API and keeps them up to date. No number is computed here but by scaling
// to a unit; every cell carries the number as the API gave it in data-value.
(() => {
  const byId = (id) => document.getElementById(id);
  const all = (what, within = document) => [...within.querySelectorAll(what)];
  const plain = (value, digits = 1) =>
    value === null || value === undefined ? "–" : value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const said = (node, text) => { if (node && node.textContent !== text) node.textContent = text; };
  const charts = new Map();

  async function ask(path) {
    const reply = await fetch(path, { headers: { accept: "application/json" } });
    if (reply.status === 401) location.assign("/login");
    const found = await reply.json();
    if (!reply.ok) throw new Error(found.error || `status ${reply.status}`);
    return found;
  }

  function put(cell, value, shown) {
    cell.dataset.value = value === null || value === undefined ? "" : String(value);
    said(cell, shown);
  }

  // cells of a query: totals in the unit of energy, the others in the stream's
  function fill(node, whole) {
    const factor = Number(node.dataset.factor);
    for (const cell of all("[data-cell]", node)) {
      const name = cell.dataset.cell;
      const value = whole[name];
      if (value === null || value === undefined) put(cell, null, "–");
      else if (name.startsWith("total")) put(cell, value, `${plain(value * factor)} ${node.dataset.energy}`);
      else if (Number.isInteger(value) && (name === "devices" || name === "missing")) put(cell, value, plain(value, 0));
      else put(cell, value, `${plain(value)} ${node.dataset.unit}`);
    }
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

  function draw(node, data, options) {
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
      ...options,
      axes: options.axes.map((one) => ({ ...axis, ...one })),
    }, data, node);
    charts.set(node, made);
    return made;
  }

  const line = () => ({ stroke: colour("--mark"), width: 2, points: { size: 5 } });
  const edge = () => ({ stroke: colour("--mark"), width: 0.5, points: { show: false } });
  const band = () => [{ series: [2, 3], fill: colour("--band") }];

  // a chart under the keyboard: arrows move the reading, + and - zoom about it, 0 shows all
  function keys(node, tell) {
    node.addEventListener("keydown", (event) => {
      const chart = charts.get(node);
      if (!chart) return;
      const xs = chart.data[0];
      const last = xs.length - 1;
      let at = chart.cursor.idx ?? last;
      if (event.key === "ArrowLeft") at = Math.max(0, at - 1);
      else if (event.key === "ArrowRight") at = Math.min(last, at + 1);
      else if (event.key === "Home") at = 0;
      else if (event.key === "End") at = last;
      else if (event.key === "0") chart.setScale("x", { min: xs[0], max: xs[last] });
      else if (event.key === "+" || event.key === "-") {
        const { min, max } = chart.scales.x;
        const half = (max - min) * (event.key === "+" ? 0.25 : 1);
        chart.setScale("x", { min: Math.max(xs[0], xs[at] - half), max: Math.min(xs[last], xs[at] + half) });
      } else return;
      event.preventDefault();
      chart.setCursor({ left: chart.valToPos(xs[at], "x"), top: 10 });
      tell(at);
    });
  }

  async function curve(node) {
    const told = byId("curve-said");
    const { unit, by, zone } = node.dataset;
    let found;
    try { found = await ask(node.dataset.curve); } catch (trouble) { said(told, trouble.message); return; }
    const list = found[`${by}s`];
    const shown = list.filter((row) => row.mean !== null);
    const when = (seconds) => {
      const text = new Date(seconds * 1000);
      return zone === "here" ? text.toLocaleString() : `${text.toISOString().slice(0, 16).replace("T", " ")} UTC`;
    };
    const tell = (at) => {
      const row = shown[at];
      if (row) said(told, `${when(row.from_s)}: ${plain(row.mean)} ${unit}, 95 % from ${plain(row.low)} to ${plain(row.high)}, ${plain(row.n, 0)} reports`);
    };
    rows(byId("curve-table"), list.map((row) => [
      [row.from_s, when(row.from_s)], ...["mean", "low", "high"].map((name) => [row[name], row.withheld ? "withheld" : plain(row[name])]), [row.n, plain(row.n, 0)],
    ]));
    const kept = charts.get(node)?.scales.x;
    const span = kept && [kept.min, kept.max];
    const whole = span && charts.get(node).data[0];
    const made = draw(node, ["from_s", "mean", "high", "low"].map((name) => shown.map((row) => row[name])), {
      tzDate: zone === "here" ? undefined : (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: true } },
      axes: [{}, { size: 70, label: unit }],
      series: [{}, line(), edge(), edge()],
      bands: band(),
      hooks: { setCursor: [(chart) => chart.cursor.idx !== null && chart.cursor.idx !== undefined && tell(chart.cursor.idx)] },
    });
    if (!made) {
      said(told, list.some((row) => row.withheld) ? "Withheld: fewer devices were there than figures are given out of ([query] min_devices)."
        : "No stream reports in this range yet. Another range may have some; a new stream begins with surveys alone, until θ is chosen.");
    } else if (whole && (span[0] > whole[0] || span[1] < whole[whole.length - 1])) {
      made.setScale("x", { min: span[0], max: span[1] }); // as it was zoomed
    }
    if (made && !told.dataset.begun) { told.dataset.begun = "1"; tell(shown.length - 1); }
    if (!node.dataset.keys) { node.dataset.keys = "1"; keys(node, (at) => tell(at)); }
  }

  async function whole(node) {
    const told = byId("whole-said");
    let found;
    try { found = await ask(node.dataset.query); } catch (trouble) { said(told, trouble.message); return; }
    fill(node, found.whole);
    const one = found.whole;
    let text = `${plain(one.n, 0)} stream reports and ${plain(one.surveys, 0)} surveys; ${plain(one.devices, 0)} devices heard, ${plain(one.missing, 0)} missing.`;
    if (one.withheld) text = `Withheld: ${plain(one.devices, 0)} devices were heard, fewer than figures are given out of ([query] min_devices).`;
    else if (one.mean === null) text = "No stream reports in this range yet.";
    said(told, [text, ...found.warnings].join(" "));
    rows(byId("quantiles"), found.quantiles.map((row) => [
      [row.share, `${+(row.share * 100).toPrecision(6)} %`], [row.value, plain(row.value)], [row.low, plain(row.low)], [row.high, plain(row.high)],
    ]));
    const density = found.density;
    if (!density) return;
    const last = density.probabilities.findLastIndex((share, at) => density.high[at] > 1e-4 || share > 1e-4) + 1;
    const cut = (list) => list.slice(0, Math.max(2, last));
    draw(byId("density"), [cut(density.edges), cut(density.probabilities), cut(density.high), cut(density.low)], {
      scales: { x: { time: false } },
      axes: [{ label: node.dataset.unit }, { size: 70, label: "share" }],
      series: [{}, line(), edge(), edge()].map((one, at) => (at ? { ...one, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } } : one)),
      bands: band(),
    });
  }

  async function day(row) {
    try { fill(row, (await ask(row.dataset.query)).whole); } catch (trouble) { all("[data-cell]", row).forEach((cell) => put(cell, null, "–")); row.title = trouble.message; }
  }

  async function forecast(form) {
    const told = byId("forecast-said");
    const { unit, low, ceiling, slots, days } = form.dataset;
    const given = new URLSearchParams({ homes: form.homes.value, epsilon: form.epsilon.value, window: form.window.value, low, ceiling, days, "slots-a-day": slots });
    said(told, "computing …");
    let found;
    try { found = await ask(`/api/v1/forecast?${given}`); } catch (trouble) { said(told, trouble.message); return; }
    const list = found.forecasts.flatMap((one) => one.rows.filter((row) => row.homes === one.homes).map((row) => ({ ...row, of: one })));
    rows(byId("forecast-table"), list.map((row) => [
      [row.homes, plain(row.homes, 0)], [row.horizon, row.horizon + (row.few ? " (few reports: wider than this)" : "")], [row.half_width, plain(row.half_width)], [row.percent, row.percent === null ? "–" : plain(row.percent)],
    ]));
    const hours = list.filter((row) => row.horizon === "hour-of-day");
    draw(byId("forecast-chart"), [hours.map((row) => row.homes), hours.map((row) => row.half_width)], {
      scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
      axes: [{ label: "homes" }, { size: 70, label: `± ${unit}, hour of day` }],
      series: [{}, line()],
    });
    said(told, `Expected half-widths over ${days} days, of homes as the forecast knows them.`);
  }

  function show() {
    all("[data-curve]").forEach(curve);
    all("table[data-query]").forEach(whole);
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

  function listen() {
    const node = byId("link");
    const source = new EventSource("/events");
    let lost = false;
    let waiting = null;
    const soon = () => { waiting ??= setTimeout(() => { waiting = null; refresh().catch(() => {}); }, 50); };
    source.onopen = () => {
      node.classList.remove("lost");
      said(node, "live: figures come as they are counted");
      if (lost || document.body.dataset.page === "trouble") soon();
      lost = false;
    };
    source.onerror = () => {
      lost = true;
      node.classList.add("lost");
      said(node, "The connection is lost: what is shown is of before. Is `edge-ldp console` running? It is tried again every second.");
    };
    source.addEventListener("commit", soon);
    source.addEventListener("trouble", soon);
  }

  addEventListener("DOMContentLoaded", () => {
    show();
    byId("forecast")?.addEventListener("submit", (event) => { event.preventDefault(); forecast(event.target); });
    if (document.body.dataset.page !== "login") listen();
    if (document.body.dataset.page === "trouble") setInterval(() => refresh().catch(() => {}), 2000);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
    let width = innerWidth;
    addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; show(); } });
  });
})();
