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
  const AMOUNTS = { kWh: "energy_kwh", m3: "volume_m3" };
  const amount = (found) => Object.keys(AMOUNTS).find((one) => (found?.[AMOUNTS[one]] ?? null) !== null);
  // a figure of an answer, and how it is shown: totals as energy or volume where there is one, others in the unit
  function figure(found, name, unit) {
    const named_ = name.startsWith("total") && amount(found);
    const value = named_ ? found[name.replace("total", AMOUNTS[named_])] : found?.[name];
    if (value === null || value === undefined) return [null, "–"];
    if (name.startsWith("total")) return [value, `${plain(value)} ${named_ || `${unit} × slots`}`];
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
  function draw(node, data, options, tell, gaps = []) {
    charts.get(node)?.destroy();
    charts.delete(node);
    node.replaceChildren();
    node.classList.toggle("empty", !data[0].length);
    if (!data[0].length) return null;
    const axis = { stroke: colour("--ink"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
    const made = new uPlot({
      width: node.clientWidth,
      height: node.clientHeight,
      legend: { show: false },
      padding: [null, 40, null, null], // half a date may stand at the right end
      ...(tell && readable(tell, gaps)),
      ...options,
      axes: options.axes.map((one) => ({ ...axis, ...one })),
    }, data, node);
    charts.set(node, made);
    if (tell) keys(node, tell);
    return made;
  }

  // a chart as it is seen, on the page's ground
  function keepPicture(node, name) {
    const canvas = node.querySelector("canvas");
    if (!canvas) return;
    const made = document.createElement("canvas");
    [made.width, made.height] = [canvas.width, canvas.height];
    const paper = made.getContext("2d");
    paper.fillStyle = colour("--paper");
    paper.fillRect(0, 0, made.width, made.height);
    paper.drawImage(canvas, 0, 0);
    const link = document.createElement("a");
    link.download = name;
    link.href = made.toDataURL();
    link.click();
  }

  const stepped = () => ({ paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } });
  const line = () => ({ stroke: colour("--mark"), width: 2, ...stepped() });
  const edge = () => ({ stroke: "transparent", auto: false, class: "edge", ...stepped() }); // the axis follows the estimates
  const lines = ["--mark", "--plum", "--teal", "--rose", "--warn", "--soft"]; // one colour for each line of a chart
  const load = { y: { range: (_chart, low, high) => (low === null ? [0, 1] : uPlot.rangeNum(Math.min(0, low), Math.max(0, high) || 1, 0.1, true)) } };

  // spans without a figure are hatched; where the band is cut, a triangle stands at the top
  const marks = (gaps) => (chart) => {
    const { ctx, bbox: { left, top, width, height } } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, height);
    ctx.clip();
    for (const [from, until] of gaps) {
      const [begin, end] = [from, until].map((at) => chart.valToPos(at, "x", true));
      ctx.beginPath();
      ctx.rect(begin, top, end - begin, height);
      ctx.save();
      ctx.clip();
      ctx.beginPath();
      for (let at = begin - height; at < end; at += 8) { ctx.moveTo(at, top + height); ctx.lineTo(at + height, top); }
      ctx.strokeStyle = colour("--hatch");
      ctx.stroke();
      ctx.restore();
    }
    ctx.fillStyle = colour("--mark");
    chart.data[0].forEach((x, at) => {
      if (chart.data[2][at] === null || chart.data[2][at] <= chart.scales.y.max) return;
      const place = (chart.valToPos(x, "x", true) + chart.valToPos(chart.data[0][at + 1] ?? x, "x", true)) / 2;
      ctx.beginPath();
      ctx.moveTo(place, top);
      ctx.lineTo(place - 4, top + 6);
      ctx.lineTo(place + 4, top + 6);
      ctx.fill();
    });
    ctx.restore();
  };
  const several = (names, more = {}) => names.map((label, at) => ({
    label, stroke: colour(lines[at % lines.length]), width: 2, points: { size: 6 }, value: (_chart, value) => plain(value), ...more,
  }));
  const logarithmic = (unit) => ({ size: 70, label: unit, values: (_chart, splits) => splits.map((value) => (value === null ? "" : value.toLocaleString("en-GB"))) });

  // a chart whose first line is read, in the band between the other two
  const readable = (tell, gaps) => ({
    bands: [{ series: [2, 3], fill: `${colour("--mark")}38` }],
    hooks: {
      draw: [marks(gaps)],
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

  const LENGTH = { hour: 3600, day: 86400, week: 604800 };
  const WEEK = LENGTH.week;

  // other curves beside one: of groups, or of the time before; each [label, how much later it is drawn, rows]
  async function besides(node, list, told) {
    const { by, curve: path, week } = node.dataset;
    const again = (more) => { const [at, words] = path.split("?"); const asked = new URLSearchParams(words); Object.entries(more).forEach((pair) => asked.set(...pair)); return ask(`${at}?${asked}`, told); };
    const wished = week ? [] : new URLSearchParams(location.search).getAll("beside").slice(0, 4);
    all("[name=beside]").forEach((box) => { box.checked = wished.includes(box.value); });
    if (week) return [["a week before", WEEK, list]];
    const ends = list.length ? { since: list[0].from_s - WEEK, until: list.at(-1).from_s + LENGTH[by] - WEEK } : {};
    const found = await Promise.all(wished.map((one) => again(one.startsWith("=") ? { group: one.slice(1) } : { since: ends.since - (one === "month" ? 3 * WEEK : 0), until: ends.until - (one === "month" ? 3 * WEEK : 0) })));
    return wished.map((one, at) => {
      const later = { week: WEEK, month: 4 * WEEK }[one] ?? 0;
      return [{ week: "a week before", month: "four weeks before" }[one] ?? (one.slice(1) || "in no group"), later, found[at] ? spans(found[at], by) : []];
    });
  }

  // a curve's rows with one for each span without any, and the reason why a span has no figure
  function filled(list, by) {
    const rows_ = [];
    for (const row of list) {
      const before = rows_.at(-1);
      const end = before && (before.until ?? before.from_s + LENGTH[by]);
      if (before && row.from_s > end + LENGTH[by] / 2) rows_.push({ from_s: end, mean: null, low: null, high: null, n: null, until: row.from_s, why: "no reports" });
      let why = null;
      if (row.mean === null) why = row.withheld ? "withheld: too few homes ([query] min_devices)" : "surveys alone, no stream reports";
      rows_.push({ ...row, why });
    }
    return rows_;
  }

  // a curve's spans, of the mode that knows them better: homes' sums only where their periods are such spans
  const spans = (found, by) => (found.mode === "sums" && found.sums.periods.every((row) => row.to_s - row.from_s === LENGTH[by]) ? found.sums.periods : found[`${by}s`]);

  async function curve(node) {
    const told = byId("curve-said");
    const { unit, by, zone, from = 0 } = node.dataset;
    const found = await ask(node.dataset.curve, told);
    if (!found) return;
    const every = spans(found, by);
    const list = filled(every.filter((row) => row.from_s >= from), by);
    const others = await besides(node, every, told);
    const noise = [every !== found.sums?.periods && found.noise?.words, ...found.warnings].filter(Boolean).join(". ");
    said(byId("curve-noise"), noise);
    const near = (rows_, later, at) => rows_.find((row) => Math.abs(row.from_s + later - at) < LENGTH[by] / 2)?.mean ?? null;
    const tell = (at) => {
      const row = list[Math.min(at, list.length - 1)];
      if (!row) return;
      const more = others.map(([name, later, rows_]) => `; ${name} ${plain(near(rows_, later, row.from_s))}`).join("");
      if (row.mean === null) said(told, `${when(row.from_s, zone)}${row.until ? ` to ${when(row.until, zone)}` : ""}: ${row.why}${more}`);
      else said(told, `${when(row.from_s, zone)}: ${plain(row.mean)} ${unit}, 95 % from ${plain(row.low)} to ${plain(row.high)}, ${row.n === undefined ? `sums of ${plain(row.homes, 0)} homes` : `${plain(row.n, 0)} stream reports`}${more}`);
    };
    if (byId("curve-table")) rows(byId("curve-table"), every.map((row) => [
      [row.from_s, when(row.from_s, zone)], ...["mean", "low", "high"].map((name) => [row[name], row.withheld ? "withheld" : plain(row[name])]), [row.n, row.withheld ? "withheld" : plain(row.n, 0)],
    ]));
    const gaps = list.filter((row) => row.mean === null).map((row) => [row.from_s, row.until ?? row.from_s + LENGTH[by]]);
    const lasts = list.slice(-1).map((row) => ({ ...row, from_s: row.from_s + LENGTH[by] })); // a step ends with its span
    const shown = list.some((row) => row.mean !== null) ? [...list, ...lasts] : [];
    const before = charts.get(node);
    const { min, max } = before?.scales.x ?? {};
    const columns = ["from_s", "mean", "high", "low"].map((name) => shown.map((row) => row[name]));
    const dashes = [[6, 4], [2, 3], [10, 3], [6, 2, 2, 2]];
    const made = draw(node, [...columns, ...others.map(([, later, rows_]) => columns[0].map((at, index) => near(rows_, later, index < list.length ? at : list.at(-1).from_s)))], {
      tzDate: dateOf(zone),
      cursor: { drag: { x: true, y: false } },
      scales: load,
      legend: { show: others.length > 0 && !node.dataset.week, live: false },
      axes: [times(zone), { size: 56 }],
      series: [{}, { ...line(), label: "this, with its band" }, edge(), edge(),
        ...others.map(([label], at) => ({ label, ...stepped(), width: 1.5, stroke: colour(node.dataset.week ? "--prev" : lines[at + 1]), dash: dashes[at] }))],
    }, tell, gaps);
    const gaps_ = byId("curve-gaps");
    const without = others.filter(([, , rows_]) => !rows_.some((row) => row.mean !== null)).map(([name, , rows_]) => `${name}: ${rows_.length ? "withheld, too few homes" : "no reports"}.`);
    if (gaps_) said(gaps_, [...(gaps.length ? [`Hatched: ${[...new Set(list.map((row) => row.why).filter(Boolean))].join("; ")}.`] : []), ...without].join(" "));
    if (node.dataset.week) byId("board").classList.toggle("noisy", !made || Boolean(found.noise)); // a usual day is known better
    if (!made) {
      if (node.dataset.week) said(told, list.some((row) => row.withheld) ? "Withheld: too few homes ([query] min_devices)." : "No stream reports in these two days: what is known of a usual day stands beside.");
      else if (found.mode === "sums") said(told, "No stream reports in this range: homes' own sums are below.");
      else if (list.some((row) => row.withheld)) said(told, "Withheld: fewer devices were there than figures are given out of ([query] min_devices).");
      else if (list.length) said(told, "Surveys alone in this range: they tell of the day and of totals, not of single hours, until θ is chosen.");
      else said(told, "No stream reports in this range yet. Another range may have some; a new stream begins with surveys alone, until θ is chosen.");
    } else if (before && (min > before.data[0][0] || max < before.data[0].at(-1))) {
      made.setScale("x", { min, max }); // as it was zoomed
    }
    const keep = byId("keep");
    if (keep) keep.onclick = () => keepPicture(node, `${keep.dataset.name}.png`);
    all("[data-days]").forEach((button) => {
      button.onclick = () => { if (charts.has(node)) view(charts.get(node), Infinity, button.dataset.days * 86400); };
    });
    if (made && !told.dataset.begun) { told.dataset.begun = "1"; tell(list.length - 1); }
    map(byId("map"), list, zone, by);
  }

  // the last seven days by hour, or weeks by day: a colour is wider than what one is known by
  function map(table, list, zone, by) {
    if (!table) return;
    const days = new Map();
    for (const row of list.filter((one) => !one.until)) {
      let [day, at] = stamp(row.from_s, zone).split(" ");
      if (by === "day") {
        const noon = new Date(`${day}T12:00Z`);
        at = (noon.getUTCDay() + 6) % 7; // since Monday
        day = new Date(noon - at * LENGTH.day * 1000).toISOString().slice(0, 10);
      }
      days.set(day, (days.get(day) ?? new Map()).set(parseInt(at, 10), row));
    }
    const week = [...days].slice(by === "day" ? -53 : -7);
    const known = week.flatMap(([, hours]) => [...hours.values()]).filter((row) => row.mean !== null);
    const widths = known.map((row) => (row.high - row.low) / 2).sort((one, other) => one - other);
    const [least, most, width] = [Math.min(...known.map((row) => row.mean)), Math.max(...known.map((row) => row.mean)), widths[widths.length >> 1]];
    const steps = Math.min(6, Math.floor((most - least) / width));
    if (!known.length) { said(byId("map-said"), `No figures of single ${by}s.`); rows(table, []); return; }
    said(byId("map-said"), steps < 2 ? `They are known by ± ${plain(width)}, and differ by ${plain(most - least)}: no colours tell them apart.${by === "hour" ? " The usual day above does." : ""}`
      : `From ${plain(least)} (pale) to ${plain(most)} in ${steps} colours, each wider than what the middle ${by} is known by, ± ${plain(width)}; dashed: no figure.`);
    rows(table, steps < 2 ? [] : week.map(([day, hours]) => [[day, day.slice(5)], ...Array.from({ length: by === "day" ? 7 : 24 }, (_one, hour) => [hours.get(hour)?.mean ?? null, ""])]));
    all("td", table).forEach((cell) => {
      const value = cell.dataset.value;
      const step = Math.min(steps - 1, Math.floor((value - least) / ((most - least) / steps)));
      cell.title = value ? plain(Number(value)) : "no figure";
      bars(picture(cell), [[value ? `step${Math.round(((step + 1) * 6) / steps)}` : "few", 0, 0, 100, 16]]);
    });
  }

  // mean by hour of the day, of reports and surveys together
  async function profile(node) {
    const told = byId("profile-said");
    const found = await ask(node.dataset.profile, told);
    if (!found) return;
    const { unit } = node.dataset;
    const isSums = found.mode === "sums" && 24 % found.sums.parts.length === 0;
    const long = isSums ? 24 / found.sums.parts.length : 1; // hours of a row
    const at_ = (row) => stamp(found.sums.periods.at(-1).to_s - (found.sums.periods.at(-1).to_s % 86400) + row.from_day_s, found.zone).slice(11);
    const groups = isSums ? found.sums.parts.map((row) => ({ ...row, at: `${at_(row)}${long > 1 ? `, ${long} hours` : ""}, by homes' sums` })) : found.groups;
    const list = groups.filter((row) => row.mean !== null);
    const hour = (row) => Number(row.at.slice(0, 2));
    const by = new Map(list.flatMap((row) => Array.from({ length: long }, (_one, more) => [(hour(row) + more) % 24, row])));
    const hours = Array.from({ length: 25 }, (_one, at) => at);
    const column = (name) => hours.map((at) => by.get(Math.min(at, 23))?.[name] ?? null);
    const tell = (at) => { const row = by.get(Math.min(at, 23)); if (row) said(told, `${row.at}: ${plain(row.mean)} ${unit}, 95 % from ${plain(row.low)} to ${plain(row.high)}`); };
    const made = draw(node, list.length ? [hours, column("mean"), column("high"), column("low")] : [[]], {
      scales: { x: { time: false }, ...load },
      axes: [{ incrs: [1, 3, 6], space: 40, values: (_chart, splits) => splits.map((at) => `${String(at).padStart(2, "0")}:00`) }, { size: 56 }],
      series: [{}, line(), { ...edge(), auto: true }, { ...edge(), auto: true }],
    }, tell, hours.slice(0, 24).filter((at) => !by.has(at)).map((at) => [at, at + 1]));
    if (!made) { said(told, groups.some((row) => row.withheld) ? "Withheld: too few homes ([query] min_devices)." : "No reports in these days yet."); return; }
    const [most, least] = [(one, other) => other.mean - one.mean, (one, other) => one.mean - other.mean].map((order) => [...list].sort(order)[0]);
    said(told, `Most at ${most.at}, ${plain(most.mean)} (${plain(most.low)} to ${plain(most.high)}); least at ${least.at}, ${plain(least.mean)} (${plain(least.low)} to ${plain(least.high)})`);
  }

  const SVG = "http://www.w3.org/2000/svg";
  function bars(node, list) {
    node.replaceChildren(...list.map(([kind, x, y, width, height, title]) => {
      const made = document.createElementNS(SVG, "rect");
      Object.entries({ class: kind, x, y, width: Math.max(0, width), height }).forEach((pair) => made.setAttribute(...pair));
      if (title) { const told = document.createElementNS(SVG, "title"); told.textContent = title; made.append(told); }
      return made;
    }));
  }

  function picture(cell) {
    const made = document.createElementNS(SVG, "svg");
    Object.entries({ viewBox: "0 0 100 16", preserveAspectRatio: "none", "aria-hidden": "true" }).forEach((pair) => made.setAttribute(...pair));
    cell.replaceChildren(made);
    return made;
  }

  // homes heard on each day: device-slots are the answer's, a bar is of the most of them
  async function heard(node) {
    const found = await ask(node.dataset.heard, byId("days-said"));
    if (!found) return;
    node.parentNode.hidden = !found.days.length;
    const most = Math.max(1, ...found.days.map((row) => row.device_slots ?? 0));
    bars(node, found.days.map((row, at) => {
      const high = row.withheld ? 36 : (34 * row.device_slots) / most;
      const day = stamp(row.from_s, node.dataset.zone).slice(0, 10);
      return [row.withheld ? "no" : "", (14 - found.days.length + at) * 10 + 1, 36 - high, 8, high, row.withheld ? `${day}: withheld` : `${day}: ${plain(row.device_slots, 0)} slots of homes`];
    }));
    node.setAttribute("aria-label", `Slots of homes heard on each day: ${found.days.map((row) => (row.withheld ? "withheld" : plain(row.device_slots, 0))).join(", ")}`);
  }

  // a figure with what it is known by: [figure, ±, ends]; ± has two digits; lopsided ends stand below alone
  function known(value, low, high, unit) {
    const [by, named] = unit === "kWh" && high >= 1000 ? [1000, "MWh"] : [1, unit];
    const [up, down] = [(high - value) / by, (value - low) / by];
    const half = Math.max(up, down);
    const digits = half > 0 ? Math.min(3, 1 - Math.floor(Math.log10(half))) : 1;
    const round = (one) => plain(Math.round(one * 10 ** digits) / 10 ** digits, Math.max(0, digits));
    const ends = [round(low / by), `${round(high / by)} ${named}`];
    return [round(value / by), half > 1.2 * Math.min(up, down) ? named : `± ${round(half)} ${named}`, ends];
  }

  async function group(row) {
    const found = await ask(row.dataset.query, byId("days-said"));
    const whole_ = found && (found.whole.n === 0 ? { ...found.whole, ...found.best, missing: null } : found.whole);
    fill(row, whole_);
    if (whole_?.withheld) said(row.querySelector("[data-cell=total]"), "withheld");
  }

  async function kpi(node) {
    const told = byId("days-said");
    const { query, before, unit, zone, told: compared } = node.dataset;
    const [now, then] = (await Promise.all([query, before].map((path) => path && ask(path, told)))).map((one) => one && { ...one.whole, ...one.best, sums: one.sums });
    fill(node, now);
    const in_ = amount(now) ?? unit;
    const of_ = AMOUNTS[in_];
    const names = of_ ? [of_, `${of_}_low`, `${of_}_high`] : ["mean", "low", "high"];
    const of = (one) => names.map((name) => one?.[name] ?? null);
    const [value, low, high] = of(now);
    const [figured, width, ends] = value === null ? [now?.withheld ? "withheld" : "no figure", "", ["–", "–"]] : known(value, low, high, in_);
    const big = node.querySelector("strong");
    said(big, figured);
    const periods = now?.mode === "sums" && !now.n ? now.sums.periods : []; // which need not be all of the time
    const of_time = periods.length ? [`${stamp(periods[0].from_s, zone)} to ${stamp(periods.at(-1).to_s, zone)}`] : [];
    said(node.querySelector(".pm"), width + (now?.mode === "sums" ? ", by homes' sums" : ""));
    said(node.querySelector(".compared"), of_time.join());
    ["total_low", "total_high"].forEach((name, at) => said(node.querySelector(`[data-cell=${name}]`), ends[at]));
    const cost = node.querySelector("[data-price]");
    if (cost && value !== null && in_ === "kWh") {
      const { price, currency } = cost.dataset;
      said(cost, `: ${known(...[value, low, high].map((one) => one * price), currency).slice(0, 2).join(" ")}`);
    }
    const [was, wasLow, wasHigh] = of(then);
    const most = 1.1 * Math.max(high ?? 0, wasHigh ?? 0, 1e-9);
    const x = (one) => Math.max(0, (100 * one) / most);
    bars(node.querySelector("svg"), value === null ? [] : [["line", 0, 4, 100, 2], ["band", x(low), 2, x(high) - x(low), 6], ["mark", x(value) - 0.5, 0, 1, 10], ...(was === null ? [] : [["prev", x(was) - 0.4, 0, 0.8, 10]])]);
    if (value === null || was === null) return;
    const clear = Math.abs(value - was) > Math.hypot((high - low) / 2, (wasHigh - wasLow) / 2);
    const change = value > was ? "clearly more than" : "clearly less than";
    said(node.querySelector(".compared"), [...of_time, `${clear ? change : "no clear change from"} ${compared}, ${known(was, wasLow, wasHigh, in_)[0]}`].join("; "));
  }

  async function whole(node) {
    const told = byId("whole-said");
    const found = await ask(node.dataset.query, told);
    if (!found) return;
    fill(node, found.whole);
    const one = found.whole;
    let text = `Of these devices’ own values, each by its time there and not by its reports: ${plain(one.n, 0)} stream reports and ${plain(one.surveys, 0)} surveys; ${plain(one.devices, 0)} devices heard, ${plain(one.missing, 0)} missing.`;
    if (one.withheld) text = "Withheld: the devices that reported, or those left out, are fewer than [query] min_devices.";
    else if (one.mean === null) text = "No stream reports in this range yet.";
    const alike = found.untold && `${plain(found.untold * 100)} % of the reports are of devices that did not say how often they report: they count as if alike.`;
    said(told, [text, alike, ...found.warnings].filter(Boolean).join(" "));
    sums(byId("sums-table"), found);
    rows(byId("quantiles"), found.quantiles.map((row) => [
      [row.share, `${+(row.share * 100).toPrecision(6)} %`], [row.value, plain(row.value)], [row.low, plain(row.low)], [row.high, plain(row.high)],
    ]));
    spread(found.ranges, one.withheld);
  }

  // shares of ranges: in the chart an area is a share, and what lies beyond twice the last but one end is cut off
  function spread(list, withheld) {
    const [node, told] = [byId("density-chart"), byId("density-said")];
    const { unit } = node.dataset;
    const last = list.length - 1;
    const named = (at) => (at === last ? `${plain(list[at].low, 0)} and more` : `${plain(list[at].low, 0)}–${plain(list[at].high, 0)}`);
    const share = (value) => plain(100 * value);
    rows(byId("density"), list.map((part, at) => [[part.low, named(at)], ...["share", "share_low", "share_high"].map((name) => [part[name], share(part[name])])]));
    const end = last < 1 ? list[0]?.high : Math.min(list[last].high, 2 * list[last].low - list[0].low);
    const column = (name) => [...list, ...list.slice(-1)].map((part) => (1e4 * part[name]) / (part.high - part.low));
    const tell = (at) => { const row = list[Math.min(at, last)]; said(told, `${named(list.indexOf(row))} ${unit}: ${share(row.share)} % of values, 95 % from ${share(row.share_low)} to ${share(row.share_high)}`); };
    draw(node, list.length ? [[...list.map((part) => part.low), end], column("share"), column("share_high"), column("share_low")] : [[]], {
      scales: { x: { time: false }, ...load },
      axes: [{ space: 70, values: (_chart, splits) => splits.map((at) => plain(at, 0)) }, { size: 56, label: `% per 100 ${unit}` }],
      series: [{}, line(), { ...edge(), auto: true }, edge()],
    }, tell);
    if (list.length) tell(0);
    else said(told, withheld ? "Withheld: too few homes ([query] min_devices)." : "No surveys in this range.");
  }

  // what homes' own sums say of the range: the whole, each period, each part of the day
  function sums(table, { sums: one, mode, mean }) {
    byId("sums").hidden = !one;
    if (!one) return;
    const { unit, zone, amount: in_ } = table.dataset;
    const within = (row, name, low, high) => [row[name], row[name] === null ? "–" : `${plain(row[name])}\u00a0±\u00a0${plain((row[high] - row[low]) / 2)}`];
    const clock = (at) => new Date(at * 1e3).toISOString().slice(11, 16);
    const named = [["all", "all", one.whole], ...one.periods.map((row) => [row.from_s, stamp(row.from_s, zone), row]),
      ...one.parts.map((row) => [row.from_day_s, `${clock(row.from_day_s)} to ${clock(row.to_day_s)} UTC`, row])];
    const amounts = in_ ? [AMOUNTS[in_], `full_${in_.toLowerCase()}`] : [];
    rows(table, named.map(([at, told, row]) => [
      [at, told], row.withheld ? [null, "withheld"] : within(row, "mean", "low", "high"), ...amounts.map((name) => within(row, name, `${name}_low`, `${name}_high`)),
      [row.homes, plain(row.homes, 0)], [row.coverage, row.coverage === null ? "–" : `${plain(100 * row.coverage, 0)} %`],
    ]));
    const { mean_sway: moved } = one.whole;
    said(byId("sums-said"), [
      (mode === "sums" || mean !== null) && `Known better here: the mean by ${mode === "sums" ? "homes' own sums" : "reports"}.`,
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

  const TITLES = { whole: "whole run", week: "week", day: "day", "hour-of-day": "hour of day" };
  const CURVE = [30, 100, 300, 1000, 3000, 10000, 40000]; // homes, as in the picture of `edge-ldp forecast`

  async function forecast(form) {
    const told = byId("forecast-said");
    const { unit, low, ceiling, slots, parts } = form.dataset;
    const isApart = parts > 1; // slots of its own, of which there are sums alone
    const given = (homes) => new URLSearchParams({ homes, epsilon: form.epsilon.value, window: form.window.value, days: form.days.value, low, ceiling, "slots-a-day": slots, ...(isApart && { parts }) });
    const asked = Number(form.homes.value);
    const homes = [...new Set([...CURVE, asked])].sort((one, other) => one - other);
    said(told, "computing …");
    const [one, many] = await Promise.all([asked, homes].map((count) => ask(`/api/v1/forecast?${given(count)}`, told)));
    if (!one || !many) return;
    byId("forecast-found").hidden = false;
    const told_ = (found) => (isApart ? found.modes.map(({ choices }) => choices.filter((choice) => choice.rows.length).map(({ question, rows: [row] }) => ({ horizon: question, ...row }))) : found.forecasts.map((each) => each.rows));
    const [mine] = told_(one);
    const name = (row) => ASKED[row.horizon] || `whole run, ${plain(row.homes, 0)} homes`;
    rows(byId("forecast-table"), mine.map((row) => [
      [row.horizon, name(row) + (row.few ? " (few reports: may be a fifth off)" : "")], [row.half_width, plain(row.half_width)], [row.percent, row.percent === null ? "–" : plain(row.percent)],
    ]));
    const horizons = mine.filter((row) => ASKED[row.horizon]).map((row) => row.horizon);
    const at = homes.indexOf(asked);
    draw(byId("forecast-chart"), [homes, ...horizons.map((horizon) => told_(many).map((found) => found.find((row) => row.horizon === horizon)?.percent))], {
      legend: { show: true },
      scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
      axes: [{ ...logarithmic("homes"), size: 40 }, logarithmic("± % of the mean")],
      series: [{ label: "homes", value: (_chart, value) => plain(value, 0) }, ...several(horizons.map((horizon) => ASKED[horizon]), { points: { size: 8, filter: () => [at] } })],
    });
    modes(one.modes[0].choices);
    said(byId("forecast-command"), `edge-ldp forecast ${[...given(asked)].map(([key, value]) => `--${key} ${value}`).join(" ")}`);
    const what = `${plain(asked, 0)} homes, ${form.days.value} ${Number(form.days.value) === 1 ? "day" : "days"}`;
    byId("splits").hidden = isApart;
    if (isApart) { said(told, `${what}, sums at home over slots of ${plain(one.modes[0].slot_seconds, 0)} s: no report is of them.`); return; }
    const { splits, forecasts: [own] } = one;
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
    said(told, `${what}, as the forecast knows homes: θ ${plain(own.theta, 0)} ${unit}, ${plain(100 * own.survey_share, 0)} % surveys, ε ${plain(own.epsilon_a_day, 2)} a day.`);
  }

  const ASKED = { total: "a total", "part-of-day": "part of day", density: "how values are spread", theta: "θ", ...TITLES };
  const MODES = { local: "reports", sums: "sums at home" };

  // which mode answers what better, and what one home gives away in each way that was measured
  function modes(choices) {
    const ways = new Map();
    const of = (row) => (row ? [row.percent, plain(row.percent)] : [null, "–"]);
    rows(byId("modes-table"), choices.map(({ question, better, layout, reason, rows: found }) => {
      found.filter((row) => row.habits).forEach((row) => ways.set(row.layout ? `sums of ${row.layout.days} days, ${row.layout.cells} parts${row.layout.block > 1 ? `, blocks of ${row.layout.block} h` : ""}` : "reports", row.habits));
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
    all(".kpi[data-query]").forEach(kpi);
    all("#groups [data-query]").forEach(group);
    all("[data-profile]").forEach(profile);
    all("[data-heard]").forEach(heard);
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
      said(node, "live");
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
