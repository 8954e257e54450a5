// A person's turn: what is asked, what can be answered, and why the rest cannot. What is legal the gateway has said; nothing here
// decides it. An answer is sent until it is known to be taken: sent twice it is one.
import { ask } from "../api.js";
import { keyOf } from "../turns.js";
import { banner, html, icon, nothing, span } from "../parts/words.js";

const AGAIN_MS = 1500;
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
    const [first] = (waits.acts ?? []).filter((one) => one.legal);
    drafts.set(key, { act: first?.act ?? "say", text: "", choose: "", next: [], members: [], fields: {}, isSending: false, isAway: false, problem: null });
  }
  return drafts.get(key);
}

export function turn(app, waits) {
  const draft = draftOf(waits);
  const set = (field) => (event) => {
    draft[field] = event.target.value;
    draft.problem = null;
    app.changed();
  };
  const isQuestion = waits.kind === "question";
  const button = isQuestion ? "Answer" : waits.again ? "Say it again" : "Send";
  return html`<form class="say" aria-label=${isQuestion ? "A question for you" : "Your turn"} @submit=${(event) => {
    event.preventDefault();
    send(app, waits, draft);
  }} @keydown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.currentTarget.requestSubmit()}>
    ${isQuestion ? question(app, waits, draft, set) : speaking(app, waits, draft, set)}
    ${draft.problem ? banner(draft.problem, "") : nothing}
    <div class="row send">${isQuestion || waits.again ? nothing : onward(waits, draft, set, app)}<span class="hint kb end"><kbd>Ctrl</kbd> <kbd>Enter</kbd> sends</span>
      <button class="btn main end2" ?disabled=${draft.isSending}>${draft.isAway ? "Sending again …" : draft.isSending ? "Sending …" : button}</button></div></form>`;
}

/** What a person does in a turn. */
function speaking(app, waits, draft, set) {
  const reasons = [...Map.groupBy(waits.acts.filter((one) => !one.legal), (one) => one.why)];
  return html`<div class="row"><h2>${waits.as}, ${asked(waits)}</h2><span class="hint num">${left(app, waits)}</span></div>
    ${waits.told.map((text) => html`<p class="told">${text}</p>`)}
    ${waits.again ? html`<p class="hint">Your draft was passed. Say it again as it is, and all members hear it.</p>` : html`
    <div class="row">${choices("What you do", "act", waits.acts.map((one) => one.act), draft.act, set("act"), (act) => html`${icon(SIGNS[act])}${wordOf(act, waits)}`, (act) => !waits.acts.find((one) => one.act === act).legal)}
      ${reasons.length ? html`<span class="hint">${reasons.map(([why, some]) => `${some.map((one) => wordOf(one.act, waits).toLowerCase()).join(", ")}: ${why}`).join("; ")}</span>` : nothing}</div>
    ${draft.act === "decide" ? options(waits, draft, set, app) : nothing}
    ${draft.act === "say" && waits.draft ? html`<p class="hint">What you say is a draft: others hear it once it is passed.</p>` : nothing}
    ${draft.act === "say" && waits.guards.length ? html`<p class="hint">Your words: ${waits.guards.join("; ")}.</p>` : nothing}
    <textarea aria-label=${labelOf(waits, draft)} placeholder=${placeOf(waits, draft)} rows="3" ?required=${waits.kind === "conclude"} .value=${draft.text} @input=${set("text")}></textarea>
    ${waits.kind === "say" && waits.form.length && ["say", "conclude"].includes(draft.act) ? html`<div class="row">${waits.form.map((blank) => field(blank, draft, app))}</div>` : nothing}`}`;
}

/** What a group or a task asks the user of its goal. */
function question(app, waits, draft, set) {
  const until = Date.parse(waits.until) - app.now();
  return html`<div class="row"><h2>${waits.asker} asks${waits.role ? ` the ${waits.role}` : ""}${waits.task_id ? html` <span class="muted">for ${waits.task_id}</span>` : nothing}</h2>
      <span class="hint num">${until > 0 ? `${span(until)} left, then “${waits.default}” stands` : "the time is up"}</span></div>
    <p class="asked">${waits.text}</p>
    ${waits.options.length ? html`<div class="row">${choices("Your answer", "answer", waits.options, draft.text, set("text"))}</div>`
      : html`<textarea aria-label="Your answer" rows="3" required maxlength="2000" .value=${draft.text} @input=${set("text")}></textarea>`}`;
}

