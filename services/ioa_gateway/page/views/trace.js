// The trace of a goal: what took how long, and what waited for what, as spans made of the log.
import { ask, follow, query } from "../api.js";
import { avatar, count, empty, html, loading, nothing, pill, several, span, timeOfDay, trouble } from "../parts/words.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";

const AGAIN_MS = 3000; // a trace is made anew of the whole log each time, so that it is read no more often
const MOST = 1000; // rows
const NEWEST = 2 ** 53;

let id = "";
let user = "";
let doc = null;
let rows = [];
let problem = null;
let timer = 0; // set while something has happened that was not read yet
let leave = () => {};
let closed = new Set(); // spans whose parts are not shown

export const trace = {
  title: () => "Trace",
  searches: "Filter spans",
  enter(app, { id: asked, query: more }) {
    [id, user, doc, rows, problem, closed, timer, leave] = [asked, more.get("user") ?? "", null, [], null, new Set(), 0, () => {}];
    app.sheet("trace");
    open(app);
    return () => {
      id = "";
      clearTimeout(timer);
      leave();
    };
  },
  draw,
};

/** Show what there is, then read it again whenever something happens: nothing is asked for while nothing does. */
async function open(app) {
  const wanted = id;
  const path = `/goals/${encodeURIComponent(wanted)}`;
  try {
    const { entries } = await ask(`${path}/entries${query({ user, before: NEWEST, limit: 1 })}`);
    await read(app, wanted);
    if (wanted !== id || !doc || doc.ended) return;
    const soon = () => {
      timer ||= setTimeout(() => {
        timer = 0;
        read(app, wanted);
      }, AGAIN_MS);
    };
    const ended = () => {
      clearTimeout(timer);
      read(app, wanted);
    };
    const refused = async () => {
      await read(app, wanted);
      return wanted === id && !problem && !doc.ended;
    };
    leave = follow((after) => `${path}/events${query({ user, after })}`, entries[0]?.seq ?? 0, { entry: soon, end: ended, live: app.live, refused });
  } catch (error) {
    if (wanted === id) problem = app.failed(error);
    app.changed();
  }
}

async function read(app, wanted) {
  try {
    const found = await ask(`/goals/${encodeURIComponent(wanted)}/trace${query({ user })}`);
    if (wanted !== id) return;
    doc = found;
    rows = ordered(found.spans);
    problem = null;
  } catch (error) {
    if (wanted === id) problem = app.failed(error);
  }
  app.changed();
}

/**
 * Spans as rows, each once and before its parts. What encloses some that have ended may go on, and is no span yet; and one agent's messages
 * in several teams may have one id, so that what is below stands with the first.
 */
export function ordered(spans) {
  const known = new Set(spans.map((one) => one.span_id));
  const below = new Map();
  for (const one of spans) {
    const above = known.has(one.parent_id) ? one.parent_id : "";
    if (!below.has(above)) below.set(above, []);
    below.get(above).push({ ...one, began: Date.parse(one.start), over: Date.parse(one.end) });
  }
  const found = [];
  const opened = new Set();
  const add = (above, depth, path) => {
    const inside = (below.get(above) ?? []).sort((one, other) => one.began - other.began || other.over - one.over);
    for (const one of inside) {
      const parts = opened.has(one.span_id) ? 0 : (below.get(one.span_id)?.length ?? 0);
      found.push({ ...one, depth, path, parts });
      opened.add(one.span_id);
      if (parts) add(one.span_id, depth + 1, [...path, one.span_id]);
    }
  };
  add("", 0, []);
  return found;
}

function draw(app) {
  const back = html`<a href=${`/goals/${encodeURIComponent(id)}${query({ user })}`}>the goal</a>`;
  return html`<main id="main" class="page" tabindex="-1"><header><h1>Trace</h1><span class="muted">of ${back}${doc?.trace_id ? html` · <span class="mono">${doc.trace_id}</span>` : nothing}</span></header>
    ${problem ? trouble(problem, () => open(app)) : doc ? table(app) : loading("the trace")}</main>`;
}

function table(app) {
  if (!rows.length) return empty("Nothing has ended yet", "Spans come as soon as something is said or done.");
  const wanted = app.found.toLowerCase();
  const shown = wanted ? rows.filter((one) => `${one.name} ${who(one)} ${one.failure}`.toLowerCase().includes(wanted)) : rows.filter((one) => !one.path.some((above) => closed.has(above)));
  if (!shown.length) return empty("Nothing is found", `No span is called like “${app.found}”.`);
  const from = Math.min(...rows.map((one) => one.began));
  const whole = Math.max(1, Math.max(...rows.map((one) => one.over)) - from);
  return html`<div class="rows trace"><table><caption class="sr">${several(rows.length, "span")}, each before its parts</caption><thead><tr>
    <th scope="col">what</th><th scope="col">who</th><th scope="col">took</th><th scope="col">tokens</th><th scope="col">when</th></tr></thead>
    <tbody>${repeat(shown.slice(0, MOST), (one) => one.span_id, (one) => line(app, one, from, whole))}</tbody></table></div>
    ${shown.length > MOST ? html`<p class="muted more">The first ${MOST} of ${several(shown.length, "span")}; fold parts or filter to see others.</p>` : nothing}`;
}

const who = (one) => one.attributes["gen_ai.agent.id"] ?? "";

function line(app, one, from, whole) {
  const used = (one.attributes["gen_ai.usage.input_tokens"] ?? 0) + (one.attributes["gen_ai.usage.output_tokens"] ?? 0);
  const took = one.over - one.began;
  return html`<tr><th scope="row"><span class="deep" .style=${`--deep:${Math.min(one.depth, 12)};--leaf:${one.parts ? 0 : 1}`}>${one.parts ? html`<button class="btn quiet icon" type="button"
      aria-expanded=${!closed.has(one.span_id)} aria-label=${`Parts of ${one.name}`} @click=${() => {
        if (!closed.delete(one.span_id)) closed.add(one.span_id);
        app.changed();
      }}>${closed.has(one.span_id) ? "▸" : "▾"}</button>` : nothing}<span>${named(one)}</span>${one.failure ? pill("bad", one.failure.replaceAll("_", " ")) : nothing}</span></th>
    <td>${who(one) ? html`<span class="whose" title=${who(one)}>${avatar(who(one))}<span>${who(one)}</span></span>` : nothing}</td><td class="num">${took < 1000 ? `${took} ms` : span(took)}</td><td class="num">${used ? count(used) : ""}</td>
    <td><span class="when" title=${`from ${timeOfDay(one.began)} on`}><i class=${one.failure ? "failed" : ""} .style=${`margin-left:${(100 * (one.began - from)) / whole}%;width:${(100 * took) / whole}%`}></i></span></td></tr>`;
}

function named(one) {
  const [kind, ...rest] = one.name.split(" ");
  const task = one.attributes["ioa.task_id"];
  return html`<b>${kind}</b> ${rest.join(" ").toLowerCase().replaceAll("_", " ")}${task ? html` <span class="mono">${task}</span>` : nothing}`;
}
