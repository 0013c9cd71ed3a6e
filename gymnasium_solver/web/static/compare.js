// Runs and seeds side by side: the verdict first, then what it rests on.

import { get } from "./api.js";
import { colour, draw, faint, forget, label, loadPlotly, palette } from "./charts.js";
import { el, replace } from "./dom.js";
import { capital, number, unit, whole } from "./format.js";
import { course, drawSchedules } from "./compare_course.js";
import { differences, results } from "./compare_results.js";
import { setPageKeys } from "./keyboard.js";
import { comparePlace, runPlace } from "./places.js";
import { onTheme } from "./theme.js";
import { loading, notice, table } from "./widgets.js";

export async function show({ root, query, signal }) {
  document.title = "Comparison · gymnasium-solver";
  const runIds = (query.runs ?? "").split(",").filter(Boolean);
  setPageKeys({ Escape: ["back to the list", () => (location.hash = "#/")] });
  loadPlotly().catch(() => {});
  replace(root, el("h1", {}, "Comparison"), loading(`${runIds.length} runs`));
  const found = await get("/compare", { run_ids: runIds.join(","), group_by: query.by }, { signal });
  const plot = el("div", { class: "plot tall" });
  const schedules = new Map(Object.keys(found.schedules).map((field) => [field, el("div", { class: "plot" })]));
  const by = el("input", { id: "group-by", value: query.by ?? "", placeholder: "e.g. policy_lr", class: "narrow" });
  const regroup = (event) => {
    event.preventDefault();
    location.hash = comparePlace(runIds, by.value.trim());
  };
  const colours = palette();
  found.sides.forEach((side, index) => {
    side.hue = index % colours.length;
  });
  replace(
    root,
    el(
      "div",
      { class: "title" },
      el("h1", {}, `Comparison: ${found.env_id ?? "unknown environment"}`),
      el("span", { class: "spacer" }),
      el(
        "form",
        { class: "row", on: { submit: regroup } },
        el("label", { for: "group-by" }, "Group by field"),
        by,
        el("button", {}, "Group"),
      ),
    ),
    el("p", { class: "verdict" }, found.verdict.text),
    found.caveats.map((text) => notice(text, "warn")),
    sides(found),
    el(
      "section",
      { "aria-label": "Curves" },
      el("h2", {}, "Learning curves"),
      el(
        "p",
        { class: "muted small" },
        `Interquartile mean of ${found.measures.curve ?? "the reward"} over the seeds, with its 95 % bootstrap interval.`,
      ),
      el("figure", { class: "chart wide" }, plot),
    ),
    results(found),
    differences(found),
    course(found, schedules),
    runsTable(found),
  );
  const redraw = () => {
    curves(plot, found);
    drawSchedules(schedules, found);
  };
  const endTheme = onTheme(redraw);
  signal.addEventListener("abort", () => {
    endTheme();
    [plot, ...schedules.values()].forEach(forget);
  });
  redraw();
}

function sides({ sides }) {
  return el(
    "ul",
    { class: "sides" },
    sides.map((side) =>
      el(
        "li",
        { class: `side-${side.hue + 1}` },
        el("strong", {}, `${side.label}  ${side.name}`),
        el(
          "span",
          { class: "muted" },
          `${side.variant ?? side.algo_id ?? ""} · ${side.results.solved} of ${side.results.seeds} seeds solved`,
        ),
      ),
    ),
  );
}

async function curves(plot, { sides, measures }) {
  const colours = palette();
  const traces = sides.flatMap(({ curve, label: name, name: title, hue }) => [
    {
      type: "scatter",
      mode: "lines",
      x: [...curve.steps, ...curve.steps.toReversed()],
      y: [...curve.high, ...curve.low.toReversed()],
      fill: "toself",
      fillcolor: faint(colours[hue], 0.16),
      line: { width: 0 },
      hoverinfo: "skip",
      showlegend: false,
    },
    {
      type: "scatter",
      mode: "lines",
      x: curve.steps,
      y: curve.iqm,
      name: label(`${name} ${title}`),
      line: { color: colours[hue], width: 2.2 },
      hovertemplate: "%{y:.4~g}",
    },
  ]);
  const goal =
    measures.threshold === null
      ? []
      : [
          {
            type: "line",
            xref: "paper",
            x0: 0,
            x1: 1,
            y0: measures.threshold,
            y1: measures.threshold,
            line: { color: colour("good"), width: 1.3, dash: "dash" },
          },
        ];
  await draw(plot, traces, { legend: true, shapes: goal });
}

function runsTable({ sides, measures }) {
  const counted = capital(unit(measures.clock));
  const rows = sides.flatMap((side) => side.runs.map((run) => ({ ...run, side: side.label })));
  return el(
    "section",
    { "aria-label": "Runs" },
    el("h2", {}, "Runs"),
    table(
      "Runs",
      [
        { head: "Side", cell: (run) => run.side },
        { head: "Run", cell: (run) => el("a", { href: runPlace(run.run_id), class: "mono" }, run.run_id) },
        { head: "Seed", number: true, cell: (run) => run.seed ?? "–" },
        { head: "Final reward", number: true, cell: (run) => number(run.final_reward) },
        {
          head: `${counted} to threshold`,
          number: true,
          cell: (run) => (run.reached ? whole(run.steps_to_threshold) : "not reached"),
        },
        { head: counted, number: true, cell: (run) => whole(run[measures.clock]) },
        { head: `${counted}/s`, number: true, cell: (run) => whole(run.steps_per_second) },
      ],
      rows,
    ),
  );
}