/** Radio buttons in a row. */
const choices = (label, name, values, chosen, change, shown = (value) => value, isOff = () => false) => html`<div class="seg" role="radiogroup" aria-label=${label}>${values.map((value) => html`<label>
  <input type="radio" name=${name} value=${value} required .checked=${chosen === value} ?disabled=${isOff(value)} @change=${change}>${shown(value)}</label>`)}</div>`;

/** Where an answer goes, and what it says. */
function letterOf(waits, draft) {
  const group = `/groups/${encodeURIComponent(waits.comm_id)}`;
  if (waits.kind !== "question") return [`${group}/messages`, { seat: waits.as, turn: waits.turn, payload: payloadOf(waits, draft) }];
  const number = Number(waits.item.split(".").at(-1));
  return [`${group}/answer`, { answer: draft.text, ...(waits.task_id ? { task_id: waits.task_id, number } : { turn: number }) }];
}

const asked = (waits) => (waits.kind === "say" ? "it is your turn" : waits.kind === "conclude" ? "you state the conclusion" : `you decide ${(ABOUT[waits.about] ?? ["", ""])[1]}`);

function wordOf(act, waits) {
  if (act === "say") return "Say";
  if (act === "pass") return waits.kind === "decide" ? "Leave it" : "Pass";
  if (act === "decide") return (ABOUT[waits.about] ?? ["Decide"])[0];
  return "Conclude";
}

function left(app, waits) {
  const node = waits.node ? `${waits.node}, ` : "";
  if (!waits.until) return `${node}turn ${waits.turn}`;
  const ms = Date.parse(waits.until) - app.now();
  const then = waits.default ? `then “${waits.default}” stands` : waits.kind === "conclude" ? "then the goal ends without it" : "then the group goes on without you";
  return `${node}turn ${waits.turn} · ${ms > 0 ? `${span(ms)} left, ${then}` : "the time is up"}`;
}

function labelOf(waits, draft) {
  if (draft.act === "pass") return "Why, if you want to say it";
  if (waits.kind === "decide") return draft.choose === "hint" ? "What you tell them" : "Why";
  return waits.kind === "conclude" ? "The conclusion" : "What you say";
}

function placeOf(waits, draft) {
  if (draft.act === "pass") return waits.default ? `“${waits.default}” stands then` : "You say nothing in this turn";
  if (waits.kind === "decide") return draft.choose === "hint" ? "What you tell them" : "Why, if you want to say it";
  return waits.kind === "conclude" ? "This is the result of the goal" : "Say something, and hand the floor on";
}

/** What there is to choose from, and whom a choice names. */
function options(waits, draft, set, app) {
  const named = waits.members[draft.choose];
  return html`<div class="row">${choices("Your decision", "choose", waits.options, draft.choose, set("choose"), (one) => html`${one}${one === waits.default ? html` <span class="muted">(if you say nothing)</span>` : nothing}`)}</div>
    ${named ? html`<fieldset class="row some"><legend class="hint">Whom</legend>${named.map((agent) => html`<label><input type="checkbox" .checked=${draft.members.includes(agent)} @change=${() => {
      draft.members = draft.members.includes(agent) ? draft.members.filter((one) => one !== agent) : [...draft.members, agent];
      app.changed();
    }}>${agent}</label>`)}</fieldset>` : nothing}`;
}

