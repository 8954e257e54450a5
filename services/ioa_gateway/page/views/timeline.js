// The time of a room as lanes, one for each member: turns, tasks and messages. Time in which no agent works or has the floor is folded.
import { isOver, lastUpTo } from "../room.js";
import { clock, html, icon, look, nothing, pill, span, svg } from "../parts/words.js";

const WIDE = 1200;
const LANE = 18;
const LANES = 8;
const QUIET_MS = 4000; // a longer stretch without work is folded
const FOLD = 56; // its width then
const FOLDS = 6;

const SHORT = 500; // entries; a longer time line is drawn again after a pause only
const PAUSE_MS = 2000;
const AXIS = 14; // height of the labels below the lanes
const TICKS = 8; // at most
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400]; // seconds between two ticks

let drawn = { key: "", room: null, at: 0 };

export function timeline({ room, at, began, now, isPlaying, isWhole, lookAt, step, play }) {
  const { entries } = room;
  const hasEnded = isOver(entries.at(-1).phase);
  const here = at === Infinity ? entries.length - 1 : Math.max(0, lastUpTo(entries, at));
  const { scale, lanes, picture, height } = pictured(room, began, hasEnded ? entries.at(-1).time : now);
  const x = scale.x(at === Infinity ? scale.end : entries[here].time);
  const seqAt = (place) => entries[Math.max(0, lastUpTo(entries, scale.time(place), (one) => one.time))].seq;
  const moment = `${clock(entries[here].time - began)}, entry ${here + 1} of ${entries.length}`;
  return html`<section class="time" aria-label="Time"><div class="ctl">
      <button class="btn" type="button" aria-label="One entry back" ?disabled=${here <= 0} @click=${() => step(-1)}>${icon("back")}</button>
      <button class="btn" type="button" aria-label="One entry on" ?disabled=${at === Infinity} @click=${() => step(1)}>${icon("on")}</button>
      <button class="btn" type="button" @click=${play}>${isPlaying ? icon("wait") : icon("play")}${isPlaying ? "Stop" : "Play 4×"}</button>
      <input type="range" min="0" max=${WIDE} .value=${String(x)} aria-label="Time to look at" aria-valuetext=${moment}
        @input=${(event) => lookAt(seqAt(Number(event.target.value)))}>
      ${at === Infinity ? html`<span class="live"><span class="dot ${hasEnded ? "hollow" : "pulse is-live"}" aria-hidden="true"></span>${hasEnded ? "it has ended" : html`<b>following live</b>`}</span>`
        : html`${pill("wait", `as of ${moment}`, true)}<button class="btn main" type="button" @click=${() => lookAt(Infinity)}>${hasEnded ? "Back to the end" : "Back to live"}</button>`}
      <span class="muted hint">${isWhole ? nothing : "older entries are loading · "}time without work is folded · <kbd>←</kbd> <kbd>→</kbd> steps</span></div>
    <div class="names" aria-hidden="true">${lanes.map((agent) => html`<span>${agent}</span>`)}</div>
    <svg class="lanes" viewBox="0 0 ${WIDE} ${height}" height=${height} preserveAspectRatio="none" role="img" aria-label="Time line: who spoke and worked when" @click=${(event) => {
      const box = event.currentTarget.getBoundingClientRect();
      lookAt(seqAt(((event.clientX - box.left) / box.width) * WIDE));
    }}>${picture}<line class="head-l" x1=${x} x2=${x} y1="0" y2=${height}></line></svg></section>`;
}

/** The picture, its scale and its lanes: drawn again when there is something new, of a long conversation after a pause only. */
function pictured(room, began, end) {
  const { entries } = room;
  const key = `${entries.length}|${entries[0].seq}|${room.tasks.size}|${Math.round(end / 1000)}`;
  if (drawn.room === room && (drawn.key === key || (entries.length > SHORT && performance.now() - drawn.at < PAUSE_MS))) return drawn;
  const scale = scaleOf(entries, Math.max(end, entries.at(-1).time, entries[0].time + 1));
  const lanes = lanesOf(room);
  const picture = svg`${axis(scale, began, lanes.length)}${messages(entries, scale, lanes)}${tasks(room, scale, lanes)}`;
  drawn = { key, room, at: performance.now(), scale, lanes, picture, height: lanes.length * LANE + AXIS };
  return drawn;
}

/** The members with a lane: those that spoke most, if there are many. */
function lanesOf(room) {
  const spoke = new Map((room.charter?.team_members ?? []).map((card) => [card.agent_id, 0]));
  for (const { sender } of room.entries) if (sender) spoke.set(sender, (spoke.get(sender) ?? 0) + 1);
  const all = [...spoke.keys()];
  return all.length <= LANES ? all : all.sort((one, other) => spoke.get(other) - spoke.get(one)).slice(0, LANES);
}

