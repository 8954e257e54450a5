// The policy of a group beside its conversation: where the group stands, which exits it took, and what was rejected.
import { complete, graph, walked } from "../parts/graph.js";
import { clock, html, nothing, several } from "../parts/words.js";
import { isOver, lastUpTo, standing } from "../room.js";

const MODES = {
  order: () => "in order",
  nominate: () => "each member names the next",
  random: () => "at random",
  hub: (turns) => `${turns.by} names the next`,
  follow: () => "by role",
  together: () => "side by side",
  ask: (turns) => `${turns.by} chooses who speaks`,
};

/** Draw the policy of a room as it stood at a sequence. */
export function course(room, at) {
  const { policy, cast } = room.charter;
  const nodes = policy.nodes.map(complete);
  const mark = standing(room, at);
  const walk = walked(room, at);
  const last = mark?.node ?? null;
  const here = mark && !isOver(mark.phase) ? last : null;
  const node = here === null ? null : nodes[here];
  const began = room.marks[0]?.at ?? 0;
  const since = room.edges[lastUpTo(room.edges, at, (edge) => edge[0])]?.[0];
  const entered = room.marks.find((one) => one.seq === since)?.at ?? began;
  const rejected = room.rows.slice(0, lastUpTo(room.rows, at) + 1).filter((row) => row.act === "refused" || row.act === "repetition");
  const holders = (role) => cast?.find((one) => one.role === role)?.members.join(", ");
  return html`${graph(nodes, { here, last, ...walk })}
    ${node ? html`<h3>In “${node.name}” since ${clock(entered - began)}</h3><dl class="facts"><dt>may speak</dt><dd>${mark.floor.join(", ") || "no member now"}</dd>
      <dt>next</dt><dd>${MODES[node.turns.mode]?.(node.turns) ?? node.turns.mode}</dd><dt>entered</dt><dd>${several(walk.visits.get(here) ?? 1, "time")}${node.visits ? ` of ${node.visits}` : ""}</dd></dl>` : nothing}
    <h3>Roles</h3><dl class="facts">${policy.roles.map((role) => html`<dt>${role.name}</dt><dd>${holders(role.name) ?? html`<span class="muted">no member</span>`}${role.secret ? html` <span class="muted">(secret)</span>` : nothing}</dd>`)}</dl>
    ${rejected.length ? html`<h3>Rejected</h3><ul class="says">${rejected.map((row) => html`<li><span class="muted">turn ${row.turn}</span> ${row.text}</li>`)}</ul>` : nothing}`;
}
