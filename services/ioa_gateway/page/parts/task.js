// The tasks of a room: who does what, how far it is, and for how long.
import { avatar, bar, html, nothing, percent, span, taskPill, empty } from "./words.js";
import { isClosed } from "../room.js";

export function tasks(list, now) {
  if (!list.length) return empty("No tasks yet", "Members give tasks to each other while they talk.");
  const open = list.filter((task) => !isClosed(task.status));
  const closed = list.filter((task) => isClosed(task.status)).reverse();
  const lane = (title, some) => (some.length ? html`<section class="lane"><h3>${title}</h3><ul>${some.map((task) => card(task, now))}</ul></section>` : nothing);
  return html`${lane("Open", open)}${lane("Closed", closed.slice(0, 100))}`;
}

function card(task, now) {
  const isOpen = task.status === "open";
  const left = task.lease ? Date.parse(task.lease) - now : 0;
  return html`<li class="task"><header><span class="mono">${task.task_id}</span>${taskPill(isOpen && !task.suspect ? { ...task, fraction: null } : task)}</header>
    ${task.text ? html`<p>${task.text}</p>` : nothing}
    ${task.why ? html`<p class="bad">${task.why}</p>` : nothing}
    ${isOpen && task.fraction != null ? html`<span class="progress">${bar(task.task_id, task.fraction, 0, "", "progressbar")}<span class="num">${percent(task.fraction)}</span></span>` : nothing}
    <footer>${avatar(task.assignee)}<span>${task.assignee}</span>
      ${isOpen && task.note ? html`<span>${task.note}</span>` : nothing}
      ${task.uses.length ? html`<span>uses ${task.uses.join(", ")}</span>` : nothing}
      ${isOpen && task.lease && task.suspect ? html`<span class="num">fails in ${span(left)}</span>` : nothing}
      ${isOpen ? html`<span class="num">for ${span(now - task.since)}</span>` : nothing}
      ${isClosed(task.status) ? html`<span class="num">${span(task.at - task.since)}</span>` : nothing}
      ${task.team || task.nested ? html`<span>team ${task.team ?? "of its own"}</span>` : nothing}</footer></li>`;
}
