// A goal's room: what is said in a group, who is in it, what is under way, and how it stood at any time.
import { apiPath, ask, query } from "../api.js";
import { openGoal } from "../goal.js";
import { filesAt, isOver, isProblem, isShown, lastUpTo, membersAt, standing, tasksAt } from "../room.js";
import { floorBar } from "../parts/floor.js";
import { PICTURES, fileLink } from "../parts/files.js";
import { message } from "../parts/message.js";
import { tasks as taskList } from "../parts/task.js";
import { members, nameOf, tree } from "../parts/tree.js";
import { banner, bar, clock, cost, count, empty, html, icon, loading, nothing, phasePill, pill, prose, several, span, timeOfDay, trouble } from "../parts/words.js";
import { noChange } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { draftFor } from "./goals.js";
import { timeline } from "./timeline.js";

const WINDOW = 120; // rows in the document
const SHIFT = 40; // how far it moves when its edge comes near
const NEAR = 900; // pixels
const FILTERS = [["all", "Everything", null], ["talk", "Talk", "talk"], ["tasks", "Tasks", "sync"], ["problems", "Problems", "bad"], ["brief", "Hide progress", "prog"]];

let goal = null;
let comm = "";
let at = Infinity; // the sequence that is looked at; Infinity follows what comes
let filter = "all";
let tab = "tasks";
let phoneTab = "talk";
let problem = null;
let isCancelling = false;
let acts = null; // what is done to goals, once somebody does something
const rerunning = { row: null, last: null, form: null }; // the row from which the goal is run again
const panels = {}; // what is shown in place of the tasks, once somebody wants to see it
let first = Infinity; // the first row of the window; Infinity: it ends with the newest row
let isAtEnd = true;
let player = 0;
let anchor = null;
let cache = { key: "", rows: [] };
let standingRows = new Set(); // those in the document

export const room = {
  title: () => goal?.doc?.goal.slice(0, 80) ?? "Goal",
  searches: "Search what was said",
  enter(app, { id, query: asked }) {
    const user = asked.get("user") ?? "";
    if (goal?.id !== id || goal.user !== user || goal.isClosed) {
      goal = openGoal(app, id, user);
      at = Infinity;
      filter = "all";
      problem = null;
      isCancelling = false;
    }
    comm = asked.get("room") ?? "";
    standingRows = new Set();
    show(app, at);
    return () => {
      stop();
      // Another room of the same goal is shown without following it anew.
      const url = new URL(location.href);
      if (url.pathname !== `/goals/${encodeURIComponent(goal.id)}` || (url.searchParams.get("user") ?? "") !== goal.user || !app.isIn) {
        goal.close();
        goal.isClosed = true;
      }
    };
  },
  key(app, event) {
    if (!goal?.isLoaded) return;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      if (event.target.closest("[role=tablist], [role=toolbar]")) return;
      event.preventDefault();
      step(app, event.key === "ArrowLeft" ? -1 : 1);
    } else if (event.key === "Escape") lookAt(app, Infinity);
  },
  before: remember,
  draw,
  after: settle,
};

const current = () => goal.story.rooms.get(comm || goal.doc.comm_id) ?? [...goal.story.rooms.values()].find((one) => !one.parent) ?? null;
const nowOf = (app, mark) => (at === Infinity ? app.now() : (mark?.at ?? app.now()));
const hrefOf = (one) => `/goals/${encodeURIComponent(goal.id)}${query({ user: goal.user, room: one.comm === goal.doc.comm_id ? "" : one.comm })}`;

function fileHref(file) {
  if (!(file.place >= 0) || !file.seq) return null;
  return apiPath(`/artifacts/${encodeURIComponent(goal.id)}/${file.seq}/${file.place}/${encodeURIComponent(file.name)}${query({ user: goal.user })}`);
}

// ---------------------------------------------------------------- time

/** Show the moment of an entry, or what comes (Infinity), with the newest row below. */
function show(app, seq) {
  at = seq;
  first = Infinity;
  isAtEnd = true;
  app.changed();
}

function lookAt(app, seq) {
  stop();
  show(app, seq >= (current()?.marks.at(-1)?.seq ?? 0) ? Infinity : seq);
}

