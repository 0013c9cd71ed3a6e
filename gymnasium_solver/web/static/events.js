// Server-sent events, and work that follows them no more often than is good.

import { address, get, pause } from "./api.js";

const KINDS = ["run", "rows", "deleted"];
const LONGEST_WAIT = 15_000;

/**
 * Calls `onEvent(kind, data)` until the signal aborts; after a lost connection once with the kind "again". A page that
 * is not seen has none: browsers allow six for all tabs together, and the seventh tab would never load.
 */
export async function listen(params, onEvent, signal) {
  for (let wait = 500; !signal.aborted; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    const wasOpen = !document.hidden && (await connection(address("/events", params), onEvent, signal));
    if (wasOpen) wait = 500;
    try {
      await (document.hidden ? seen(signal) : pause(wait, signal));
      await get("/health", {}, { signal }); // waits until the server is back, and says so to the user
      onEvent("again", {});
    } catch {
      // Aborted, which ends the loop, or refused, which the next try finds out.
    }
  }
}

/** Until the page is seen, or the signal aborts. */
function seen(signal) {
  return new Promise((resolve) => {
    const done = new AbortController();
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      done.abort();
      resolve();
    };
    document.addEventListener("visibilitychange", look, { signal: done.signal });
    signal.addEventListener("abort", look, { signal: done.signal });
  });
}

/** Ends when the connection does, or the page is hidden; true if it had been one. */
function connection(url, onEvent, signal) {
  return new Promise((resolve) => {
    const source = new EventSource(url);
    let isOpen = false;
    const ended = new AbortController();
    const end = () => {
      source.close();
      ended.abort();
      resolve(isOpen);
    };
    source.onopen = () => {
      isOpen = true;
    };
    source.onerror = end;
    signal.addEventListener("abort", end, { signal: ended.signal });
    document.addEventListener("visibilitychange", () => document.hidden && end(), { signal: ended.signal });
    for (const kind of KINDS) source.addEventListener(kind, (event) => onEvent(kind, JSON.parse(event.data)));
  });
}

/** `work` at once, and at most once in `milliseconds` however often it is called; never twice at the same time. */
export function throttled(work, milliseconds) {
  let isBusy = false;
  let isWanted = false;
  return async function run() {
    isWanted = true;
    if (isBusy) return;
    isBusy = true;
    while (isWanted) {
      isWanted = false;
      await work();
      await pause(milliseconds);
    }
    isBusy = false;
  };
}
