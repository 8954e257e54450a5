// A goal's room: the conversation of a group, its members, tasks and files, now or at a past moment.
import { openGoal } from "../goal.js";
import { emptyRoom, filesAt, isAssignment, isProblem, lastUpTo, membersAt, standing, tasksAt, upTo } from "../room.js";
import { floorBar } from "../parts/floor.js";
import { message } from "../parts/message.js";
import { tasks } from "../parts/task.js";
import { members, nameOf, tree } from "../parts/tree.js";
import { empty, html, icon, loading, nothing, page, several, trouble } from "../parts/words.js";
import { noChange } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { rerunForm } from "./acts.js";
import { files } from "./files.js";
import { head } from "./head.js";
import { state } from "./state.js";
import { timeline } from "./timeline.js";

const WINDOW = 120; // rows in the document
const SHIFT = 40; // rows by which it moves when its edge comes near
const NEAR = 900; // pixels
const TALK = new Set(["discussion", "draft", "decision", "conclusion", "pass"]);
const TASKS = new Set(["progress", "result", "reject", "nested team"]);
/** The rows that can be shown: word, icon and test. */
const FILTERS = {
  all: ["Everything", null, () => true],
  talk: ["Talk", "talk", (row) => TALK.has(row.act)],
  tasks: ["Tasks", "sync", (row) => TASKS.has(row.act) || isAssignment(row) || row.act.startsWith("task ")],
  problems: ["Problems", "bad", isProblem],
  brief: ["Hide progress", "prog", (row) => row.act !== "progress" && row.act !== "thinking"],
};

let course = (shown, seq, began, app) => { // until the drawing of policies is loaded
  import("./course.js").then((found) => { ({ course } = found); }).then(app.changed);
  return loading("the policy");
};
let goal = null;
let comm = "";
let at = Infinity; // the shown sequence; Infinity follows new entries
let filter = "all";
let tab = "tasks";
let phoneTab = "talk";
let rerunning = null; // the row from which the goal is run again
let first = Infinity; // the first row of the window; Infinity: it ends with the newest row
let isAtEnd = true;
let player = 0;
let anchor = null;
let drawn = new Set(); // the keys of the rows in the document

export const room = {
  title: () => goal?.doc?.goal.slice(0, 80) ?? "Goal",
  searches: "Search what was said",
  enter(app, { id, query: asked }) {
    const user = asked.get("user") ?? "";
    if (goal?.id !== id || goal.user !== user || goal.isClosed) {
      goal = openGoal(app, id, user);
      at = Infinity;
      filter = "all";
    }
    comm = asked.get("room") ?? "";
    rerunning = null;
    drawn = new Set();
    show(at);
    return () => {
      stop();
      // Another room of the same goal is shown without following it again.
      if (location.pathname !== goal.path || (new URLSearchParams(location.search).get("user") ?? "") !== goal.user || !app.who) goal.close();
    };
  },
  key(app, event) {
    if (!goal?.isLoaded) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (event.target.closest("[role=tablist], [role=toolbar]")) return;
      event.preventDefault();
      step(event.key === "ArrowLeft" ? -1 : 1);
    } else if (event.key === "Escape") lookAt(Infinity);
  },
  before: remember,
  draw,
  after: settle,
};

const current = () => goal.story.rooms.get(comm || goal.doc.comm_id) ?? [...goal.story.rooms.values()].find((one) => !one.parent) ?? emptyRoom("");

// ---------------------------------------------------------------- time

/** Show the moment of an entry, or new entries (Infinity), with the newest row below. */
function show(seq) {
  at = seq;
  first = Infinity;
  isAtEnd = true;
}

function lookAt(seq) {
  stop();
  show(seq >= (current().entries.at(-1)?.seq ?? 0) ? Infinity : seq);
}

function step(by) {
  const { entries } = current();
  const place = lastUpTo(entries, at) + by;
  if (entries.length) lookAt(entries[Math.min(entries.length - 1, Math.max(0, place))].seq);
}

function stop() {
  clearTimeout(player);
  player = 0;
}

/** Play from the shown moment, or from the beginning, four times as fast; long pauses are shortened. */
function play(app) {
  if (player) return stop();
  const { entries } = current();
  let here = at === Infinity ? -1 : lastUpTo(entries, at);
  const next = () => {
    here += 1;
    show(here + 1 < entries.length ? entries[here].seq : Infinity);
    player = at === Infinity ? 0 : setTimeout(next, Math.min(1200, Math.max(60, (entries[here + 1].time - entries[here].time) / 4)));
    app.changed();
  };
  next();
}

// ---------------------------------------------------------------- drawing

