// The form of an open turn or question: the gateway says which acts are legal, and why the others are not. An answer is sent until it is
// accepted; a repeated answer counts once.
import { ask } from "../api.js";
import { keyOf } from "../turns.js";
import { banner, html, icon, menu, nothing, span } from "../parts/words.js";

const AGAIN_MS = 1500;
const AWAY = new Set([0, 502, 503]); // statuses after which an answer is sent again
const SIGNS = { say: "talk", decide: "branch", conclude: "end", pass: "back" };
const ABOUT = {
  exit: ["Decide", "where the group goes on"],
  speaker: ["Choose", "who speaks next"],
  review: ["Review", "whether this draft is passed"],
  watch: ["Step in", "whether to step in"],
};

const drafts = new Map();

function draftOf(waits) {
  const key = keyOf(waits);
  if (!drafts.has(key)) {
    const first = waits.acts?.find((one) => one.legal);
    drafts.set(key, { act: first?.act ?? "say", text: "", choose: "", named: [], fields: new Map(), isSending: false, isAway: false, problem: null });
  }
  return drafts.get(key);
}

export function turn(app, waits) {
  const draft = draftOf(waits);
  const set = (field) => (event) => {
    draft[field] = event.target.value;
    draft.problem = null;
  };
  const isQuestion = waits.kind === "question";
  const button = isQuestion ? "Answer" : waits.again ? "Say it again" : "Send";
  return html`<form class="say" aria-label=${isQuestion ? "A question for you" : "Your turn"} @submit=${(event) => {
    event.preventDefault();
    send(app, waits, draft);
  }} @keydown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.currentTarget.requestSubmit()}>
    ${isQuestion ? question(app, waits, draft, set) : speaking(app, waits, draft, set)}
    ${draft.problem ? banner(draft.problem, "") : nothing}
    <div class="row send">${isQuestion || waits.again ? nothing : onward(waits, draft, set)}<span class="hint kb end"><kbd>Ctrl</kbd> <kbd>Enter</kbd> sends</span>
      <button class="btn main" ?disabled=${draft.isSending}>${draft.isAway ? "Sending again …" : draft.isSending ? "Sending …" : button}</button></div></form>`;
}

/** The form of a person's turn. */
function speaking(app, waits, draft, set) {
  const [label, hint] = textOf(waits, draft);
  const reasons = Map.groupBy(waits.acts.filter((one) => !one.legal), (one) => one.why);
  return html`<div class="row"><h2>${waits.as}, ${asked(waits)}</h2><span class="hint num">${waits.node ? `${waits.node}, ` : ""}turn ${waits.turn}${waits.until ? ` · ${left(app, waits)}` : ""}</span></div>
    ${waits.told.map((text) => html`<p class="told">${text}</p>`)}
    ${waits.again ? html`<p class="hint">Your draft was passed. Say it again as it is, and all members hear it.</p>` : html`
    <div class="row">${choices("What you do", "act", waits.acts.map((one) => one.act), draft.act, set("act"), (act) => html`${icon(SIGNS[act])}${wordOf(act, waits)}`, (act) => !waits.acts.find((one) => one.act === act).legal)}
      ${reasons.size ? html`<span class="hint">${[...reasons].map(([why, some]) => `${some.map((one) => wordOf(one.act, waits).toLowerCase()).join(", ")}: ${why}`).join("; ")}</span>` : nothing}</div>
    ${draft.act === "decide" ? decision(waits, draft, set) : nothing}
    ${draft.act === "say" && waits.draft ? html`<p class="hint">What you say is a draft: others hear it once it is passed.</p>` : nothing}
    ${draft.act === "say" && waits.guards.length ? html`<p class="hint">Your words: ${waits.guards.join("; ")}.</p>` : nothing}
    <textarea aria-label=${label} placeholder=${hint} rows="3" ?required=${waits.kind === "conclude"} .value=${draft.text} @input=${set("text")}></textarea>
    ${waits.kind === "say" && waits.form.length && ["say", "conclude"].includes(draft.act) ? html`<div class="row">${waits.form.map((blank) => field(blank, draft))}</div>` : nothing}`}`;
}

/** The form of a question to the user of a goal. */
function question(app, waits, draft, set) {
  return html`<div class="row"><h2>${waits.asker} asks${waits.role ? ` the ${waits.role}` : ""}${waits.task_id ? html` <span class="muted">for ${waits.task_id}</span>` : nothing}</h2>
      <span class="hint num">${left(app, waits)}</span></div>
    <p class="asked">${waits.text}</p>
    ${waits.options.length ? html`<div class="row">${choices("Your answer", "answer", waits.options, draft.text, set("text"))}</div>`
      : html`<textarea aria-label="Your answer" rows="3" required maxlength="2000" .value=${draft.text} @input=${set("text")}></textarea>`}`;
}

/** Radio buttons in a row. */
const choices = (label, name, values, chosen, change, shown = (value) => value, isOff = () => false) => html`<div class="seg" role="radiogroup" aria-label=${label}>${values.map((value) => html`<label>
  <input type="radio" name=${name} value=${value} required .checked=${chosen === value} ?disabled=${isOff(value)} @change=${change}>${shown(value)}</label>`)}</div>`;

/** Agents to choose from, at most `most` of them. */
const checks = (draft, label, agents, most = Infinity) => html`<fieldset class="row some"><legend class="hint">${label}</legend>${agents.map((agent) => html`<label><input type="checkbox"
  .checked=${draft.named.includes(agent)} ?disabled=${!draft.named.includes(agent) && draft.named.length >= most} @change=${(event) => {
    draft.named = event.target.checked ? [...draft.named, agent] : draft.named.filter((one) => one !== agent);
  }}>${agent}</label>`)}</fieldset>`;

