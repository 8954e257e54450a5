// All goals: what there is to launch, and how each stands.
import { ask, follow, query, token } from "../api.js";
import { ago, avatar, banner, bytes, cost, count, empty, html, icon, loading, nothing, phasePill, pill, plain, trouble } from "../parts/words.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";

const AGAIN_MS = 3000;
/** The states that can be shown, each with its test. */
const STATES = {
  "": () => true,
  open: (row) => row.result === null,
  concluded: (row) => row.status === "concluded",
  failed: (row) => row.status === "failed",
  cancelled: (row) => row.status === "cancelled",
};
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
let state = ""; // that is shown, by its name in STATES
let order = "newest";
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
        live: app.live,
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
    <label class="field end">show <select aria-label="State" @change=${(event) => {
      state = event.target.value;
      rows = null;
      read(app);
      app.changed();
    }}>${Object.keys(STATES).map((one) => html`<option value=${one} ?selected=${state === one}>${one || "all goals"}</option>`)}</select></label>
    <label class="field">by <select aria-label="Order" @change=${(event) => {
      order = event.target.value;
      app.changed();
    }}>${Object.keys(ORDERS).map((one) => html`<option value=${one} ?selected=${order === one}>${one}</option>`)}</select></label></header>${launchBox(app)}${waiting(app)}${list(app)}</main>` : html`<main id="main" class="page" tabindex="-1"><header><h1>Your turns</h1></header>
    ${app.turns?.list.length ? waiting(app) : empty("Nothing waits for you", "It shows here when a group asks you.")}</main>`),
};

/** Whether goals can be looked at; who only answers as a person sees what that person hears, and no list. */
const mayRead = (app) => app.who.scopes.includes("goals:read");

/** What the server filters by: open goals, or the phase of an ended one. */
const asked = () => (state === "open" ? { open: true } : state ? { phase: state } : {});

async function read(app) {
  try {
    const page = await ask(`/goals${query({ limit: 50, ...asked() })}`);
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
  if (rows === null) return; // the list is being read
  const place = rows.findIndex((one) => keyOf(one) === keyOf(row));
  if (place >= 0) rows[place] = row;
  else if (!rows.length || row.accepted_at >= rows[0].accepted_at) rows.unshift(row);
  rows = rows.filter(STATES[state]);
  app.changed();
}

async function more(app) {
  try {
    const page = await ask(`/goals${query({ limit: 50, cursor: next, ...asked() })}`);
    rows = [...rows, ...page.goals];
    next = page.next;
  } catch (error) {
    problem = app.failed(error);
  }
  app.changed();
}

const keyOf = (row) => `${row.user ?? ""}/${row.goal_id}`;

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
  const open = rows.filter(STATES.open).length;
  const number = app.turns?.list.length;
  const mine = number ? `, ${number} ${number === 1 ? "waits" : "wait"} for you` : "";
  return open ? `${open} ${open === 1 ? "runs" : "run"}${mine}` : "none runs now";
}

function list(app) {
  if (rows === null) return problem ? trouble(problem, () => read(app)) : loading("goals");
  const wanted = app.found.toLowerCase();
  const found = mineFirst(app, (wanted ? rows.filter((row) => `${row.goal} ${row.status} ${row.result?.content ?? ""} ${row.members.join(" ")}`.toLowerCase().includes(wanted)) : rows).toSorted(ORDERS[order]));
  if (!found.length) {
    return wanted ? empty("Nothing found", `No goal of those loaded holds “${app.found}”.`)
      : empty(state ? `No ${state} goals` : "No goals yet", "Say above what you want done. Agents that fit are found by their descriptions.");
  }
  const has = { team: found.some((row) => row.members.length), tokens: found.some(used), cost: found.some((row) => row.usage.cost_micros) };
  return html`${problem ? banner(problem) : nothing}<div class="rows goals"><table><caption class="sr">Goals</caption><thead><tr>
    <th scope="col">goal</th><th scope="col">state</th>${has.team ? html`<th scope="col">team</th>` : nothing}<th scope="col">turns</th>${has.tokens ? html`<th scope="col">tokens</th>` : nothing}
    ${has.cost ? html`<th scope="col">cost</th>` : nothing}<th scope="col">accepted</th></tr></thead>
    <tbody>${repeat(found.slice(0, 200), keyOf, (row) => line(row, app, has))}</tbody></table></div>
    ${next && !wanted ? html`<p class="more"><button class="btn" type="button" @click=${() => more(app)}>Show older goals</button></p>` : nothing}`;
}

const line = (row, app, has) => html`<tr><td class="what"><a href=${hrefOf(row)}>${cut(row.goal)}</a><small>${told(row)}</small></td><td>${isMine(app, row) ? pill("wait", "waits for you") : phasePill(row.status)}</td>
  ${has.team ? html`<td class="team">${row.members.length ? html`<div class="stack" role="img" aria-label=${row.members.join(", ")}>${row.members.slice(0, 5).map((agent) => avatar(agent))}</div>` : nothing}</td>` : nothing}
  <td class="num nowrap turns">${row.turns_taken} <span class="muted">of ${row.max_turns}</span></td>${has.tokens ? html`<td class="num used">${count(used(row))}</td>` : nothing}
  ${has.cost ? html`<td class="num used">${cost(row.usage.cost_micros)}</td>` : nothing}<td class="num nowrap age" title=${row.accepted_at}>${ago(app.now() - Date.parse(row.accepted_at))}</td></tr>`;

export const hrefOf = (row) => `/goals/${encodeURIComponent(row.goal_id)}${query({ user: row.user })}`;

const cut = (text) => (text.length > 220 ? `${text.slice(0, 220)} …` : text);

function told(row) {
  if (row.result) return cut(plain(row.result.content));
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
  ${draft.files.length ? html`<ul class="files">${draft.files.map((file) => html`<li class="file">${icon("file")}${file.name} <small>${bytes(file.size ?? file.size_bytes)}</small>
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
    ${teams.length ? html`<label class="field">team <select aria-label="Which team" @change=${set("team")}><option value="" ?selected=${!draft.team}>formed for this goal</option>
      ${teams.map((team) => html`<option value=${team.name} ?selected=${draft.team === team.name}>${team.name}</option>`)}</select></label>` : nothing}
    <label class="field">led by <select aria-label="Who leads" @change=${set("agent")}><option value="" ?selected=${!draft.agent}>any agent</option>
      ${[...app.agents.values()].filter((agent) => agent.online).slice(0, 500).map((agent) => html`<option value=${agent.agent_id} ?selected=${draft.agent === agent.agent_id}>${agent.agent_id}</option>`)}</select></label>
    <label class="field"><input type="number" min="1" max="10000" placeholder="40" aria-label="Turns at most" .value=${draft.turns} @input=${set("turns")}> turns</label>
    <label class="field"><input type="number" min="1" max="43200" placeholder="60" aria-label="Minutes at most" .value=${draft.minutes} @input=${set("minutes")}> min</label></div>
  <button class="btn main" ?disabled=${draft.isSending}>${draft.isSending ? "Launching …" : "Launch"}</button>
  ${draft.goal ? nothing : examples(app)}</form>`;
}

/** Goals to begin with: an example of each of the first agents' cards. */
function examples(app) {
  const texts = [...app.agents.values()].filter((agent) => agent.online && agent.examples.length).slice(0, 4).map((agent) => agent.examples[0]);
  return texts.length ? html`<p class="examples wide"><span class="muted">For example:</span>${texts.map((text) => html`<button class="chip" type="button" @click=${() => {
    draft.goal = text;
    app.changed();
    document.querySelector(".launch textarea").focus();
  }}>${cut(text)}</button>`)}</p>` : nothing;
}

/** Change the draft: the goal, its files or its leader. */
export function draftFor(fields) {
  draft = { ...freshDraft(), ...fields };
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

/** Store a file, and return how an order names it. A file of an earlier goal is stored already. */
const stored = (file) => (file.sha256 ? file : ask(`/uploads/${encodeURIComponent(file.name)}`, { method: "PUT", body: file }));
