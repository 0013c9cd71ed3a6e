// A solve: what was tried, what followed from what, and what solved it.

import { el } from "./dom.js";
import { duration, number, percent, whole } from "./format.js";
import { runPlace } from "./places.js";
import { badge, facts, meter, snippet } from "./widgets.js";

export function solveHistory(found) {
  const { solution, attempts, threshold } = found;
  return [
    solution &&
      el(
        "section",
        { "aria-label": "Solution" },
        el("h2", {}, "The solution"),
        el("p", {}, el("a", { href: runPlace(solution.run) }, solution.run), `, training ${solution.attempt}`),
        snippet(asYaml(solution), "YAML"),
        snippet(solution.cli, "command"),
        snippet(`gsolve play ${solution.run}`, "command to watch it"),
      ),
    el(
      "section",
      { "aria-label": "Attempts" },
      el("h2", {}, "What was tried"),
      el(
        "ol",
        { class: "timeline" },
        attempts.map((attempt) => entry(attempt, threshold, solution)),
      ),
    ),
  ];
}

/** As config/environments/ takes it; every value of JSON is one of YAML. */
function asYaml({ env_id: env, algo_id: algo, set }) {
  const fields = Object.entries(set).filter(([name]) => !["env_id", "algo_id", "seed"].includes(name));
  return [`env_id: ${env}`, `${algo}:`, ...fields.map(([name, value]) => `  ${name}: ${JSON.stringify(value)}`)].join(
    "\n",
  );
}

function entry(attempt, threshold, solution) {
  const { result, evaluation } = attempt;
  const isSolution = solution?.attempt === attempt.number;
  return el(
    "li",
    { class: isSolution ? "solved" : "" },
    el("span", { class: "marker", "aria-hidden": "true" }, attempt.number),
    el(
      "article",
      {},
      el(
        "header",
        {},
        el("h3", {}, attempt.label),
        isSolution
          ? badge("solved")
          : result
            ? badge(result.error ? "failed" : result.status === "completed" ? "missed" : result.status)
            : badge("not finished"),
        attempt.follows !== null &&
          attempt.follows !== undefined &&
          el("span", { class: "muted small" }, `follows from ${attempt.follows}`),
      ),
      el("p", {}, attempt.why),
      attempt.cause && el("p", { class: "muted small" }, "answers ", el("code", {}, attempt.cause)),
      result?.error && el("p", { class: "notice bad" }, result.error),
      result &&
        !result.error &&
        facts([
          [
            "Best reward",
            [
              number(result.best_reward),
              threshold > 0 && meter(result.best_reward / threshold, "of the threshold", isSolution ? "good" : ""),
            ],
          ],
          [
            "Fresh episodes",
            evaluation
              ? `${number(evaluation.mean)}${evaluation.interval ? ` (${evaluation.interval.map((end) => number(end)).join(" to ")})` : ""}`
              : null,
          ],
          ["Steps", whole(result.env_steps)],
          ["Time", duration(result.seconds)],
          ["Run", attempt.run && el("a", { href: runPlace(attempt.run), class: "mono" }, attempt.run)],
        ]),
      attempt.verdict &&
        el(
          "p",
          {},
          `Diagnosis: ${attempt.verdict}. `,
          attempt.causes.map(({ cause, confidence }) =>
            el("span", { class: "chip" }, `${cause} ${percent(confidence)}`),
          ),
        ),
    ),
  );
}
