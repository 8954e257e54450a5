// One row of a conversation, and a nested team as a thread inside of it.
import { clock, html, icon, nothing, pill, avatar, phasePill, prose, bar, percent, span, tag, taskPill, several, timeOfDay } from "./words.js";
import { fileLink } from "./files.js";
import { NOBODY, isClosed } from "../room.js";

/** The acts whose message can be replaced in a rerun. */
const RERUN = new Set(["discussion", "draft", "result", "decision", "conclusion"]);

/**
 * @param {import("../room.js").Row} row
 * @param {{began: number, now: number, tasks: Map, thread: (comm: string) => Object|null, file: (row, file) => string|null,
 *   isRoot: boolean, found: (text: string) => boolean, agents: Map}} shown what a row is shown with
 */
export function message(row, shown) {
  if (row.speaker === NOBODY) return event(row, shown);
  const to = row.to?.length ? html`<span class="to">to <b>${row.to.join(", ")}</b></span>`
    : row.go ? html`<span class="to">${row.act === "pass" ? row.go.replaceAll("_", " ") : html`→ <b>${row.go}</b>`}</span>` : nothing;
  const isQuiet = row.act === "progress" || row.act === "thinking";
  return html`<li class="msg ${isQuiet ? "quiet" : ""}" data-seq=${row.seq} data-key=${`${row.seq}.${row.n}`}>
    <time datetime=${new Date(row.at).toISOString()} title=${timeOfDay(row.at)}>${clock(row.at - shown.began)}</time>${avatar(row.speaker)}
    <div><header><b>${row.speaker}</b>${tag(row.act, row.tone, row.task && row.act === "result" ? ` of ${row.task}` : row.given?.length > 1 ? "s" : "")}${to}
      ${isQuiet ? nothing : html`<span class="turn num">turn ${row.turn}</span>`}${shown.rerun && RERUN.has(row.act) ? html`<button class="btn quiet again" type="button" title="Run the goal again with another message here"
        aria-label=${`Run again from entry ${row.seq}`} @click=${() => shown.rerun(row)}>↻<span class="wide"> Run again …</span></button>` : nothing}</header>
      <div class="body">${body(row, shown)}${shown.rerunning?.row === row ? shown.rerunning.form() : nothing}</div></div></li>`;
}

function body(row, shown) {
  switch (row.act) {
    case "sync task":
    case "async task":
      return html`${row.text ? prose(row.text) : nothing}<div class="cards">${row.given.map((one) => given(one, row.act, shown))}</div>`;
    case "progress": {
      const text = row.text || (row.number === 1 ? "started" : "still at work");
      return row.fraction == null ? html`<span class="mono muted">${row.task}</span> ${text}` : html`<span class="progress">${bar(row.task, row.fraction, 0, "", "progressbar")}
        <span class="num">${row.task} ${percent(row.fraction)}</span></span>${text}`;
    }
    case "pause":
      return html`${prose(row.text || "Nothing to say before these are closed.")}<ul class="waits">${row.waits.map((id) => waiting(id, shown))}</ul>`;
    case "reject":
      return html`<p>${row.text}</p>`;
    case "nested team":
      return html`<p><span class="mono muted">${row.task}</span> is worked on by a team of its own.</p>${thread(row, shown)}`;
    case "conclusion":
      if (shown.hasAnswer) return html`<p class="muted">It stands at the top of the page.</p>`;
    // falls through
    default:
      return html`${prose(row.text)}${form(row.fields)}
        ${row.files.length ? html`<div class="files">${row.files.map((file) => fileLink(file, shown.file(row, file)))}</div>` : nothing}`;
  }
}

const form = (fields) => (fields && Object.keys(fields).length
  ? html`<dl class="form">${Object.entries(fields).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value === true ? "yes" : value === false ? "no" : value}</dd></div>`)}</dl>`
  : nothing);

function given(one, act, { tasks }) {
  const task = tasks.get(one.task_id);
  return html`<div class="given ${act === "async task" ? "async" : ""}"><span class="mono muted">${one.task_id}</span><span class="who-to">${one.assignee}</span>
    ${task ? (task.status === "done" ? pill("good", `done in ${span(task.at - task.since)}`, true) : taskPill(task)) : nothing}
    <p>${one.text}${one.uses.length ? html` <span class="muted">(uses ${one.uses.join(", ")})</span>` : nothing}${one.team ? html` <span class="muted">(by the team ${one.team})</span>` : nothing}</p></div>`;
}

function waiting(id, { tasks }) {
  const task = tasks.get(id);
  if (!task) return html`<li><span class="mono muted">${id}</span></li>`;
  const share = task.fraction == null ? "running" : percent(task.fraction);
  return html`<li><span class="mono muted">${id}</span>${task.assignee}${isClosed(task.status) || task.suspect || task.status === "waiting"
    ? taskPill(task) : pill("sync", share)}</li>`;
}

/** The end of what a nested team says, inside the message that opened it. */
function thread(row, shown) {
  const inner = shown.thread(row.nested);
  if (!inner) return nothing;
  return html`<div class="thread"><header>${icon("nest")}<b>Team for ${row.task}</b>
    <span class="muted">${inner.members ? `${several(inner.members, "member")} · ` : ""}depth ${inner.depth}</span>${inner.phase ? phasePill(inner.phase) : nothing}
    <a href=${inner.href}>Open room<span class="sr"> of the team for ${row.task}</span></a></header>
    ${inner.hidden ? html`<p class="muted more">${several(inner.hidden, "earlier message")}</p>` : nothing}
    <ol>${inner.rows.map((one) => brief(one))}</ol></div>`;
}

const brief = (row) => (row.speaker === NOBODY
  ? html`<li class="event">${icon("clock")}<span>${row.text}</span></li>`
  : html`<li class="msg">${avatar(row.speaker)}<div><header><b>${row.speaker}</b>${tag(row.act, row.tone, row.task && row.act === "result" ? ` of ${row.task}` : "")}</header>
    <div class="body">${(row.given ? row.lines : [row.text || row.lines[0]]).map((text) => html`<p>${cut(text)}</p>`)}</div></div></li>`);

const cut = (text) => (text.length > 280 ? `${text.slice(0, 280)} …` : text);

const event = (row, { began }) => html`<li class="event ${row.tone === "bad" ? "is-bad" : ""}" data-seq=${row.seq} data-key=${`${row.seq}.${row.n}`}>${icon(row.tone === "bad" ? "bad" : row.tone === "good" ? "good" : "clock")}
  <span><time class="num" title=${timeOfDay(row.at)}>${clock(row.at - began)}</time> · ${row.act.startsWith("task ") ? html`${row.act.slice(5)}: ` : nothing}${row.text || row.act}</span></li>`;