function draw(app) {
  const { doc, problem } = goal;
  if (!doc) return page(problem ? trouble(problem, problem.status === 404 ? null : goal.read) : loading("the goal"));
  const shown = current();
  const entry = standing(shown, at);
  const now = at === Infinity || !entry ? app.now() : entry.time;
  const began = Math.min(Date.parse(doc.accepted_at), shown.entries[0]?.time ?? Infinity);
  const list = tasksAt(shown, at);
  const made = filesAt(goal.story, at);
  const team = membersAt(shown, at, list);
  const isLive = at === Infinity && doc.result === null;
  const panels = {
    tasks: ["Tasks", list.length, () => tasks(list, now)],
    ...(shown.charter?.policy ? { course: ["Policy", 0, () => course(shown, at, began, app)] } : {}),
    files: ["Files", made.length, () => files(made, goal.hrefOfFile)],
    state: ["State", 0, () => state(entry, lastUpTo(shown.entries, at) + 1)],
  };
  if (!panels[tab]) tab = "tasks";
  const onPhone = { talk: [app.turns?.in(shown.comm) ? "Your turn" : "Talk", 0], ...panels, team: ["Team", team.length], time: ["Time", 0] };
  delete onPhone.state;
  return html`${head(app, goal, at, now)}
    <div class="tabs-phone only-phone" role="tablist" aria-label="Parts of the room">${Object.entries(onPhone).map(([name, [word, number]]) => html`<button
      role="tab" type="button" aria-selected=${phoneTab === name} @click=${() => {
        phoneTab = name;
        if (panels[name]) tab = name;
      }}>${word}${number ? ` ${number}` : ""}</button>`)}</div>
    <main id="main" class="room on-${panels[phoneTab] ? "panel" : phoneTab}" tabindex="-1">
      <nav class="side" aria-label="Rooms and members"><h2 class="h">Rooms</h2>${tree(goal.story, at, shown, goal.hrefOf)}
        <h2 class="h">Members of this room</h2>${members(team, isLive ? app.agents : null, entry?.until && Date.parse(entry.until), now)}</nav>
      ${shown.entries.length ? conversation(app, shown, entry, list, now, began) : html`<section class="talk" aria-label="Conversation"><div class="log" id="log">${unopened()}</div></section>`}
      <aside class="right" aria-label="Tasks and files"><div class="tabs" role="tablist" aria-label="Panel" @keydown=${arrows}>${Object.entries(panels).map(([name, [word, number]]) => html`<button
          role="tab" type="button" id=${`tab-${name}`} aria-controls="panel" tabindex=${tab === name ? 0 : -1} aria-selected=${tab === name} @click=${() => { tab = name; }}>${word}${number ? ` ${number}` : ""}</button>`)}</div>
        <div role="tabpanel" id="panel" aria-labelledby=${`tab-${tab}`} tabindex="0">${panels[tab][2]()}</div></aside></main>
    ${shown.entries.length ? timeline({ room: shown, at, began, now: app.now(), isPlaying: player !== 0, isWhole: goal.isWhole, lookAt, step, play: () => play(app) }) : nothing}`;
}

function arrows(event) {
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  event.stopPropagation();
  const tabs = [...event.currentTarget.children];
  const next = tabs[(tabs.indexOf(event.target) + (event.key === "ArrowLeft" ? tabs.length - 1 : 1)) % tabs.length];
  next.focus();
  next.click();
}

/** Shown in place of a conversation. */
function unopened() {
  const { doc, problem, isLoaded, read } = goal;
  if (!isLoaded) return problem ? trouble(problem, read) : loading("what was said");
  return doc.result ? empty("It ended before a group was opened", doc.result.content)
    : empty("No team yet", "An agent that fits takes the goal and finds its team; this page shows it as it happens.");
}

/** The rows of a room that pass the filter and the search, up to the shown moment. */
function rowsOf(app, shown) {
  const wanted = app.found.toLowerCase();
  const isWanted = FILTERS[filter][2];
  return upTo(shown.rows, at).filter((row) => row.act !== "conclude" && isWanted(row) && (!wanted || `${row.speaker} ${row.lines.join(" ")}`.toLowerCase().includes(wanted)));
}

const lastWindow = (rows) => Math.max(0, rows.length - WINDOW);

