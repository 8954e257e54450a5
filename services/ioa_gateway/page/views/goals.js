// The list of goals, and the form that launches one.
import { ask, follow, goalHref, query, token } from "../api.js";
import { ago, avatar, banner, bytes, cost, count, cut, empty, html, icon, loading, menu, nothing, page, phasePill, pill, plain, several, table, trouble } from "../parts/words.js";

const PAGE = 50;
const SHORT = 220; // characters of a text in the list
const STATES = [["", "all goals"], ["open"], ["concluded"], ["failed"], ["cancelled"]];
const used = (row) => row.usage.tokens_in + row.usage.tokens_out;
const ORDERS = {
  newest: (one, other) => (one.accepted_at < other.accepted_at ? 1 : -1),
  oldest: (one, other) => (one.accepted_at > other.accepted_at ? 1 : -1),
  "most turns": (one, other) => other.turns_taken - one.turns_taken,
  "most tokens": (one, other) => used(other) - used(one),
};

let rows = null;
let next = null;
let problem = null;
let state = ""; // the shown state, one of STATES
let order = "newest";
let teams = []; // stored teams
/** A draft of a goal: the fields of its order, and its files. */
const freshDraft = ({ order = {}, files = [] } = {}) => ({ order, files, key: token(), isSending: false, problem: null });
let draft = freshDraft();

export const goals = {
  title: () => "Goals",
  searches: "Search goals",
  enter(app) {
    if (!app.may("goals:read")) return null;
    if (app.draft) draft = freshDraft(app.draft);
    app.draft = null;
    let end = () => { end = null; };
    const refused = async () => {
      await read(app);
      return problem?.status !== 401;
    };
    read(app).then(() => { end &&= follow(() => "/events?list=true", 0, { goal: (row) => take(row, app), refused }); });
    ask("/teams").then((found) => { teams = found.teams; }, () => {});
    return () => end?.();
  },
  draw: (app) => page(app.may("goals:read") ? html`${header(app)}${launchBox(app)}${waiting(app)}${list(app)}`
    : html`<header><h1>Your turns</h1></header>${app.turns?.list.length ? waiting(app) : empty("Nothing waits for you", "It shows here when a group asks you.")}`),
};

function header(app) {
  const show = (event) => {
    state = event.target.value;
    rows = null;
    read(app);
  };
  return html`<header><h1>Goals</h1><span class="muted">${summary(app)}</span><label class="field end">show ${menu("State", state, STATES, show)}</label>
    <label class="field">by ${menu("Order", order, Object.keys(ORDERS).map((one) => [one]), (event) => { order = event.target.value; })}</label></header>`;
}

/** The state of a goal, one of STATES. */
function stateOf(row) {
  if (row.result === null) return "open";
  return row.status === "concluded" || row.status === "cancelled" ? row.status : "failed";
}

/** Read the newest goals in the shown state, or the next ones after a cursor. */
async function read(app, cursor = null) {
  try {
    const found = await ask(`/goals${query({ limit: PAGE, cursor, ...(state === "open" ? { open: true } : { phase: state }) })}`);
    rows = cursor === null ? found.goals : [...rows, ...found.goals];
    next = found.next;
    problem = null;
  } catch (error) {
    problem = app.failed(error);
  }
}

/** Put a changed row in its place, or a new one above all others. */
function take(row, app) {
  const hasFailed = problem !== null;
  problem = null;
  if (rows === null) return hasFailed ? read(app) : null; // otherwise the list is being read
  const place = rows.findIndex((one) => keyOf(one) === keyOf(row));
  if (place >= 0) rows[place] = row;
  else if (!rows.length || row.accepted_at >= rows[0].accepted_at) rows.unshift(row);
  rows = rows.filter((one) => state === "" || stateOf(one) === state);
}

const keyOf = (row) => `${row.user ?? ""}/${row.goal_id}`;

/** The open items of the user, above all goals. */
const waiting = (app) => (app.turns?.list.length ? html`<section class="yours panel" aria-label="Waits for you"><h2>Waits for you</h2><ul>${app.turns.list.map((one) => html`<li>
  <a href=${turnHref(one, app)}>${cut(plain(one.kind === "question" ? one.text : one.goal), SHORT)}</a><small>${one.as ?? one.asker} ${ASKED[one.kind]}${one.last ? `; ${one.last.sender}: “${cut(plain(one.last.content), SHORT)}”` : ""}</small></li>`)}</ul></section>` : nothing);

const ASKED = { say: "is to speak", decide: "is to decide", conclude: "states the conclusion", question: "asks you" };
const turnHref = (one, app) => (app.may("goals:read") ? goalHref(one, one.comm_id) : `/turns/${encodeURIComponent(one.as)}/${encodeURIComponent(one.comm_id)}`);

function summary(app) {
  if (!rows?.length) return "";
  const open = rows.filter((row) => row.result === null).length;
  const mine = app.turns?.list.length;
  return `${open ? several(open, "runs", "run") : "none runs now"}${mine ? `, ${several(mine, "waits", "wait")} for you` : ""}`;
}

