// The floor of a room: its holders, their time, and what the group waits for.
import { bar, clock, html, icon, nothing, percent, several, span } from "./words.js";
import { isOver } from "../room.js";

/** @param {Object|null} entry the entry with the shown state; @param {boolean} isLive false while a past moment is shown */
export function floorBar(entry, tasks, now, began, isLive) {
  if (!entry) return nothing;
  const [kind, sign, text] = words(entry, tasks);
  const left = entry.until && !isOver(entry.phase) ? Date.parse(entry.until) - now : null;
  return html`<div class="floor-bar ${kind}" role="status">${icon(sign)}<span>${text}</span>
    ${!isLive ? html`<span class="left num">at ${clock(entry.time - began)}</span>` : left === null ? nothing
      : html`<span class="left num">${left > 0 ? `${span(left)} left` : "time is up"}${bar("Time left", left / Math.max(1, Date.parse(entry.until) - entry.time))}</span>`}</div>`;
}

/** How a state looks, and its words. */
function words({ phase, turn, floor, waits_for, questions, budget }, tasks) {
  const holders = floor.join(", ");
  const waits = waits_for.join(", ");
  switch (phase) {
    case "discussing":
      return ["", "mic", html`<b>${holders}</b> has the floor, turn ${turn}`];
    case "gathering":
      return ["", "mic", html`<b>${holders}</b> ${floor.length === 1 ? "speaks" : "speak"} side by side, turn ${turn}`];
    case "deciding":
      return ["", "branch", html`<b>${holders}</b> is asked to decide`];
    case "concluding":
      return ["", "end", html`<b>${holders}</b> has to conclude`];
    case "paused": {
      const asked = questions.find((one) => one.task_id === null);
      if (asked) return ["paused", "wait", html`<b>${asked.asker}</b> waits for the user of the goal to answer; “${asked.default}” stands if nobody does`];
      if (!waits) return ["paused", "wait", html`<b>Paused</b> until the question of this team is answered`];
      return ["paused", "wait", html`<b>Paused</b> until ${waits} ${waits_for.length === 1 ? "is" : "are"} closed; nobody has the floor`];
    }
    case "assigned": {
      const open = tasks.filter((task) => task.status === "open");
      const waiting = tasks.filter((task) => task.status === "waiting").length;
      const each = open.map((task) => `${task.task_id}${task.fraction == null ? "" : ` ${percent(task.fraction)}`}`).join(", ");
      return ["tasked", "sync", html`<b>${several(open.length, "task")} under way</b>: ${each}${waiting ? `; ${waiting} more ${waiting === 1 ? "waits" : "wait"} for results` : ""}`];
    }
    case "handing":
      return ["tasked", "async", html`<b>Tasks are handed out</b>: ${waits}`];
    case "concluded":
      return ["done", "good", html`<b>Concluded</b> in ${several(budget.turns_taken + budget.nested_turns, "turn")}`];
    default:
      return ["over", "stop", html`<b>Ended</b>: ${phase}`];
  }
}
