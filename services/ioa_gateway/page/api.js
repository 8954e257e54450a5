// Requests to the gateway with their problems (RFC 9457), and streams that are resumed by sequence.

/** An error with a remedy. `status` is 0 if the gateway did not answer. */
const problem = (status, detail, hint = "") => Object.assign(new Error(detail), { status, hint });

let skew = 0;
let report = () => {};

/** Call a function after each response, and after each event of a stream with whether the stream is open. */
export function onNews(callback) {
  report = callback;
}

/** The time by the gateway's clock, in milliseconds. */
export const now = () => Date.now() + skew;

/** The path of a route. */
export const apiPath = (path) => `/v1${path}`;

/** Send a request, and return the document of the response; null if it is empty. Throws a `problem`. */
export const ask = (path, options = {}) => request(path, options).finally(() => report());

async function request(path, { method = "GET", body, headers = {} }) {
  const isFile = body instanceof Blob;
  const response = await fetch(apiPath(path), {
    method,
    headers: body === undefined ? headers : { "Content-Type": isFile ? "application/octet-stream" : "application/json", ...headers },
    body: isFile ? body : JSON.stringify(body), // undefined: no body
  }).catch(() => { throw problem(0, "The gateway does not answer.", "Try again soon; nothing is lost."); });
  const date = Date.parse(response.headers.get("date"));
  if (date && Math.abs(date - Date.now()) > 2000) skew = date - Date.now();
  if (response.status === 204) return null;
  const document = await response.json().catch(() => ({}));
  if (!response.ok) throw problem(response.status, document.detail ?? `The gateway answered ${response.status}.`, document.hint);
  return document;
}

/** Encode parameters, without empty ones. */
export function query(fields) {
  const given = Object.entries(fields).filter(([, value]) => (value ?? "") !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}

/** The address of a goal on this page; `room` is one of its groups. */
export const goalHref = ({ goal_id, user }, room = "") => `/goals/${encodeURIComponent(goal_id)}${query({ user, room })}`;

/** A random token, also without HTTPS. */
export const token = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * Follow a stream of events after a sequence until it ends, also after interruptions. Return a function that ends it.
 * @param {(after: number) => string} path of the stream after a sequence
 * @param {Object} to functions for events by their names, and `refused`, which returns whether to try again when there is no stream
 */
export function follow(path, after, to) {
  let source;
  let timer;
  let isOver = false;
  const open = () => {
    source = new EventSource(apiPath(path(after)));
    source.onopen = () => report(true);
    for (const kind of ["entry", "progress", "goal", "waiting", "end"]) {
      source.addEventListener(kind, (event) => {
        if (kind === "entry") after = Number(event.lastEventId);
        if (kind === "end") close();
        to[kind]?.(JSON.parse(event.data));
        report(true);
      });
    }
    source.onerror = async () => {
      if (source.readyState !== EventSource.CLOSED) return void report(false); // the browser tries again by itself
      const again = await to.refused();
      if (!isOver && again) timer = setTimeout(open, 2000);
    };
  };
  const close = () => {
    isOver = true;
    clearTimeout(timer);
    source.close();
  };
  open();
  return close;
}
