// One goal as it is followed: its newest entries first, then older entries in the background, and new entries as they come.
import { apiPath, ask, follow, query } from "./api.js";
import { append, emptyStory, noteLaunch, report } from "./room.js";

const FIRST = 200; // entries that are read before anything is shown
const PAGE = 500;
const AT_MOST = 20_000; // entries that are read without a request of the user
const NEWEST = 2 ** 53;

/** Follow a goal. The object changes when something happens. */
export function openGoal(app, id, user) {
  const path = `/goals/${encodeURIComponent(id)}`;
  const goal = { id, user, path, doc: null, story: emptyStory(), problem: null, isLoaded: false, isWhole: false, isClosed: false, close, read, older, hrefOf, hrefOfFile };
  const page = (fields) => ask(`${path}/entries${query({ user, ...fields })}`);
  let entries = [];
  let launch = null;
  let reading = null; // the page of older entries that is being read
  let end = () => {};

  async function read() {
    goal.problem = null;
    try {
      goal.doc = await ask(path + query({ user }));
      take(await page({ before: NEWEST, limit: FIRST }));
      if (goal.isClosed) return;
      goal.isLoaded = true;
      if (goal.doc.result === null) {
        end = follow((after) => `${path}/events${query({ user, after })}`, goal.story.last, { entry, progress: (news) => report(goal.story, news), end: look, refused: look });
      }
      if (!goal.isWhole) launch = (await page({ limit: 1 })).entries[0] ?? null; // names the members
      while (!goal.isClosed && !goal.isWhole && entries.length < AT_MOST) await older();
    } catch (problem) {
      goal.problem = app.failed(problem);
    }
  }

  /** Read a page of older entries. */
  async function older() {
    if (goal.isWhole) return;
    reading ??= page({ before: goal.story.first, limit: PAGE }).then(take).finally(() => { reading = null; });
    await reading;
  }

  /** Put older entries before the known ones, and collect all of them again. */
  function take({ entries: past, next }) {
    if (goal.isClosed) return;
    entries = past.concat(entries);
    goal.story = emptyStory();
    if (launch?.type === "group_launched") noteLaunch(goal.story, launch);
    entries.reduce(append, goal.story);
    goal.isWhole = next === null; // a page of large entries is short
  }

  function entry(news) {
    if (news.seq > goal.story.last) entries.push(news);
    append(goal.story, news);
  }

  /** Read the goal again when its stream is closed; return whether to follow it again. */
  async function look() {
    try {
      goal.doc = await ask(path + query({ user }));
      return goal.doc.result === null;
    } catch (problem) {
      app.failed(problem);
      return problem.status !== 401 && problem.status !== 404;
    }
  }

  function close() {
    goal.isClosed = true;
    end();
    app.isLive = true;
  }

  /** The address of a room. */
  function hrefOf({ comm }) {
    return `/goals/${encodeURIComponent(id)}${query({ user, room: comm === goal.doc.comm_id ? "" : comm })}`;
  }

  /** The address of a file; null if its entry is not known. */
  function hrefOfFile({ seq, place, name }) {
    return seq && place !== null ? apiPath(`/artifacts/${encodeURIComponent(id)}/${seq}/${place}/${encodeURIComponent(name)}${query({ user })}`) : null;
  }

  read();
  return goal;
}