const asked = (waits) => (waits.kind === "say" ? "it is your turn" : waits.kind === "conclude" ? "you state the conclusion" : `you decide ${(ABOUT[waits.about] ?? ["", ""])[1]}`);

function wordOf(act, waits) {
  if (act === "decide") return (ABOUT[waits.about] ?? ["Decide"])[0];
  return { say: "Say", conclude: "Conclude", pass: waits.kind === "decide" ? "Leave it" : "Pass" }[act];
}

/** The time left, and the default. */
function left(app, waits) {
  const ms = Date.parse(waits.until) - app.now();
  const then = waits.default ? `“${waits.default}” stands` : waits.kind === "conclude" ? "the goal ends without it" : "the group goes on without you";
  return ms > 0 ? `${span(ms)} left, then ${then}` : "the time is up";
}

/** The label of the text and its placeholder. */
function textOf(waits, draft) {
  if (draft.act === "pass") return ["Why, if you want to say it", waits.default ? `“${waits.default}” stands then` : "You say nothing in this turn"];
  if (waits.kind === "decide") return draft.choose === "hint" ? ["What you tell them", "What you tell them"] : ["Why", "Why, if you want to say it"];
  return waits.kind === "conclude" ? ["The conclusion", "This is the result of the goal"] : ["What you say", "Say something, and hand the floor on"];
}

/** The options of a decision, and the members that an option names. */
function decision(waits, draft, set) {
  const named = waits.members[draft.choose];
  return html`<div class="row">${choices("Your decision", "choose", waits.options, draft.choose, set("choose"), (one) => html`${one}${one === waits.default ? html` <span class="muted">(if you say nothing)</span>` : nothing}`)}</div>
    ${named ? checks(draft, "Whom", named) : nothing}`;
}

/** A field of a form. */
function field({ name, kind, values, lowest, highest, required, told }, draft) {
  const value = draft.fields.get(name) ?? "";
  const set = (event) => {
    draft.fields.set(name, event.target.value);
    draft.problem = null;
  };
  const options = kind === "yes_no" ? ["yes", "no"] : values;
  const range = lowest !== null && highest !== null ? `${lowest}–${highest}` : nothing;
  return html`<label class="blank" title=${told}><span>${name}${required ? "" : html` <span class="muted">may be left out</span>`}</span>${options.length
    ? menu(name, value, [["", "–"], ...options.map((one) => [one])], set, required)
    : html`<input type=${kind === "number" ? "number" : "text"} min=${lowest ?? nothing} max=${highest ?? nothing} placeholder=${range} ?required=${required} .value=${value} @input=${set}>`}</label>`;
}

/** Who speaks next, or where the group goes on; of a conclusion, whether the goal is reached. */
function onward(waits, draft, set) {
  if (waits.kind === "conclude") return html`<label class="blank"><span>The goal is</span>${menu("The goal is", draft.choose, [["", "reached"], ["failed", "not reached"]], set("choose"))}</label>`;
  const ways = waits.go.filter((way) => way !== "end").map((way) => [way, `on to ${way}`]);
  if (draft.act !== "say" || !(ways.length + waits.next_speakers.length)) return nothing;
  if (waits.most <= 1) {
    return html`<label><span class="wide">Next: </span>${menu("Who speaks next", draft.choose, [["", "as the policy says"], ...waits.next_speakers.map((agent) => [agent]), ...ways], set("choose"))}</label>`;
  }
  return html`${draft.choose ? nothing : checks(draft, `Next, ${waits.most} at most`, waits.next_speakers, waits.most)}
    ${ways.length ? menu("Where the group goes on", draft.choose, [["", "stays here"], ...ways], set("choose")) : nothing}`;
}

/** The path and the body of an answer. */
function answerOf(waits, draft) {
  const group = `/groups/${encodeURIComponent(waits.comm_id)}`;
  if (waits.kind !== "question") return [`${group}/messages`, { seat: waits.as, turn: waits.turn, payload: payloadOf(waits, draft) }];
  const number = Number(waits.item.split(".").at(-1));
  return [`${group}/answer`, { answer: draft.text, ...(waits.task_id ? { task_id: waits.task_id, number } : { turn: number }) }];
}

function payloadOf(waits, { act, text, choose, named, fields }) {
  if (waits.again) return {};
  if (act === "pass") return { passes: true, text };
  if (act === "decide") return { text, choose, fields: waits.members[choose] ? { members: named.join(",") } : {} };
  const chosen = act === "conclude" && waits.kind === "say" ? "end" : choose || named.join(",");
  const filled = [...fields].filter(([, value]) => value !== "");
  return { text, ...(chosen ? { choose: chosen } : {}), fields: Object.fromEntries(filled) };
}

async function send(app, waits, draft) {
  if (draft.isSending) return;
  const [path, body] = answerOf(waits, draft);
  Object.assign(draft, { isSending: true, problem: null });
  for (;;) {
    try {
      await ask(path, { method: "POST", body });
      break;
    } catch (problem) {
      if (!AWAY.has(problem.status)) {
        Object.assign(draft, { isSending: false, isAway: false, problem: app.failed(problem) });
        return;
      }
      draft.isAway = true;
      await new Promise((done) => setTimeout(done, AGAIN_MS));
      if (!app.who) return;
    }
  }
  drafts.delete(keyOf(waits));
  app.turns.take(waits);
}