function step(app, by) {
  const { marks } = current() ?? { marks: [] };
  if (!marks.length) return;
  const here = at === Infinity ? marks.length - 1 : lastUpTo(marks, at);
  lookAt(app, marks[Math.min(marks.length - 1, Math.max(0, here + by))].seq);
}

function stop() {
  clearTimeout(player);
  player = 0;
}

/** Play from the shown moment, or from the beginning, four times as fast; quiet stretches are cut short. */
function play(app) {
  const { marks } = current() ?? { marks: [] };
  let here = at === Infinity ? -1 : lastUpTo(marks, at);
  if (player || !marks.length) {
    stop();
    return app.changed();
  }
  const next = () => {
    here += 1;
    show(app, here + 1 < marks.length ? marks[here].seq : Infinity);
    player = at === Infinity ? 0 : setTimeout(next, Math.min(1200, Math.max(60, (marks[here + 1].at - marks[here].at) / 4)));
  };
  player = setTimeout(next, 0);
}

// ---------------------------------------------------------------- drawing

function draw(app) {
  if (!goal.doc) return html`<main id="main" class="page" tabindex="-1">${goal.problem ? trouble(goal.problem, goal.problem.status === 404 ? null : () => goal.read()) : loading("the goal")}</main>`;
  const shown = current();
  const mark = shown ? standing(shown, at) : null;
  const now = nowOf(app, mark);
  const list = shown ? tasksAt(shown, at) : [];
  const made = shown ? filesAt(goal.story.rooms.values(), at) : [];
  const team = shown ? membersAt(shown, at) : [];
  const tabs = [["tasks", "Tasks", list.length], ["files", "Files", made.length], ["state", "State", 0]];
  if (shown?.charter?.policy) tabs.splice(1, 0, ["course", "Policy", 0]);
  else if (tab === "course") tab = "tasks";
  return html`${head(app, now)}
    <div class="tabs-phone only-phone" role="tablist" aria-label="Parts of the room">${[["talk", shown && app.turns?.in(shown.comm) ? "Your turn" : "Talk", ""], ...tabs.filter(([name]) => name !== "state"), ["team", "Team", team.length], ["time", "Time", 0]].map(([name, word, number]) => html`<button
      role="tab" type="button" aria-selected=${phoneTab === name} @click=${() => {
        phoneTab = name;
        if (tabs.some(([one]) => one === name)) open(app, name);
        else app.changed();
      }}>${word}${number ? ` ${number}` : ""}</button>`)}</div>
    <main id="main" class="room on-${phoneTab}" tabindex="-1">
      <nav class="side" aria-label="Rooms and members"><h2 class="h">Rooms</h2>${tree(goal.story, at, shown?.comm, hrefOf)}
        <h2 class="h">Members of this room</h2>${members(team, app.agents, mark, now, at === Infinity && !goal.hasEnded)}</nav>
      ${conversation(app, shown, mark, list, now)}
      <aside class="right" aria-label="Tasks and files"><div class="tabs" role="tablist" aria-label="Panel" @keydown=${arrows}>${tabs.map(([name, word, number]) => html`<button
          role="tab" type="button" id=${`tab-${name}`} aria-controls="panel" tabindex=${tab === name ? 0 : -1} aria-selected=${tab === name} @click=${() => open(app, name)}>${word}${number ? ` ${number}` : ""}</button>`)}</div>
        <div role="tabpanel" id="panel" aria-labelledby=${`tab-${tab}`} tabindex="0">${tab === "tasks" ? taskList(list, now) : tab === "files" ? panels.files(made, fileHref) : tab === "course" ? panels.course(shown, at) : panels.state(shown, mark)}</div></aside></main>
    ${shown ? timeline({ app, room: shown, at, isPlaying: player !== 0, isOver: isOver(standing(shown, Infinity)?.phase ?? ""), now: app.now(), isWhole: goal.isWhole, lookAt: (seq) => lookAt(app, seq), step: (by) => step(app, by), play: () => play(app) }) : nothing}`;
}

async function open(app, name) {
  if (name !== "tasks") panels[name] ??= (await import(`./${name}.js`))[name];
  tab = name;
  app.changed();
}

