// What happened in a goal's group and the teams nested in it, as a view: a pure fold over the entries of the log. Nothing here knows
// the document, the clock or the network. `linesOf` says of each row what `ioa.client.transcript` says, which a test holds it to.

/** @typedef {{name: string, sha256: string, size_bytes: number, media_type: string, place?: number}} Artifact */
/** @typedef {{task_id: string, assignee: string, text: string, uses: string[], team?: string}} Given */
/**
 * One thing that happened.
 * @typedef {{seq: number, n: number, comm: string, at: number, turn: number, speaker: string, act: string, tone: string, text: string,
 *   files: Artifact[], to?: string[], go?: string, fields?: Object, task?: string, outcome?: string, fraction?: number|null,
 *   given?: Given[], waits?: string[], nested?: string, number?: number, by?: string, choice?: string}} Row
 */
/** How a group stood since an entry. @typedef {{seq: number, at: number, type: string, sender: string|null, phase: string, turn: number,
 *   floor: string[], isBusy: boolean, until: number|null, waits: string[], node: number|null, budget: Object, act: string}} Mark */

export const NOBODY = "·"; // stands where a speaker's name would, for what no member said
const TERMINAL = new Set(["concluded", "failed", "cancelled"]);
const CLOSED = new Set(["done", "failed", "cancelled", "rejected"]);

export const isOver = (phase) => TERMINAL.has(phase);
export const isClosed = (status) => CLOSED.has(status);

// ---------------------------------------------------------------- entries to rows

/** Say what happened in an entry, given the entry before it of the same group (null if it is the first that is known). */
export function rowsOf(before, entry) {
  const rows = [];
  const at = Date.parse(entry.at);
  const add = (speaker, act, text, tone = "plain", more = {}) =>
    rows.push({ seq: entry.seq, n: rows.length, comm: entry.comm_id, at, turn: entry.turn, speaker, act, tone, text, files: [], ...more });
  said(entry, add, before ? before.turn : entry.turn);
  followed(before, entry, add);
  for (const row of rows) row.files.forEach((file, place) => (file.place ??= place));
  return rows;
}

