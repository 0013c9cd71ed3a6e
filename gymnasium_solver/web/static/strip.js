// A curve under a player, with a line at the step that is shown.

import { el, svg } from "./dom.js";
import { number } from "./format.js";

const [WIDTH, HEIGHT] = [600, 46];

export function strip(name, values, onSeek) {
  const known = values.filter((value) => Number.isFinite(value));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const x = (index) => (index / Math.max(1, values.length - 1)) * WIDTH;
  const y = (value) => HEIGHT - 3 - ((value - low) / (high - low || 1)) * (HEIGHT - 6);
  const points = values
    .map((value, index) => (Number.isFinite(value) ? `${x(index).toFixed(1)},${y(value).toFixed(1)}` : ""))
    .filter(Boolean);
  const cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT });
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `${name}: ${number(low)} to ${number(high)}`,
    },
    svg("polyline", { points: points.join(" ") }),
    cursor,
  );
  drawing.addEventListener("click", (event) => {
    const box = drawing.getBoundingClientRect();
    onSeek(Math.round(((event.clientX - box.left) / box.width) * (values.length - 1)));
  });
  const node = el(
    "figure",
    { class: "strip" },
    el("figcaption", {}, name, el("span", { class: "muted" }, `${number(low)} to ${number(high)}`)),
    drawing,
  );
  const mark = (index) => {
    cursor.setAttribute("x1", x(index));
    cursor.setAttribute("x2", x(index));
  };
  return { node, mark };
}
