// Small parts that several pages share.

import { announce, el, svg } from "./dom.js";
import { number, percent } from "./format.js";

const TONES = {
  running: "live",
  completed: "good",
  solved: "good",
  done: "good",
  missed: "warn",
  interrupted: "calm",
  stopped: "calm",
  imported: "calm",
  failed: "bad",
  crashed: "bad",
  diverged: "bad",
  "not solved": "warn",
  "no verdict": "warn",
};

export function badge(text, tone = TONES[text] ?? "calm") {
  return el("span", { class: `badge ${tone}` }, text ?? "unknown");
}

export function sparkline(values, { width = 120, height = 28, threshold = null, label = "reward curve" } = {}) {
  const known = (values ?? []).filter((value) => Number.isFinite(value));
  if (known.length < 2) return el("span", { class: "muted" }, known.length ? number(known[0]) : "–");
  const low = Math.min(...known);
  const high = Math.max(...known, threshold !== null && threshold <= Math.max(...known) * 1.2 ? threshold : -Infinity);
  const span = high - low || 1;
  const x = (index) => 1 + (index / (known.length - 1)) * (width - 2);
  const y = (value) => height - 2 - ((value - low) / span) * (height - 4);
  const points = known.map((value, index) => `${x(index).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const goal = threshold !== null && threshold <= high && threshold >= low;
  const title = `${label}: from ${number(known[0])} to ${number(known.at(-1))}`;
  return svg(
    "svg",
    { class: "sparkline", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": title },
    goal && svg("line", { class: "goal", x1: 0, x2: width, y1: y(threshold), y2: y(threshold) }),
    svg("polyline", { points }),
  );
}

/** A bar filled to `share`, with a name for those who cannot see it. */
export function meter(share, label, tone = "") {
  const bounded = Math.max(0, Math.min(1, share || 0));
  return el(
    "span",
    { class: `meter ${tone}`, role: "img", "aria-label": `${label}: ${percent(bounded)}` },
    el("span", { style: { width: `${100 * bounded}%` } }),
  );
}

export function copyButton(text, what) {
  const button = el("button", { type: "button", class: "copy", "aria-label": `Copy ${what}` }, "Copy");
  button.addEventListener("click", async () => {
    const isCopied = await copy(text);
    button.textContent = isCopied ? "Copied" : "Select it by hand";
    announce(isCopied ? `${what} copied` : `${what} could not be copied`);
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1600);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // There is no clipboard on a page served without TLS to another machine; the old way works there.
    const area = el("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
  }
}

/** Text to take away: a YAML snippet or a command. */
export function snippet(text, what) {
  return el(
    "figure",
    { class: "snippet" },
    el("figcaption", {}, what, copyButton(text, what)),
    el("pre", { tabindex: "0", "aria-label": what }, text),
  );
}

/** columns: [{head, cell: row => node or text, number: true}] */
export function table(caption, columns, rows) {
  const head = columns.map(({ head, number }) => el("th", { scope: "col", class: number && "number" }, head));
  const body = rows.map((row) => {
    const cells = columns.map(({ head, cell, number }) =>
      el("td", { class: number && "number", data: { head: typeof head === "string" ? head : "" } }, cell(row)),
    );
    return el("tr", {}, cells);
  });
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el(
      "table",
      { class: "stacked" },
      el("caption", { class: "visually-hidden" }, caption),
      el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, body),
    ),
  );
}

export function facts(pairs) {
  return el(
    "dl",
    { class: "facts" },
    pairs
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
  );
}

export function notice(text, tone = "calm", ...more) {
  return el("p", { class: `notice ${tone}` }, text, more);
}

export function loading(what) {
  return el("p", { class: "loading", role: "status" }, `Reading ${what}…`);
}
