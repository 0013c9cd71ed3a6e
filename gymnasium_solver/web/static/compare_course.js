// How training went on each side: terms of the loss, gradient norms, and scheduled values.

import { draw, label, palette } from "./charts.js";
import { el } from "./dom.js";
import { number, percent } from "./format.js";
import { table } from "./widgets.js";

const PHASES = ["early", "middle", "late"];

/** `schedules`: field → the element its curve is drawn into. */
export function course(found, schedules) {
  return el(
    "section",
    { "aria-label": "Course of training" },
    el("h2", {}, "Course of training"),
    el(
      "details",
      {},
      el("summary", {}, "Terms of the loss, by third of training"),
      byPhase(
        "Terms of the loss",
        found.sides,
        found.losses,
        ({ size, share }) => `${number(size, 3)} (${percent(share)})`,
      ),
    ),
    el(
      "details",
      {},
      el("summary", {}, "Gradient norms, by third of training"),
      byPhase(
        "Gradient norms",
        found.sides,
        turned(found.gradients),
        ({ low, median, high }) => `${number(median, 3)} (${number(low, 2)} to ${number(high, 2)})`,
      ),
    ),
    schedules.size
      ? el(
          "div",
          { class: "charts" },
          [...schedules].map(([field, plot]) =>
            el(
              "figure",
              { class: "chart" },
              el("figcaption", {}, el("code", {}, field), el("span", { class: "muted" }, "in force")),
              plot,
            ),
          ),
        )
      : null,
    found.missing.map((text) => el("p", { class: "muted small" }, text)),
  );
}

/** side → part → phase becomes side → phase → part, as losses are. */
function turned(gradients) {
  const phaseOf = (parts, phase) =>
    Object.fromEntries(
      Object.entries(parts)
        .filter(([, phases]) => phase in phases)
        .map(([part, phases]) => [part, phases[phase]]),
    );
  return Object.fromEntries(
    Object.entries(gradients).map(([side, parts]) => [
      side,
      Object.fromEntries(PHASES.map((phase) => [phase, phaseOf(parts, phase)])),
    ]),
  );
}

function byPhase(caption, sides, bySide, show) {
  const names = [
    ...new Set(sides.flatMap((side) => PHASES.flatMap((phase) => Object.keys(bySide[side.label]?.[phase] ?? {})))),
  ];
  const rows = names.flatMap((name) => PHASES.map((phase) => ({ name, phase })));
  const cell =
    (side) =>
    ({ name, phase }) => {
      const value = bySide[side.label]?.[phase]?.[name];
      return value ? show(value) : "–";
    };
  return table(
    caption,
    [
      { head: "Part", cell: ({ name }) => name.replaceAll("_", " ") },
      { head: "Phase", cell: ({ phase }) => phase },
      ...sides.map((side) => ({ head: side.label, number: true, cell: cell(side) })),
    ],
    rows,
  );
}

export function drawSchedules(schedules, { sides, schedules: curves }) {
  const colours = palette();
  for (const [field, plot] of schedules) {
    const traces = sides
      .filter((side) => curves[field][side.label])
      .map((side) => ({
        type: "scatter",
        mode: "lines",
        x: curves[field][side.label].steps,
        y: curves[field][side.label].values,
        name: label(side.label),
        line: { color: colours[side.hue], width: 1.8 },
        hovertemplate: "%{y:.4~g}",
      }));
    draw(plot, traces, { legend: true });
  }
}
