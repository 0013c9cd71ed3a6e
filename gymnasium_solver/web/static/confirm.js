// A question before something that cannot be taken back.

import { el } from "./dom.js";

/** True if the user agreed. */
export function confirm(title, text, agree) {
  return new Promise((resolve) => {
    const dialog = el(
      "dialog",
      { "aria-label": title },
      el(
        "form",
        { method: "dialog", class: "stack" },
        el("h2", {}, title),
        el("p", {}, text),
        el(
          "div",
          { class: "row" },
          el("button", { value: "yes", class: "danger" }, agree),
          el("button", { value: "no", autofocus: true }, "Cancel"),
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
