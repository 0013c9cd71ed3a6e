// The resolved configuration and the machine it ran on, searchable.

import { el, replace } from "./dom.js";
import { setting } from "./format.js";
import { copyButton, table } from "./widgets.js";

export async function show({ document: run, container }) {
  const search = el("input", {
    type: "search",
    placeholder: "Search settings  ( / )",
    "aria-label": "Search settings",
  });
  const found = el("div", { class: "columns" });
  const draw = () => {
    const wanted = search.value.trim().toLowerCase();
    replace(
      found,
      part("Configuration", run.config, wanted),
      part("Environment of the process", run.environment, wanted),
    );
  };
  search.addEventListener("input", draw);
  replace(
    container,
    el(
      "div",
      { class: "tools" },
      search,
      el("span", { class: "muted small" }, "config.json"),
      copyButton(JSON.stringify(run.config, null, 2), "config.json"),
    ),
    found,
  );
  draw();
}

function part(title, values, wanted) {
  const rows = Object.entries(values ?? {}).filter(([name, value]) =>
    `${name} ${setting(value)}`.toLowerCase().includes(wanted),
  );
  return el(
    "section",
    {},
    el("h2", {}, title),
    rows.length
      ? table(
          title,
          [
            { head: "Name", cell: ([name]) => el("code", {}, name) },
            { head: "Value", cell: ([, value]) => el("code", { class: "value" }, setting(value)) },
          ],
          rows,
        )
      : el("p", { class: "muted" }, "Nothing is called that."),
  );
}
