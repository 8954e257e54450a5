// The rooms of a goal as a tree, and the members of the shown room.
import { avatar, html, nothing, phaseColour, plain, span } from "./words.js";
import { isOver, standing, treeOf } from "../room.js";

const MOST = 100;

export const nameOf = (room) => (room.parent ? `Team for ${room.parent.task_id}` : plain(room.charter?.goal ?? "Room"));

export function tree(story, at, current, hrefOf) {
  let left = MOST;
  const list = (nodes) => html`<ul>${nodes.map((node) => (left-- > 0 ? item(node) : nothing))}</ul>`;
  const item = ({ room, nested }) => {
    const { phase = "opens", floor = [], turn, waits_for = [] } = standing(room, at) ?? {};
    const more = floor.length && !isOver(phase) ? ` · turn ${turn}` : waits_for.length ? ` · waits for ${waits_for.join(", ")}` : "";
    return html`<li><a href=${hrefOf(room)} aria-current=${room === current ? "page" : nothing}>
      <span class="dot ${isOver(phase) ? "hollow" : "pulse"} k-${phaseColour(phase)}" aria-hidden="true"></span><span class="name">${nameOf(room)}</span>
      <span class="num muted">${room.charter?.team_members.length ?? ""}<span class="sr"> members</span></span><small>${phase}${more}</small></a>${nested.length ? list(nested) : nothing}</li>`;
  };
  const hidden = story.rooms.size - MOST;
  return html`<div class="tree">${list(treeOf(story, at))}${hidden > 0 ? html`<p class="muted more">${hidden} more rooms open from the conversation</p>` : nothing}</div>`;
}

/** @param {Map|null} agents the agents by id, which a past moment does not show */
export const members = (list, agents, until, now) => html`<ul>${list.map((one) => {
  const known = agents?.get(one.agent_id);
  const does = agents && one.lost ? `${one.does} for ${span(now - one.lost)}` : one.does;
  return html`<li class="who ${one.hasFloor ? "floor" : ""}">${avatar(one.agent_id, known ? known.online && !one.lost : null)}
    <span class="name">${one.agent_id}</span><small>${[...one.roles, does].join(" · ")}</small>
    <span class="load num">${agents && one.hasFloor && until ? span(until - now) : known ? html`${known.load.tasks} of ${known.load.slots}<span class="sr"> slots busy</span>` : ""}</span></li>`;
})}</ul>`;
