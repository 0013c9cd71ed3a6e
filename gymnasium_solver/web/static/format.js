// Numbers, times and names as people read them.

const DASH = "–";

export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return DASH;
  if (!Number.isFinite(value)) return "∞";
  const size = Math.abs(value);
  if (size >= 1000) return value.toLocaleString("en-US", { maximumFractionDigits: size < 10000 ? 1 : 0 });
  if (size !== 0 && size < 1e-3) return value.toExponential(2).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(digits)));
}

/** What a run's clock counts, in a word. */
export function unit(clock) {
  return clock === "updates" ? "updates" : "steps";
}

export function whole(value) {
  return value === null || value === undefined ? DASH : Math.round(value).toLocaleString("en-US");
}

/** 1234567 → 1.23M, for places where there is little room. */
export function short(value) {
  if (value === null || value === undefined) return DASH;
  for (const [size, suffix] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ]) {
    if (Math.abs(value) >= size) return Number((value / size).toPrecision(3)) + suffix;
  }
  return number(value, 3);
}

export function percent(share) {
  return share === null || share === undefined ? DASH : `${Math.round(share * 100)} %`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return DASH;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${pad(Math.round(seconds) % 60)}s`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ${pad(Math.floor(seconds / 60) % 60)}m`;
  return `${Math.floor(seconds / 86400)}d ${Math.floor(seconds / 3600) % 24}h`;
}

function pad(value) {
  return String(value).padStart(2, "0");
}

export function ago(timestamp, now = Date.now()) {
  if (!timestamp) return DASH;
  const seconds = (now - Date.parse(timestamp)) / 1000;
  if (Number.isNaN(seconds)) return DASH;
  if (seconds < 45) return "now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h ago`;
  if (seconds < 30 * 86400) return `${Math.round(seconds / 86400)} d ago`;
  return timestamp.slice(0, 10);
}

/** A config value in one line. */
export function setting(value) {
  if (value === null || value === undefined) return "null";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

/** `20261116-070337-seeds-febf` → `seeds-febf` */
export function shortGroup(group) {
  return String(group).replace(/^\d{8}-\d{6}-/, "");
}

export function capital(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : "";
}
