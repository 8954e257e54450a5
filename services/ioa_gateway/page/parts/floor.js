// The floor of a room: its holders, their time, and what the group waits for.
import { bar, clock, html, icon, nothing, percent, several, span } from "./words.js";
import { isOver } from "../room.js";

/** @param {Object|null} entry the entry with the shown state; @param {boolean} isLive false while a past moment is shown */
export function floorBar(entry, tasks, now, began, isLive) {
  if (!entry) return nothing;
  const [colour, sign, text] = (WORDS[entry.phase] ?? ended)(entry, tasks);
  const left = entry.until && !isOver(entry.phase) ? Date.parse(entry.until) - now : null;
  return html`<div class="floor-bar k-${colour}" role="status">${icon(sign)}<span>${text}</span>
    ${!isLive ? html`<span class="left num">at ${clock(entry.time - began)}</span>` : left === null ? nothing
      : html`<span class="left num">${left > 0 ? `${span(left)} left` : "time is up"}${bar("Time left", left / Math.max(1, Date.parse(entry.until) - entry.time))}</span>`}</div>`;
}

/** Each phase: its colour, its icon and its words. */
const WORDS = {
  discussing: ({ floor, turn }) => ["talk", "mic", html`<b>${floor.join(", ")}</b> has the floor, turn ${turn}`],
  gathering: ({ floor, turn }) => ["talk", "mic", html`<b>${floor.join(", ")}</b> ${floor.length === 1 ? "speaks" : "speak"} side by side, turn ${turn}`],
  deciding: ({ floor }) => ["talk", "branch", html`<b>${floor.join(", ")}</b> is asked to decide`],
  concluding: ({ floor }) => ["talk", "end", html`<b>${floor.join(", ")}</b> has to conclude`],
  handing: ({ waits_for }) => ["sync", "async", html`<b>Tasks are handed out</b>: ${waits_for.join(", ")}`],
  concluded: ({ budget }) => ["good", "good", html`<b>Concluded</b> in ${several(budget.turns_taken + budget.nested_turns, "turn")}`],
  paused: ({ questions, waits_for }) => {
    const asked = questions.find((one) => one.task_id === null);
    const tasks = html`${waits_for.join(", ")} ${waits_for.length === 1 ? "is" : "are"} closed; nobody has the floor`;
    return ["wait", "wait", asked ? html`<b>${asked.asker}</b> waits for the user of the goal to answer; “${asked.default}” stands if nobody does`
      : html`<b>Paused</b> until ${waits_for.length ? tasks : "the question of this team is answered"}`];
  },
  assigned: (entry, tasks) => {
    const open = tasks.filter((task) => task.status === "open");
    const waiting = tasks.filter((task) => task.status === "waiting").length;
    const each = open.map((task) => `${task.task_id}${task.fraction == null ? "" : ` ${percent(task.fraction)}`}`).join(", ");
    return ["sync", "sync", html`<b>${several(open.length, "task")} under way</b>: ${each}${waiting ? `; ${waiting} more ${waiting === 1 ? "waits" : "wait"} for results` : ""}`];
  },
};
const ended = ({ phase }) => ["prog", "stop", html`<b>Ended</b>: ${phase}`];
