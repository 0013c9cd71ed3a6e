// What a comparison rests on: results over seeds with their intervals, tests, and settings that differ.

import { el } from "./dom.js";
import { forest } from "./forest.js";
import { capital, number, percent, unit } from "./format.js";
import { badge, notice, table } from "./widgets.js";

const TONES = { better: "good", worse: "bad" };
const measuresOn = (clock) => ({
  final_reward: "Final reward",
  steps_to_threshold: `${capital(unit(clock))} to the threshold`,
  area: "Mean reward over training",
  seconds_to_threshold: "Seconds to the threshold",
});

/** Every measure drawn over the seeds, and the tests against the baseline. */
export function results({ sides, tests, measures }) {
  const titles = measuresOn(measures.clock);
  const parts = Object.entries(titles).filter(([measure]) =>
    sides.some((side) => side.runs.some((run) => run[measure] !== null)),
  );
  return el(
    "section",
    { "aria-label": "Results" },
    el("h2", {}, "Results over seeds"),
    el(
      "p",
      { class: "muted small" },
      "Bar: interquartile mean; line: 95 % interval; dots: seeds. Seeds that did not get there are at the right edge.",
    ),
    el(
      "div",
      { class: "charts" },
      parts.map(([measure, title]) => forest(title, measure, sides)),
    ),
    tests.length
      ? table(
          "Tests against the baseline",
          [
            { head: "Side", cell: (test) => `${test.side} against ${test.against}` },
            {
              head: "Measure",
              cell: (test) => [
                titles[test.measure] ?? test.measure,
                test.decides && el("span", { class: "muted" }, " (decides)"),
              ],
            },
            {
              head: "Verdict",
              cell: (test) => (test.verdict ? badge(test.verdict, TONES[test.verdict] ?? "calm") : ""),
            },
            {
              head: "Probability of improvement",
              number: true,
              cell: (test) => [
                percent(test.probability_of_improvement),
                el("span", { class: "muted" }, ` (${percent(test.interval[0])} to ${percent(test.interval[1])})`),
              ],
            },
            { head: "p", number: true, cell: (test) => number(test.p_adjusted, 2) },
            { head: "Seeds", number: true, cell: (test) => test.seeds.join(" / ") },
          ],
          tests,
        )
      : null,
  );
}

/** Settings that differ between the sides, and what that means. */
export function differences({ sides, differences, derived }) {
  const columns = (show) =>
    sides.map((side) => ({
      head: side.label,
      number: show === number,
      cell: (row) => el("span", { class: show === number ? "" : "mono" }, show(row.values[side.label])),
    }));
  return el(
    "section",
    { "aria-label": "Settings" },
    el("h2", {}, "Settings that differ"),
    differences.length
      ? table(
          "Settings that differ",
          [
            { head: "Field", cell: (row) => el("code", {}, row.field) },
            ...columns(String),
            {
              head: "What that means",
              cell: (row) => Object.entries(row.assessment).map(([side, text]) => el("p", {}, `${side}: ${text}`)),
            },
          ],
          differences,
        )
      : notice("None: only the seeds differ."),
    derived.length
      ? el(
          "details",
          {},
          el("summary", {}, "What follows from the settings"),
          table(
            "What follows from the settings",
            [{ head: "Quantity", cell: (row) => row.quantity }, ...columns(number)],
            derived,
          ),
        )
      : null,
  );
}
