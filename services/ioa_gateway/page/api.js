// What the page asks of its gateway: requests with their problems (RFC 9457), and streams that are resumed by sequence.

/** What went wrong, in words: what happened and what to do. `status` is 0 where nobody answered. */
export class Problem extends Error {
  constructor(status, detail, hint = "") {
    super(detail);
    this.status = status;
    this.hint = hint;
  }
}

let skew = 0;

/** The time by the gateway's clock, in milliseconds. */
export const now = () => Date.now() + skew;

/** The path of a route. */
export const apiPath = (path) => `/v1${path}`;

/** Ask the gateway, and return what it says; null if that is nothing. Raises Problem. */
export async function ask(path, { method = "GET", body, headers = {} } = {}) {
  const isFile = body instanceof Blob;
  let response;
  try {
    response = await fetch(apiPath(path), {
      method,
      headers: body === undefined ? headers : { "Content-Type": isFile ? "application/octet-stream" : "application/json", ...headers },
      body: isFile ? body : JSON.stringify(body), // nothing stays nothing
    });
  } catch {
    throw new Problem(0, "The gateway does not answer.", "Try again soon; nothing is lost.");
  }
  const told = Date.parse(response.headers.get("date"));
  if (told && Math.abs(told - Date.now()) > 2000) skew = told - Date.now();
  if (response.status === 204) return null;
  const said = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, said.detail ?? `The gateway answered ${response.status}.`, said.hint);
  return said;
}

/** Write parameters that are given. */
export function query(fields) {
  const given = Object.entries(fields).filter(([, value]) => (value ?? "") !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** A random token, also where the page did not come by HTTPS. */
export const token = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * Follow a stream of events behind a sequence until it ends, wherever it is interrupted.
 * @param {(after: number) => string} path where the stream is, behind a sequence
 * @param {{entry?: (entry: Object) => void, progress?: (report: Object) => void, end?: (data: Object) => void, goal?: (row: Object) => void,
 *   waiting?: () => void, live?: (isLive: boolean) => void, refused: () => Promise<boolean>}} to `refused` finds out why there is no
 *   stream, and whether to try again
 * @returns {() => void} ends it
 */
export function follow(path, after, to) {
  let source;
  let timer;
  let isOver = false;
  const open = () => {
    source = new EventSource(apiPath(path(after)));
    source.onopen = () => to.live?.(true);
    source.addEventListener("entry", (event) => {
      after = Number(event.lastEventId);
      to.entry(JSON.parse(event.data));
    });
    source.addEventListener("progress", (event) => to.progress?.(JSON.parse(event.data)));
    source.addEventListener("goal", (event) => to.goal(JSON.parse(event.data)));
    source.addEventListener("waiting", () => to.waiting());
    source.addEventListener("end", (event) => {
      close();
      to.end(JSON.parse(event.data));
    });
    source.onerror = async () => {
      to.live?.(false);
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      const again = await to.refused();
      if (!isOver && again) timer = setTimeout(open, 2000);
    };
  };
  const close = () => {
    isOver = true;
    clearTimeout(timer);
    source?.close();
  };
  open();
  return close;
}
