// The rooms of a goal as a tree, and who is in the room that is looked at.
import { avatar, html, nothing, phaseColour, span } from "./words.js";
import { isOver, standing, treeOf } from "../room.js";

const MOST = 100;

export const nameOf = (room) => (room.parent ? `Team for ${room.parent.task_id}` : (room.charter?.goal ?? "Room"));

export function tree(story, at, current, hrefOf) {
  const shown = { left: MOST };
  const list = (nodes) => html`<ul>${nodes.map((node) => (shown.left-- > 0 ? item(node) : nothing))}</ul>`;
  const item = ({ room, nested }) => {
    const mark = standing(room, at);
    const phase = mark?.phase ?? "opens";
    const floor = mark?.floor.length && !isOver(phase) ? ` · turn ${mark.turn}` : mark?.waits.length ? ` · waits for ${mark.waits.join(", ")}` : "";
    return html`<li><a href=${hrefOf(room)} aria-current=${room.comm === current ? "page" : nothing}>
      <span class="dot ${isOver(phase) ? "hollow" : "pulse"} k-${phaseColour(phase)}" aria-hidden="true"></span><span class="name">${nameOf(room)}</span>
      <span class="num muted">${room.charter?.team_members.length ?? ""}<span class="sr"> members</span></span><small>${phase}${floor}</small></a>${nested.length ? list(nested) : nothing}</li>`;
  };
  const more = story.rooms.size - MOST;
  return html`<div class="tree">${list(treeOf(story, at))}${more > 0 ? html`<p class="muted more">${more} more rooms open from the conversation</p>` : nothing}</div>`;
}

export const members = (list, agents, mark, now, isLive) => html`<ul>${list.map((one) => {
  const known = agents.get(one.agent_id);
  const left = isLive && one.hasFloor && mark?.until ? mark.until - now : null;
  const gone = one.lost && isLive ? ` for ${span(now - one.lost)}` : "";
  return html`<li class="who ${one.hasFloor ? "floor" : ""}">${avatar(one.agent_id, one.lost ? false : known && isLive ? known.online : null)}
    <span class="name">${one.agent_id}</span><small>${[...one.roles, one.lost ? one.does.replace("gone", `gone${gone}`) : one.does].join(" · ")}</small>
    <span class="load num">${left !== null ? span(left) : known && isLive ? html`${known.load.tasks} of ${known.load.slots}<span class="sr"> slots busy</span>` : ""}</span></li>`;
})}</ul>`;
