// What every metric means and where it is healthy; asked for once.

import { get } from "./api.js";

let known = null;

/** A Map from name to entry; a name of a family (`train/hp/*`) is found by its beginning. */
export function catalogue() {
  known ??= get("/metrics-catalogue").then((answer) => {
    const entries = answer.metrics;
    const byName = new Map(entries.map((entry) => [entry.name, entry]));
    const families = entries.filter(({ name }) => name.endsWith("*"));
    return {
      get: (name) => byName.get(name) ?? families.find((family) => name.startsWith(family.name.slice(0, -1))) ?? null,
    };
  });
  known.catch(() => {
    known = null;
  });
  return known;
}