function list(app) {
  if (rows === null) return problem ? trouble(problem, () => read(app)) : loading("goals");
  const wanted = app.found.toLowerCase();
  const isFound = (row) => `${row.goal} ${row.status} ${row.result?.content ?? ""} ${row.members.join(" ")}`.toLowerCase().includes(wanted);
  const rank = (row) => (app.turns?.isMine(row) ? 0 : 1);
  const found = rows.filter((row) => !wanted || isFound(row)).sort((one, other) => rank(one) - rank(other) || ORDERS[order](one, other));
  if (!found.length) {
    return wanted ? empty("Nothing found", `No goal of those loaded holds “${app.found}”.`)
      : empty(state ? `No ${state} goals` : "No goals yet", "Say above what you want done. Agents that fit are found by their descriptions.");
  }
  const columns = [
    ["goal", "what", (row) => html`<a href=${goalHref(row)}>${cut(plain(row.goal), SHORT)}</a><small>${cut(news(row), SHORT)}</small>`],
    ["state", "", (row) => (app.turns?.isMine(row) ? pill("wait", "waits for you") : phasePill(row.status))],
    ["team", "team", ({ members }) => (members.length ? html`<div class="stack" role="img" aria-label=${members.join(", ")}>${members.slice(0, 5).map((agent) => avatar(agent))}</div>` : nothing), found.some((row) => row.members.length)],
    ["turns", "num turns", (row) => html`${row.turns_taken} <span class="muted">of ${row.max_turns}</span>`],
    ["tokens", "num used", (row) => count(used(row)), found.some(used)],
    ["cost", "num used", (row) => cost(row.usage.cost_micros), found.some((row) => row.usage.cost_micros)],
    ["accepted", "num age", (row) => html`<span title=${row.accepted_at}>${ago(app.now() - Date.parse(row.accepted_at))}</span>`],
  ];
  return html`${problem ? banner(problem) : nothing}${table("goals", "Goals", columns.filter(([, , , isUsed = true]) => isUsed), found, keyOf)}
    ${next && !wanted ? html`<p class="more"><button class="btn" type="button" @click=${() => read(app, next)}>Show older goals</button></p>` : nothing}`;
}

function news(row) {
  if (row.result) return plain(row.result.content);
  if (row.status === "waiting") return row.agent ? `waits for ${row.agent}` : "waits for an agent that takes it";
  if (row.floor.length) return `${row.floor.join(", ")} ${row.floor.length === 1 ? "has" : "have"} the floor`;
  return row.members.length > 1 ? "members work on tasks" : "";
}

// ---------------------------------------------------------------- launching

function launchBox(app) {
  const { order } = draft;
  const online = app.online();
  const set = (field, read = (text) => text) => (event) => { order[field] = read(event.target.value) || undefined; };
  return html`<form class="launch" aria-label="Launch a goal" @submit=${(event) => {
    event.preventDefault();
    launch(app);
  }}><textarea class="text" aria-label="What do you want done?" placeholder="What do you want done?" rows="2" required maxlength="32000" .value=${order.goal ?? ""} @input=${set("goal")}
    @keydown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form.requestSubmit()}></textarea>
  ${draft.files.length ? html`<ul class="files wide">${draft.files.map((file) => html`<li class="file">${icon("file")}${file.name} <small>${bytes(file.size ?? file.size_bytes)}</small>
    <button class="x" type="button" aria-label=${`Leave out ${file.name}`} @click=${() => { draft.files = draft.files.filter((one) => one !== file); }}>${icon("bad")}</button></li>`)}</ul>` : nothing}
  ${draft.problem ? banner(draft.problem, "wide") : nothing}
  <div class="opts"><label class="btn pick">${icon("clip")}Add files<input class="sr" type="file" multiple @change=${(event) => {
    draft.files = [...draft.files, ...event.target.files];
    event.target.value = "";
  }}></label>
    ${teams.length || order.team ? html`<label class="field">team ${choice("Which team", order.team?.team ?? order.team, "formed for this goal", teams.map((team) => team.name), set("team"))}</label>` : nothing}
    <label class="field">led by ${choice("Who leads", order.agent, "any agent", online.map((agent) => agent.agent_id), set("agent"))}</label>
    <label class="field"><input type="number" min="1" max="10000" placeholder="40" aria-label="Turns at most" .value=${order.max_turns ?? ""} @change=${set("max_turns", Number)}> turns</label>
    <label class="field"><input type="number" min="0.001" max="43200" step="any" placeholder="60" aria-label="Minutes at most" .value=${order.timeout ? order.timeout / 60 : ""} @change=${set("timeout", (minutes) => minutes * 60)}> min</label></div>
  <button class="btn main" ?disabled=${draft.isSending}>${draft.isSending ? "Launching …" : "Launch"}</button>
  ${order.goal ? nothing : examples(online)}</form>`;
}

/** A menu of names, which also contains the chosen name, and of an option for none. */
const choice = (label, chosen, none, names, change) => menu(label, chosen ?? "", [["", none], ...[...new Set([...names, ...(chosen ? [chosen] : [])])].map((name) => [name])], change);

/** Goals to begin with: an example of each of the first agents' cards. */
function examples(agents) {
  const texts = agents.flatMap((agent) => agent.examples.slice(0, 1)).slice(0, 4);
  return texts.length ? html`<p class="examples wide"><span class="muted">For example:</span>${texts.map((text) => html`<button class="chip" type="button" @click=${() => {
    draft.order.goal = text;
    document.querySelector(".launch textarea").focus();
  }}>${cut(text, SHORT)}</button>`)}</p>` : nothing;
}

async function launch(app) {
  if (draft.isSending || !draft.order.goal?.trim()) return;
  draft.isSending = true;
  draft.problem = null;
  try {
    const body = { ...draft.order, inputs: await Promise.all(draft.files.map(stored)) };
    const launched = await ask("/goals", { method: "POST", body, headers: { "Idempotency-Key": draft.key } });
    draft = freshDraft();
    app.go(goalHref(launched));
  } catch (error) {
    draft.problem = app.failed(error);
    draft.isSending = false;
    if (error.status && error.status !== 503) draft.key = token(); // otherwise the goal may have been launched
  }
}

/** Store a file, and return how an order names it. A file of an earlier goal is stored already. */
const stored = (file) => (file.sha256 ? file : ask(`/uploads/${encodeURIComponent(file.name)}`, { method: "PUT", body: file }));
