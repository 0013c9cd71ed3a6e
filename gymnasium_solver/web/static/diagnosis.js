// The diagnosis in its five sections.

import { el, replace } from "./dom.js";
import { capital, number, percent, setting, unit, whole } from "./format.js";
import { shortName } from "./curve_groups.js";
import { runPlace } from "./places.js";
import { badge, facts, loading, notice, snippet, sparkline, table } from "./widgets.js";

const TONES = { critical: "bad", high: "bad", medium: "warn", low: "calm", info: "calm" };

export async function show({ id, diagnosis, container, signal }) {
  replace(container, loading("the diagnosis"));
  const draw = (found) => {
    const fresh = sections(found, id);
    if (!signal.aborted && !container.firstChild?.isEqualNode(fresh)) replace(container, fresh);
  };
  diagnosis.then(draw, (error) => signal.aborted || replace(container, notice(error.message, "bad")));
  return { diagnosed: draw };
}

function sections(found, id) {
  return el(
    "div",
    { class: "diagnosis" },
    section("Run summary", summary(found.summary)),
    section("Key metrics", metrics(found.metrics, id)),
    section(
      "Diagnosed bottlenecks",
      found.bottlenecks.length
        ? found.bottlenecks.map(bottleneck)
        : notice(found.summary.solved ? "None found." : "None that the run shows evidence of.", "good"),
    ),
    section(
      "Recommendations",
      found.recommendations.length ? found.recommendations.map(recommendation) : notice("Nothing to change.", "good"),
    ),
    section("Next steps", nextSteps(found)),
    found.missing?.length
      ? section(
          "Missing",
          el(
            "ul",
            {},
            found.missing.map((line) => el("li", {}, line)),
          ),
        )
      : null,
  );
}

function section(title, ...content) {
  return el("section", { "aria-label": title }, el("h2", {}, title), content);
}

function summary(summary) {
  const gap = summary.gap
    ? `${number(summary.gap)} short${summary.gap_percent === null ? "" : ` (${Math.round(summary.gap_percent)} %)`}`
    : null;
  return [
    el("p", { class: "verdict" }, capital(summary.verdict)),
    facts([
      ["Environment", summary.env_id ?? "unknown"],
      ["Algorithm", summary.algo_id ?? "unknown"],
      ["Status", summary.status],
      [
        capital(unit(summary.clock)),
        `${whole(summary.progress)}${summary.budget ? ` of ${whole(summary.budget)}` : ""}`,
      ],
      ["Best reward", number(summary.best_reward)],
      ["Last reward", number(summary.last_reward)],
      ["Threshold", summary.threshold === null ? null : number(summary.threshold)],
      ["Gap", gap],
      ["Efficiency", summary.efficiency],
      ["Error", summary.error],
    ]),
  ];
}

function bottleneck(found, place) {
  return el(
    "article",
    { class: `card ${found.severity}` },
    el(
      "header",
      {},
      el("h3", {}, place === 0 ? `Primary: ${found.title}` : capital(found.title)),
      badge(found.severity, TONES[found.severity]),
      el(
        "span",
        { class: "muted small" },
        `${found.category} · ${percent(found.confidence)} sure · `,
        el("code", {}, found.cause),
      ),
    ),
    el("p", {}, capital(found.root_cause)),
    evidence("For it", found.evidence),
    evidence("Against it", found.against),
    found.tied_with && el("p", { class: "muted" }, `Cannot be told apart from ${found.tied_with.join(", ")}.`),
    found.where && el("p", { class: "muted" }, "Where to look: ", el("code", {}, found.where)),
  );
}

function evidence(title, entries) {
  if (!entries?.length) return null;
  return table(
    title,
    [
      { head: title, cell: (entry) => entry.text },
      { head: "Metric", cell: (entry) => el("code", {}, entry.metric) },
      { head: "Value", number: true, cell: (entry) => value(entry.value) },
      { head: "Expected", cell: (entry) => entry.expected },
      entries.some(({ step }) => step !== null) && {
        head: "From step",
        number: true,
        cell: (entry) => (entry.step === null ? "" : whole(entry.step)),
      },
    ].filter(Boolean),
    entries,
  );
}

function value(found) {
  return typeof found === "number" || found === null ? number(found) : setting(found);
}