function said(entry, add, turn) {
  const { type, body, sender } = entry;
  const say = (act, text, tone, more) => add(sender, act, text, tone, { turn, ...more });
  for (const one of [...(body.rejects ?? []), ...(body.conclusion?.rejects ?? [])]) {
    say("reject", one.why, "bad", { task: one.task_id });
  }
  switch (type) {
    case "DISCUSSION":
      say(entry.asked === "review" ? "draft" : "discussion", body.content, entry.asked === "review" ? "quiet" : "plain", {
        to: body.next_speakers?.length ? body.next_speakers : body.next_speaker ? [body.next_speaker] : [],
        go: body.go ?? "",
        fields: body.fields ?? {},
      });
      for (const [name, text] of Object.entries(body.writes ?? {})) say("writes", text ? `${name}: ${text}` : name);
      break;
    case "ASK_USER":
      say("question", body.text, "plain", { choices: body.options, stands: body.default, by: minute(body.until) });
      break;
    case "TASK_QUESTION":
      say("question", body.text, "plain", { task: body.task_id, choices: body.options, stands: body.default, by: minute(body.until) });
      break;
    case "question_answered":
      add(body.by, "answer", body.answer, "plain", { task: body.task_id ?? "" });
      return;
    case "subgroup_asked":
      add(NOBODY, "question", `${body.subgroup} asks: ${body.question.text}`, "plain", { task: body.task_id });
      return;
    case "DECISION":
      if (body.task_id) {
        say("answer", body.choice + (body.content ? `: ${body.content}` : ""), "plain", { task: body.task_id, choice: body.choice });
        break;
      }
      say("decision", body.content, "plain", { choice: body.choice, go: [body.choice, ...(body.members ?? [])].join(" ") });
      break;
    case "SYNC_TASK_ASSIGNMENT":
    case "ASYNC_TASK_ASSIGNMENT": {
      const given = body.tasks.map((task) => ({ task_id: task.task_id, assignee: task.assignee, text: task.task_desc, uses: task.uses, team: task.team }));
      const isTold = body.tasks.every((task) => task.task_abstract && body.content.includes(task.task_abstract));
      say(type[0] === "S" ? "sync task" : "async task", isTold ? "" : body.content, "plain", { given });
      break;
    }
    case "INFORM_TASK_PROGRESS":
      say("progress", body.content, "quiet", { task: body.task_id, fraction: body.fraction, number: body.number });
      break;
    case "INFORM_TASK_RESULT":
      say("result", body.task_conclusion, body.outcome === "done" ? "good" : "bad", {
        task: body.task_id,
        outcome: body.outcome,
        files: copies(body.artifacts),
      });
      break;
    case "PAUSE":
      say("pause", body.content, "quiet", { waits: body.triggers });
      break;
    case "CONCLUDE_GROUP_DISCUSSION":
      if (body.conclusion) concluded(say, body.conclusion);
      else say("conclude", body.content, "quiet");
      break;
    case "CONCLUSION":
      concluded(say, body);
      break;
    case "PASS":
      say("pass", body.content, body.cause === "nothing_to_add" ? "quiet" : "bad", { go: body.cause });
      break;
    case "THINKING":
      say("thinking", body.note || "still deciding what to say", "quiet");
      break;
    case "timer_fired":
      return;
    case "group_launched":
      add(body.charter.owner, "team", team(body.charter), "plain", { files: copies(body.charter.inputs) });
      break;
    case "launch_abandoned":
      add(body.by, "no team", `the goal ends: ${body.reason}`, "bad");
      return;
    case "subgroup_opened":
      add(body.by, "nested team", "", "plain", { task: body.task_id, nested: body.subgroup });
      return;
    case "subgroup_closed":
      add(NOBODY, "result", `${body.task_id} is closed by its nested team: ${body.reason}`, "quiet", { task: body.task_id });
      return;
    case "member_lost":
      add(NOBODY, "lost", `${body.agent_id} is gone: its lease ran out`, "bad");
      return;
    case "member_joined":
      add(NOBODY, "joined", `${body.by} invites ${body.card.agent_id}${body.role ? ` as ${body.role}` : ""}${body.why ? `: ${body.why}` : ""}`, "good");
      return;
    case "member_returned":
      add(NOBODY, "returned", `${body.agent_id} is back`, "good");
      return;
    case "cancel_requested":
      add(NOBODY, "cancel", body.why, "bad");
      return;
    case "repetition_refused":
      add(NOBODY, "repetition", `${body.by} said again what turn ${body.repeats_turn} said: refused`, "quiet");
      return;
    case "message_refused":
      add(NOBODY, "refused", `${body.by} chose what was no option`, "quiet");
      return;
    default:
      if (sender) say(type.toLowerCase().replaceAll("_", " "), body.content ?? "", "plain"); // of a later release
      return;
  }
  byRules(entry, add);
}

function concluded(say, conclusion) {
  const good = conclusion.reason === "concluded";
  const text = good ? conclusion.content : `${conclusion.reason}: ${conclusion.content}`;
  say("conclusion", text, good ? "good" : "bad", { files: copies(conclusion.artifacts) });
}

const copies = (files) => (files ?? []).map((file) => ({ ...file }));

/** Say that rules decided what a model was asked for. */
function byRules({ decided_by: by, body, sender }, add) {
  const speaker = sender ?? body.charter?.owner;
  if (by?.instead_of) add(speaker, `by ${by.kind}`, `instead of ${by.instead_of}${by.cause ? `, ${by.cause}` : ""}`, "bad");
}

