// One measure of every side: mean, interval and the seeds themselves, on one scale.

import { el, svg } from "./dom.js";
import { number } from "./format.js";

const [WIDTH, ROW, LEFT, RIGHT] = [440, 34, 30, 14];

export function forest(title, measure, sides) {
  const numbers = sides
    .flatMap((side) => [
      ...(side.results[measure].interval ?? []),
      side.results[measure].iqm,
      ...side.runs.map((run) => run[measure]),
    ])
    .filter(Number.isFinite);
  const [low, high] = numbers.length ? [Math.min(...numbers), Math.max(...numbers)] : [0, 1];
  const room = 0.05 * (high - low || Math.abs(high) || 1);
  const edge = WIDTH - RIGHT;
  const x = (value) =>
    Number.isFinite(value) ? LEFT + ((value - low + room) / (high - low + 2 * room)) * (edge - LEFT - 10) : edge;
  const height = sides.length * ROW + 22;
  const rows = sides.map((side, index) => {
    const y = index * ROW + ROW / 2;
    const { iqm, interval = [] } = side.results[measure];
    const isKnown = Number.isFinite(iqm);
    return svg(
      "g",
      { class: `side-${side.hue + 1}` },
      svg("text", { x: 4, y: y + 4, class: "name" }, side.label),
      isKnown &&
        interval.every(Number.isFinite) &&
        svg("line", { class: "interval", x1: x(interval[0]), x2: x(interval[1]), y1: y, y2: y }),
      side.runs.map((run, place) =>
        svg(
          "circle",
          { cx: x(run[measure]), cy: y + 4 * ((place % 3) - 1), r: 3 },
          svg("title", {}, `seed ${run.seed}: ${number(run[measure])}`),
        ),
      ),
      isKnown && svg("line", { class: "middle", x1: x(iqm), x2: x(iqm), y1: y - 9, y2: y + 9 }),
    );
  });
  const told = sides
    .filter((side) => Number.isFinite(side.results[measure].iqm))
    .map((side) => `${side.label} ${number(side.results[measure].iqm)}`)
    .join(", ");
  const label = (value, anchor) =>
    svg("text", { x: x(value), y: height - 5, "text-anchor": anchor, class: "tick" }, number(value));
  return el(
    "figure",
    { class: "chart forest" },
    el("figcaption", {}, el("strong", {}, title), el("span", { class: "muted" }, told)),
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `${title}: ${told}` },
      svg("line", { class: "axis", x1: LEFT, x2: edge, y1: height - 19, y2: height - 19 }),
      rows,
      label(low, "start"),
      high > low ? label(high, "end") : null,
    ),
  );
}
