// The curves of a run: drawn when they come into view, redrawn as rows arrive, finer where the user zooms in.

import { get, runPath } from "./api.js";
import { forget } from "./charts.js";
import { chartCard } from "./chart_card.js";
import { groupsOf } from "./curve_groups.js";
import { el, replace } from "./dom.js";
import { throttled } from "./events.js";
import { capital, percent } from "./format.js";
import { runPlace } from "./places.js";
import { onTheme } from "./theme.js";
import { badge, notice } from "./widgets.js";

const POINTS = { whole: 500, zoomed: 1000 };
const AT_ONCE = 40; // names; the server takes 100, but the first curves are to be seen soon

export async function show({ id, document: run, diagnosis, catalogue, container, signal }) {
  const state = { range: null, isLog: false, threshold: run.summary.threshold, catalogue: new Map(), findings: null };
  const cards = [];
  const failure = el("div");

  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) cards.find(({ node }) => node === entry.target).isSeen = entry.isIntersecting;
      refreshSoon();
    },
    { rootMargin: "300px" },
  );

  async function refresh() {
    if (signal.aborted) return;
    const wanted = cards.filter((card) => card.isSeen);
    const names = [...new Set(wanted.flatMap((card) => card.chart.names))];
    if (!names.length) return;
    try {
      const series = await read(names);
      await Promise.all(wanted.map((card) => card.draw(series)));
      replace(failure);
    } catch (error) {
      if (!signal.aborted) replace(failure, notice(error.message, "bad"));
    }
  }
  const refreshSoon = throttled(refresh, 700);

  async function read(names) {
    const [from, to] = state.range ?? [];
    const points = state.range ? POINTS.zoomed : POINTS.whole;
    const parts = Array.from({ length: Math.ceil(names.length / AT_ONCE) }, (_, index) =>
      names.slice(index * AT_ONCE, (index + 1) * AT_ONCE).join(","),
    );
    const path = runPath(id, "metrics");
    const answers = await Promise.all(parts.map((names) => get(path, { names, points, from, to }, { signal })));
    return Object.assign({}, ...answers.map(({ series }) => series));
  }

  function zoom(range) {
    state.range = range;
    reset.hidden = range === null;
    refreshSoon();
  }

  function add(chart, grid) {
    const card = chartCard(chart, state, zoom);
    cards.push(card);
    grid.append(card.node);
    seen.observe(card.node);
  }

  const log = el("input", { type: "checkbox" });
  log.addEventListener("change", () => {
    state.isLog = log.checked;
    redraw();
  });
  const reset = el("button", { type: "button", hidden: true, on: { click: () => zoom(null) } }, "Whole run");
  const pick = el(
    "select",
    { "aria-label": "Add a curve" },
    el("option", { value: "" }, "Add a curve…"),
    run.metrics.map((name) => el("option", { value: name }, name)),
  );
  const extra = el("div", { class: "charts" });
  pick.addEventListener("change", () => {
    if (pick.value) add({ names: [pick.value] }, extra);
    pick.value = "";
  });
  const callout = el("div");
  const sections = groupsOf(run.metrics).map(({ title, charts }, index) => {
    const grid = el("div", { class: "charts" });
    const section = el(
      "details",
      { class: "curve-group", open: index < 3 },
      el(
        "summary",
        {},
        el("h2", {}, title),
        el("span", { class: "muted" }, charts.length === 1 ? "1 curve" : `${charts.length} curves`),
      ),
      grid,
    );
    for (const chart of charts) add(chart, grid);
    return section;
  });
  replace(
    container,
    callout,
    el(
      "div",
      { class: "tools" },
      pick,
      el("label", { class: "check" }, log, "Log scale"),
      reset,
      el(
        "span",
        { class: "muted small hint" },
        `Against ${run.summary.clock === "updates" ? "updates" : "environment steps"}. Drag to zoom, double-click for the whole run.`,
      ),
    ),
    failure,
    extra,
    sections.length ? sections : notice("No metrics yet: the first row is written after the first update."),
  );

  const redraw = () => cards.forEach((card) => card.redraw());
  const endTheme = onTheme(redraw);
  signal.addEventListener("abort", () => {
    endTheme();
    seen.disconnect();
    cards.forEach((card) => forget(card.plot));
  });
  catalogue.then(
    (known) => {
      state.catalogue = known;
      redraw();
    },
    () => {},
  );
  const mark = (found) => {
    state.findings = found;
    replace(callout, primary(id, found));
    redraw();
  };
  diagnosis.then(mark, () => {});
  return { rows: refreshSoon, diagnosed: mark };
}

function primary(id, found) {
  const [first] = found.bottlenecks;
  if (!first) return null;
  return el(
    "p",
    { class: `notice ${first.severity}` },
    badge(first.severity, "bare"),
    ` ${capital(first.title)} (${percent(first.confidence)} sure). `,
    el("a", { href: runPlace(id, "diagnosis") }, "What to change"),
  );
}