/** A field of a form. */
function field(blank, draft, app) {
  const value = Object.hasOwn(draft.fields, blank.name) ? draft.fields[blank.name] : "";
  const set = (event) => {
    draft.fields = { ...draft.fields, [blank.name]: event.target.value };
    draft.problem = null;
    app.changed();
  };
  const label = html`<span>${blank.name}${blank.required ? "" : html` <span class="muted">may be left out</span>`}</span>`;
  const values = blank.kind === "yes_no" ? ["yes", "no"] : blank.values;
  if (values.length) {
    return html`<label class="blank" title=${blank.told}>${label}<select ?required=${blank.required} @change=${set}><option value="" ?selected=${!value}>–</option>
      ${values.map((one) => html`<option value=${one} ?selected=${value === one}>${one}</option>`)}</select></label>`;
  }
  return html`<label class="blank" title=${blank.told}>${label}<input type=${blank.kind === "number" ? "number" : "text"} min=${blank.lowest ?? nothing} max=${blank.highest ?? nothing}
    placeholder=${blank.lowest !== null && blank.highest !== null ? `${blank.lowest}–${blank.highest}` : nothing}
    ?required=${blank.required} .value=${value} @input=${set}></label>`;
}

/** Who speaks next, or where the group goes on; of a conclusion, whether the goal is reached. */
function onward(waits, draft, set, app) {
  if (waits.kind === "conclude") {
    return html`<label class="blank"><span>The goal is</span><select @change=${set("choose")}><option value="" ?selected=${!draft.choose}>reached</option><option value="failed" ?selected=${draft.choose === "failed"}>not reached</option></select></label>`;
  }
  const ways = waits.go.filter((way) => way !== "end");
  if (draft.act !== "say" || !(ways.length + waits.next_speakers.length)) return nothing;
  if (waits.most > 1) {
    return html`<fieldset class="row some"><legend class="hint">Next, ${waits.most} at most</legend>${waits.next_speakers.map((agent) => html`<label><input type="checkbox" .checked=${draft.next.includes(agent)}
      ?disabled=${!draft.next.includes(agent) && draft.next.length >= waits.most} @change=${() => {
        draft.next = draft.next.includes(agent) ? draft.next.filter((one) => one !== agent) : [...draft.next, agent];
        draft.choose = "";
        app.changed();
      }}>${agent}</label>`)}${ways.length ? html`<select aria-label="Where the group goes on" @change=${(event) => {
        draft.next = [];
        set("choose")(event);
      }}><option value="" ?selected=${!draft.choose}>stays here</option>${ways.map((way) => html`<option value=${way} ?selected=${draft.choose === way}>on to ${way}</option>`)}</select>` : nothing}</fieldset>`;
  }
  return html`<label><span class="wide">Next: </span><select aria-label="Who speaks next" @change=${set("choose")}><option value="" ?selected=${!draft.choose}>as the policy says</option>
    ${waits.next_speakers.map((agent) => html`<option value=${agent} ?selected=${draft.choose === agent}>${agent}</option>`)}
    ${ways.map((way) => html`<option value=${way} ?selected=${draft.choose === way}>on to ${way}</option>`)}</select></label>`;
}

function payloadOf(waits, draft) {
  if (waits.again) return {};
  if (draft.act === "pass") return { passes: true, text: draft.text };
  if (draft.act === "decide") return { text: draft.text, choose: draft.choose, ...(waits.members[draft.choose] ? { fields: { members: draft.members.join(",") } } : {}) };
  if (waits.kind === "conclude") return { text: draft.text, ...(draft.choose ? { choose: draft.choose } : {}) };
  const choose = draft.act === "conclude" ? "end" : draft.next.join(",") || draft.choose;
  const fields = Object.fromEntries(Object.entries(draft.fields).filter(([, value]) => value !== ""));
  return { text: draft.text, ...(choose ? { choose } : {}), ...(Object.keys(fields).length ? { fields } : {}) };
}

async function send(app, waits, draft) {
  if (draft.isSending) return;
  const [path, body] = letterOf(waits, draft);
  draft.isSending = true;
  draft.problem = null;
  app.changed();
  for (;;) {
    try {
      await ask(path, { method: "POST", body });
      break;
    } catch (problem) {
      if (problem.status === 0 || problem.status === 503 || problem.status === 502) {
        draft.isAway = true; // the same answer again is the same entry, so that nobody has to know what became of it
        app.changed();
        await new Promise((done) => setTimeout(done, AGAIN_MS));
        if (!app.isIn) return;
        continue;
      }
      draft.isSending = false;
      draft.isAway = false;
      draft.problem = app.failed(problem);
      return;
    }
  }
  drafts.delete(keyOf(waits));
  app.turns.take(waits);
}
