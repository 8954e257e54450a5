// One goal as it is followed: its end first, then older entries in the background, and live what comes. One stream at a time.
import { ask, follow, query } from "./api.js";
import { append, emptyStory, prepend, report } from "./room.js";

const FIRST = 200; // entries that are read before anything is shown
const PAGE = 500;
const AT_MOST = 20_000; // entries that are read without being asked for
const NEWEST = 2 ** 53;

/** Follow a goal. The object changes as news come, and `app.changed()` says so. */
export function openGoal(app, id, user) {
  const path = `/goals/${encodeURIComponent(id)}`;
  const goal = { id, user, doc: null, story: emptyStory(), problem: null, isLive: false, hasEnded: false, isLoaded: false, isWhole: false, close, path, read, older };
  let isOver = false;
  let end = () => {};
  let isReading = false;

  async function read() {
    goal.problem = null;
    try {
      goal.doc = await ask(path + query({ user }));
      const { entries, next } = await ask(`${path}/entries${query({ user, before: NEWEST, limit: FIRST })}`);
      if (isOver) return;
      for (const entry of entries) append(goal.story, entry);
      goal.isWhole = next === null; // a page of large entries is short
      goal.isLoaded = true;
      goal.hasEnded = goal.doc.result !== null;
      if (!goal.hasEnded) {
        end = follow((after) => `${path}/events${query({ user, after })}`, goal.story.last, { entry, progress, end: ended, live, refused });
      }
      app.changed();
      await past();
    } catch (problem) {
      goal.problem = app.failed(problem);
    }
    if (!isOver) app.changed();
  }

  /** Read older entries until there are enough; the first one tells who is in the group, so that it is read by itself. */
  async function past() {
    if (!goal.isWhole) {
      const { entries } = await ask(`${path}/entries${query({ user, limit: 1 })}`);
      goal.launch = entries[0] ?? null;
    }
    while (!isOver && !goal.isWhole && goal.story.count < AT_MOST) {
      await older();
      await new Promise((done) => setTimeout(done, 30)); // whoever scrolls goes first
    }
  }

  /** Read a page of older entries. */
  async function older() {
    if (isReading || goal.isWhole) return;
    isReading = true;
    try {
      const { entries, next } = await ask(`${path}/entries${query({ user, before: goal.story.first, limit: PAGE })}`);
      if (isOver) return;
      prepend(goal.story, entries);
      goal.isWhole = next === null;
      app.changed();
    } finally {
      isReading = false;
    }
  }

  function entry(told) {
    append(goal.story, told);
    app.changed();
  }

  function progress(told) {
    report(goal.story, told);
    app.changed();
  }

  function live(isLive) {
    goal.isLive = isLive;
    app.isLive = isLive;
    app.changed();
  }

  async function ended() {
    goal.hasEnded = true;
    goal.doc = await ask(path + query({ user })).catch(() => goal.doc);
    app.changed();
  }

  /** Find out why there is no stream: because it has ended, because nobody is let in any more, or because nobody answers. */
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
