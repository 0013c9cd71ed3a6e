// Solves, optimisations, tests of a change and sweeps: the list, and the history of one.

import { get } from "./api.js";
import { el, replace } from "./dom.js";
import { duration, number, whole } from "./format.js";
import { setPageKeys } from "./keyboard.js";
import { experimentPlace, groupPlace, runPlace } from "./places.js";
import { solveHistory } from "./solve_history.js";
import { optimizeHistory } from "./optimize_history.js";
import { sweepHistory } from "./sweep_history.js";
import { verifyHistory } from "./verify_history.js";
import { badge, facts, loading, notice, snippet, table } from "./widgets.js";

const EVERY = 3000;
// What each is called and drawn by; the field is there once it has come to an end (of a sweep, from the first trial on).
const KINDS = {
  solve: { title: "Solve", field: "attempts", body: solveHistory },
  optimize: { title: "Optimise", field: "diagnosis", body: optimizeHistory },
  verify: { title: "Verify", field: "comparison", body: verifyHistory },
  sweep: { title: "Sweep", field: "counts", body: sweepHistory },
};

export async function show({ root, parts, signal }) {
  const id = parts[1];
  replace(root, loading(id ?? "experiments"));
  setPageKeys({ Escape: [id ? "all experiments" : "all runs", () => (location.hash = id ? "#/experiments" : "#/")] });
  let last = null;
  const draw = async () => {
    const found = id
      ? await get(`/experiments/${encodeURIComponent(id)}`, {}, { signal })
      : await get("/experiments", {}, { signal });
    const text = JSON.stringify(found);
    if (signal.aborted || text === last) return found;
    last = text;
    replace(root, id ? history(found) : list(found.experiments));
    return found;
  };
  document.title = `${id ?? "Experiments"} · gymnasium-solver`;
  await draw();
  const timer = setInterval(() => document.hidden || draw().catch(() => {}), EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
}

function list(experiments) {
  if (!experiments.length) {
    return [
      el("h1", {}, "Experiments"),
      notice("None yet. These start one:"),
      snippet("gsolve solve CartPole-v1", "command to solve an environment"),
      snippet("gsolve optimize @last", "command to improve a configuration"),
      snippet("gsolve sweep CartPole-v1:ppo", "command to search with Optuna"),
    ];
  }
  return [
    el("h1", {}, "Experiments"),
    table(
      "Experiments",
      [
        {
          head: "Experiment",
          cell: (entry) => [
            el(
              "a",
              { href: experimentPlace(entry.experiment), class: "open" },
              `${entry.kind ?? "experiment"} ${about(entry)}`,
            ),
            el("span", { class: "id" }, entry.experiment),
          ],
        },
        { head: "Status", cell: (entry) => badge(entry.status) },
        { head: "Verdict", cell: (entry) => entry.verdict ?? "" },
        { head: "Trainings", number: true, cell: (entry) => whole(count(entry.trainings)) },
        { head: "Time", number: true, cell: (entry) => duration(entry.duration_s) },
      ],
      experiments,
    ),
  ];
}

function about(entry) {
  return entry.env_id ?? entry.asked?.env_id ?? entry.asked?.source ?? "";
}

/** A test of a change counts its sides apart. */
function count(trainings) {
  const isBySide = trainings !== null && typeof trainings === "object";
  return isBySide ? Object.values(trainings).reduce((sum, side) => sum + side, 0) : trainings;
}

function trials(finished) {
  return table(
    "Finished trainings",
    [
      {
        head: "Training",
        cell: (trial) => [
          el("strong", {}, trial.label),
          trial.path && el("a", { href: runPlace(runOf(trial)), class: "id" }, runOf(trial)),
        ],
      },
      { head: "Seed", number: true, cell: (trial) => trial.seed },
      { head: "Best reward", number: true, cell: (trial) => number(trial.best_reward) },
      { head: "Steps", number: true, cell: (trial) => whole(trial.env_steps) },
      { head: "Time", number: true, cell: (trial) => duration(trial.seconds) },
    ],
    finished,
  );
}

const runOf = ({ path }) => path.split("/").at(-1);

function history(found) {
  const kind = KINDS[found.kind];
  const isConcluded = kind && found[kind.field];
  return [
    el(
      "div",
      { class: "title" },
      el("h1", {}, `${kind?.title ?? "Experiment"}: ${about(found)}`),
      badge(found.status),
    ),
    el(
      "p",
      { class: "muted small origin" },
      el("code", {}, found.experiment),
      el("a", { href: groupPlace(found.experiment) }, "its runs"),
    ),
    found.verdict && el("p", { class: "verdict" }, found.verdict),
    facts([
      ["Aim", found.aim ?? null],
      ["From", found.source ?? null],
      ["Threshold", found.threshold ?? null],
      ["Trainings", found.trainings === undefined ? null : whole(count(found.trainings))],
      ["Time", found.duration_s === undefined ? null : duration(found.duration_s)],
    ]),
    found.status === "running" && notice("It is still at work; this page follows it."),
    found.status === "crashed" && notice(`Its process has died; --resume ${found.experiment} continues it.`, "bad"),
    found.error && notice(found.error, "bad"),
    isConcluded ? kind.body(found) : trials(found.trials),
    !kind &&
      el("details", {}, el("summary", {}, "The whole document"), el("pre", {}, JSON.stringify(found, null, 2))),
  ];
}
