// The time of a room as lanes, one for each member: who spoke and who worked when. Time in which nobody worked or had the floor is folded.
import { lastUpTo } from "../room.js";
import { clock, html, icon, look, nothing, pill, span, svg } from "../parts/words.js";

const WIDE = 1200;
const LANE = 18;
const LANES = 8;
const QUIET_MS = 4000; // a longer stretch is folded in which no agent works or has the floor
const FOLD = 56; // how wide it is then

const SHORT = 500; // entries; what is longer is drawn anew once in a while
const PAUSE_MS = 2000;
const AXIS = 14; // height of the labels below the lanes
const TICKS = 8; // at most
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400]; // seconds between two ticks

let drawn = { key: "", room: null, at: 0 };

/** The picture, its scale and its lanes: drawn when there is something new, of a long conversation after a pause only. */
function pictured(room, now) {
  const { marks } = room;
  const key = `${marks.length}|${marks[0].seq}|${room.tasks.size}|${now === null ? "" : Math.round(now / 1000)}`;
  if (drawn.room === room && (drawn.key === key || (marks.length > SHORT && performance.now() - drawn.at < PAUSE_MS))) return drawn;
  const scale = scaleOf(room, now);
  const lanes = lanesOf(room);
  drawn = { key, room, at: performance.now(), scale, lanes, picture: picture(room, lanes, scale) };
  return drawn;
}

export function timeline({ app, room, at, isPlaying, isOver, now, isWhole, lookAt, step, play }) {
  const { marks } = room;
  const last = marks.length - 1;
  const here = at === Infinity ? last : Math.max(0, lastUpTo(marks, at));
  const { scale, lanes } = pictured(room, isOver ? null : now);
  const x = at === Infinity ? scale.x(scale.end) : scale.x(marks[here].at);
  const markAt = (place) => marks[Math.max(0, lastUpTo(marks, scale.time(place), (mark) => mark.at))].seq;
  const height = lanes.length * LANE + AXIS;
  return html`<section class="time" aria-label="Time"><div class="ctl">
      <button class="btn" type="button" aria-label="One entry back" ?disabled=${here <= 0} @click=${() => step(-1)}>${icon("back")}</button>
      <button class="btn" type="button" aria-label="One entry on" ?disabled=${at === Infinity} @click=${() => step(1)}>${icon("on")}</button>
      <button class="btn" type="button" @click=${play}>${isPlaying ? icon("wait") : icon("play")}${isPlaying ? "Stop" : "Play 4×"}</button>
      <input type="range" min="0" max=${WIDE} .value=${String(x)} aria-label="Time to look at" aria-valuetext=${`${clock(marks[here].at - marks[0].at)}, entry ${here + 1} of ${last + 1}`}
        @input=${(event) => lookAt(markAt(Number(event.target.value)))} @keydown=${(event) => {
          if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
          event.preventDefault();
          step(event.key === "ArrowLeft" ? -1 : 1);
        }}>
      ${at === Infinity ? html`<span class="live"><span class="dot ${isOver ? "hollow" : "pulse is-live"}" aria-hidden="true"></span>${isOver ? "it has ended" : html`<b>following live</b>`}</span>`
        : html`${pill("wait", `as of ${clock(marks[here].at - marks[0].at)}, entry ${here + 1} of ${last + 1}`, true)}<button class="btn main" type="button" @click=${() => lookAt(Infinity)}>${isOver ? "Back to the end" : "Back to live"}</button>`}
      <span class="muted hint">${isWhole ? nothing : "older entries are loading · "}time without work is folded · <kbd>←</kbd> <kbd>→</kbd> steps</span></div>
    <div class="names" aria-hidden="true">${lanes.map((agent) => html`<span>${agent}</span>`)}</div>
    <svg class="lanes" viewBox="0 0 ${WIDE} ${height}" height=${height} preserveAspectRatio="none" role="img" aria-label="Time line: who spoke and worked when" @click=${(event) => {
      const box = event.currentTarget.getBoundingClientRect();
      lookAt(markAt(((event.clientX - box.left) / box.width) * WIDE));
    }}>${drawn.picture}<line class="head-l" x1=${x} x2=${x} y1="0" y2=${height}></line></svg></section>`;
}

function lanesOf(room) {
  const named = room.charter?.team_members.map((one) => one.agent_id) ?? [];
  const spoke = new Map();
  for (const mark of room.marks) if (mark.sender) spoke.set(mark.sender, (spoke.get(mark.sender) ?? 0) + 1);
  const all = [...new Set([...named, ...spoke.keys()])];
  if (all.length <= LANES) return all;
  return all.sort((one, other) => (spoke.get(other) ?? 0) - (spoke.get(one) ?? 0)).slice(0, LANES);
}