function arrows(event) {
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  event.stopPropagation();
  const tabs = [...event.currentTarget.children];
  const next = tabs[(tabs.indexOf(event.target) + (event.key === "ArrowLeft" ? tabs.length - 1 : 1)) % tabs.length];
  next.focus();
  next.click();
}

function head(app, now) {
  const { doc } = goal;
  const root = goal.story.rooms.get(doc.comm_id);
  const mark = root ? standing(root, at) : null;
  const began = Date.parse(doc.accepted_at);
  const phase = at === Infinity ? (doc.result ? doc.status : (mark?.phase ?? doc.status)) : (mark?.phase ?? "waiting");
  const budget = mark?.budget;
  const spent = budget?.spent;
  const tokens = spent ? spent.tokens_in + spent.tokens_out : 0;
  const end = at === Infinity && doc.result ? Date.parse(doc.result.finished_at) : now;
  const used = budget ? budget.turns_taken + budget.nested_turns : 0;
  return html`<section class="head ${app.turns?.isMine(doc) ? "mine" : ""}" aria-label="Goal"><div><h1>${doc.goal}</h1>
    <p class="meta">${at === Infinity && app.turns?.isMine(doc) ? pill("wait", "waits for you") : phasePill(phase)}${root?.charter ? html`<span>led by <b>${root.charter.owner}</b></span>` : nothing}
      <span>accepted ${timeOfDay(began)}</span>${root?.startedAt ? html`<span>started ${timeOfDay(root.startedAt)}</span>` : nothing}${doc.user ? html`<span>for ${doc.user}</span>` : nothing}${doc.inputs.map((file) => fileLink(file, fileHref({ ...file, ...givenAt(root, file) })))}
      <span class="mono">${doc.goal_id}</span><a href=${`/traces/${encodeURIComponent(goal.id)}${query({ user: goal.user })}`}>trace</a></p></div>
    <div class="acts">${doc.result ? nothing : isCancelling ? acts.cancelling(goal, (error) => {
      isCancelling = false;
      problem = error ? app.failed(error) : null;
      app.changed();
    }) : html`<button class="btn danger" type="button" @click=${async () => {
      await load();
      isCancelling = true;
      app.changed();
    }}>${icon("stop")}Cancel</button>`}${doc.result && mayLaunch(app) ? html`<button class="btn" type="button" @click=${() => {
      draftFor({ goal: doc.goal, files: doc.inputs, agent: doc.agent ?? "" });
      app.go("/");
    }}>Edit and run again</button>` : nothing}</div>
    ${problem ? banner(problem, "wide") : nothing}
    <div class="budget">${budget ? html`${meter("Turns", used, doc.max_turns, String(used), `of ${doc.max_turns}${budget.turns_lent ? `, ${budget.turns_lent} lent` : ""}`, "", budget.turns_lent / doc.max_turns)}
      ${meter("Tokens", tokens, doc.max_tokens, count(tokens), doc.max_tokens ? `of ${count(doc.max_tokens)}` : "")}
      ${meter("Cost", spent.cost_micros, doc.max_cost_micros, cost(spent.cost_micros), doc.max_cost_micros ? `of ${cost(doc.max_cost_micros)}` : "", "opt")}
      ${meter("Time", end - began, doc.timeout * 1000, clock(end - began), `of ${span(doc.timeout * 1000)}`, "opt")}` : html`<span class="muted">${doc.status === "waiting" ? "It waits for an agent that takes it." : ""}</span>`}</div>
    ${doc.result && at === Infinity ? html`<details class="answer ${doc.result.succeeded ? "" : "not"}" open><summary>${doc.result.succeeded ? "The answer" : `It ended: ${doc.result.reason.replaceAll("_", " ")}`}</summary><div class="parts">${prose(doc.result.content)}
      ${answerFiles(root)}</div></details>` : nothing}</section>`;
}

/** The files of the answer: pictures as they are, other files as links. */
function answerFiles(root) {
  const row = root?.rows.findLast((one) => one.act === "conclusion");
  const shown = (row?.files ?? []).map((file) => ({ file, href: fileHref({ ...file, seq: row.seq }) }));
  return shown.length ? html`<div class="files">${shown.map(({ file, href }) => (href && PICTURES.has(file.media_type)
    ? html`<a href=${href} download=${file.name}><img src=${href} alt=${file.name} loading="lazy"></a>` : fileLink(file, href)))}</div>` : nothing;
}

