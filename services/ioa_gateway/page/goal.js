// One goal as it is followed: its newest entries first, then older entries in the background, and new entries as they come.
import { ask, follow, query } from "./api.js";
import { append, emptyStory, noteLaunch, report } from "./room.js";

const FIRST = 200; // entries that are read before anything is shown
const PAGE = 500;
const AT_MOST = 20_000; // entries that are read without a request of the user
const NEWEST = 2 ** 53;

/** Follow a goal. The object changes when something happens, and `app.changed()` reports it. */
export function openGoal(app, id, user) {
  const path = `/goals/${encodeURIComponent(id)}`;
  const goal = { id, user, path, doc: null, story: emptyStory(), problem: null, hasEnded: false, isLoaded: false, isWhole: false, close, read, older };
  const page = (fields) => ask(`${path}/entries${query({ user, ...fields })}`);
  let entries = [];
  let launch = null;
  let isOver = false;
  let end = () => {};
  let isReading = false;

  async function read() {
    goal.problem = null;
    try {
      goal.doc = await ask(path + query({ user }));
      const { entries: newest, next } = await page({ before: NEWEST, limit: FIRST });
      if (isOver) return;
      take(newest, next);
      goal.isLoaded = true;
      goal.hasEnded = goal.doc.result !== null;
      if (!goal.hasEnded) {
        end = follow((after) => `${path}/events${query({ user, after })}`, goal.story.last, { entry, progress, end: ended, live: app.live, refused });
      }
      app.changed();
      if (!goal.isWhole) launch = (await page({ limit: 1 })).entries[0] ?? null; // names the members
      while (!isOver && !goal.isWhole && entries.length < AT_MOST) await older();
    } catch (problem) {
      goal.problem = app.failed(problem);
    }
    if (!isOver) app.changed();
  }

  /** Read a page of older entries. */
  async function older() {
    if (isReading || goal.isWhole) return;
    isReading = true;
    try {
      const { entries: past, next } = await page({ before: goal.story.first, limit: PAGE });
      if (!isOver) take(past, next);
    } finally {
      isReading = false;
    }
  }

  /** Put older entries before the known ones, and tell the story again. */
  function take(past, next) {
    entries = past.concat(entries);
    goal.story = emptyStory();
    if (launch?.type === "group_launched") noteLaunch(goal.story, launch);
    entries.reduce(append, goal.story);
    goal.isWhole = next === null; // a page of large entries is short
    app.changed();
  }

  function entry(news) {
    if (news.seq > goal.story.last) entries.push(news);
    append(goal.story, news);
    app.changed();
  }

  function progress(news) {
    report(goal.story, news);
    app.changed();
  }

  async function ended() {
    goal.hasEnded = true;
    goal.doc = await ask(path + query({ user })).catch(() => goal.doc);
    app.changed();
  }

  /** Find out why there is no stream: the goal has ended, the key was revoked, or the gateway does not answer. */
  async function refused() {
    try {
      goal.doc = await ask(path + query({ user }));
      if (goal.doc.result === null) return true;
      await ended();
      return false;
    } catch (problem) {
      app.failed(problem);
      return problem.status !== 401 && problem.status !== 404;
    }
  }

  function close() {
    isOver = true;
    end();
    app.isLive = true;
  }

  read();
  return goal;
}