function recommendation(entry, index) {
  const changes = Object.entries(entry.set ?? {}).map(([name, to]) => `${name} → ${schedule(to)}`);
  return el(
    "article",
    { class: `card ${entry.priority}` },
    el(
      "header",
      {},
      el("h3", {}, `${index + 1}. ${changes.length ? `Set ${changes.join(", ")}` : `Mend what causes ${entry.cause}`}`),
      badge(entry.priority, TONES[entry.priority]),
    ),
    el("p", {}, capital(entry.rationale)),
    facts([
      ["Expected", impact(entry.expected_impact)],
      ["Risk", entry.risk],
    ]),
    entry.yaml && snippet(entry.yaml.trimEnd(), "YAML"),
    entry.cli && snippet(entry.cli, "command"),
    entry.translated?.length ? snippet(entry.translated.join("\n"), "change in the source library") : null,
  );
}

function schedule(to) {
  return to && typeof to === "object" && "start" in to
    ? `${number(to.start)} falling to ${number(to.end ?? 0)}`
    : setting(to);
}

function impact(expected) {
  if (!expected || (expected.mid === null && expected.low === null)) return expected?.source;
  const end = (bound) => (bound === null ? "not reached" : whole(bound));
  const middle = expected.mid === null ? "" : `about ${whole(expected.mid)} ${unit(expected.metric.replace("_to_threshold", ""))}, `;
  return [
    `threshold after ${middle}80 % between ${end(expected.low)} and ${end(expected.high)}`,
    el("span", { class: "muted" }, ` (${expected.source})`),
  ];
}

function nextSteps({ next_steps: steps, outlook }) {
  return [
    outlook &&
      el(
        "article",
        { class: "card info" },
        el("h3", {}, capital(outlook.action)),
        outlook.probability_of_threshold !== null &&
          el("p", {}, `Odds of reaching the threshold within its budget: ${percent(outlook.probability_of_threshold)}.`),
        el(
          "ul",
          {},
          outlook.reasons.map((reason) => el("li", {}, reason)),
        ),
      ),
    el(
      "ul",
      { class: "plain" },
      (steps.length ? steps : ["Nothing to do."]).map((step) => el("li", {}, capital(step))),
    ),
  ];
}

function metrics(found, id) {
  const rows = Object.entries(found);
  if (!rows.length) return notice("None were logged.");
  const [telling, rest] = [rows.filter(tellsSomething), rows.filter((row) => !tellsSomething(row))];
  return [
    metricsTable("Key metrics", telling, id),
    rest.length
      ? el(
          "details",
          {},
          el("summary", {}, `${rest.length} more, with nothing unusual`),
          metricsTable("Other metrics", rest, id),
        )
      : null,
  ];
}

function tellsSomething([name, curve]) {
  return name.endsWith("/ep_rew_mean") || curve.in_range === false || anomalies(curve) !== "";
}

function metricsTable(caption, rows, id) {
  return table(
    caption,
    [
      { head: "Metric", cell: ([name]) => el("a", { href: runPlace(id, "curves"), title: name }, shortName(name)) },
      { head: "Curve", cell: ([name, curve]) => sparkline(curve.points, { width: 100, height: 22, label: name }) },
      { head: "Last", number: true, cell: ([, curve]) => number(curve.last) },
      { head: "Shape", cell: ([, curve]) => curve.shape },
      { head: "Healthy", cell: ([, curve]) => health(curve) },
      { head: "Anomalies", cell: ([, curve]) => anomalies(curve) },
    ],
    rows,
  );
}

function health({ range, in_range: isInside, range_source: source }) {
  if (!range) return "";
  const [low, high] = range;
  const text =
    low === null ? `≤ ${number(high)}` : high === null ? `≥ ${number(low)}` : `${number(low)} to ${number(high)}`;
  return el(
    "span",
    { class: isInside === false ? "warn" : "good", title: source },
    `${isInside === false ? "outside" : "within"} ${text}`,
  );
}

function anomalies(curve) {
  const found = [];
  if (curve.change_point) found.push(`changes at ${whole(curve.change_point.step)}`);
  if (curve.spikes) found.push(`${curve.spikes.count} spikes from ${whole(curve.spikes.first_step)}`);
  if (curve.non_finite_from !== undefined) found.push(`not finite from ${whole(curve.non_finite_from)}`);
  return found.join("; ");
}
