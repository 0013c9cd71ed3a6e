// What was found against what it started from, over fresh seeds.

import { el } from "./dom.js";
import { forest } from "./forest.js";
import { number, percent } from "./format.js";
import { badge, facts } from "./widgets.js";

export const UNITS = { steps: "Env steps to the threshold", seconds: "Seconds to the threshold", return: "Return" };
const TONES = { better: "good", worse: "bad" };

/** test: {candidate, verdict, p_value, alpha, seeds, probability_of_improvement, interval, baseline, candidate_values} */
export function seedTest(test, objective) {
  const side = (label, values, hue) => ({
    label,
    hue,
    runs: values.map((value, index) => ({ seed: index + 1, value })),
    results: { value: { iqm: null, interval: [] } },
  });
  return el(
    "article",
    { class: "card info" },
    el("header", {}, el("h3", {}, test.candidate), badge(test.verdict, TONES[test.verdict] ?? "calm")),
    facts([
      [
        "Probability of improvement",
        `${percent(test.probability_of_improvement)} (${percent(test.interval[0])} to ${percent(test.interval[1])})`,
      ],
      ["p", `${number(test.p_value, 2)}${test.alpha === undefined ? "" : ` at ${number(test.alpha, 3)}`}`],
      ["Seeds per side", test.seeds],
    ]),
    forest(`${UNITS[objective] ?? objective}: A unchanged, B ${test.candidate}`, "value", [
      side("A", test.baseline, 0),
      side("B", test.candidate_values, 1),
    ]),
  );
}