const isBusy = (entry) => entry.tasks.some((task) => task.status === "open") || entry.floor.some((agent) => !agent.startsWith("human-"));

/** Map times to places and back: in proportion, except that quiet stretches have the same width. */
function scaleOf(entries, end) {
  const gaps = entries.map((entry, place) => (isBusy(entry) ? null : [entry.time, entries[place + 1]?.time ?? end]));
  const quiet = gaps.filter((gap) => gap && gap[1] - gap[0] > QUIET_MS).slice(0, FOLDS);
  const seconds = (end - entries[0].time - quiet.reduce((sum, [from, to]) => sum + to - from, 0)) / 1000;
  const perMs = (WIDE - 24 - quiet.length * FOLD) / Math.max(1, 1000 * seconds);
  const corners = [[entries[0].time, 8]];
  for (const [from, to] of quiet) {
    const [time, x] = corners.at(-1);
    const start = x + (from - time) * perMs;
    corners.push([from, start], [to, start + FOLD]);
  }
  corners.push([end, WIDE - 16]);
  return { corners, end, quiet, seconds, x: (time) => along(corners, time, 0, 1), time: (x) => along(corners, x, 1, 0) };
}

/** Interpolate between corners: from one of their coordinates to the other. */
function along(corners, wanted, from, to) {
  const value = Math.min(wanted, corners.at(-1)[from]);
  const place = Math.max(1, corners.findIndex((corner) => corner[from] >= value));
  const [one, other] = [corners[place - 1], corners[place]];
  return one[to] + ((other[to] - one[to]) * (value - one[from])) / (other[from] - one[from] || 1);
}

const middle = (lane) => lane * LANE + LANE / 2;
const box = (from, to, top, height) => `M${from} ${top}h${to - from}v${height}h${from - to}z`;

/** Ticks, lanes and folded stretches. */
function axis({ x, corners, quiet, seconds }, began, lanes) {
  const height = lanes * LANE;
  const step = 1000 * (STEPS.find((one) => seconds / one <= TICKS) ?? Math.ceil(seconds / TICKS));
  const [[begin]] = corners;
  const ticks = [];
  for (let place = 0; place < corners.length; place += 2) {
    const [from, to] = [corners[place][0], corners[place + 1][0]];
    for (let time = begin + Math.ceil((from - begin) / step) * step; time <= to; time += step) ticks.push(time);
  }
  return svg`${ticks.map((time) => svg`<line class="lane-l" x1=${x(time)} x2=${x(time)} y1="0" y2=${height}></line><text class="axis" x=${x(time) + 3} y=${height + AXIS - 3}>${clock(time - began)}</text>`)}
    ${Array.from({ length: lanes }, (_, lane) => svg`<line class="lane-l" x1="0" x2=${WIDE} y1=${middle(lane)} y2=${middle(lane)}></line>`)}
    ${quiet.map(([from, to]) => svg`<rect class="gap" x=${x(from) + 3} y="0" width=${FOLD - 6} height=${height}></rect><text class="axis" x=${x(from) + FOLD / 2} y=${height / 2 + 4} text-anchor="middle">${span(to - from)}</text>`)}`;
}

/** Turns and messages as few paths, however many entries there are. */
function messages(entries, scale, lanes) {
  const turns = [];
  const dots = new Map();
  const places = [...entries.map((entry) => entry.time), scale.end].map((time) => Math.round(scale.x(time)));
  entries.forEach((entry, place) => {
    const [from, to] = [places[place], places[place + 1]];
    for (const agent of to > from ? entry.floor : []) {
      if (lanes.includes(agent)) turns.push(box(from, to, lanes.indexOf(agent) * LANE + 1, LANE - 2));
    }
    if (!lanes.includes(entry.sender)) return;
    const colour = look(entry.lines[0].act, entry.lines[0].tone)[1];
    if (!dots.has(colour)) dots.set(colour, new Set());
    dots.get(colour).add(`M${from} ${middle(lanes.indexOf(entry.sender))}h.01`);
  });
  return svg`<path class="b-floor" d=${turns.join("") || "M0 0"}></path>${[...dots].map(([colour, spots]) => svg`<path class="dots k-${colour}" d=${[...spots].join("")}></path>`)}`;
}

/** Tasks from their start to their end. */
function tasks(room, scale, lanes) {
  const runs = [];
  for (const { history } of room.tasks.values()) {
    const open = history.find((one) => one.status === "open");
    if (!open || !lanes.includes(open.assignee)) continue;
    const closed = history.find((one) => one.at >= open.at && one.status !== "open" && one.status !== "waiting");
    const from = scale.x(open.at);
    runs.push(box(from, Math.max(from + 2, scale.x(closed?.at ?? scale.end)), lanes.indexOf(open.assignee) * LANE + 4, LANE - 8));
  }
  return svg`<path class="b-run" d=${runs.join("") || "M0 0"}></path>`;
}
