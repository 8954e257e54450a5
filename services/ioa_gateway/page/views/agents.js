// The agents with their load, and a search for a need with the reason of each hit.
import { ask } from "../api.js";
import { avatar, bar, cut, empty, html, icon, loading, nothing, page, pill, several, table, trouble } from "../parts/words.js";

const SHORT = 160; // characters of a text in the list

let need = "";
let found = null; // the hits of the last search
let asked = "";
let problem = null;
let isSearching = false;
let chosen = "";

export const agents = {
  title: () => "Agents",
  searches: "Filter by name",
  focus: "need",
  enter(app) {
    problem = null;
    app.readAgents();
  },
  draw(app) {
    const list = [...app.agents.values()];
    return page(html`<header><h1>Agents</h1><span class="muted">${list.length ? `${app.online().length} of ${list.length} online` : ""}</span></header>
      <form class="launch" aria-label="Search by meaning" @submit=${(event) => {
        event.preventDefault();
        search(app);
      }}><input class="text" id="need" aria-label="Who can …?" placeholder="Who can …?" required maxlength="4000" .value=${need} @input=${(event) => { need = event.target.value; }}>
        <div class="opts"><span class="hint">by meaning; this is what the agents themselves see</span>
          ${found ? html`<button class="btn quiet" type="button" @click=${() => { found = null; }}>Show all agents</button>` : nothing}</div>
        <button class="btn main" ?disabled=${isSearching}>${isSearching ? "Searching …" : "Search"}</button></form>
      ${problem || app.agentsProblem ? trouble(problem ?? app.agentsProblem) : nothing}${results(app, list)}`);
  },
};

async function search(app) {
  if (!need.trim()) return;
  isSearching = true;
  problem = null;
  try {
    const { by_need: [first] } = await ask("/agents/search", { method: "POST", body: { needs: [{ text: need, k: 20, filters: { online: false } }] } });
    found = first.hits;
    asked = first.need;
    chosen = found[0]?.agent_id ?? "";
  } catch (error) {
    problem = app.failed(error);
  }
  isSearching = false;
}

function results(app, list) {
  if (!list.length) return app.agentsProblem === null ? empty("No agents yet", "`ioa agent run FILE.py:agent` joins one; `ioa up --pool FILE` runs many.") : app.agentsProblem ? nothing : loading("agents");
  const wanted = app.found.toLowerCase();
  const rows = (found ?? list).filter((one) => !wanted || `${one.agent_id} ${one.description}`.toLowerCase().includes(wanted));
  if (!rows.length) return empty("Nothing found", found ? `No agent fits “${asked}”.` : `No agent is called like “${app.found}”.`);
  const card = app.agents.get(chosen) ?? app.agents.get(rows[0].agent_id);
  const title = found ? `Agents that fit “${asked}”, best first` : "Agents by id";
  return html`<div class="split"><div>${table("agents", title, [...COLUMNS, ...(found ? HIT : [["groups", "num", (one) => one.load.groups]])], rows, (one) => one.agent_id, (one) => (chosen === one.agent_id ? "is-chosen" : ""))}</div>${card ? about(card, app) : nothing}</div>`;
}

const COLUMNS = [
  ["agent", "what", (one) => html`<div class="agent">${avatar(one.agent_id, one.online)}<div>
    <button class="link" type="button" aria-pressed=${chosen === one.agent_id} @click=${() => { chosen = one.agent_id; }}>${one.agent_id}</button><small>${cut(one.description, SHORT)}</small></div></div>`],
  ["state", "", (one) => (one.online ? pill("good", "online") : pill("bad", "away", true))],
  ["busy", "busy", ({ agent_id, load: { tasks, slots } }) => html`<span class="progress">${bar(`${agent_id} is busy`, tasks / slots, 0, tasks >= slots ? "warn" : "")}<span class="num">${tasks} of ${slots}</span></span>`],
];
const HIT = [
  ["done", "num", ({ record: { done, failed } }) => (done + failed ? `${done} of ${done + failed}` : html`<span class="muted">new</span>`)],
  ["why it is found", "why", why],
];

const SIGNALS = { text: "its description", examples: "an example", bm25: "words in common" };

function why(hit) {
  const [best] = hit.why.signals.toSorted((one, other) => other.fused - one.fused);
  const by = best?.signal === "examples" && hit.matched_example ? html`example “${cut(hit.matched_example, SHORT)}”` : (SIGNALS[best?.signal] ?? "nothing near");
  return html`<b class="num">${hit.score.toFixed(2)}</b> · ${by}${hit.why.shifts.map((shift) => html`<small>${shift.amount < 0 ? "−" : "+"}${Math.abs(shift.amount).toFixed(2)} ${shift.reason}</small>`)}`;
}

const about = (card, app) => html`<aside class="panel" aria-label=${`About ${card.agent_id}`}><h2>${card.name}</h2><p class="muted">${card.description}</p><dl class="facts">
  <dt>id</dt><dd class="mono">${card.agent_id}</dd><dt>pool</dt><dd>${card.pool}, ${several([...app.agents.values()].filter((one) => one.pool === card.pool).length, "replica")}</dd>
  <dt>version</dt><dd>${card.version}</dd><dt>groups</dt><dd>${several(card.load.groups, "open group")}</dd><dt>nested teams</dt><dd>${card.may_team_up ? "may open them" : "works alone"}</dd></dl>
  ${card.examples.length ? html`<h3>Asks that it serves</h3><ul class="says">${card.examples.slice(0, 6).map((text) => html`<li>${text}</li>`)}</ul>` : nothing}
  ${card.advice.map((text) => html`<p class="hint advice">${icon("bad")}${text}</p>`)}
  <p><button class="btn" type="button" ?disabled=${!card.online} @click=${() => {
    app.draft = { order: { agent: card.agent_id } };
    app.go("/");
  }}>Launch a goal that it leads</button></p></aside>`;
