// Stored teams: the drawing of each policy, its limits and its roles.
import { ask, query } from "../api.js";
import { complete, graph } from "../parts/graph.js";
import { empty, html, loading, nothing, page, several, table, trouble } from "../parts/words.js";

let teams = null; // stored teams
let team = null; // the team that is drawn
let problem = null;

export const policy = {
  title: () => team?.name ?? "Policies",
  searches: "Search policies",
  enter(app, { query: asked }) {
    team = problem = null;
    const name = asked.get("team");
    ask(name ? `/teams/${encodeURIComponent(name)}` : "/teams").then((found) => {
      if (name) team = found;
      else ({ teams } = found);
    }, (error) => { problem = app.failed(error); });
  },
  draw: (app) => page(problem ? trouble(problem) : team ? drawn() : list(app)),
};

function list(app) {
  const shown = (teams ?? []).filter((one) => one.name.toLowerCase().includes(app.found.toLowerCase()));
  const columns = [["team", "", (one) => html`<a href=${`/policies${query({ team: one.name })}`}>${one.name}</a>`], ["version", "num", (one) => one.version], ["stored by", "", (one) => one.user]];
  return html`<header><h1>Policies</h1></header>${teams === null ? loading("policies") : shown.length ? table("", "Stored teams", columns, shown, (one) => one.name)
    : empty(app.found ? "Nothing found" : "No team is stored", "A team file with a policy states who speaks when: `ioa team put FILE` stores it, `ioa team draw FILE` draws it. The policy of a running goal is in its room.")}`;
}

function drawn() {
  const { team: file } = team;
  const nodes = file.nodes.map(complete);
  const limits = nodes.map((node) => [node.name, [node.max && `at most ${several(node.max, "turn")} per visit`, node.visits && `at most ${several(node.visits, "visit")}`, node.join === "all" && "waits for all nodes that lead to it", node.take === "all" && "takes all exits in turn"].filter(Boolean).join(", ")]);
  return html`<header><h1>${team.name}</h1><span class="muted">version ${team.version}${file.goal ? ` · ${file.goal}` : ""}</span></header>
    <div class="split"><div class="panel">${graph(nodes)}</div><aside class="panel"><h2>Limits</h2><dl class="facts">
      <dt>whole group</dt><dd>${file.max_turns ? `at most ${several(file.max_turns, "turn")}` : "the turns of the goal"}</dd>
      ${limits.filter(([, text]) => text).map(([name, text]) => html`<dt>${name}</dt><dd>${text}</dd>`)}</dl>
      <h3>Roles</h3><dl class="facts">${Object.entries(file.roles).map(([name, role]) => html`<dt>${name}</dt><dd>${typeof role === "string" ? role : (role.agent ?? role.human ?? role.need ?? nothing)}</dd>`)}</dl></aside></div>`;
}
