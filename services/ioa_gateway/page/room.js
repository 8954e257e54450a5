// A goal's group and its nested groups as a view: a pure fold over the entries of the log. Nothing here knows the document, the clock or
// the network. The lines of each entry come from the gateway.

/** @typedef {{name: string, sha256: string, size_bytes: number, media_type: string, place?: number}} Artifact */
/** @typedef {{task_id: string, assignee: string, text: string, uses: string[], team?: string}} Given */
/**
 * A row of a conversation; `lines` are its lines in the transcript.
 * @typedef {{seq: number, n: number, comm: string, at: number, turn: number, speaker: string, act: string, tone: string, text: string, lines: string[],
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

/** Describe an entry as rows: each line of its transcript, with the fields of its message. `before` is the entry before it in its group, or null. */
export function rowsOf(before, entry) {
  const rows = [];
  const own = fieldsOf(entry);
  for (const line of entry.lines) {
    const last = rows.at(-1);
    if (last?.given && last.act === line.act) {
      last.lines.push(line.text); // the tasks of one message are one row
      continue;
    }
    const isOwn = own !== null && own.acts.includes(line.act);
    rows.push({ seq: entry.seq, n: rows.length, comm: entry.comm_id, at: Date.parse(entry.at), turn: isOwn && before ? before.turn : entry.turn, speaker: line.speaker,
      act: line.act, tone: line.tone, text: line.text, lines: [line.text], files: numbered(line.files, entry), ...(isOwn ? own.fields : {}) });
  }
  return rows;
}

/** The fields that the page shows of a message, and the acts of its lines; null for other entries. */
function fieldsOf({ type, body }) {
  switch (type) {
    case "DISCUSSION":
      return { acts: ["discussion", "draft"], fields: { text: body.content, to: body.next_speakers?.length ? body.next_speakers : body.next_speaker ? [body.next_speaker] : [], go: body.go ?? "", fields: body.fields ?? {} } };
    case "DECISION":
      return body.task_id ? null : { acts: ["decision"], fields: { text: body.content, choice: body.choice, go: [body.choice, ...(body.members ?? [])].join(" ") } };
    case "SYNC_TASK_ASSIGNMENT":
    case "ASYNC_TASK_ASSIGNMENT": {
      const given = body.tasks.map((task) => ({ task_id: task.task_id, assignee: task.assignee, text: task.task_desc, uses: task.uses, team: task.team }));
      const repeatsTasks = body.tasks.every((task) => task.task_abstract && body.content.includes(task.task_abstract));
      return { acts: ["sync task", "async task"], fields: { text: repeatsTasks ? "" : body.content, given } };
    }
    case "INFORM_TASK_PROGRESS":
      return { acts: ["progress"], fields: { text: body.content, task: body.task_id, fraction: body.fraction, number: body.number } };
    case "INFORM_TASK_RESULT":
      return { acts: ["result"], fields: { text: body.task_conclusion, task: body.task_id, outcome: body.outcome } };
    case "PAUSE":
      return { acts: ["pause"], fields: { text: body.content, waits: body.triggers } };
    case "PASS":
      return { acts: ["pass"], fields: { text: body.content, go: body.cause } };
    case "group_launched":
      return { acts: ["team"], fields: { files: numbered(body.charter.inputs) } };
    case "subgroup_opened":
      return { acts: ["nested team"], fields: { text: "", task: body.task_id, nested: body.subgroup } };
    default:
      return null;
  }
}

/** Files with their places in the entry; -1 if the entry has none of them, because a rule ended the group. */
const numbered = (files, entry) => files.map((file, place) => ({ ...file, place: entry?.ended && !entry.sender ? -1 : place }));

// ---------------------------------------------------------------- the fold

/** A story without entries. */
export const emptyStory = () => ({ rooms: new Map(), first: 0, last: 0, count: 0 });

const emptyRoom = (comm) => ({
  comm,
  depth: 0,
  parent: null, // {comm_id, task_id} of the group that it serves
  charter: null, // of its launch: goal, owner, team_members, policy, cast, inputs
  startedAt: null,
  rows: [],
  marks: [],
  tasks: new Map(), // task_id → {task_id, assignee, text, uses, history}
  lost: new Map(), // agent → [[seq, at or 0]]
  edges: [], // [seq, from node, to node] of a policy
  oldest: null, // the first and the last known entry
  latest: null,
});

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
  room.rows.push(...rows);
  room.marks.push(markOf(entry, rows));
  if (entry.type === "group_launched") noteLaunch(story, entry);
  if (entry.type === "launch_abandoned") room.parent = entry.body.parent ?? null;
  if (entry.type === "member_lost" || entry.type === "member_returned") {
    pushed(room.lost, entry.body.agent_id, [entry.seq, entry.type === "member_lost" ? Date.parse(entry.at) : 0]);
  }
  if (before?.node != null && entry.node != null && before.node !== entry.node) room.edges.push([entry.seq, before.node, entry.node]);
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

/** Read a group's charter: it can be known before the entries that follow the launch. */
export function noteLaunch(story, { comm_id, at, body }) {
  const room = roomOf(story, comm_id);
  room.startedAt = Date.parse(at);
  room.charter = body.charter;
  room.parent = body.charter.parent ?? null;
}

/** Take a progress report, which is no entry, until an entry tells more of its task. */
export function report(story, { comm_id, body }) {
  const task = story.rooms.get(comm_id)?.tasks.get(body.task_id);
  if (task) task.live = { fraction: body.fraction ?? null, note: body.content || "" };
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
    if (isNews) task.live = null;
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
    const live = at === Infinity && now?.status === "open" ? task.live : null;
    if (now) found.push({ ...task, ...now, ...live, since: (task.history.find((one) => one.status === "open") ?? task.history[0]).at });
  }
  return found;
}

/** The members of a room as they stood at a sequence: `does` says what, `lost` since when it is gone. */
export function membersAt(room, at) {
  const mark = standing(room, at);
  const tasks = tasksAt(room, at);
  const named = room.charter?.team_members ?? [...new Set(room.marks.map((one) => one.sender).filter(Boolean))].map((agent_id) => ({ agent_id }));
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
    for (const row of room.rows.slice(0, lastUpTo(room.rows, at) + 1)) {
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
