// All goals: what there is to launch, and how each stands.
import { ask, follow, query, token } from "../api.js";
import { ago, avatar, banner, bytes, cost, count, empty, html, icon, loading, nothing, phasePill, pill, trouble } from "../parts/words.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";

const AGAIN_MS = 3000;

let rows = null;
let next = null;
let problem = null;
let openOnly = false;
let teams = []; // that were put under a name
let draft = freshDraft();

function freshDraft() {
  return { goal: "", files: [], agent: "", team: "", turns: "", minutes: "", key: token(), isSending: false, problem: null };
}

export const goals = {
  title: () => "Goals",
  searches: "Search goals",
  enter(app) {
    if (!mayRead(app)) return () => {};
    let isOver = false;
    let end = () => {};
    const begin = async () => {
      await read(app);
      if (isOver) return;
      if (problem) return void (problem.status !== 401 && setTimeout(() => isOver || begin(), AGAIN_MS));
      end = follow(() => "/events?list=true", 0, {
        goal: (row) => take(row, app),
        live: (isLive) => {
          app.isLive = isLive;
          app.changed();
        },
        refused: async () => {
          await read(app);
          return problem?.status !== 401;
        },
      });
    };
    begin();
    ask("/teams").then((found) => {
      teams = found.teams;
      app.changed();
    }, () => {});
    return () => {
      isOver = true;
      end();
    };
  },
  draw: (app) => (mayRead(app) ? html`<main id="main" class="page" tabindex="-1"><header><h1>Goals</h1><span class="muted">${summary(app)}</span>
    <button class="btn quiet end" type="button" aria-pressed=${openOnly} @click=${() => {
      openOnly = !openOnly;
      rows = null;
      read(app);
      app.changed();
    }}>${icon("eye")}Only open ones</button></header>${launchBox(app)}${waiting(app)}${list(app)}</main>` : html`<main id="main" class="page" tabindex="-1"><header><h1>Your turns</h1></header>
    ${app.turns?.list.length ? waiting(app) : empty("Nothing waits for you", "It shows here when a group asks you.")}</main>`),
};

/** Whether goals can be looked at; who only answers as a person sees what that person hears, and no list. */
const mayRead = (app) => app.who.scopes.includes("goals:read");

async function read(app) {
  try {
    const page = await ask(`/goals${query({ limit: 50, open: openOnly || undefined })}`);
    rows = page.goals;
    next = page.next;
    problem = null;
  } catch (error) {
    problem = app.failed(error);
  }
  app.changed();
}

/** Put a row that has changed in its place, or a new one above all others. */
function take(row, app) {
  problem = null;
  const place = rows.findIndex((one) => keyOf(one) === keyOf(row));
  if (place >= 0) rows[place] = row;
  else if (!rows.length || row.accepted_at >= rows[0].accepted_at) rows.unshift(row);
  if (openOnly) rows = rows.filter(isOpen);
  app.changed();
}

async function more(app) {
  try {
    const page = await ask(`/goals${query({ limit: 50, cursor: next, open: openOnly || undefined })}`);
    rows = [...rows, ...page.goals];
    next = page.next;
  } catch (error) {
    problem = app.failed(error);
  }
  app.changed();
}

const keyOf = (row) => `${row.user ?? ""}/${row.goal_id}`;
const isOpen = (row) => row.result === null;

const isMine = (app, row) => app.turns?.isMine(row);
const mineFirst = (app, some) => (app.turns?.list.length ? [...some.filter((row) => isMine(app, row)), ...some.filter((row) => !isMine(app, row))] : some);

/** What waits for whoever looks, above all else. */
const waiting = (app) => (app.turns?.list.length ? html`<section class="yours panel" aria-label="Waits for you"><h2>Waits for you</h2><ul>${app.turns.list.map((one) => html`<li>
  <a href=${turnHref(one, app)}>${one.kind === "question" ? cut(one.text) : cut(one.goal)}</a><small>${one.as ?? one.asker} ${ASKED[one.kind]}${one.last ? `; ${one.last.sender}: “${cut(one.last.content)}”` : ""}</small></li>`)}</ul></section>` : nothing);

const ASKED = { say: "is to speak", decide: "is to decide", conclude: "states the conclusion", question: "asks you" };
const turnHref = (one, app) => (mayRead(app) ? roomHref(one) : `/turns/${encodeURIComponent(one.as)}/${encodeURIComponent(one.comm_id)}`);
const roomHref = (one) => `${hrefOf(one)}${one.user ? "&" : "?"}${new URLSearchParams({ room: one.comm_id })}`;

function summary(app) {
  if (!rows?.length) return "";
  const open = rows.filter(isOpen).length;
  const number = app.turns?.list.length;
  const mine = number ? `, ${number} ${number === 1 ? "waits" : "wait"} for you` : "";
  return open ? `${open} ${open === 1 ? "runs" : "run"}${mine}` : "none runs now";
}

function list(app) {
  if (rows === null) return problem ? trouble(problem, () => read(app)) : loading("goals");
  const wanted = app.found.toLowerCase();
  const found = mineFirst(app, wanted ? rows.filter((row) => `${row.goal} ${row.status} ${row.result?.content ?? ""} ${row.members.join(" ")}`.toLowerCase().includes(wanted)) : rows);
  if (!found.length) {
    return wanted ? empty("Nothing found", `No goal of those loaded holds “${app.found}”.`)
      : empty(openOnly ? "No goal runs now" : "No goals yet", "Say above what you want done. Agents that fit are found by what they say of themselves.");
  }
  return html`${problem ? banner(problem) : nothing}<div class="rows goals"><table><caption class="sr">Goals, the newest first</caption><thead><tr>
    <th scope="col">goal</th><th scope="col">state</th><th scope="col">team</th><th scope="col">turns</th><th scope="col">tokens</th><th scope="col">cost</th><th scope="col">begun</th></tr></thead>
    <tbody>${repeat(found.slice(0, 200), keyOf, (row) => line(row, app))}</tbody></table></div>
    ${next && !wanted ? html`<p class="more"><button class="btn" type="button" @click=${() => more(app)}>Show older goals</button></p>` : nothing}`;
}

