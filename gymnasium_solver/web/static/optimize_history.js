// An optimisation: the diagnosis it began with, the race, the tests on fresh seeds, and the tuned variant.

import { el } from "./dom.js";
import { number, percent } from "./format.js";
import { runPlace } from "./places.js";
import { UNITS, seedTest } from "./seed_test.js";
import { badge, facts, snippet, table } from "./widgets.js";

export function optimizeHistory(found) {
  const { diagnosis, tests } = found;
  return [
    found.yaml &&
      el(
        "section",
        { "aria-label": "Tuned variant" },
        el("h2", {}, "The tuned variant"),
        snippet(found.yaml.trimEnd(), "YAML"),
        snippet(found.cli, "command"),
        found.impact &&
          facts([
            ["Expected", `${number(found.impact.expected.low)} to ${number(found.impact.expected.high)} env steps`],
            ["Measured", number(found.impact.measured)],
          ]),
      ),
    el(
      "section",
      { "aria-label": "Where it began" },
      el("h2", {}, "Where it began"),
      el(
        "p",
        {},
        "Diagnosis of ",
        el("a", { href: runPlace(diagnosis.run), class: "mono" }, diagnosis.run),
        `: ${diagnosis.verdict}. `,
        diagnosis.causes
          .slice(0, 4)
          .map(({ cause, confidence }) => el("span", { class: "chip" }, `${cause} ${percent(confidence)}`)),
      ),
    ),
    race(found),
    tests.length
      ? el(
          "section",
          { "aria-label": "Tests" },
          el("h2", {}, "Tests on fresh seeds"),
          tests.map((test) => seedTest(test, found.objective)),
        )
      : null,
  ];
}

function race({ candidates, baseline_in_race: baseline, objective, winner }) {
  const rows = [{ label: "unchanged", ...baseline }, ...candidates];
  const seeds = [...new Set(rows.flatMap((row) => Object.keys(row.race)))];
  return el(
    "section",
    { "aria-label": "Race" },
    el("h2", {}, "The race"),
    el("p", { class: "muted small" }, `${UNITS[objective] ?? objective}, by seed`),
    table(
      "Race",
      [
        {
          head: "Configuration",
          cell: (row) => [el("strong", {}, row.label), row.why && el("div", { class: "muted small" }, row.why)],
        },
        { head: "Answers", cell: (row) => (row.cause ? el("code", {}, row.cause) : "") },
        ...seeds.map((seed) => ({
          head: `seed ${seed}`,
          number: true,
          cell: (row) => (seed in row.race ? (row.race[seed] === null ? "not reached" : number(row.race[seed])) : ""),
        })),
        {
          head: "",
          cell: (row) =>
            row.label === winner
              ? badge("winner", "good")
              : row.dropped_after
                ? el("span", { class: "muted" }, `dropped after round ${row.dropped_after}`)
                : "",
        },
      ],
      rows,
    ),
  );
}
