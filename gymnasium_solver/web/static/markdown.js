// As much Markdown as our reports use: headings, tables, lists, code, pictures, bold. It makes elements, never HTML text.

import { el } from "./dom.js";

/** `picture(path)` gives the address of a picture, or null for one that is not shown. */
export function markdown(text, picture) {
  const lines = text
    .replace(/^<details><summary>(.*)<\/summary>$/gm, "## $1")
    .replace(/^<\/details>$/gm, "")
    .split("\n");
  const blocks = [];
  while (lines.length) {
    const line = lines.shift();
    const heading = /^(#{1,4}) (.*)/.exec(line);
    if (!line.trim()) continue;
    if (line.startsWith("```"))
      blocks.push(el("pre", {}, take(lines, (next) => !next.startsWith("```"), true).join("\n")));
    else if (heading) blocks.push(el(`h${Math.min(4, heading[1].length + 1)}`, {}, inline(heading[2], picture)));
    else if (line.startsWith("|"))
      blocks.push(tableOf([line, ...take(lines, (next) => next.startsWith("|"))], picture));
    else if (/^[-*] /.test(line))
      blocks.push(
        el(
          "ul",
          {},
          [line, ...take(lines, (next) => /^[-*] /.test(next))].map((item) =>
            el("li", {}, inline(item.slice(2), picture)),
          ),
        ),
      );
    else
      blocks.push(
        el(
          "p",
          {},
          inline([line, ...take(lines, (next) => next.trim() && !/^([#|`]|[-*] )/.test(next))].join(" "), picture),
        ),
      );
  }
  return blocks;
}

function take(lines, belongs, dropsEnd = false) {
  const taken = [];
  while (lines.length && belongs(lines[0])) taken.push(lines.shift());
  if (dropsEnd) lines.shift();
  return taken;
}

function tableOf(lines, picture) {
  const cells = (line) =>
    line
      .replace(/^\||\|$/g, "")
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|"));
  const [head, rule, ...rows] = lines.map(cells);
  const isNumber = (rule ?? []).map((mark) => mark.endsWith(":"));
  const row = (kind, values) =>
    el(
      "tr",
      {},
      values.map((value, index) => el(kind, { class: isNumber[index] && "number" }, inline(value, picture))),
    );
  return el(
    "div",
    { class: "scroll" },
    el(
      "table",
      {},
      el("thead", {}, row("th", head)),
      el(
        "tbody",
        {},
        rows.map((values) => row("td", values)),
      ),
    ),
  );
}

function inline(text, picture) {
  return text.split(/(!\[[^\]]*\]\([^)]*\)|`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*)/).map((part) => {
    const [, name, path] = /^!\[([^\]]*)\]\(([^)]*)\)$/.exec(part) ?? [];
    if (path !== undefined) return picture(path) ? el("img", { src: picture(path), alt: name, loading: "lazy" }) : name;
    if (/^`.+`$/.test(part)) return el("code", {}, part.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(part)) return el("strong", {}, part.slice(2, -2));
    if (/^\*[^*]+\*$/.test(part)) return el("em", {}, part.slice(1, -1));
    return part;
  });
}
