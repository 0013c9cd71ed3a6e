// One curve, or a few that belong together, with healthy range, change points and what the diagnosis found in it.

import { colour, draw, faint, label, palette } from "./charts.js";
import { shortName } from "./curve_groups.js";
import { el, replace } from "./dom.js";
import { number, unit as clockUnit, whole } from "./format.js";

export function chartCard(chart, state, onZoom) {
  const plot = el("div", { class: chart.isTall ? "plot tall" : "plot" });
  const latest = el("span", { class: "latest" });
  const notes = el("ul", { class: "marks" });
  const title = chart.title ?? shortName(chart.names[0]);
  const nameOf = (name) => chart.labels?.[name] ?? shortName(name);
  const node = el(
    "figure",
    { class: chart.isWide ? "chart wide" : "chart", "aria-label": `Curve: ${title}` },
    el("figcaption", {}, el("strong", {}, title), latest),
    plot,
    notes,
  );
  let series = null;
  let isWatched = false;

  async function redraw() {
    if (series === null) return;
    const entry = chart.names.length === 1 ? state.catalogue.get(chart.names[0]) : null;
    const marks = chart.names.flatMap((name) => marksOf(name, state.findings));
    const isLog = state.isLog && chart.names.some((name) => series[name]?.values.some((value) => value > 0));
    const goal =
      chart.isReward && state.threshold !== null && (!isLog || state.threshold > 0)
        ? [line("y", state.threshold, colour("good"), "dash")]
        : [];
    const isNamed = chart.names.length > 1;
    const traces = chart.names.map((name, index) =>
      trace(nameOf(name), series[name], palette()[index], isNamed, name.startsWith("val/")),
    );
    const values = chart.names.flatMap((name) => series[name]?.values ?? []);
    const range = entry ? healthyRange(entry, values, isLog) : [];
    await draw(plot, [...traces, ...marks.map((mark) => diamond(mark, series[mark.name]))], {
      legend: isNamed,
      x: state.range ? { range: state.range } : { autorange: true },
      y: {
        type: isLog ? "log" : "linear",
        ...(goal.length && !isLog ? withGoal(state.threshold, values) : { autorange: true }),
      },
      shapes: [
        ...range,
        ...goal,
        ...marks.filter(({ step }) => step !== null).map((mark) => line("x", mark.step, markColour(mark), "dot")),
      ],
      annotations: goal.length ? [goalLabel(state.threshold, isLog)] : [],
    });
    watch();
    latest.textContent = isNamed ? "" : number(series[chart.names[0]]?.values.at(-1)) + unit(entry);
    node.title = entry ? `${chart.names[0]}: ${entry.meaning}` : chart.names.join(", ");
    replace(notes, [
      ...marks.map((mark) =>
        el("li", { class: mark.kind }, isNamed ? `${nameOf(mark.name)}: ${mark.text}` : mark.text),
      ),
      range.length ? el("li", { class: "healthy", title: entry.source ?? "" }, `healthy ${bounds(entry)}`) : null,
    ]);
  }

  function watch() {
    if (isWatched) return;
    isWatched = true;
    plot.on("plotly_relayout", (change) => {
      const [from, to] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (from !== undefined && to !== undefined) onZoom([Math.max(0, from), to]);
    });
    plot.on("plotly_doubleclick", () => onZoom(null));
  }

  const drawNow = (known) => {
    series = known;
    return redraw();
  };
  return { node, plot, chart, isSeen: false, draw: drawNow, redraw };
}

function trace(name, found, stroke, isNamed, isSparse) {
  const { steps = [], values = [] } = found ?? {};
  return {
    type: "scatter",
    mode: isSparse && steps.length < 60 ? "lines+markers" : "lines",
    x: steps,
    y: values,
    name: label(name),
    line: { color: stroke, width: 1.8 },
    marker: { size: 5 },
    hovertemplate: isNamed ? "%{y:.4~g}" : "%{y:.4~g}<extra></extra>",
  };
}