/** Say what an event led to that its own words do not: tasks that a rule closed, a floor that passed on, an end. */
function followed(before, entry, add) {
  const { type, body } = entry;
  if (before) {
    const isTold = (task) =>
      body.task_id === task.task_id && (type === "subgroup_closed" || (type === "INFORM_TASK_RESULT" && body.outcome === task.status));
    const open = new Set(before.tasks.filter((task) => !isClosed(task.status)).map((task) => task.task_id));
    for (const task of entry.tasks) {
      if (isClosed(task.status) && open.has(task.task_id) && !isTold(task)) {
        const why = task.why ? `: ${task.why}` : "";
        add(NOBODY, `task ${task.status}`, `${task.task_id} of ${task.assignee}${why}`, "bad", { task: task.task_id });
      }
    }
    for (const one of entry.removed) if (!before.removed.includes(one)) add(NOBODY, "removed", `${one} was removed`, "bad");
  }
  if (type === "timer_fired" && before) afterTimer(before, entry, add);
  if (type === "repetition_refused") {
    if (entry.phase === "paused") {
      add(NOBODY, "repetition", `${body.by} repeats itself: the discussion waits for ${entry.waits_for.join(", ")}`, "bad");
    } else if (entry.phase === "concluding") {
      add(NOBODY, "repetition", `nothing new is said: ${entry.floor_holder} has to conclude`, "bad");
    } else if (entry.turn !== body.turn) {
      add(NOBODY, "repetition", `${body.by} repeats itself: its turn is silent`, "bad");
    }
  }
  if (entry.forced && !before?.forced) add(NOBODY, entry.forced, `used up: ${entry.floor_holder} has to conclude`, "bad");
  const { ended } = entry;
  if (ended && !(body.conclusion || type === "CONCLUSION" || type === "launch_abandoned")) {
    const files = copies(ended.artifacts).map((file) => ({ ...file, place: -1 })); // no entry tells of them: they are fetched with the result
    add(NOBODY, entry.phase, `${ended.reason}: ${ended.content}`, "bad", { files });
  }
  if (ended?.degraded) {
    const { lost, tasks } = ended.degraded;
    const missing = tasks.length ? `; not done: ${tasks.join(", ")}` : "";
    add(NOBODY, "degraded", `${lost.join(", ")} ${were(lost)} lost when this was concluded${missing}`, "bad");
  }
}

function afterTimer(before, after, add) {
  const floor = after.floor;
  const waits = (entry, task) => (entry.questions ?? []).find((one) => one.task_id === task);
  if (waits(before, null) && !waits(after, null)) {
    add(NOBODY, "timer", `nobody answered in time: ${waits(before, null).default} stands`, "bad");
  } else if (floor.length && before.floor.some((agent) => before.turn !== after.turn || !floor.includes(agent))) {
    const silent = before.floor.filter((agent) => before.turn !== after.turn || !floor.includes(agent));
    add(NOBODY, "timer", `${silent.join(", ")} ${were(silent)} silent; ${floor.join(", ")} ${floor.length === 1 ? "has" : "have"} the floor`, "bad");
  } else if (before.phase !== after.phase && !isOver(after.phase)) {
    add(NOBODY, "timer", `${before.phase} took too long; the group is ${after.phase}`, "bad");
  }
  for (const task of after.tasks) {
    const earlier = before.tasks.find((one) => one.task_id === task.task_id);
    const asked = waits(before, task.task_id);
    if (asked && !waits(after, task.task_id) && task.status === "open") {
      add(NOBODY, "timer", `${task.task_id}: nobody answered in time: ${asked.default} stands`, "bad", { task: task.task_id });
    }
    if (task.suspect && earlier?.status === "open" && !earlier.suspect) {
      add(NOBODY, "timer", `${task.task_id} of ${task.assignee}: no sign of life`, "quiet", { task: task.task_id });
    }
  }
}

/** A time in UTC, to the minute. */
const minute = (at) => new Date(at).toISOString().slice(0, 16).replace("T", " ");

const were = (agents) => (agents.length === 1 ? "was" : "were");

/** Who works with the owner, and who only stands by in case that somebody fails. */
function team(charter) {
  const others = charter.team_members.map((card) => card.agent_id).filter((agent) => agent !== charter.owner);
  const standing = new Set(charter.plan.flatMap((task) => task.others));
  for (const task of charter.plan) standing.delete(task.assignee);
  const working = others.filter((agent) => !standing.has(agent));
  const by = others.filter((agent) => standing.has(agent));
  const told = working.length ? `leads a team with ${working.join(", ")}` : "works alone";
  return by.length ? `${told}; ${by.join(", ")} ${by.length === 1 ? "stands" : "stand"} by` : told;
}

/** Say in lines what a row says: who, which act, what, and in which tone. What is searched is this. */
export function linesOf(row) {
  return textsOf(row).map((text) => ({ speaker: row.speaker, act: row.act, text: text.trim(), tone: row.tone }));
}