function conversation(app, shown, entry, list, now, began) {
  const isNow = at === Infinity;
  const mine = isNow && app.turns?.draw(shown.comm);
  const rows = rowsOf(app, shown);
  const from = Math.min(first, lastWindow(rows));
  const some = rows.slice(from, from + WINDOW);
  const later = rows.length - from - some.length;
  const before = drawn;
  drawn = new Set(some.map((row) => row.key));
  const problems = upTo(shown.rows, at).filter(isProblem).length;
  const context = {
    began,
    tasks: new Map(list.map((task) => [task.task_id, task])),
    thread,
    hasAnswer: isNow && goal.doc.result !== null && !shown.parent,
    rerun: app.may("goals:write") ? rerun : null,
    form: (row) => (row === rerunning ? rerunForm(app, goal, row, () => rerun(null)) : nothing),
    href: goal.hrefOfFile,
  };
  const known = several(shown.entries.length, "entry", "entries");
  return html`<section class="talk" aria-label="Conversation"><div class="bar-filter" role="toolbar" aria-label="What to show">${Object.entries(FILTERS).map(([name, [word, sign]]) => html`<button class="chip" type="button"
      aria-pressed=${filter === name} @click=${() => {
        filter = filter === name ? "all" : name;
        show(at);
      }}>${sign ? icon(sign) : nothing}${word}${name === "problems" && problems ? ` ${problems}` : ""}</button>`)}
      <span class="muted seen">${isNow ? `${known}${goal.isWhole ? "" : ", older ones are loading"}` : `${lastUpTo(shown.entries, at) + 1} of ${known}`}</span></div>
    <div class="log" id="log" role="log" aria-label=${`Messages of ${nameOf(shown)}`} aria-live=${isNow ? "polite" : "off"} tabindex="0" @scroll=${(event) => scrolled(app, event.target, rows)}>
      ${from > 0 || !goal.isWhole ? html`<p class="muted more">${from > 0 ? several(from, "earlier row") : "Older entries are loading …"}</p>` : nothing}
      ${some.length ? html`<ol>${repeat(some, (row) => row.key, (row) => (changes(row) || !before.has(row.key) ? message(row, context) : noChange))}</ol>`
        : empty(app.found || filter !== "all" ? "Nothing found" : "Nothing was said yet", app.found ? `Nothing of what is loaded holds “${app.found}”.` : "")}
      ${later > 0 ? html`<p class="muted more">${several(later, "later row")}</p>` : nothing}</div>
    ${!isAtEnd || first !== Infinity ? html`<button class="btn newest" type="button" @click=${() => show(at)}>Newest below</button>` : nothing}
    ${mine || floorBar(entry, list, now, began, isNow)}</section>`;
}

/** Whether a row can change: it shows the state of tasks, of a nested team or of a form. Other rows are drawn once. */
const changes = (row) => isAssignment(row) || ["pause", "nested team", "conclusion"].includes(row.act) || row === rerunning;

/** Show the form that runs the goal again from a row, or close it. */
function rerun(row) {
  rerunning = row;
  drawn = new Set();
  isAtEnd = false;
  requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector(".rerun")?.scrollIntoView({ block: "nearest" }))); // after it is drawn
}

/** The end of a nested team's conversation, for the message that opened it. */
function thread(nested) {
  const inner = goal.story.rooms.get(nested);
  const entry = inner && standing(inner, at);
  if (!entry) return null;
  const said = upTo(inner.rows, at).filter((row) => !["progress", "thinking", "team"].includes(row.act));
  return { rows: said.slice(-4), hidden: Math.max(0, said.length - 4), phase: entry.phase, members: inner.charter?.team_members.length ?? 0, depth: entry.depth, href: goal.hrefOf(inner) };
}

// ---------------------------------------------------------------- scrolling

const topOf = (element) => element.getBoundingClientRect().top;

/** Before drawing: note the first visible row and its place, so that it stays there when rows above it change. */
function remember() {
  const log = document.getElementById("log");
  const top = log && topOf(log);
  const row = log && !isAtEnd ? [...log.querySelectorAll("[data-key]")].find((one) => one.getBoundingClientRect().bottom > top) : null;
  anchor = row ? { row, offset: topOf(row) - top } : null;
}

function settle() {
  const log = document.getElementById("log");
  if (log && isAtEnd) log.scrollTop = log.scrollHeight;
  else if (anchor?.row.isConnected) log.scrollTop += topOf(anchor.row) - topOf(log) - anchor.offset;
}

function scrolled(app, log, rows) {
  const below = log.scrollHeight - log.scrollTop - log.clientHeight;
  const from = Math.min(first, lastWindow(rows));
  const wasAtEnd = isAtEnd;
  isAtEnd = below < 40 && from + WINDOW >= rows.length;
  if (isAtEnd) first = Infinity;
  else if (first === Infinity) first = from;
  if (log.scrollTop < NEAR && from > 0) first = Math.max(0, from - SHIFT);
  else if (below < NEAR && from + WINDOW < rows.length) first = Math.min(from + SHIFT, lastWindow(rows));
  else if (wasAtEnd === isAtEnd) return;
  app.changed();
}
