// One row of a conversation, and a nested team as a thread inside of it.
import { avatar, bar, clock, cut, fileLink, html, icon, look, nothing, percent, phasePill, pill, plain, prose, several, span, tag, taskPill, timeOfDay } from "./words.js";
import { NOBODY, isAssignment } from "../room.js";

/** The acts whose message can be replaced in a rerun. */
const RERUN = new Set(["discussion", "draft", "result", "decision", "conclusion"]);

/**
 * @param {import("../room.js").Row} row
 * @param {{began: number, tasks: Map, hasAnswer: boolean, thread: (comm: string) => Object|null, href: (file) => string|null,
 *   rerun: ((row) => void)|null, form: (row) => Object}} shown what a row is shown with
 */
export function message(row, shown) {
  if (row.speaker === NOBODY) return event(row, shown);
  const isQuiet = row.act === "progress" || row.act === "thinking";
  return html`<li class="msg ${isQuiet ? "quiet" : ""}" data-key=${row.key}>
    <time datetime=${new Date(row.at).toISOString()} title=${timeOfDay(row.at)}>${clock(row.at - shown.began)}</time>${avatar(row.speaker)}
    <div><header><b>${row.speaker}</b>${label(row)}${aim(row)}
      ${shown.rerun && RERUN.has(row.act) ? html`<button class="btn quiet again" type="button" title="Run the goal again with another message here"
        aria-label=${`Run again from entry ${row.seq}`} @click=${() => shown.rerun(row)}>↻<span class="wide"> Run again …</span></button>` : nothing}
      ${isQuiet ? nothing : html`<span class="turn num">turn ${row.turn}</span>`}</header>
      <div class="body">${(CONTENTS[row.act] ?? content)(row, shown)}${shown.form(row)}</div></div></li>`;
}

function label({ act, tone, body }) {
  const of = act === "result" ? ` of ${body.task_id}` : "";
  return tag(act, tone, of || (body.tasks?.length > 1 ? "s" : ""));
}

/** Where a message leads the group. */
function aim({ act, body }) {
  if (act === "pass") return html`<span class="to">${body.cause.replaceAll("_", " ")}</span>`;
  const named = body.next_speakers?.length ? body.next_speakers.join(", ") : body.next_speaker;
  if (named) return html`<span class="to">to <b>${named}</b></span>`;
  const on = act === "decision" ? [body.choice, ...(body.members ?? [])].join(" ") : body.go;
  return on ? html`<span class="to">→ <b>${on}</b></span>` : nothing;
}

const content = (row, shown) => html`${prose(row.text)}${row.body.fields ? filled(Object.entries(row.body.fields)) : nothing}
  ${row.files.length ? html`<div class="files">${row.files.map((file) => fileLink(file, shown.href(file)))}</div>` : nothing}`;

/** The acts whose messages are more than a text. */
const CONTENTS = {
  "sync task": (row, shown) => html`${row.lines.length > row.body.tasks.length ? prose(row.text) : nothing}<div class="cards">${row.body.tasks.map((one) => card(one, row.act, shown))}</div>`,
  "async task": (row, shown) => CONTENTS["sync task"](row, shown),
  "nested team": ({ body }, shown) => html`<p><span class="mono muted">${body.task_id}</span> is worked on by a team of its own.</p>${thread(shown.thread(body.subgroup), body.task_id)}`,
  pause: (row, shown) => html`${prose(row.text || "Nothing to say before these are closed.")}<div class="cards">${row.body.triggers.map((id) => card({ task_id: id }, row.act, shown))}</div>`,
  conclusion: (row, shown) => (shown.hasAnswer ? html`<p class="muted">It stands at the top of the page.</p>` : content(row, shown)),
  progress: ({ text, body: { task_id, fraction, number } }) => html`${fraction == null ? html`<span class="mono muted">${task_id}</span> `
    : html`<span class="progress">${bar(task_id, fraction, 0, "", "progressbar")}<span class="num">${task_id} ${percent(fraction)}</span></span>`}${text || (number === 1 ? "started" : "still at work")}`,
};

const filled = (fields) => (fields.length
  ? html`<dl class="form">${fields.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value === true ? "yes" : value === false ? "no" : value}</dd></div>`)}</dl>` : nothing);

/** A task where a message assigns it or waits for it. */
function card({ task_id, assignee, task_desc, uses = [], team }, act, shown) {
  const task = shown.tasks.get(task_id);
  return html`<div class="given k-${look(act)[1]}"><span class="mono muted">${task_id}</span><b>${assignee ?? task?.assignee}</b>
    ${task ? (task.status === "done" ? pill("good", `done in ${span(task.at - task.since)}`, true) : taskPill(task)) : nothing}
    ${task_desc ? html`<p>${task_desc}${uses.length ? html` <span class="muted">(uses ${uses.join(", ")})</span>` : nothing}${team ? html` <span class="muted">(by the team ${team})</span>` : nothing}</p>` : nothing}</div>`;
}

/** The end of what a nested team says, inside the message that opened it. */
const thread = (inner, task) => (inner ? html`<div class="thread"><header>${icon("nest")}<b>Team for ${task}</b>
  <span class="muted">${inner.members ? `${several(inner.members, "member")} · ` : ""}depth ${inner.depth}</span>${phasePill(inner.phase)}
  <a href=${inner.href}>Open room<span class="sr"> of the team for ${task}</span></a></header>
  ${inner.hidden ? html`<p class="muted more">${several(inner.hidden, "earlier message")}</p>` : nothing}
  <ol>${inner.rows.map(brief)}</ol></div>` : nothing);

const brief = (row) => (row.speaker === NOBODY
  ? html`<li class="event">${icon("clock")}<span>${row.text}</span></li>`
  : html`<li class="msg">${avatar(row.speaker)}<div><header><b>${row.speaker}</b>${label(row)}</header>
    <div class="body">${(isAssignment(row) ? row.lines : [plain(row.text || row.lines[0])]).map((text) => html`<p>${cut(text, 280)}</p>`)}</div></div></li>`);

const event = (row, { began }) => html`<li class="event ${row.tone === "bad" ? "is-bad" : ""}" data-key=${row.key}>${icon(row.tone === "bad" ? "bad" : row.tone === "good" ? "good" : "clock")}
  <span><time class="num" title=${timeOfDay(row.at)}>${clock(row.at - began)}</time> · ${row.act.startsWith("task ") ? `${row.act.slice(5)}: ` : ""}${row.text || row.act}</span></li>`;
