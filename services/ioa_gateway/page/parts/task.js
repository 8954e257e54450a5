// The tasks of a room: each with its assignee, its progress and its duration.
import { avatar, bar, empty, html, nothing, percent, span, taskPill } from "./words.js";
import { isClosed } from "../room.js";

const MOST = 100; // closed tasks

export function tasks(list, now) {
  if (!list.length) return empty("No tasks yet", "Members give tasks to each other while they talk.");
  const lane = (title, some) => (some.length ? html`<section class="lane"><h3>${title}</h3><ul>${some.map((task) => card(task, now))}</ul></section>` : nothing);
  const closed = list.filter((task) => isClosed(task.status));
  return html`${lane("Open", list.filter((task) => !isClosed(task.status)))}${lane("Closed", closed.reverse().slice(0, MOST))}`;
}

function card(task, now) {
  const isOpen = task.status === "open";
  const isDone = isClosed(task.status);
  return html`<li class="task"><header><span class="mono">${task.task_id}</span>${taskPill({ ...task, fraction: null })}</header>
    ${task.text ? html`<p>${task.text}</p>` : nothing}
    ${task.why ? html`<p class="bad">${task.why}</p>` : nothing}
    ${isOpen && task.fraction != null ? html`<span class="progress">${bar(task.task_id, task.fraction, 0, "", "progressbar")}<span class="num">${percent(task.fraction)}</span></span>` : nothing}
    <footer>${avatar(task.assignee)}<span>${task.assignee}</span>
      ${isOpen && task.note ? html`<span>${task.note}</span>` : nothing}
      ${task.uses.length ? html`<span>uses ${task.uses.join(", ")}</span>` : nothing}
      ${isOpen && task.suspect ? html`<span class="num">fails in ${span(Date.parse(task.lease_until) - now)}</span>` : nothing}
      ${isOpen || isDone ? html`<span class="num">${isOpen ? "for " : ""}${span((isOpen ? now : task.at) - task.since)}</span>` : nothing}
      ${task.team || task.subgroup ? html`<span>team ${task.team ?? "of its own"}</span>` : nothing}</footer></li>`;
}
