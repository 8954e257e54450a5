// The policy of a group beside its conversation: the current node, the taken exits, the roles, and what was rejected.
import { complete, graph, walked } from "../parts/graph.js";
import { clock, html, nothing, several } from "../parts/words.js";
import { isOver, upTo } from "../room.js";

/** The modes of turns; BY is the role that decides. */
const MODES = {
  order: "in order", nominate: "each member names the next", random: "at random", follow: "by role", together: "side by side",
  hub: "BY names the next", ask: "BY chooses who speaks",
};

/** Draw the policy of a room at a sequence. */
export function course(room, at, began) {
  const { policy, cast } = room.charter;
  const nodes = policy.nodes.map(complete);
  const entries = upTo(room.entries, at);
  const entry = entries.at(-1);
  const walk = walked(entries);
  const here = entry && !isOver(entry.phase) ? walk.last : null;
  const node = nodes[here];
  const rejected = upTo(room.rows, at).filter((row) => row.act === "refused" || row.act === "repetition");
  const holders = (role) => cast?.find((one) => one.role === role)?.members.join(", ");
  return html`${graph(nodes, here, walk)}
    ${node ? html`<h3>In “${node.name}” since ${clock(walk.since - began)}</h3><dl class="facts"><dt>may speak</dt><dd>${entry.floor.join(", ") || "no member now"}</dd>
      <dt>next</dt><dd>${MODES[node.turns.mode]?.replace("BY", node.turns.by) ?? node.turns.mode}</dd><dt>entered</dt><dd>${several(walk.visits.get(here) ?? 1, "time")}${node.visits ? ` of ${node.visits}` : ""}</dd></dl>` : nothing}
    <h3>Roles</h3><dl class="facts">${policy.roles.map((role) => html`<dt>${role.name}</dt><dd>${holders(role.name) ?? html`<span class="muted">no member</span>`}${role.secret ? html` <span class="muted">(secret)</span>` : nothing}</dd>`)}</dl>
    ${rejected.length ? html`<h3>Rejected</h3><ul class="says">${rejected.map((row) => html`<li><span class="muted">turn ${row.turn}</span> ${row.text}</li>`)}</ul>` : nothing}`;
}
