// report.md as it was written, with its plots.

import { address, getText, runPath } from "./api.js";
import { el, replace } from "./dom.js";
import { markdown } from "./markdown.js";
import { notice, snippet } from "./widgets.js";

export async function show({ id, container, signal }) {
  const file = (path) => `${runPath(id, "files")}/${path.split("/").map(encodeURIComponent).join("/")}`;
  try {
    const text = await getText(file("report.md"), { signal });
    const picture = (path) => (/^plots\/[\w.-]+\.svg$/.test(path) ? address(file(path)) : null);
    replace(
      container,
      el("p", {}, el("a", { href: address(file("report.md")) }, "report.md")),
      el("article", { class: "report" }, markdown(text, picture)),
    );
  } catch (error) {
    if (signal.aborted) return;
    if (error.status !== 404) throw error;
    replace(
      container,
      notice("No report is written yet; a run writes it when it ends."),
      snippet(`gsolve report ${id}`, "command to write it now"),
    );
  }
}