function textsOf(row) {
  switch (row.act) {
    case "reject":
      return [`${row.task}: ${row.text}`];
    case "discussion":
    case "draft": {
      const to = row.to.length ? `to ${row.to.join(", ")}: ` : row.go ? `on to ${row.go}: ` : "";
      const filled = Object.entries(row.fields).map(([name, value]) => `${name} = ${written(value)}`).join(", ");
      return [to + row.text + (filled ? ` [${filled}]` : "")];
    }
    case "question": {
      const chosen = row.choices?.length ? ` (${row.choices.join(" | ")})` : "";
      return [`${row.task ? `${row.task}: ` : ""}${row.text}${chosen}${row.stands ? `; ${row.stands} stands from ${row.by} UTC on` : ""}`];
    }
    case "answer":
      return [row.task ? `${row.task}: ${row.text}` : row.text];
    case "decision":
    case "pass":
      return [row.text ? `${row.go}: ${row.text}` : row.go];
    case "sync task":
    case "async task": {
      const more = (task) => (task.uses.length ? ` (uses ${task.uses.join(", ")})` : "") + (task.team ? ` (by the team ${task.team})` : "");
      return [...(row.text ? [row.text] : []), ...row.given.map((one) => `${one.task_id} → ${one.assignee}: ${one.text}${more(one)}`)];
    }
    case "progress": {
      const part = row.fraction == null ? "" : ` ${Math.round(row.fraction * 100)}%`;
      return [`${row.task}${part} ${row.text || (row.number === 1 ? "started" : "still at work")}`];
    }
    case "result":
      return [row.outcome ? `${row.task} ${row.outcome}: ${row.text}` : row.text];
    case "pause":
      return [`until ${row.waits.join(", ")} ${row.waits.length === 1 ? "is" : "are"} closed`];
    case "nested team":
      return [`${row.task} is worked on by a team of its own, ${row.nested}`];
    default:
      return [row.text];
  }
}

const written = (value) => (value === true ? "True" : value === false ? "False" : String(value));

// ---------------------------------------------------------------- the fold

/** A story without entries. */
export const emptyStory = () => ({ rooms: new Map(), first: 0, last: 0, count: 0 });

const emptyRoom = (comm) => ({
  comm,
  depth: 0,
  parent: null, // {comm_id, task_id} of the group that it serves
  charter: null, // {goal, owner, members, policy, cast, inputs}
  rows: [],
  problems: [], // those of the rows that tell of something that went wrong
  told: [], // those that tell of files
  marks: [],
  tasks: new Map(), // task_id → {task_id, assignee, text, uses, history}
  lost: new Map(), // agent → [[seq, at or 0]]
  edges: [], // [seq, from node, to node] of a policy
  oldest: null, // the first and the last entry that is known
  latest: null,
});

/** The step from node to node between two entries, as a list of one; empty if there is none. */
const edge = (from, to) => (from?.node != null && to?.node != null && from.node !== to.node ? [[to.seq, from.node, to.node]] : []);

const roomOf = (story, comm) => story.rooms.get(comm) ?? story.rooms.set(comm, emptyRoom(comm)).get(comm);

/** Take the next entry into a story. One that is known already changes nothing. */
export function append(story, entry) {
  if (entry.seq <= story.last) return story;
  const room = roomOf(story, entry.comm_id);
  const before = room.latest;
  const rows = rowsOf(before, entry);
  room.oldest ??= entry;
  room.latest = entry;
  room.depth = entry.depth;
  for (const row of rows) {
    room.rows.push(row);
    if (isProblem(row)) room.problems.push(row);
    if (row.files.length) room.told.push(row);
  }
  room.marks.push(markOf(entry, rows));
  if (entry.type === "group_launched") room.charter = chartered(room, entry.body.charter);
  if (entry.type === "launch_abandoned") room.parent = entry.body.parent ?? null;
  if (entry.type === "member_lost" || entry.type === "member_returned") {
    pushed(room.lost, entry.body.agent_id, [entry.seq, entry.type === "member_lost" ? Date.parse(entry.at) : 0]);
  }
  room.edges.push(...edge(before, entry));
  noteTasks(room, entry);
  if (entry.type === "subgroup_opened") {
    const nested = roomOf(story, entry.body.subgroup);
    nested.parent ??= { comm_id: entry.comm_id, task_id: entry.body.task_id };
    if (!nested.latest) nested.depth = entry.depth + 1;
  }
  story.first ||= entry.seq;
  story.last = entry.seq;
  story.count += 1;
  return story;
}

