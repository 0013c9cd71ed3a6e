// One run: its headline, and tabs that are loaded when they are opened.

import { get, pause, post, runPath } from "./api.js";
import { catalogue } from "./catalogue.js";
import { confirm } from "./confirm.js";
import { announce, el, patch, replace } from "./dom.js";
import { listen, throttled } from "./events.js";
import { setPageKeys } from "./keyboard.js";
import { runPlace } from "./places.js";
import { headline } from "./headline.js";
import { loading, notice } from "./widgets.js";

const LOOK_AGAIN = 5000; // ms, for what no event tells: columns and checkpoints that are new

const DIAGNOSE_AGAIN = 5000;
const GONE = "This run is no longer there: it was deleted while this page was open. What you see was read before.";

const TABS = {
  curves: ["Curves", () => import("./curves.js")],
  diagnosis: ["Diagnosis", () => import("./diagnosis.js")],
  replay: ["Replay", () => import("./replay.js")],
  log: ["Log", () => import("./log.js")],
  config: ["Config", () => import("./config_view.js")],
  checkpoints: ["Checkpoints", () => import("./checkpoints.js")],
  report: ["Report", () => import("./report_view.js")],
};

export async function show({ root, parts, query, signal, health }) {
  const id = parts[1];
  if (!id) {
    location.hash = "#/";
    return null;
  }
  replace(root, loading(id));
  const run = await get(runPath(id), {}, { signal });
  const runId = run.summary.run_id;
  document.title = `${run.summary.env_id ?? runId} ${run.summary.algo_id ?? ""} · gymnasium-solver`;

  const context = { id: runId, document: run, health, catalogue: catalogue(), diagnosis: null, query };
  async function diagnose() {
    context.diagnosis = get(runPath(runId, "diagnosis"), {}, { signal });
    const found = await context.diagnosis.catch(() => null); // a tab that shows it says what is wrong
    if (found === null || signal.aborted) return;
    drawHead(found);
    tab?.diagnosed?.(found);
  }
  const head = el("div");
  const trouble = el("div", { "aria-live": "polite" });
  const container = el("div", { class: "tab" });
  const links = Object.entries(TABS).map(([name, [title]]) =>
    el("a", { href: runPlace(runId, name), data: { tab: name } }, title),
  );
  replace(root, head, trouble, el("nav", { class: "tabs", "aria-label": "Parts of the run" }, links), container);

  let diagnosed = null;
  function drawHead(found = diagnosed) {
    diagnosed = found;
    const fresh = headline(run.summary, found?.summary, { canStop: !health.read_only, stop });
    if (head.firstChild) patch(head.firstChild, fresh);
    else head.append(fresh);
  }

  async function stop() {
    const consequence = `It saves a checkpoint and ends; gsolve train --resume ${runId} continues it.`;
    if (!(await confirm(`Stop ${runId}?`, consequence, "Stop training"))) return;
    replace(trouble, notice("Stop requested; it saves and ends after its update."));
    try {
      await post(`${runPath(runId)}/stop`);
      replace(trouble);
      await look();
    } catch (error) {
      replace(trouble, notice(error.message, "bad"));
    }
  }

  let tab = null;
  let tabName = null;
  let tabController = null;
  async function open(name = "curves") {
    tabController?.abort();
    tabName = name;
    tabController = new AbortController();
    const here = tabController.signal;
    signal.addEventListener("abort", () => tabController.abort(), { signal: here });
    for (const link of links) {
      link.toggleAttribute("aria-current", link.dataset.tab === name);
      if (link.dataset.tab === name) link.scrollIntoView({ block: "nearest", inline: "center" });
    }
    replace(container, loading(name));
    tab = null;
    setPageKeys(keys({}));
    try {
      if (!TABS[name]) throw new Error(`a run has no ${name}; it has ${Object.keys(TABS).join(", ")}`);
      const module = await TABS[name][1]();
      if (here.aborted) return;
      const opened = await module.show({ ...context, container, signal: here });
      if (here.aborted) return;
      tab = opened ?? null;
      setPageKeys(keys(tab?.keys ?? {}));
    } catch (error) {
      if (!here.aborted) replace(container, notice(error.message, "bad"));
    }
  }

  const keys = (more) => ({
    ...more,
    ...Object.fromEntries(
      Object.entries(TABS).map(([name, [title]], index) => [
        String(index + 1),
        [title.toLowerCase(), () => (location.hash = runPlace(runId, name))],
      ]),
    ),
    Escape: ["back to the list", () => (location.hash = "#/")],
  });

  async function look() {
    try {
      const { summary, ...rest } = await get(runPath(runId), {}, { signal });
      const hasNewCurves = rest.metrics.length > run.metrics.length;
      Object.assign(run, rest);
      update(summary);
      if (hasNewCurves && tabName === "curves") open("curves");
    } catch (error) {
      if (error.status === 404) replace(trouble, notice(GONE, "bad"));
    }
  }

  function update(summary) {
    const before = run.summary.status;
    Object.assign(run.summary, summary);
    drawHead();
    if (summary.status !== before) {
      announce(`The run is ${summary.status}`);
      diagnose();
    }
  }

  setPageKeys(keys({})); // whoever sees the headline can go on
  drawHead();
  await painted(); // Plotly keeps the browser busy for a second; the headline is to be seen before
  diagnose();
  const diagnoseSoon = throttled(diagnose, DIAGNOSE_AGAIN);
  listen(
    { run_id: runId },
    (kind, data) => {
      if (kind === "run" && data.summary.run_id === runId) update(data.summary);
      if (kind === "rows" && data.run_id === runId) {
        if (!run.metrics.length) look();
        tab?.rows?.();
        if (run.summary.status === "running") diagnoseSoon();
      }
      if (kind === "deleted" || kind === "again") {
        look();
        tab?.rows?.();
      }
    },
    signal,
  );
  lookAgain(look, signal);
  await open(parts[2]);
  return (parts) => open(parts[2]);
}

function painted() {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, 300); // a tab in the background paints nothing
  });
}

async function lookAgain(look, signal) {
  while (!signal.aborted) {
    await pause(LOOK_AGAIN, signal).catch(() => {});
    if (!signal.aborted && !document.hidden) await look();
  }
}
