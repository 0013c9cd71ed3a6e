// Asking for the token of a server that wants one. All requests that meet a 401 share one question.

import { el } from "./dom.js";

let asking = null;

/** Never returns: with the right token the page is loaded anew, and the server keeps the token in a cookie. */
export function askForToken() {
  asking ??= new Promise(() => document.body.append(openDialog()));
  return asking;
}

function openDialog() {
  const input = el("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const wrong = el("p", { class: "notice bad", role: "alert", hidden: true }, "That is not the token of this server.");
  const form = el(
    "form",
    { class: "stack" },
    el("h2", {}, "This server asks for its token"),
    el("label", { for: "token" }, "The token given to gsolve serve"),
    input,
    wrong,
    el("button", { class: "primary" }, "Continue"),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const token = input.value.trim();
    const response = await fetch("/api/health", { headers: { authorization: `Bearer ${token}` } }).catch(() => null);
    wrong.hidden = response?.ok ?? true;
    if (!response?.ok) return;
    location.assign(`/?token=${encodeURIComponent(token)}${location.hash}`);
  });
  const dialog = el("dialog", { "aria-label": "Token", on: { cancel: (event) => event.preventDefault() } }, form);
  queueMicrotask(() => dialog.showModal());
  return dialog;
}
