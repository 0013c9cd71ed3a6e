// The checkpoints of a run.

import { get, runPath } from "./api.js";
import { el, replace } from "./dom.js";
import { capital, number, short, unit, whole } from "./format.js";
import { place } from "./places.js";
import { notice, snippet, table } from "./widgets.js";

export async function show({ id, document: run, container, signal }) {
  const found = await get(runPath(id, "checkpoints"), {}, { signal });
  if (!found.length) {
    replace(container, notice("It has none yet."));
    return;
  }
  const counted = capital(unit(run.summary.clock));
  replace(
    container,
    table(
      "Checkpoints",
      [
        { head: "Name", cell: (entry) => el("code", {}, entry.name) },
        { head: "Epoch", number: true, cell: (entry) => whole(entry.progress.epoch) },
        { head: counted, number: true, cell: (entry) => whole(entry.progress[run.summary.clock]) },
        { head: "Best evaluation so far", number: true, cell: (entry) => number(entry.progress.best_eval) },
        { head: "Size", number: true, cell: (entry) => (entry.bytes === null ? "–" : `${short(entry.bytes)}B`) },
        {
          head: "",
          cell: (entry) =>
            el("a", { href: place(["runs", id, "replay"], { checkpoint: entry.name }) }, "Watch it play"),
        },
      ],
      found,
    ),
    snippet(`gsolve play ${id}`, "command to watch it in a window"),
    snippet(`gsolve inspect ${id}`, "command to look into it"),
  );
}