const mayLaunch = (app) => app.who.scopes.includes("goals:write");

function givenAt(root, file) {
  const row = root?.rows.find((one) => one.act === "team");
  return row ? { seq: row.seq, place: row.files.findIndex((one) => one.sha256 === file.sha256 && one.name === file.name) } : { place: -1 };
}

function meter(label, used, most, told, of, kind = "", lent = 0) {
  const share = most ? used / most : 0;
  return html`<div class="meter ${kind} ${most ? "" : "plain"}"><span>${label}</span>${most ? bar(label, share, lent, share > 0.75 ? "warn" : "") : nothing}<span class="num">${told} <span class="muted">${of}</span></span></div>`;
}

/** The rows of a room that are to be seen, up to the moment that is looked at. */
function rowsOf(app, shown) {
  const key = `${shown.comm}|${filter}|${app.found}|${shown.rows.length}|${shown.rows[0]?.seq}|${at}`;
  if (cache.key === key) return cache.rows;
  const wanted = app.found.toLowerCase();
  const upTo = at === Infinity ? shown.rows.length : lastUpTo(shown.rows, at) + 1;
  let rows = at === Infinity ? shown.rows : shown.rows.slice(0, upTo);
  rows = rows.filter((row) => row.act !== "conclude" && (filter === "all" || isShown(row, filter)));
  if (wanted) rows = rows.filter((row) => `${row.speaker} ${row.lines.join(" ")}`.toLowerCase().includes(wanted));
  cache = { key, rows };
  return rows;
}

function windowOf(rows) {
  const last = Math.max(0, rows.length - WINDOW);
  const from = Math.min(first, last);
  return [from, rows.slice(from, from + WINDOW)];
}

function conversation(app, shown, mark, list, now) {
  if (!shown) {
    standingRows = new Set();
    return html`<section class="talk" aria-label="Conversation"><div class="log" id="log">${goal.isLoaded ? (goal.doc.result ? empty("It ended before a group was opened", goal.doc.result.content)
      : empty("No team yet", "An agent that fits takes the goal and finds its team; this page shows it as it happens.")) : goal.problem ? trouble(goal.problem, () => goal.read()) : loading("what was said")}</div></section>`;
  }
  const mine = at === Infinity && app.turns?.draw(shown.comm);
  const rows = rowsOf(app, shown);
  const [from, some] = windowOf(rows);
  const before = standingRows;
  standingRows = new Set(some.map(keyOf)); // what stands there already stays as it is
  const problems = shown.rows.filter((row) => row.seq <= at && isProblem(row)).length;
  const began = shown.marks[0]?.at ?? 0;
  const context = {
    began: Math.min(began, Date.parse(goal.doc.accepted_at)),
    now,
    tasks: new Map(list.map((task) => [task.task_id, task])),
    thread,
    hasAnswer: at === Infinity && goal.doc.result !== null && !shown.parent,
    rerun: mayLaunch(app) ? (row) => rerun(app, row) : null,
    rerunning,
    file: (row, file) => fileHref({ ...file, seq: row.seq }),
  };
  const seen = at === Infinity ? `${several(shown.marks.length, "entry", "entries")}${goal.isWhole ? "" : ", older ones are loading"}`
    : `${lastUpTo(shown.marks, at) + 1} of ${several(shown.marks.length, "entry", "entries")}`;
  return html`<section class="talk" aria-label="Conversation"><div class="bar-filter" role="toolbar" aria-label="What to show">${FILTERS.map(([name, word, sign]) => html`<button class="chip" type="button"
      aria-pressed=${filter === name} @click=${() => {
        filter = filter === name ? "all" : name;
        show(app, at);
      }}>${sign ? icon(sign) : nothing}${word}${name === "problems" && problems ? ` ${problems}` : ""}</button>`)}<span class="muted seen">${seen}</span></div>
    <div class="log" id="log" role="log" aria-label=${`Messages of ${nameOf(shown)}`} aria-live=${at === Infinity ? "polite" : "off"} tabindex="0" @scroll=${(event) => scrolled(app, event.target, rows)}>
      ${from > 0 || !goal.isWhole ? html`<p class="muted more">${from > 0 ? several(from, "earlier row") : "Older entries are loading …"}</p>` : nothing}
      ${some.length ? html`<ol>${repeat(some, keyOf, (row) => (changes(row) || !before.has(keyOf(row)) ? message(row, context) : noChange))}</ol>`
        : empty(app.found || filter !== "all" ? "Nothing found" : "Nothing was said yet", app.found ? `Nothing of what is loaded holds “${app.found}”.` : "")}
      ${from + some.length < rows.length ? html`<p class="muted more">${several(rows.length - from - some.length, "later row")}</p>` : nothing}</div>
    ${!isAtEnd || first !== Infinity ? html`<button class="btn newest" type="button" @click=${() => show(app, at)}>Newest below</button>` : nothing}
    ${mine || floorBar(shown, mark, list, now, context.began, at === Infinity)}</section>`;
}