/** Put older entries, by rising sequence, before those that a story knows. */
export function prepend(story, entries) {
  const older = entries.filter((entry) => !story.first || entry.seq < story.first).reduce(append, emptyStory());
  if (!older.count) return story;
  for (const [comm, room] of story.rooms) {
    const past = older.rooms.get(comm);
    if (!past) {
      older.rooms.set(comm, room);
      continue;
    }
    if (room.oldest && past.latest) {
      const known = room.rows.findIndex((row) => row.seq > room.oldest.seq);
      room.rows.splice(0, known < 0 ? room.rows.length : known, ...rowsOf(past.latest, room.oldest));
    }
    room.edges.unshift(...edge(past.latest, room.oldest));
    room.rows = past.rows.concat(room.rows);
    room.problems = room.rows.filter(isProblem);
    room.told = past.told.concat(room.told);
    room.marks = past.marks.concat(room.marks);
    room.edges = past.edges.concat(room.edges);
    room.charter ??= past.charter;
    room.parent ??= past.parent;
    room.oldest = past.oldest ?? room.oldest;
    room.latest ??= past.latest;
    for (const [id, task] of past.tasks) {
      const later = room.tasks.get(id);
      room.tasks.set(id, later ? { ...task, history: [...task.history, ...later.history] } : task);
    }
    for (const [agent, times] of past.lost) room.lost.set(agent, [...times, ...(room.lost.get(agent) ?? [])]);
    older.rooms.set(comm, room);
  }
  story.rooms = older.rooms;
  story.first = older.first;
  story.last ||= older.last;
  story.count += older.count;
  return story;
}

function chartered(room, charter) {
  room.parent = charter.parent ?? null;
  return {
    goal: charter.goal,
    owner: charter.owner,
    members: charter.team_members.map((card) => ({ agent_id: card.agent_id, description: card.description, patience: card.patience })),
    policy: charter.policy ?? null,
    cast: charter.cast ?? [],
    inputs: charter.inputs,
  };
}

const markOf = (entry, rows) => ({
  seq: entry.seq,
  at: Date.parse(entry.at),
  type: entry.type,
  sender: entry.sender,
  act: rows[0]?.act ?? "timer",
  tone: rows[0]?.tone ?? "quiet",
  phase: entry.phase,
  turn: entry.turn,
  floor: entry.floor,
  isBusy: entry.tasks.some((task) => task.status === "open") || entry.floor.some((agent) => !agent.startsWith("human-")),
  until: entry.until ? Date.parse(entry.until) : null,
  waits: entry.waits_for,
  node: entry.node,
  budget: entry.budget,
  questions: entry.questions ?? [],
});

function noteTasks(room, entry) {
  for (const one of entry.body.tasks ?? []) {
    room.tasks.set(one.task_id, { task_id: one.task_id, assignee: one.assignee, text: one.task_desc, uses: one.uses, team: one.team, history: [] });
  }
  const reported = entry.type === "INFORM_TASK_PROGRESS" ? entry.body : null;
  for (const now of entry.tasks) {
    const task =
      room.tasks.get(now.task_id) ??
      room.tasks.set(now.task_id, { task_id: now.task_id, assignee: now.assignee, text: "", uses: [], history: [] }).get(now.task_id);
    const was = task.history.at(-1);
    const isNews = reported?.task_id === now.task_id;
    if (was && !isNews && was.status === now.status && was.lease === now.lease_until && was.suspect === now.suspect && was.nested === now.subgroup) continue;
    task.assignee = now.assignee;
    task.history.push({
      seq: entry.seq,
      at: Date.parse(entry.at),
      status: now.status,
      why: now.why,
      lease: now.lease_until,
      suspect: now.suspect,
      nested: now.subgroup,
      fraction: isNews ? reported.fraction : (was?.fraction ?? null),
      note: isNews ? reported.content || was?.note || "" : (was?.note ?? ""),
    });
  }
}

const pushed = (map, key, value) => (map.get(key) ?? map.set(key, []).get(key)).push(value);

// ---------------------------------------------------------------- the view at a sequence

