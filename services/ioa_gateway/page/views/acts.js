// What is done to a goal from its room, loaded by the first who does it: cancelling it, and going on from an entry in a new goal, with
// other words, with another agent, or just once more.
import { ask, query, token } from "../api.js";
import { banner, fit, html, icon, nothing, pill } from "../parts/words.js";
import { NOBODY } from "../room.js";

let draft = null;

/** Ask whether a goal is to be cancelled, and why. `done` is told what went wrong, if anything did. */
export const cancelling = (goal, done) => html`<form class="confirm" @submit=${async (event) => {
  event.preventDefault();
  const why = new FormData(event.target).get("why");
  try {
    await ask(`${goal.path}/cancel${query({ user: goal.user })}`, { method: "POST", body: { why } });
    done();
  } catch (error) {
    done(error);
  }
}}><label for="why">Cancel it?</label><input id="why" name="why" placeholder="Why" maxlength="4000"><button class="btn danger">Cancel the goal</button>
  <button class="btn quiet" type="button" @click=${() => done()}>Keep it</button></form>`;

/** Whether something is about to be forked. */
export const isForking = (id) => draft?.id === id;

/** Begin to fork a goal at the entry of a row. */
export function begin(app, id, row) {
  const { seq, speaker } = row;
  const text = wordsOf(row);
  app.sheet("turn");
  const said = text === null ? null : fit(text);
  draft = { id, seq, speaker, said, text: said ?? "", old: "", other: "", key: token(), isSending: false, problem: null };
  app.changed();
  requestAnimationFrame(() => document.getElementById("fork")?.querySelector("textarea, select, button")?.focus());
}

export function end(app) {
  draft = null;
  app.changed();
}

/** Ask what is to be another. `team` are the members of the goal's own group. */
export function forkForm(app, team) {
  const set = (field) => (event) => {
    draft[field] = event.target.value;
    draft.problem = null;
    draft.key = token(); // another fork than the one that may have been sent
    app.changed();
  };
  const isChanged = draft.said !== null && draft.text.trim() !== draft.said.trim();
  return html`<form class="say" id="fork" aria-label="Fork this goal" @submit=${(event) => {
    event.preventDefault();
    send(app, isChanged);
  }} @keydown=${(event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
    if (event.key === "Escape") {
      event.stopPropagation();
      end(app);
    }
  }}><div class="row"><h2>Fork at entry ${draft.seq}</h2>${isChanged ? pill("wait", "other words") : nothing}
      <span class="hint">A new goal goes on from here. This one stays as it is; what was done stays done, and tasks that ran are begun again.</span></div>
    ${draft.said === null ? nothing : html`<label class="hint" for="fork-say">What ${draft.speaker} says</label><textarea id="fork-say" rows="4" ?required=${draft.said !== ""} .value=${draft.text} @input=${set("text")}></textarea>`}
    <div class="row"><label class="blank">Replace <select .value=${draft.old} @change=${set("old")}><option value="">nobody</option>${team.map((one) => html`<option value=${one.agent_id}>${one.agent_id}</option>`)}</select></label>
      ${draft.old ? html`<label class="blank">by <input .value=${draft.other} @input=${set("other")} placeholder="whoever is found" list="fork-agents" autocomplete="off"></label>
        <datalist id="fork-agents">${[...(app.agents?.keys() ?? [])].filter((id) => !team.some((one) => one.agent_id === id)).map((id) => html`<option value=${id}></option>`)}</datalist>` : nothing}</div>
    ${draft.problem ? banner(draft.problem, "") : nothing}
    <div class="row send"><button class="btn quiet" type="button" @click=${() => end(app)}>Not now</button><span class="hint kb end"><kbd>Ctrl</kbd> <kbd>Enter</kbd> forks</span>
      <span class="end2"><button class="btn main" ?disabled=${draft.isSending}>${icon("branch")}${draft.isSending ? "Forking …" : isChanged ? "Fork with these words" : "Fork from here"}</button></span></div></form>`;
}

async function send(app, isChanged) {
  const sent = draft;
  sent.isSending = true;
  sent.problem = null;
  app.changed();
  try {
    const order = {
      at: sent.seq,
      ...(isChanged ? { say: sent.text.trim() } : {}),
      ...(sent.old ? { replace: { [sent.old]: sent.other.trim() || null } } : {}),
    };
    // A draft has one key: sent twice, it is one goal.
    const forked = await ask(`/goals/${encodeURIComponent(sent.id)}/fork`, { method: "POST", body: order, headers: { "Idempotency-Key": sent.key } });
    draft = null;
    app.go(`/goals/${encodeURIComponent(forked.goal_id)}`);
  } catch (error) {
    sent.isSending = false;
    sent.problem = app.failed(error);
    if (error.status && error.status !== 503) sent.key = token();
    app.changed();
  }
}

/** What somebody says in a row that could be other words in a fork; null if there is no such thing. */
export function wordsOf(row) {
  if (row.speaker === NOBODY) return null;
  switch (row.act) {
    case "sync task":
    case "async task":
      return row.given.length === 1 ? row.given[0].text : row.text || null;
    case "decision":
      return row.choice;
    case "answer":
      return row.choice ?? row.text;
    case "discussion":
    case "draft":
    case "result":
    case "question":
    case "conclude":
    case "pause":
    case "pass":
      return row.text;
    default:
      return null;
  }
}
