// The groups of a goal as rooms, collected from the entries of its log. The gateway sends each entry (`TranscriptEntry`) with its lines and
// with the state of its group. Nothing here depends on the document, the clock or the network.

/**
 * A row of a conversation: a line of an entry's transcript. `body` has the fields of the message if the line is the message itself.
 * @typedef {{seq: number, key: string, at: number, turn: number, speaker: string, act: string, tone: string, text: string, lines: string[],
 *   files: Object[], body: Object}} Row
 */

export const NOBODY = "·"; // speaker of a line that is not a message of a member
const TERMINAL = new Set(["concluded", "failed", "cancelled"]);
const CLOSED = new Set(["done", "failed", "cancelled", "rejected"]);
/** Acts of lines that repeat fields of their message. */
const MESSAGES = new Set(["discussion", "draft", "decision", "sync task", "async task", "progress", "result", "pause", "pass", "team", "nested team"]);

export const isOver = (phase) => TERMINAL.has(phase);
export const isClosed = (status) => CLOSED.has(status);
export const isAssignment = (row) => row.act === "sync task" || row.act === "async task";
/** Whether a row reports something that did not go as it should. */
export const isProblem = (row) => row.tone === "bad" || row.act === "repetition" || row.act === "refused";

/** Describe an entry as rows. The tasks of one message are one row. `turn` is the turn of the entry's message. */
export function rowsOf(entry, turn) {
  const rows = [];
  for (const line of entry.lines) {
    if (rows.at(-1)?.act === line.act && isAssignment(line)) {
      rows.at(-1).lines.push(line.text);
      continue;
    }
    const isMessage = MESSAGES.has(line.act) && line.speaker !== NOBODY;
    const body = isMessage ? entry.body : {};
    const files = body.charter?.inputs ?? line.files;
    const hasFiles = entry.sender || !entry.ended; // a rule that ends a group repeats files of other entries
    const { speaker, act, tone } = line;
    rows.push({ seq: entry.seq, key: `${entry.seq}.${rows.length}`, at: entry.time, turn: isMessage ? turn : entry.turn, speaker, act, tone,
      text: body.content ?? body.task_conclusion ?? line.text, lines: [line.text], body,
      files: files.map((file, place) => ({ ...file, seq: entry.seq, place: hasFiles ? place : null, isInput: act === "team", by: speaker })) });
  }
  return rows;
}

// ---------------------------------------------------------------- collecting entries

/** A story without entries. */
export const emptyStory = () => ({ rooms: new Map(), last: 0 });

/** `parent` is the group and the task that a nested group serves. `history` of each task has its states, the first one before its assignment. */
export const emptyRoom = (comm) => ({ comm, parent: null, charter: null, startedAt: null, entries: [], rows: [], files: [], tasks: new Map() });

const getOrMake = (map, key, make) => map.get(key) ?? map.set(key, make(key)).get(key);

/** Add the next entry to a story. A known entry changes nothing. */
export function append(story, entry) {
  if (entry.seq <= story.last) return story;
  entry.time = Date.parse(entry.at);
  const room = getOrMake(story.rooms, entry.comm_id, emptyRoom);
  const rows = rowsOf(entry, (room.entries.at(-1) ?? entry).turn);
  room.rows.push(...rows);
  room.files.push(...rows.flatMap((row) => row.files));
  room.entries.push(entry);
  if (entry.type === "group_launched") noteLaunch(story, entry);
  if (entry.type === "launch_abandoned") room.parent = entry.body.parent ?? null;
  if (entry.type === "subgroup_opened") getOrMake(story.rooms, entry.body.subgroup, emptyRoom).parent ??= { comm_id: entry.comm_id, task_id: entry.body.task_id };
  noteTasks(room, entry);
  story.last = entry.seq;
  return story;
}

/** Read a group's charter: it can be known before the entries that follow the launch. */
export function noteLaunch(story, { comm_id, at, body }) {
  const parent = body.charter.parent ?? null;
  Object.assign(getOrMake(story.rooms, comm_id, emptyRoom), { startedAt: Date.parse(at), charter: body.charter, parent });
}

/** Show a progress report, which is no entry, until an entry reports more of its task. */
export function report(story, { comm_id, body }) {
  const task = story.rooms.get(comm_id)?.tasks.get(body.task_id);
  if (task) task.live = { fraction: body.fraction ?? null, note: body.content || "" };
}

const emptyTask = () => ({ history: [{ seq: 0, text: "", uses: [], fraction: null, note: "", status: "waiting" }], live: null });

