// The head of a goal's room: the goal, its state, its budget, its answer, and what can be done with it.
import { query } from "../api.js";
import { standing } from "../room.js";
import { PICTURES, bar, clock, cost, count, fileLink, html, icon, nothing, phasePill, pill, plain, prose, span, timeOfDay } from "../parts/words.js";
import { cancelForm } from "./acts.js";

let cancelling = null; // the goal whose cancellation is being asked

export function head(app, goal, at, now) {
  const { doc } = goal;
  const root = goal.story.rooms.get(doc.comm_id);
  const entry = root ? standing(root, at) : null;
  const isNow = at === Infinity;
  const isMine = app.turns?.isMine(doc);
  const phase = isNow ? (doc.result ? doc.status : (entry?.phase ?? doc.status)) : (entry?.phase ?? "waiting");
  const inputs = root?.rows.find((row) => row.act === "team")?.files ?? doc.inputs;
  return html`<section class="head ${isMine ? "mine" : ""}" aria-label="Goal"><div><h1>${plain(doc.goal)}</h1>
    <p class="meta">${isNow && isMine ? pill("wait", "waits for you") : phasePill(phase)}${root?.charter ? html`<span>led by <b>${root.charter.owner}</b></span>` : nothing}
      <span>accepted ${timeOfDay(Date.parse(doc.accepted_at))}</span>${root?.startedAt ? html`<span>started ${timeOfDay(root.startedAt)}</span>` : nothing}${doc.user ? html`<span>for ${doc.user}</span>` : nothing}${inputs.map((file) => fileLink(file, goal.hrefOfFile(file)))}
      <span class="mono">${doc.goal_id}</span><a href=${`/traces/${encodeURIComponent(goal.id)}${query({ user: goal.user })}`}>trace</a></p></div>
    <div class="acts">${app.may("goals:write") ? acts(app, goal) : nothing}</div>
    <div class="budget">${entry ? budget(entry.budget, doc, (isNow && doc.result ? Date.parse(doc.result.finished_at) : now) - Date.parse(doc.accepted_at))
      : html`<span class="muted">${doc.status === "waiting" ? "It waits for an agent that takes it." : ""}</span>`}</div>
    ${doc.result && isNow ? answer(goal, root) : nothing}</section>`;
}

function acts(app, goal) {
  const { doc } = goal;
  if (!doc.result) return cancelling === goal ? cancelForm(app, goal, () => { cancelling = null; }) : html`<button class="btn danger" type="button" @click=${() => { cancelling = goal; }}>${icon("stop")}Cancel</button>`;
  return html`<button class="btn" type="button" @click=${() => {
    app.draft = { order: orderLike(doc), files: doc.inputs };
    app.go("/");
  }}>Edit and run again</button>`;
}

const RESERVED = ["owner", "a2a-context", "a2a-message", "agui-thread", "ioa-probe", "rerun-of"]; // labels that only the system sets

/** An order for an equal goal, without its files. */
function orderLike({ goal, agent, team_file, team_name, max_turns, timeout, max_tokens, max_cost_micros, repetition, as_task, labels = {} }) {
  const free = Object.entries(labels).filter(([name]) => !RESERVED.includes(name));
  return { goal, agent, team: team_name ?? team_file, max_turns, timeout, max_tokens, max_cost: max_cost_micros && max_cost_micros / 1_000_000, repetition, as_task, labels: Object.fromEntries(free) };
}

function budget({ turns_taken, nested_turns, turns_lent, spent }, doc, took) {
  const used = turns_taken + nested_turns;
  const tokens = spent.tokens_in + spent.tokens_out;
  return html`${meter("Turns", used, doc.max_turns, String(used), `${doc.max_turns}${turns_lent ? `, ${turns_lent} lent` : ""}`, "", turns_lent / doc.max_turns)}
    ${meter("Tokens", tokens, doc.max_tokens, count(tokens), count(doc.max_tokens ?? 0))}
    ${meter("Cost", spent.cost_micros, doc.max_cost_micros, cost(spent.cost_micros), cost(doc.max_cost_micros ?? 0), "opt")}
    ${meter("Time", took, doc.timeout * 1000, clock(took), span(doc.timeout * 1000), "opt")}`;
}

/** A used amount, of a limit if there is one. */
function meter(label, used, most, amount, limit, kind = "", lent = 0) {
  const share = most ? used / most : 0;
  return html`<div class="meter ${kind} ${most ? "" : "plain"}"><span>${label}</span>${most ? bar(label, share, lent, share > 0.75 ? "warn" : "") : nothing}<span class="num">${amount} <span class="muted">${most ? `of ${limit}` : ""}</span></span></div>`;
}

/** The answer with its files: pictures as they are, other files as links. */
function answer(goal, root) {
  const { result } = goal.doc;
  const files = root?.rows.findLast((row) => row.act === "conclusion")?.files ?? [];
  const file = (one, href) => (href && PICTURES.has(one.media_type) ? html`<a href=${href} download=${one.name}><img src=${href} alt=${one.name} loading="lazy"></a>` : fileLink(one, href));
  return html`<details class="answer ${result.succeeded ? "" : "not"}" open><summary>${result.succeeded ? "The answer" : `It ended: ${result.reason.replaceAll("_", " ")}`}</summary>
    <div class="parts">${prose(result.content)}${files.length ? html`<div class="files">${files.map((one) => file(one, goal.hrefOfFile(one)))}</div>` : nothing}</div></details>`;
}