/** Where a time lies: as far as it lasted, but for stretches without entries, which are folded. */
function scaleOf(room, now) {
  const { marks } = room;
  const begin = marks[0].at;
  const end = Math.max(now ?? 0, marks.at(-1).at, begin + 1);
  const gaps = [];
  for (let place = 1; place <= marks.length; place += 1) {
    if (!marks[place - 1].isBusy) gaps.push([marks[place - 1].at, place < marks.length ? marks[place].at : end]);
  }
  const quiet = gaps.filter(([from, to]) => to - from > QUIET_MS).slice(0, 6);
  const shown = end - begin - quiet.reduce((sum, [from, to]) => sum + to - from, 0);
  const per = (WIDE - 24 - quiet.length * FOLD) / Math.max(1, shown);
  const x = (time) => {
    let place = 8;
    let from = begin;
    for (const [a, b] of quiet) {
      if (time <= a) break;
      place += (a - from) * per;
      if (time < b) return place + ((time - a) / (b - a)) * FOLD;
      place += FOLD;
      from = b;
    }
    return Math.round((place + (time - from) * per) * 10) / 10;
  };
  const time = (wanted) => {
    let low = begin;
    let high = end;
    while (high - low > 1) {
      const middle = (low + high) / 2;
      if (x(middle) < wanted) low = middle;
      else high = middle;
    }
    return high;
  };
  return { begin, end, quiet, x, time };
}

/** All of it as few paths, however many entries there are: nothing is drawn twice on one spot. */
function picture(room, lanes, scale) {
  const lane = new Map(lanes.map((agent, place) => [agent, place]));
  const middle = (place) => place * LANE + LANE / 2;
  const dots = new Map();
  const floor = [];
  const runs = [];
  let seen = new Set();
  room.marks.forEach((mark, place) => {
    const next = room.marks[place + 1]?.at ?? scale.end;
    const from = Math.round(scale.x(mark.at));
    const to = Math.round(scale.x(next));
    for (const agent of mark.floor) {
      if (lane.has(agent) && to > from) floor.push(`M${from} ${lane.get(agent) * LANE + 1}h${to - from}v${LANE - 2}h${from - to}z`);
    }
    if (mark.sender && lane.has(mark.sender)) {
      const spot = `${lane.get(mark.sender)}:${from}:${mark.act}`;
      if (seen.has(spot)) return;
      seen.add(spot);
      const colour = look(mark.act, mark.tone)[1];
      dots.set(colour, (dots.get(colour) ?? "") + `M${from} ${middle(lane.get(mark.sender))}h.01`);
    }
  });
  for (const task of room.tasks.values()) {
    const open = task.history.find((one) => one.status === "open");
    if (!open || !lane.has(task.assignee) || runs.length > 400) continue;
    const closed = task.history.find((one) => one.at >= open.at && one.status !== "open" && one.status !== "waiting");
    const from = scale.x(open.at);
    runs.push(`M${from} ${lane.get(task.assignee) * LANE + 4}h${Math.max(2, scale.x(closed?.at ?? scale.end) - from)}v${LANE - 8}H${from}z`);
  }
  const height = lanes.length * LANE;
  const seconds = (scale.end - scale.begin - scale.quiet.reduce((sum, [from, to]) => sum + to - from, 0)) / 1000;
  const step = 1000 * (STEPS.find((one) => seconds / one <= TICKS) ?? Math.ceil(seconds / TICKS));
  const ticks = [];
  for (let time = scale.begin; time <= scale.end; time += step) {
    if (!scale.quiet.some(([from, to]) => time > from && time < to)) ticks.push(time);
  }
  return svg`${ticks.slice(0, 4 * TICKS).map((time) => svg`<line class="lane-l" x1=${scale.x(time)} x2=${scale.x(time)} y1="0" y2=${height}></line><text class="axis" x=${scale.x(time) + 3} y=${height + AXIS - 3}>${clock(time - scale.begin)}</text>`)}${lanes.map((_, place) => svg`<line class="lane-l" x1="0" x2=${WIDE} y1=${middle(place)} y2=${middle(place)}></line>`)}
    <path class="b-floor" d=${floor.join("") || "M0 0"}></path><path class="b-run" d=${runs.join("") || "M0 0"}></path>
    ${scale.quiet.map(([from, to]) => svg`<rect class="gap" x=${scale.x(from) + 3} y="0" width=${FOLD - 6} height=${height}></rect><text class="axis" x=${scale.x(from) + FOLD / 2} y=${height / 2 + 4} text-anchor="middle">${span(to - from)}</text>`)}
    ${[...dots].map(([colour, d]) => svg`<path class="dots k-${colour}" d=${d}></path>`)}`;
}
