// A test of a change: the configuration with it and without, over the same seeds.

import { differences, results } from "./compare_results.js";
import { el } from "./dom.js";
import { setting } from "./format.js";
import { facts, notice } from "./widgets.js";

export function verifyHistory({ comparison, set }) {
  const sides = comparison.sides.map((side, index) => ({ ...side, hue: index }));
  const compared = { ...comparison, sides };
  return [
    el(
      "section",
      { "aria-label": "The change" },
      el("h2", {}, "The change"),
      facts(Object.entries(set).map(([field, value]) => [field, setting(value)])),
      comparison.caveats.map((text) => notice(text, "warn")),
    ),
    results(compared),
    differences(compared),
  ];
}
