// Which page is shown for which address, and what frames all of them.

import { get, onConnection } from "./api.js";
import { announce, el, replace } from "./dom.js";
import { setPageKeys, showHelp } from "./keyboard.js";
import { parsePlace } from "./places.js";
import { apply, toggleTheme } from "./theme.js";
import { notice } from "./widgets.js";

/** First part of the address → the module that shows it; a module is loaded when it is first needed. */
const PAGES = {
  runs: () => import("./run.js"),
  compare: () => import("./compare.js"),
  experiments: () => import("./experiments.js"),
  start: () => import("./start.js"),
};

const view = document.getElementById("view");
let shown = null; // {key, controller, move}
let health = null; // a promise, so that it is asked for once

async function route() {
  const { parts, query } = parsePlace(location.hash);
  const key = parts.slice(0, 2).join("/") + (parts[0] === "compare" ? location.hash : "");
  markPlace(parts[0] ?? "runs");
  if (shown?.key === key && shown.move) {
    shown.move(parts, query);
    return;
  }
  shown?.controller.abort();
  const controller = new AbortController();
  const isFirst = shown === null;
  shown = { key, controller, move: null };
  setPageKeys({});
  replace(view);
  scrollTo(0, 0);
  try {
    const load = parts.length ? PAGES[parts[0]] : () => import("./runs.js");
    if (!load) throw new Error(`there is no page ${location.hash}`);
    const [module, health] = await Promise.all([load(), healthOnce()]);
    if (controller.signal.aborted) return;
    const move = await module.show({ root: view, parts, query, signal: controller.signal, health });
    if (!controller.signal.aborted) shown.move = move ?? null;
  } catch (error) {
    if (!controller.signal.aborted) explain(error);
  }
  if (!isFirst && !controller.signal.aborted && !view.contains(document.activeElement))
    view.focus({ preventScroll: true });
}

function explain(error) {
  const title = error.status === 404 ? "Not here" : "This did not work";
  document.title = `${title} · gymnasium-solver`;
  replace(view, el("h1", {}, title), notice(error.message, "bad"), el("p", {}, el("a", { href: "#/" }, "All runs")));
}

function healthOnce() {
  health ??= get("/health").then((answer) => {
    document.getElementById("start-link").hidden = answer.read_only;
    return answer;
  });
  return health;
}

function markPlace(name) {
  for (const link of document.querySelectorAll("[data-place]")) {
    if (link.dataset.place === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function watchConnection() {
  const banner = document.getElementById("banner");
  onConnection((retryIn) => {
    const isGone = retryIn !== null;
    if (!isGone && banner.hidden) return;
    banner.hidden = !isGone;
    banner.textContent = isGone
      ? `The server does not answer; trying again in ${Math.ceil(retryIn / 1000)} s. What you see may be old.`
      : "";
    if (!isGone) announce("The server answers again");
  });
}

apply();
watchConnection();
document.getElementById("theme").addEventListener("click", toggleTheme);
document.getElementById("help-button").addEventListener("click", showHelp);
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is a place of the page, not an anchor
  view.focus();
});
addEventListener("hashchange", route);
route();