/** Add the states of an entry's tasks to their histories. */
function noteTasks(room, entry) {
  for (const one of entry.body.tasks ?? []) Object.assign(getOrMake(room.tasks, one.task_id, emptyTask).history[0], { text: one.task_desc, uses: one.uses, team: one.team });
  for (const now of entry.tasks) {
    const task = getOrMake(room.tasks, now.task_id, emptyTask);
    const was = task.history.at(-1);
    const isReport = entry.type === "INFORM_TASK_PROGRESS" && entry.body.task_id === now.task_id;
    if (!isReport && Object.keys(now).every((name) => now[name] === was[name])) continue;
    if (isReport) task.live = null;
    const told = isReport ? { fraction: entry.body.fraction, note: entry.body.content || was.note } : {};
    task.history.push({ ...was, ...now, ...told, seq: entry.seq, at: entry.time, since: was.status === "waiting" ? entry.time : was.since });
  }
}

// ---------------------------------------------------------------- the view at a sequence

/** Return the place of the last element of a list whose value is at most a limit; -1 if there is none. */
export const lastUpTo = (list, most, of = (one) => one.seq) => list.findLastIndex((one) => of(one) <= most);

/** Return the elements of a list up to a sequence. */
export const upTo = (list, seq) => (seq === Infinity ? list : list.slice(0, lastUpTo(list, seq) + 1));

/** The last entry of a room at a sequence, which has the state of the group; null before the first one. Infinity is now. */
export const standing = (room, seq) => room.entries[lastUpTo(room.entries, seq)] ?? null;

/** The tasks of a room at a sequence, in the order of assignment. */
export function tasksAt(room, seq) {
  const found = [];
  for (const { history, live } of room.tasks.values()) {
    const now = history[lastUpTo(history, seq)];
    if (now.seq) found.push(live && seq === Infinity && now.status === "open" ? { ...now, ...live } : now);
  }
  return found;
}

/** The members of a room at a sequence: `does` is their activity, `lost` the time since when a member is gone. */
export function membersAt(room, seq, tasks) {
  const entries = upTo(room.entries, seq);
  const lost = new Map();
  for (const { type, body, time } of entries) {
    if (type === "member_lost") lost.set(body.agent_id, time);
    if (type === "member_returned") lost.delete(body.agent_id);
  }
  const named = room.charter?.team_members.map((card) => card.agent_id) ?? [...new Set(room.entries.map((one) => one.sender).filter(Boolean))];
  return named.map((agent_id) => {
    const hasFloor = entries.at(-1)?.floor.includes(agent_id) ?? false;
    const roles = (room.charter?.cast ?? []).filter((one) => one.members.includes(agent_id)).map((one) => one.role);
    return { agent_id, hasFloor, roles, lost: lost.get(agent_id) ?? 0, does: activity(agent_id, room, entries.at(-1), tasks, lost.has(agent_id)) };
  });
}

function activity(agent, room, entry, tasks, isLost) {
  const mine = Map.groupBy(tasks.filter((task) => task.assignee === agent), (task) => task.status);
  const [open, waiting, done] = ["open", "waiting", "done"].map((status) => mine.get(status)?.map((task) => task.task_id).join(", "));
  if (isLost) return open ? `gone, ${open} at risk` : "gone";
  if (entry?.floor.includes(agent)) return { concluding: "has to conclude", deciding: "is asked to decide" }[entry.phase] ?? "has the floor";
  if (open) return `works on ${open}`;
  if (waiting) return `will do ${waiting}`;
  if (room.charter?.owner === agent) return "leads this room";
  return done ? `did ${done}` : "listens";
}

/** The files of rooms up to a sequence, newest first; each file once, where it appeared first. */
export function filesAt(story, seq) {
  const newest = (one, other) => other.seq - one.seq;
  const all = [...story.rooms.values()].flatMap((room) => upTo(room.files, seq)).sort(newest);
  return [...new Map(all.map((file) => [file.sha256 + file.name, file])).values()].sort(newest);
}

/** The rooms of a story at a sequence as a tree: each room with its nested rooms. */
export function treeOf(story, seq) {
  const rooms = [...story.rooms.values()].filter((room) => !room.parent || (room.entries[0]?.seq ?? Infinity) <= seq);
  const nodes = new Map(rooms.map((room) => [room.comm, { room, nested: [] }]));
  const roots = [];
  for (const node of nodes.values()) (nodes.get(node.room.parent?.comm_id)?.nested ?? roots).push(node);
  return roots;
}