/** Find the last element of a list sorted by `seq` that is not behind a sequence; -1 if there is none. */
export function lastUpTo(list, seq, of = (one) => one.seq) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (of(list[middle]) <= seq) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** How a room stood at a sequence; null before its first entry. `at` is Infinity for now. */
export function standing(room, at) {
  return room.marks[lastUpTo(room.marks, at)] ?? null;
}

/** The tasks of a room as they stood at a sequence, in the order they were given out. */
export function tasksAt(room, at) {
  const found = [];
  for (const task of room.tasks.values()) {
    const now = task.history[lastUpTo(task.history, at)];
    if (now) found.push({ ...task, ...now, since: (task.history.find((one) => one.status === "open") ?? task.history[0]).at });
  }
  return found;
}

/** The members of a room as they stood at a sequence: `does` says what, `lost` since when it is gone. */
export function membersAt(room, at) {
  const mark = standing(room, at);
  const tasks = tasksAt(room, at);
  const named = room.charter?.members ?? [...new Set(room.marks.map((one) => one.sender).filter(Boolean))].map((agent_id) => ({ agent_id }));
  return named.map((card) => {
    const agent = card.agent_id;
    const times = room.lost.get(agent) ?? [];
    const lost = times[lastUpTo(times, at, (one) => one[0])]?.[1] ?? 0;
    const mine = tasks.filter((task) => task.assignee === agent);
    const ids = (status) => mine.filter((task) => task.status === status).map((task) => task.task_id);
    const [open, waiting, done] = ["open", "waiting", "done"].map(ids);
    const hasFloor = mark?.floor.includes(agent) ?? false;
    const leads = room.charter?.owner === agent;
    const does = lost ? `gone${open.length ? `, ${open.join(", ")} at risk` : ""}`
      : hasFloor ? (mark.phase === "concluding" ? "has to conclude" : mark.phase === "deciding" ? "is asked to decide" : "has the floor")
      : open.length ? `works on ${open.join(", ")}`
      : waiting.length ? `will do ${waiting.join(", ")}`
      : leads ? "leads this room"
      : done.length ? `did ${done.join(", ")}`
      : "listens";
    return { agent_id: agent, description: card.description ?? "", hasFloor, lost, leads, does, roles: rolesOf(room, agent) };
  });
}

const rolesOf = (room, agent) => (room.charter?.cast ?? []).filter((one) => one.members.includes(agent)).map((one) => one.role);

/** The files of a room up to a sequence, the newest first; each file once, where it was told of first. */
export function filesAt(rooms, at) {
  const found = new Map();
  for (const room of rooms) {
    for (const row of room.told) {
      if (row.seq > at) break;
      for (const file of row.files) {
        const known = found.get(file.sha256 + file.name);
        if (!known || known.seq > row.seq) found.set(file.sha256 + file.name, { ...file, seq: row.seq, by: row.speaker, act: row.act });
      }
    }
  }
  return [...found.values()].sort((one, other) => other.seq - one.seq);
}

/** The rooms of a story as a tree: each with the rooms nested in it, by their first sequence. */
export function treeOf(story, at = Infinity) {
  const nodes = new Map();
  for (const room of story.rooms.values()) {
    if ((room.oldest?.seq ?? Infinity) <= at || !room.parent) nodes.set(room.comm, { room, nested: [] });
  }
  const roots = [];
  for (const node of nodes.values()) (nodes.get(node.room.parent?.comm_id)?.nested ?? roots).push(node);
  const order = (one, other) => (one.room.oldest?.seq ?? 0) - (other.room.oldest?.seq ?? 0);
  for (const node of nodes.values()) node.nested.sort(order);
  return roots.sort(order);
}

/** Whether a row is of the kind that is to be seen. */
export function isShown(row, filter) {
  switch (filter) {
    case "talk":
      return ["discussion", "draft", "decision", "conclusion", "conclude", "pass"].includes(row.act);
    case "tasks":
      return ["sync task", "async task", "progress", "result", "reject", "nested team"].includes(row.act) || row.act.startsWith("task ");
    case "problems":
      return isProblem(row);
    case "brief":
      return row.act !== "progress" && row.act !== "thinking";
    default:
      return true;
  }
}

/** Whether a row tells of something that did not go as it should. */
export const isProblem = (row) => row.tone === "bad" || row.act === "repetition" || row.act === "refused";
