// The log, followed as it is written.

import { get, pause, runPath } from "./api.js";
import { el, replace } from "./dom.js";
import { notice } from "./widgets.js";

const FIRST = 500;
const MOST = 5000; // lines kept on the page
const EVERY = 2000;

export async function show({ id, document: run, container, signal }) {
  const lines = [];
  let next = null;
  const follow = el("input", { type: "checkbox" });
  follow.checked = true;
  const search = el("input", { type: "search", placeholder: "Search the log  ( / )", "aria-label": "Search the log" });
  const count = el("span", { class: "muted small", "aria-live": "polite" });
  const box = el("ol", { class: "log", tabindex: "0", "aria-label": "Log" });
  const failure = el("div");
  replace(
    container,
    el("div", { class: "tools" }, search, el("label", { class: "check" }, follow, "Follow"), count),
    failure,
    box,
  );

  const isWanted = (text) => text.toLowerCase().includes(search.value.trim().toLowerCase());

  function draw() {
    const wanted = lines.filter(isWanted);
    count.textContent = search.value.trim() ? `${wanted.length} of ${lines.length} lines` : `${lines.length} lines`;
    replace(box, wanted.map(line));
    if (!lines.length) replace(box, el("li", { class: "muted" }, "The log is empty."));
    if (follow.checked) box.scrollTop = box.scrollHeight;
  }

  async function read() {
    try {
      const answer = await get(runPath(id, "logs"), { lines: FIRST, after: next }, { signal });
      const isNew = answer.lines.length > 0;
      lines.push(...answer.lines);
      lines.splice(0, Math.max(0, lines.length - MOST));
      if (isNew || next === null) draw();
      next = answer.next;
      replace(failure);
    } catch (error) {
      if (!signal.aborted) replace(failure, notice(error.message, "bad"));
    }
  }

  async function followLog() {
    while (!signal.aborted) {
      await pause(EVERY, signal).catch(() => {});
      if (!signal.aborted && run.summary.status === "running") await read();
    }
  }

  search.addEventListener("input", draw);
  follow.addEventListener("change", draw);
  box.addEventListener(
    "wheel",
    (event) => {
      if (event.deltaY < 0) follow.checked = false; // who scrolls up wants to read
    },
    { passive: true },
  );
  await read();
  followLog();
  return { keys: { f: ["follow the log", () => follow.click()] } };
}

function line(text) {
  const [, level = ""] = /\b(WARNING|ERROR|CRITICAL|Traceback)\b/.exec(text) ?? [];
  return el("li", { class: { WARNING: "warn", ERROR: "bad", CRITICAL: "bad", Traceback: "bad" }[level] }, text);
}
