// The trace of a goal: the spans of its log with their durations.
import { ask, follow, query } from "../api.js";
import { avatar, count, empty, html, loading, nothing, page, pill, several, sheet, span, timeOfDay, trouble } from "../parts/words.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";

const AGAIN_MS = 3000; // minimum interval of reads: each one makes the trace of the whole log
const MOST = 1000; // rows
const NEWEST = 2 ** 53;

let shown = null; // the shown trace
let closed = new Set(); // spans whose parts are hidden

export const trace = {
  title: () => "Trace",
  searches: "Filter spans",
  enter(app, { id, query: asked }) {
    const one = { path: `/goals/${encodeURIComponent(id)}`, user: asked.get("user") ?? "", doc: null, rows: [], problem: null, timer: 0, end: () => { one.end = null; } };
    shown = one;
    closed = new Set();
    sheet("trace");
    open(app, one);
    return () => {
      clearTimeout(one.timer);
      one.end?.();
    };
  },
  draw,
};

/** Read a trace, and read it again when something happens. Without an event there is no request. */
async function open(app, one) {
  const { path, user } = one;
  try {
    const { entries } = await ask(`${path}/entries${query({ user, before: NEWEST, limit: 1 })}`);
    if (!(await read(app, one)) || !one.end) return;
    const again = () => {
      clearTimeout(one.timer);
      one.timer = 0;
      return read(app, one);
    };
    const entry = () => { one.timer ||= setTimeout(again, AGAIN_MS); };
    one.end = follow((after) => `${path}/events${query({ user, after })}`, entries[0]?.seq ?? 0, { entry, end: again, refused: again });
  } catch (error) {
    one.problem = app.failed(error);
  }
}

/** Read a trace; return whether the goal continues. */
async function read(app, one) {
  try {
    one.doc = await ask(`${one.path}/trace${query({ user: one.user })}`);
    one.rows = ordered(one.doc.spans);
    one.problem = null;
  } catch (error) {
    one.problem = app.failed(error);
  }
  return !one.problem && !one.doc.ended;
}

/** Return spans as rows, each once and before its parts. Several spans can have the same id; all parts are below the first one. */
export function ordered(spans) {
  const known = new Set(spans.map((one) => one.span_id));
  const timed = spans.map((one) => ({ ...one, began: Date.parse(one.start), over: Date.parse(one.end) }));
  const below = Map.groupBy(timed.sort((one, other) => one.began - other.began || other.over - one.over), (one) => (known.has(one.parent_id) ? one.parent_id : ""));
  const found = [];
  const add = (above, path) => {
    const inside = below.get(above) ?? [];
    below.delete(above);
    for (const one of inside) {
      found.push({ ...one, path, parts: below.get(one.span_id)?.length ?? 0 });
      add(one.span_id, [...path, one.span_id]);
    }
  };
  add("", []);
  return found;
}

function draw(app) {
  const { path, user, doc, problem } = shown;
  return page(html`<header><h1>Trace</h1><span class="muted">of <a href=${path + query({ user })}>the goal</a>${doc?.trace_id ? html` · <span class="mono">${doc.trace_id}</span>` : nothing}</span></header>
    ${problem ? trouble(problem, () => open(app, shown)) : doc ? table(app, shown.rows) : loading("the trace")}`);
}

function table(app, rows) {
  if (!rows.length) return empty("Nothing has ended yet", "Spans appear when a message, a task or a group ends.");
  const wanted = app.found.toLowerCase();
  const found = wanted ? rows.filter((one) => `${one.name} ${agentOf(one)} ${one.failure}`.toLowerCase().includes(wanted)) : rows.filter((one) => !one.path.some((above) => closed.has(above)));
  if (!found.length) return empty("Nothing found", `No span is called like “${app.found}”.`);
  const from = Math.min(...rows.map((one) => one.began));
  const whole = Math.max(1, Math.max(...rows.map((one) => one.over)) - from);
  return html`<div class="rows trace"><table><caption class="sr">${several(rows.length, "span")}, each before its parts</caption><thead><tr>
    <th scope="col">what</th><th scope="col">who</th><th scope="col">took</th><th scope="col">tokens</th><th scope="col">when</th></tr></thead>
    <tbody>${repeat(found.slice(0, MOST), (one) => one.span_id, (one) => line(app, one, from, whole))}</tbody></table></div>
    ${found.length > MOST ? html`<p class="muted more">The first ${MOST} of ${several(found.length, "span")}; fold parts or filter to see others.</p>` : nothing}`;
}

const agentOf = (one) => one.attributes["ioa.agent_id"] ?? "";

/** Tokens of a turn or a group, and of a call of a model. */
const TOKENS = ["ioa.tokens_in", "ioa.tokens_out", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"];

function line(app, one, from, whole) {
  const agent = agentOf(one);
  const took = one.over - one.began;
  const tokens = TOKENS.reduce((sum, name) => sum + (one.attributes[name] ?? 0), 0);
  return html`<tr><th scope="row"><span class="deep" .style=${`--deep:${Math.min(one.path.length, 12)};--leaf:${one.parts ? 0 : 1}`}>${one.parts ? html`<button class="btn quiet icon" type="button"
      aria-expanded=${!closed.has(one.span_id)} aria-label=${`Parts of ${one.name}`} @click=${() => { if (!closed.delete(one.span_id)) closed.add(one.span_id); }}>${closed.has(one.span_id) ? "▸" : "▾"}</button>` : nothing}<span>${named(one)}</span>${one.failure ? pill("bad", one.failure.replaceAll("_", " ")) : nothing}</span></th>
    <td>${agent ? html`<span class="whose" title=${agent}>${avatar(agent)}<span>${agent}</span></span>` : nothing}</td><td class="num">${took < 1000 ? `${took} ms` : span(took)}</td><td class="num">${tokens ? count(tokens) : ""}</td>
    <td><span class="when" title=${`from ${timeOfDay(one.began)} on`}><i class=${one.failure ? "failed" : ""} .style=${`margin-left:${(100 * (one.began - from)) / whole}%;width:${(100 * took) / whole}%`}></i></span></td></tr>`;
}

function named({ name, attributes }) {
  const [kind, ...rest] = name.split(" ");
  const task = attributes["ioa.task_id"];
  return html`<b>${kind}</b> ${rest.join(" ").toLowerCase().replaceAll("_", " ")}${task ? html` <span class="mono">${task}</span>` : nothing}`;
}