/** Change points, spikes and evidence of the diagnosis; those that hold for the whole run have no step. */
function marksOf(name, findings) {
  if (findings === null) return [];
  const curve = findings.metrics[name] ?? {};
  const counted = clockUnit(findings.summary.clock);
  const marks = [];
  if (curve.change_point) {
    const { step, before, after } = curve.change_point;
    marks.push({
      name,
      step,
      kind: "change",
      text: `changes at ${whole(step)} ${counted}: ${number(before, 3)} → ${number(after, 3)}`,
    });
  }
  if (curve.spikes)
    marks.push({
      name,
      step: curve.spikes.first_step,
      kind: "spike",
      text: `${curve.spikes.count} spikes from ${whole(curve.spikes.first_step)} ${counted}`,
    });
  if (curve.non_finite_from !== undefined)
    marks.push({
      name,
      step: curve.non_finite_from,
      kind: "critical",
      text: `not finite from ${whole(curve.non_finite_from)} ${counted}`,
    });
  for (const cause of findings.bottlenecks) {
    for (const entry of cause.evidence) {
      if (entry.metric === name)
        marks.push({ name, step: entry.step, kind: cause.severity, text: `${entry.text} (${cause.title})` });
    }
  }
  return marks;
}

function markColour({ kind }) {
  return colour({ critical: "bad", high: "bad", medium: "warn", low: "warn" }[kind] ?? "muted");
}

function diamond(mark, found) {
  const isShown = mark.step !== null && found?.steps[0] <= mark.step && mark.step <= found.steps.at(-1);
  if (!isShown) return { x: [], y: [], showlegend: false };
  let nearest = 0;
  found.steps.forEach((step, index) => {
    if (Math.abs(step - mark.step) < Math.abs(found.steps[nearest] - mark.step)) nearest = index;
  });
  return {
    type: "scatter",
    mode: "markers",
    x: [found.steps[nearest]],
    y: [found.values[nearest]],
    marker: { symbol: "diamond", size: 9, color: markColour(mark), line: { color: colour("surface"), width: 1 } },
    showlegend: false,
    hoverinfo: "skip",
  };
}

function line(axis, at, stroke, dash) {
  const across =
    axis === "x" ? { yref: "paper", y0: 0, y1: 1, x0: at, x1: at } : { xref: "paper", x0: 0, x1: 1, y0: at, y1: at };
  return {
    type: "line",
    layer: axis === "x" ? "below" : "above",
    ...across,
    line: { color: stroke, width: 1.3, dash },
  };
}

function healthyRange({ low, high }, values, isLog) {
  if ((low === null && high === null) || low === high || (isLog && high !== null && high <= 0)) return [];
  const ends = { y0: low ?? Math.min(...values), y1: high ?? Math.max(...values) };
  if (isLog && ends.y0 <= 0) ends.y0 = Math.min(ends.y1, ...values.filter((value) => value > 0)) / 2;
  return [
    {
      type: "rect",
      layer: "below",
      xref: "paper",
      x0: 0,
      x1: 1,
      ...ends,
      fillcolor: faint(colour("good"), 0.11),
      line: { width: 0 },
    },
  ];
}

/** Room for the goal above a curve that has not come near it. */
function withGoal(threshold, values) {
  const known = values.filter(Number.isFinite);
  const [low, high] = [Math.min(...known, threshold), Math.max(...known, threshold)];
  const room = 0.06 * (high - low || 1);
  return { autorange: false, range: [low - room, high + room] };
}

function goalLabel(threshold, isLog) {
  const y = isLog ? Math.log10(threshold) : threshold; // Plotly wants it so, of texts alone
  return {
    xref: "paper",
    x: 0,
    y,
    xanchor: "left",
    yanchor: "bottom",
    showarrow: false,
    text: `goal ${number(threshold)}`,
    font: { color: colour("good"), size: 11 },
  };
}

function bounds({ low, high }) {
  if (low === null) return `≤ ${number(high)}`;
  return high === null ? `≥ ${number(low)}` : `${number(low)} to ${number(high)}`;
}

function unit(entry) {
  return entry && !["1", "share", "reward"].includes(entry.unit) ? ` ${entry.unit}` : "";
}