const line = (row, app) => html`<tr><td class="what"><a href=${hrefOf(row)}>${cut(row.goal)}</a><small>${told(row)}</small></td><td>${isMine(app, row) ? pill("wait", "waits for you") : phasePill(row.status)}</td>
  <td>${row.members.length ? html`<div class="stack" role="img" aria-label=${row.members.join(", ")}>${row.members.slice(0, 5).map((agent) => avatar(agent))}</div>` : html`<span class="muted">–</span>`}</td>
  <td class="num nowrap">${row.turns_taken} <span class="muted">of ${row.max_turns}</span></td><td class="num">${count(row.usage.tokens_in + row.usage.tokens_out)}</td>
  <td class="num">${cost(row.usage.cost_micros)}</td><td class="num nowrap" title=${row.accepted_at}>${ago(app.now() - Date.parse(row.accepted_at))}</td></tr>`;

export const hrefOf = (row) => `/goals/${encodeURIComponent(row.goal_id)}${query({ user: row.user })}`;

const cut = (text) => (text.length > 220 ? `${text.slice(0, 220)} …` : text);

function told(row) {
  if (row.result) return cut(row.result.content);
  if (row.status === "waiting") return row.agent ? `waits for ${row.agent}` : "waits for an agent that takes it";
  if (row.floor.length) return `${row.floor.join(", ")} ${row.floor.length === 1 ? "has" : "have"} the floor`;
  return row.members.length > 1 ? "members work on tasks" : "";
}

// ---------------------------------------------------------------- launching

function launchBox(app) {
  const set = (field) => (event) => {
    draft[field] = event.target.value;
    app.changed();
  };
  return html`<form class="launch" aria-label="Launch a goal" @submit=${(event) => {
    event.preventDefault();
    launch(app);
  }}><textarea aria-label="What do you want done?" placeholder="What do you want done?" rows="2" required maxlength="32000" .value=${draft.goal} @input=${set("goal")}
    @keydown=${(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form.requestSubmit()}></textarea>
  ${draft.files.length ? html`<ul class="files">${draft.files.map((file) => html`<li class="file">${icon("file")}${file.name} <small>${bytes(file.size)}</small>
    <button class="x" type="button" aria-label=${`Leave out ${file.name}`} @click=${() => {
      draft.files = draft.files.filter((one) => one !== file);
      app.changed();
    }}>${icon("bad")}</button></li>`)}</ul>` : nothing}
  ${draft.problem ? banner(draft.problem, "wide") : nothing}
  <div class="opts"><label class="btn pick">${icon("clip")}Add files<input class="sr" type="file" multiple @change=${(event) => {
    draft.files = [...draft.files, ...event.target.files];
    event.target.value = "";
    app.changed();
  }}></label>
    ${teams.length ? html`<label class="field">as <select aria-label="Which team" @change=${set("team")}><option value="" ?selected=${!draft.team}>whoever fits</option>
      ${teams.map((team) => html`<option value=${team.name} ?selected=${draft.team === team.name}>${team.name}</option>`)}</select></label>` : nothing}
    <label class="field">led by <select aria-label="Who leads" @change=${set("agent")}><option value="" ?selected=${!draft.agent}>any agent</option>
      ${[...app.agents.values()].filter((agent) => agent.online).slice(0, 500).map((agent) => html`<option value=${agent.agent_id} ?selected=${draft.agent === agent.agent_id}>${agent.agent_id}</option>`)}</select></label>
    <label class="field"><input type="number" min="1" max="10000" placeholder="40" aria-label="Turns at most" .value=${draft.turns} @input=${set("turns")}> turns</label>
    <label class="field"><input type="number" min="1" max="43200" placeholder="60" aria-label="Minutes at most" .value=${draft.minutes} @input=${set("minutes")}> min</label></div>
  <button class="btn main" ?disabled=${draft.isSending}>${draft.isSending ? "Launching …" : "Launch"}</button></form>`;
}

/** Begin a draft that an agent is to lead. */
export function draftFor(agent) {
  draft = { ...draft, agent };
}

async function launch(app) {
  if (draft.isSending || !draft.goal.trim()) return;
  draft.isSending = true;
  draft.problem = null;
  app.changed();
  try {
    const order = {
      goal: draft.goal,
      inputs: await Promise.all(draft.files.map(stored)),
      ...(draft.team ? { team: draft.team } : {}),
      ...(draft.agent ? { agent: draft.agent } : {}),
      ...(draft.turns ? { max_turns: Number(draft.turns) } : {}),
      ...(draft.minutes ? { timeout: Number(draft.minutes) * 60 } : {}),
    };
    // A draft has one key: sent twice, it is one goal.
    const launched = await ask("/goals", { method: "POST", body: order, headers: { "Idempotency-Key": draft.key } });
    draft = freshDraft();
    app.go(hrefOf(launched));
  } catch (error) {
    draft.problem = app.failed(error);
    draft.isSending = false;
    if (error.status && error.status !== 503) draft.key = token();
    app.changed();
  }
}

/** Store a file, and return how an order names it. */
const stored = (file) => ask(`/uploads/${encodeURIComponent(file.name)}`, { method: "PUT", body: file });
