// The address of every place in the page. Whatever is in the address survives a reload and can be sent to someone.

/** `#/runs/ID/log?x=1` → {parts: ["runs", "ID", "log"], query: {x: "1"}} */
export function parsePlace(hash) {
  const [path, query = ""] = hash.replace(/^#/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decode), query: Object.fromEntries(new URLSearchParams(query)) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function place(parts, query = {}) {
  const known = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = known.length ? `?${new URLSearchParams(known)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${search}`;
}

export const runPlace = (runId, tab) => place(tab ? ["runs", runId, tab] : ["runs", runId]);
export const groupPlace = (group) => place([], { group });
export const comparePlace = (runIds, groupBy) => place(["compare"], { runs: runIds.join(","), by: groupBy });
export const experimentPlace = (experiment) => place(["experiments", experiment]);
