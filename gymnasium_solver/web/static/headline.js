// The top of a run page: what it is, how it stands, and the numbers that matter.

import { el } from "./dom.js";
import { ago, capital, duration, number, shortGroup, unit, whole } from "./format.js";
import { groupPlace } from "./places.js";
import { badge, copyButton, meter } from "./widgets.js";

/** `judged` is the diagnosis' summary, once it is known. */
export function headline(summary, judged, { canStop, stop }) {
  const title = summary.env_id ? `${summary.env_id} · ${summary.algo_id ?? "?"}` : summary.run_id;
  return el(
    "header",
    { class: "headline" },
    el(
      "div",
      { class: "title" },
      el("h1", {}, title),
      badge(summary.status),
      el("span", { class: "spacer" }),
      summary.status === "running" &&
        canStop &&
        el("button", { type: "button", class: "danger", on: { click: stop } }, "Stop training"),
    ),
    el(
      "p",
      { class: "muted small origin" },
      el("code", {}, summary.run_id),
      copyButton(summary.run_id, "run id"),
      summary.group && el("a", { href: groupPlace(summary.group) }, `all of ${shortGroup(summary.group)}`),
      el("span", {}, `started ${ago(summary.started_at)}`),
    ),
    el("p", { class: "verdict" }, verdict(summary, judged)),
    summary.reason && el("p", { class: `notice ${summary.status === "failed" ? "bad" : ""}` }, capital(summary.reason)),
    tiles(summary),
  );
}

function verdict(summary, judged) {
  if (judged)
    return [capital(judged.verdict), judged.efficiency && el("span", { class: "muted" }, capital(judged.efficiency))];
  if (summary.solved) return "Reached the threshold";
  if (summary.status === "running") return "Training…";
  return summary.threshold === null ? "Done; there was no threshold to reach" : "Did not reach the threshold";
}

function tiles(summary) {
  const { best_reward: best, threshold, progress: steps, budget: planned, duration_s: seconds } = summary;
  const counted = unit(summary.clock);
  const speed = steps && seconds ? steps / seconds : null;
  return el(
    "dl",
    { class: "tiles" },
    tile(
      summary.evaluated === false ? "Best reward in training" : "Best reward",
      number(best),
      threshold === null || threshold === undefined ? "no goal" : `goal ${number(threshold)}`,
      threshold > 0 && meter(best / threshold, "of the goal", summary.solved ? "good" : ""),
    ),
    tile(
      "Last reward",
      number(summary.last_reward),
      summary.test_reward === null ? "" : `final evaluation ${number(summary.test_reward)}`,
    ),
    tile(
      capital(counted),
      whole(steps),
      planned ? `of ${whole(planned)}` : "",
      planned && meter(steps / planned, `of the ${counted}`),
    ),
    tile("Speed", speed === null ? "–" : whole(speed), `${counted}/s`),
    tile("Time", duration(seconds), summary.episodes ? `${whole(summary.episodes)} episodes` : ""),
    tile("Seed", summary.seed ?? "–", summary.epochs ? `${whole(summary.epochs)} epochs` : ""),
  );
}

function tile(name, value, more, bar) {
  return el(
    "div",
    {},
    el("dt", {}, name),
    el("dd", {}, el("span", { class: "value" }, value), bar, more && el("span", { class: "muted small" }, more)),
  );
}
