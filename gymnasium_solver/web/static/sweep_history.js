// A sweep: its winner, what mattered, the test on fresh seeds, and every trial.

import { el } from "./dom.js";
import { duration, number, percent, setting, whole } from "./format.js";
import { runPlace } from "./places.js";
import { UNITS, seedTest } from "./seed_test.js";
import { badge, facts, meter, snippet, table } from "./widgets.js";

const TONES = { complete: "good", failed: "bad", invalid: "bad", running: "live" };

export function sweepHistory(found) {
  const { best, base, objective, counts, importance, confirmation } = found;
  return [
    best && winner(best, base, found),
    confirmation &&
      el(
        "section",
        { "aria-label": "Test" },
        el("h2", {}, "The winner on fresh seeds"),
        seedTest(
          {
            ...confirmation,
            candidate: `trial ${confirmation.trial}`,
            probability_of_improvement: confirmation.probability,
            interval: confirmation.probability_interval,
            baseline: confirmation.base,
            candidate_values: confirmation.best,
          },
          objective,
        ),
      ),
    Object.keys(importance).length > 0 &&
      el(
        "section",
        { "aria-label": "Importance" },
        el("h2", {}, "What mattered"),
        el("p", { class: "muted small" }, "How well each field separates the better half of the trials from the rest."),
        facts(
          Object.entries(importance).map(([field, share]) => [
            field,
            [percent(share), meter(share, `importance of ${field}`)],
          ]),
        ),
      ),
    el(
      "section",
      { "aria-label": "Trials" },
      el("h2", {}, "Trials"),
      el(
        "p",
        {},
        Object.entries(counts).map(([outcome, count]) => el("span", { class: "chip" }, `${count} ${outcome}`)),
      ),
      el("p", { class: "muted small" }, `${UNITS[objective] ?? objective}, the mean over ${seedsOf(found)}`),
      trials(found),
    ),
  ];
}

function seedsOf({ asked }) {
  return asked.seeds === 1 ? "one seed" : `${asked.seeds} seeds`;
}

function winner(best, base, { objective, asked, confirmation }) {
  const isChange = Object.keys(best.set).length > 0;
  const isKept = isChange && confirmation?.verdict !== "worse";
  const doubt = isChange && confirmation?.verdict !== "better" ? ", not shown to be better" : "";
  const value = (row) => row && `${valueOf(row, objective)} (${row.solved} of ${asked.seeds} seeds solved)`;
  return el(
    "section",
    { "aria-label": "Best trial" },
    el("h2", {}, isChange ? `The best: trial ${best.number}${doubt}` : "The unchanged configuration was the best"),
    facts([
      [UNITS[objective] ?? objective, value(best)],
      ["Unchanged", isChange ? value(base) : null],
      ...Object.entries(best.set).map(([field, setTo]) => [field, brief(setTo)]),
    ]),
    isKept && best.yaml && snippet(best.yaml.trimEnd(), "YAML"),
    isKept && best.command && snippet(best.command, "command"),
  );
}

/** One that no seed solved is ranked by how far it missed, which is no number of steps. */
function valueOf({ value, solved, outcome }, objective) {
  return outcome === "complete" && !solved && objective !== "return" ? "missed" : number(value);
}

function trials({ trials: rows, best, asked, objective }) {
  return table(
    "Trials",
    [
      { head: "Trial", number: true, cell: (trial) => trial.number },
      {
        head: "Outcome",
        cell: (trial) =>
          el(
            "div",
            {},
            badge(trial.outcome, TONES[trial.outcome] ?? "calm"),
            trial.number === best?.number && [" ", badge("best", "good")],
            trial.error && el("div", { class: "muted small" }, trial.error),
          ),
      },
      { head: "Value", number: true, cell: (trial) => valueOf(trial, objective) },
      { head: "Solved", number: true, cell: (trial) => `${whole(trial.solved)} of ${asked.seeds}` },
      { head: "Changes", cell: changes },
      { head: "Time", number: true, cell: (trial) => duration(trial.seconds) },
      {
        head: "Runs",
        cell: (trial) =>
          el(
            "span",
            {},
            trial.runs.map((run, index) => [" ", el("a", { href: runPlace(run), title: run }, index + 1)]),
          ),
      },
    ],
    rows,
  );
}

/** A plain schedule as its ends. */
function brief(value) {
  const { start, end, schedule, warmup, from, to } = value ?? {};
  const isPlain = start !== undefined && schedule === "linear" && !warmup && !from && to === 1;
  return isPlain ? `${start} → ${end}` : setting(value);
}

function changes({ set, outcome }) {
  const changed = Object.entries(set).map(([field, value]) => `${field} ${brief(value)}`);
  if (changed.length) return changed.join(", ");
  return outcome === "waiting" ? "" : "the unchanged configuration";
}
