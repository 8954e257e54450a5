// One goal as it is followed: its newest entries first, then older entries in the background, and new entries as they come.
import { apiPath, ask, follow, goalHref, query } from "./api.js";
import { append, emptyStory, noteLaunch, report } from "./room.js";

const FIRST = 200; // entries that are read before anything is shown
const PAGE = 500;
const NEWEST = 2 ** 53;

/** Follow a goal. The object changes when something happens. */
export function openGoal(app, id, user) {
  const path = `/goals/${encodeURIComponent(id)}`;
  const hrefOf = ({ comm }) => goalHref({ goal_id: id, user }, comm === goal.doc.comm_id ? "" : comm); // of a room
  const hrefOfFile = ({ seq, place, name }) => (seq && place !== null ? apiPath(`/artifacts/${encodeURIComponent(id)}/${seq}/${place}/${encodeURIComponent(name)}${query({ user })}`) : null);
  const goal = { id, user, path, doc: null, story: emptyStory(), problem: null, isLoaded: false, isWhole: false, isClosed: false, close, read, hrefOf, hrefOfFile };
  const page = (fields) => ask(`${path}/entries${query({ user, ...fields })}`);
  let entries = [];
  let end = () => {};

  async function read() {
    goal.problem = null;
    try {
      goal.doc = await ask(path + query({ user }));
      const newest = await page({ before: NEWEST, limit: FIRST });
      if (goal.isClosed) return;
      ({ entries } = newest);
      goal.story = entries.reduce(append, emptyStory());
      goal.isLoaded = true;
      if (goal.doc.result === null) {
        end = follow((after) => `${path}/events${query({ user, after })}`, goal.story.last, { entry, progress: (news) => report(goal.story, news), end: look, refused: look });
      }
      await readOlder(newest.next);
    } catch (problem) {
      goal.problem = app.failed(problem);
    }
  }

  /** Read the entries before a sequence, and put them before the known ones. The first entry names the members. */
  async function readOlder(before) {
    if (before !== null) {
      const [launch] = (await page({ limit: 1 })).entries;
      if (launch?.type === "group_launched") noteLaunch(goal.story, launch);
      let past = [];
      for (let next = before; next !== null && !goal.isClosed;) {
        const found = await page({ before: next, limit: PAGE });
        past = found.entries.concat(past);
        ({ next } = found);
      }
      goal.story = past.concat(entries).reduce(append, emptyStory());
    }
    goal.isWhole = true;
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
  }

  read();
  return goal;
}
