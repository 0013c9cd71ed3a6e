// The list of runs: searched, sorted and paged by the server, kept up to date as runs are written.

import { get } from "./api.js";
import { announce, el, patch, replace } from "./dom.js";
import { listen, throttled } from "./events.js";
import { whole } from "./format.js";
import { setPageKeys } from "./keyboard.js";
import { comparePlace, experimentPlace, place, runPlace } from "./places.js";
import { COLUMNS, runRow } from "./run_row.js";
import { loading, notice } from "./widgets.js";

const PAGE = 50;
const STATUSES = ["running", "solved", "missed", "done", "interrupted", "failed"];
const FILTERS = ["search", "status", "env", "algo", "group"];
const NEWEST = "-started_at";
const chosen = new Set(); // runs to compare; kept while the user looks at other pages

export async function show({ root, query, signal, health }) {
  document.title = "Runs · gymnasium-solver";
  let asked = from(query);
  let found = null;
  let cursor = -1;

  const search = el("input", { type: "search", placeholder: "Search runs  ( / )", "aria-label": "Search runs" });
  const status = el(
    "select",
    { "aria-label": "Status" },
    el("option", { value: "" }, "Any status"),
    STATUSES.map((name) => el("option", { value: name }, name)),
  );
  const filters = el("div", { class: "chips" });
  const story = el("span"); // of an experiment whose runs these are
  const body = el("tbody");
  const heads = COLUMNS.map((column) => headCell(column, (sort) => change({ sort, offset: 0 })));
  const list = el(
    "table",
    { class: "runs" },
    el("caption", { class: "visually-hidden" }, "Runs"),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "Compare")),
        heads.map(({ cell }) => cell),
      ),
    ),
    body,
  );
  const foot = el("div", { class: "pager" });
  const tray = el("div", { class: "tray", role: "region", "aria-label": "Chosen runs", hidden: true });
  const content = el("div", {}, loading("runs"));
  replace(
    root,
    el("div", { class: "title" }, el("h1", {}, "Runs"), el("p", { class: "muted small" }, health.runs_dir)),
    el("div", { class: "tools" }, search, status, filters, story),
    content,
    foot,
    tray,
  );

  async function refresh() {
    const wanted = asked;
    try {
      const answer = await get("/runs", { ...wanted, limit: PAGE }, { signal });
      if (signal.aborted || wanted !== asked) return; // the user has asked for something else meanwhile
      found = answer;
      draw();
    } catch (error) {
      if (!signal.aborted) replace(content, notice(error.message, "bad"));
    }
  }
  const refreshSoon = throttled(() => signal.aborted || refresh(), 1000);

  function change(more) {
    asked = { ...asked, ...more };
    history.replaceState(
      null,
      "",
      place([], { ...asked, sort: asked.sort === NEWEST ? null : asked.sort, offset: asked.offset || null }),
    );
    cursor = -1;
    drawTools();
    return refresh();
  }

  function drawTools() {
    if (document.activeElement !== search) search.value = asked.search ?? "";
    status.value = asked.status ?? "";
    for (const { mark } of heads) mark(asked.sort);
    const chip = (name) =>
      asked[name] &&
      el(
        "button",
        {
          type: "button",
          class: "chip",
          "aria-label": `Remove filter ${name} ${asked[name]}`,
          on: { click: () => change({ [name]: null, offset: 0 }) },
        },
        `${name} ${asked[name]} ✕`,
      );
    replace(filters, ["group", "env", "algo"].map(chip));
  }

  function draw() {
    if (found === null) return;
    drawTray();
    replace(story, found.is_experiment && el("a", { href: experimentPlace(asked.group) }, "Its history"));
    if (!found.total) {
      replace(content, FILTERS.some((name) => asked[name]) ? notice("No runs match.") : empty(health));
      replace(foot);
      return;
    }
    if (!found.runs.length) {
      change({ offset: 0 }); // runs were deleted, and this page with them
      return;
    }
    drawRows();
    if (list.parentNode !== content) replace(content, list);
    mark(cursor);
    drawFoot();
  }

  function drawRows() {
    const old = new Map([...body.rows].map((row) => [row.dataset.run, row]));
    const rows = found.runs.map((run) => {
      const fresh = runRow(run, chosen.has(run.run_id), (isChosen) => choose(run.run_id, isChosen));
      const known = old.get(run.run_id);
      if (known) patch(known, fresh);
      return known ?? fresh;
    });
    const isSame = rows.length === body.rows.length && rows.every((row, index) => row === body.rows[index]);
    if (!isSame) replace(body, rows);
  }

  function drawFoot() {
    const { total, offset } = found;
    const go = (to) => () => change({ offset: to }).then(() => scrollTo(0, 0));
    const button = (text, to, isOff) => el("button", { type: "button", disabled: isOff, on: { click: go(to) } }, text);
    const [back, on] = asked.sort === NEWEST ? ["← Newer", "Older →"] : ["← Back", "Next →"];
    replace(
      foot,
      el("span", { class: "muted" }, `${whole(offset + 1)}–${whole(offset + found.runs.length)} of ${whole(total)}`),
      total > PAGE && [
        button(back, Math.max(0, offset - PAGE), offset === 0),
        button(on, offset + PAGE, offset + PAGE >= total),
      ],
    );
  }

  function choose(runId, isChosen) {
    if (isChosen) chosen.add(runId);
    else chosen.delete(runId);
    body.querySelector(`[data-run="${CSS.escape(runId)}"]`)?.classList.toggle("chosen", isChosen);
    announce(`${chosen.size} chosen`);
    drawTray();
  }

  function drawTray() {
    tray.hidden = chosen.size === 0;
    replace(
      tray,
      el("span", {}, chosen.size === 1 ? "1 run chosen; choose another to compare" : `${chosen.size} runs chosen`),
      chosen.size > 1 && el("a", { class: "button primary", href: comparePlace([...chosen]) }, "Compare"),
      el("button", { type: "button", on: { click: clear } }, "Clear"),
    );
  }

  function clear() {
    chosen.clear();
    for (const box of body.querySelectorAll("input:checked")) box.checked = false;
    draw();
  }

  function mark(index) {
    const rows = [...body.rows];
    cursor = rows.length ? Math.max(-1, Math.min(index, rows.length - 1)) : -1;
    rows.forEach((row, at) => row.classList.toggle("cursor", at === cursor));
    rows[cursor]?.scrollIntoView({ block: "nearest" });
  }

  const under = () => body.rows[cursor];
  setPageKeys({
    j: ["next run", () => mark(cursor + 1)],
    k: ["previous run", () => mark(Math.max(0, cursor - 1))],
    Enter: ["open the run", () => under() && (location.hash = runPlace(under().dataset.run))],
    x: ["choose the run to compare", () => under()?.querySelector("input").click()],
    c: ["compare chosen runs", () => chosen.size > 1 && (location.hash = comparePlace([...chosen]))],
    Escape: [
      "clear search and choice",
      () => (clear(), change({ ...Object.fromEntries(FILTERS.map((name) => [name, null])), offset: 0 })),
    ],
  });
  let typing = null;
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => change({ search: search.value.trim(), offset: 0 }), 200);
  });
  signal.addEventListener("abort", () => clearTimeout(typing));
  status.addEventListener("change", () => change({ status: status.value, offset: 0 }));
  drawTools();
  await refresh();
  listen({}, refreshSoon, signal);
  return (_, query) => {
    asked = from(query);
    change({});
  };
}

function from({ search, status, env, algo, group, sort, offset }) {
  return { search, status, env, algo, group, sort: sort || NEWEST, offset: Number(offset) || 0 };
}

function headCell({ head, sort, number }, sortBy) {
  if (!sort) return { cell: el("th", { scope: "col" }, head), mark: () => {} };
  const button = el("button", { type: "button", class: "sort" }, head, el("span", { "aria-hidden": "true" }));
  const cell = el("th", { scope: "col", class: number && "number" }, button);
  let now = "";
  button.addEventListener("click", () => sortBy(now === `-${sort}` ? sort : `-${sort}`));
  const mark = (current) => {
    now = current;
    const direction = { [sort]: "ascending", [`-${sort}`]: "descending" }[current];
    cell.setAttribute("aria-sort", direction ?? "none");
    button.lastChild.textContent = { ascending: " ↑", descending: " ↓" }[direction] ?? "";
  };
  return { cell, mark };
}

function empty(health) {
  return el(
    "div",
    { class: "empty" },
    el("p", {}, "There are no runs here yet. Start one:"),
    el("pre", {}, "gsolve train CartPole-v1:ppo"),
    !health.read_only && el("p", {}, el("a", { class: "button primary", href: "#/start" }, "Train from here")),
  );
}
