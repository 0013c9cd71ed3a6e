// Keys that work anywhere, those of the page that is shown, and a dialog that names them all.

import { el, isTyping } from "./dom.js";
import { toggleTheme } from "./theme.js";

let pageKeys = {};

const EVERYWHERE = {
  "?": ["this help", showHelp],
  t: ["light or dark", toggleTheme],
  "/": ["search", () => document.querySelector("main [type=search]")?.focus()],
};

/** keys: {j: ["next run", handler]}; the page that is shown next replaces them. */
export function setPageKeys(keys) {
  pageKeys = keys;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && isTyping()) {
    document.activeElement.blur();
    return;
  }
  if (isTyping()) return;
  const onControl = document.activeElement?.matches("a, button, summary");
  if (onControl && (event.key === "Enter" || event.key === " ")) return;
  const entry = pageKeys[event.key] ?? EVERYWHERE[event.key];
  if (!entry) return;
  event.preventDefault();
  entry[1](event);
});

export function showHelp() {
  const keys = { ...pageKeys, ...EVERYWHERE };
  const name = (key) => ({ " ": "space", ArrowLeft: "←", ArrowRight: "→", Escape: "esc", Enter: "enter" })[key] ?? key;
  const rows = Object.entries(keys).map(([key, [meaning]]) =>
    el("div", {}, el("dt", {}, el("kbd", {}, name(key))), el("dd", {}, meaning)),
  );
  const dialog = el(
    "dialog",
    { "aria-label": "Keyboard shortcuts", on: { close: () => dialog.remove() } },
    el(
      "form",
      { method: "dialog", class: "stack" },
      el("h2", {}, "Keys on this page"),
      el("dl", { class: "keys" }, rows),
      el("button", { class: "primary" }, "Close"),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}
