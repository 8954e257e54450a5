// Who may speak now, until when, and what the group waits for.
import { bar, clock, html, icon, nothing, percent, several, span } from "./words.js";
import { isOver } from "../room.js";

/** @param {import("../room.js").Mark} mark how the room stands; @param {boolean} isLive false while another moment is shown */
export function floorBar(room, mark, tasks, now, began, isLive) {
  if (!mark) return nothing;
  const told = words(room, mark, tasks);
  const left = isLive && mark.until && !isOver(mark.phase) ? mark.until - now : null;
  const whole = mark.until ? Math.max(1, mark.until - mark.at) : 1;
  return html`<div class="floor-bar ${told.kind}" role="status">${icon(told.icon)}<span>${told.text}</span>
    ${isLive ? (left === null ? nothing : html`<span class="left num">${left > 0 ? `${span(left)} left` : "time is up"}${bar("Time left", left / whole)}</span>`)
      : html`<span class="left num">at ${clock(mark.at - began)}</span>`}</div>`;
}

function words(room, mark, tasks) {
  const open = tasks.filter((task) => task.status === "open");
  const waiting = tasks.filter((task) => task.status === "waiting").length;
  const floor = mark.floor.join(", ");
  switch (mark.phase) {
    case "discussing":
      return { kind: "", icon: "mic", text: html`<b>${floor}</b> has the floor, turn ${mark.turn}` };
    case "gathering":
      return { kind: "", icon: "mic", text: html`<b>${floor}</b> ${mark.floor.length === 1 ? "speaks" : "speak"} side by side, turn ${mark.turn}` };
    case "deciding":
      return { kind: "", icon: "branch", text: html`<b>${floor}</b> is asked to decide` };
    case "concluding":
      return { kind: "", icon: "end", text: html`<b>${floor}</b> has to conclude` };
    case "paused": {
      const asked = mark.questions.find((one) => one.task_id === null);
      if (asked) return { kind: "paused", icon: "wait", text: html`<b>${asked.asker}</b> waits for the user of the goal to answer; “${asked.default}” stands if nobody does` };
      if (!mark.waits.length) return { kind: "paused", icon: "wait", text: html`<b>Paused</b> until the question of this team is answered` };
      return { kind: "paused", icon: "wait", text: html`<b>Paused</b> until ${mark.waits.join(", ")} ${mark.waits.length === 1 ? "is" : "are"} closed; nobody has the floor` };
    }
    case "assigned":
      return { kind: "tasked", icon: "sync", text: html`<b>${several(open.length, "task")} under way</b>: ${open.map((task) => `${task.task_id}${task.fraction == null ? "" : ` ${percent(task.fraction)}`}`).join(", ")}${waiting ? `; ${waiting} more ${waiting === 1 ? "waits" : "wait"} for results` : ""}` };
    case "handing":
      return { kind: "tasked", icon: "async", text: html`<b>Tasks are handed out</b>: ${mark.waits.join(", ")}` };
    case "concluded":
      return { kind: "done", icon: "good", text: html`<b>Concluded</b> in ${several(mark.budget.turns_taken, "turn")}` };
    default:
      return { kind: "over", icon: "stop", text: html`<b>Ended</b>: ${mark.phase}` };
  }
}
