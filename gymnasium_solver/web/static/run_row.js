// One run as a row of the list.

import { el } from "./dom.js";
import { ago, duration, number, short, shortGroup, unit, whole } from "./format.js";
import { groupPlace, runPlace } from "./places.js";
import { badge, meter, sparkline } from "./widgets.js";

const HUES = 6;

export const COLUMNS = [
  { head: "Run", sort: "run_id", cell: nameCell, class: "name" },
  { head: "Status", sort: "status", cell: (run) => badge(run.status), class: "status" },
  { head: "Reward", cell: (run) => sparkline(run.sparkline, { threshold: run.threshold }), class: "curve" },
  { head: "Best / goal", sort: "best_reward", number: true, cell: rewardCell, class: "reward" },
  { head: "Steps", sort: "progress", number: true, cell: stepsCell, class: "steps" },
  { head: "Time", sort: "duration_s", number: true, cell: (run) => duration(run.duration_s), class: "time" },
  { head: "Started", sort: "started_at", number: true, cell: startedCell, class: "started" },
];

export function runRow(run, isChosen, onChoose) {
  const box = el("input", { type: "checkbox", class: "choose", "aria-label": `Choose ${run.run_id} to compare` });
  box.checked = isChosen;
  box.addEventListener("change", () => onChoose(box.checked));
  const row = el(
    "tr",
    {
      class: `${isChosen ? "chosen " : ""}${run.group ? `grouped hue-${hue(run.group)}` : ""}`,
      data: { run: run.run_id },
    },
    el("td", { class: "pick" }, box),
    COLUMNS.map((column) => el("td", { class: `${column.class}${column.number ? " number" : ""}` }, column.cell(run))),
  );
  row.addEventListener("click", (event) => {
    if (!event.target.closest("a, button, input") && !getSelection().toString()) location.hash = runPlace(run.run_id);
  });
  return row;
}

/** The same colour for the same group, whatever else is in the list. */
function hue(group) {
  let sum = 0;
  for (const letter of group) sum = (31 * sum + letter.codePointAt(0)) % 9973;
  return sum % HUES;
}

function nameCell(run) {
  const what = run.env_id ? `${run.env_id} · ${run.algo_id ?? "?"}` : run.run_id;
  return [
    el("a", { class: "open", href: runPlace(run.run_id) }, what),
    run.seed !== null && el("span", { class: "seed" }, `seed ${run.seed}`),
    el(
      "div",
      { class: "origin" },
      el("span", { class: "id" }, run.run_id),
      run.group &&
        el("a", { class: "group", href: groupPlace(run.group), title: `Runs of ${run.group}` }, shortGroup(run.group)),
    ),
  ];
}

function rewardCell(run) {
  return [
    el("span", { class: run.solved ? "good strong" : "strong" }, number(run.best_reward)),
    el("span", { class: "muted" }, run.threshold === null ? "" : ` / ${number(run.threshold)}`),
  ];
}

function stepsCell(run) {
  const counted = unit(run.clock);
  const named = counted === "steps" ? "" : ` ${counted}`;
  return [
    el("span", { title: `${whole(run.progress)} of ${whole(run.budget)} ${counted}` }, short(run.progress) + named),
    run.status === "running" && run.budget && meter(run.progress / run.budget, `of the ${counted} done`),
  ];
}

function startedCell(run) {
  return el("time", { datetime: run.started_at ?? "", title: run.started_at ?? "" }, ago(run.started_at));
}