const load = async () => (acts ??= await import("./acts.js"));

/** Show the form that runs the goal again from a row on. */
async function rerun(app, row) {
  await load();
  const done = () => {
    rerunning.last = rerunning.row; // it is drawn once more, without the form
    rerunning.row = null;
    app.changed();
  };
  rerunning.last = rerunning.row;
  rerunning.row = row;
  rerunning.form = () => acts.rerunning(app, goal, row, done);
  isAtEnd = false;
  app.changed();
  requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector(".rerun")?.scrollIntoView({ block: "nearest" })));
}

const keyOf = (row) => `${row.seq}.${row.n}`;

/** Whether a row looks different later on: it shows where tasks or a nested team stand. Other rows are drawn once. */
const changes = (row) => row.given || row.waits || row.nested || row.act === "conclusion" || row === rerunning.row || row === rerunning.last;

/** What a message that opened a nested team shows of it. */
function thread(nested) {
  const inner = goal.story.rooms.get(nested);
  if (!inner) return null;
  const upTo = lastUpTo(inner.rows, at) + 1;
  const said = [];
  let place = upTo;
  while (place > 0 && said.length < 4) {
    const row = inner.rows[--place];
    if (row.act !== "progress" && row.act !== "thinking" && row.act !== "team") said.unshift(row);
  }
  return { rows: said, hidden: place, phase: standing(inner, at)?.phase ?? null, members: inner.charter?.team_members.length ?? 0, depth: inner.depth, href: hrefOf(inner) };
}

// ---------------------------------------------------------------- scrolling

/** Before drawing: which row is seen first, and where, so that it stays there whatever comes above it. */
function remember() {
  const log = document.getElementById("log");
  anchor = null;
  if (!log || isAtEnd) return;
  const top = log.getBoundingClientRect().top;
  for (const row of log.querySelectorAll("[data-key]")) {
    const box = row.getBoundingClientRect();
    if (box.bottom > top) {
      anchor = { key: row.dataset.key, offset: box.top - top };
      return;
    }
  }
}

function settle() {
  const log = document.getElementById("log");
  if (!log) return;
  if (isAtEnd) {
    if (log.scrollHeight - log.scrollTop - log.clientHeight > 1) log.scrollTop = log.scrollHeight;
  } else if (anchor) {
    const row = log.querySelector(`[data-key="${anchor.key}"]`);
    if (row) {
      const moved = row.getBoundingClientRect().top - log.getBoundingClientRect().top - anchor.offset;
      if (Math.abs(moved) > 1) log.scrollTop += moved;
    }
  }
}

function scrolled(app, log, rows) {
  const below = log.scrollHeight - log.scrollTop - log.clientHeight;
  const from = Math.min(first, Math.max(0, rows.length - WINDOW));
  const wasAtEnd = isAtEnd;
  isAtEnd = below < 40 && from + WINDOW >= rows.length;
  if (isAtEnd) first = Infinity;
  else if (first === Infinity) first = from;
  if (log.scrollTop < NEAR && from > 0) {
    first = Math.max(0, from - SHIFT);
    app.changed();
  } else if (below < NEAR && from + WINDOW < rows.length) {
    first = Math.min(from + SHIFT, Math.max(0, rows.length - WINDOW));
    app.changed();
  } else if (log.scrollTop < NEAR && !goal.isWhole) {
    goal.older().catch(() => {});
  }
  if (wasAtEnd !== isAtEnd) app.changed();
}
