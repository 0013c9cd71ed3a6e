// The server, asked politely: documents, the token where one is wanted, and retries while the server is gone.

import { askForToken } from "./token.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15_000;

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const watchers = new Set();

/** Called with the milliseconds until the next try while the server does not answer, with null when it does. */
export function onConnection(watcher) {
  watchers.add(watcher);
}

function tell(retryIn) {
  for (const watcher of watchers) watcher(retryIn);
}

/** `params` that are null or empty are left out. */
export function address(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  return `/api${path}${query.size ? `?${query}` : ""}`;
}

export function runPath(runId, ...rest) {
  return `/runs/${[runId, ...rest].map(encodeURIComponent).join("/")}`;
}

export async function get(path, params, { signal } = {}) {
  return (await request(address(path, params), { signal })).json();
}

export async function getText(path, { signal } = {}) {
  return (await request(address(path), { signal })).text();
}

export async function post(path, body = {}) {
  const options = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await request(address(path), options)).json();
}

/** The response, once there is one; what only reads is repeated until the server answers. */
async function request(url, options) {
  const isReading = options.method === undefined;
  for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
    let response;
    try {
      response = await fetch(url, options);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      if (!isReading) throw new ServerError(0, "the server does not answer; is gsolve serve still running?");
      tell(wait);
      await pause(wait, options.signal);
      continue;
    }
    tell(null);
    if (response.status === 401) await askForToken();
    if (response.status === 429 && isReading) {
      await pause(1000 * (Number(response.headers.get("retry-after")) || 1), options.signal);
      continue;
    }
    if (!response.ok) throw new ServerError(response.status, await reason(response));
    return response;
  }
}

async function reason(response) {
  try {
    return (await response.json()).error;
  } catch {
    return `the server answered ${response.status}`;
  }
}

export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
