// The open turns and questions of the page's user: read when the gateway reports a change, and periodically. The form of a turn is loaded
// when the first turn is open.
import { ask, follow } from "./api.js";
import { sheet } from "./parts/words.js";

/** Follow open items. `look()` reads them. */
export function openTurns(app) {
  const taken = new Set(); // answered items, until the list omits them
  const wholes = new Map(); // items whose texts the list shortens: the shortened one until the whole one is read
  let drawn = null;
  let isAsking = false;
  let isStale = false;
  let end = () => {};

  const turns = {
    list: [],
    look,
    /** Draw the open item of a group; null if there is none. */
    draw: (comm) => (drawn && turns.in(comm) ? drawn(app, wholeOf(turns.in(comm))) : null),
    close() {
      document.removeEventListener("visibilitychange", listen);
      end();
    },
    in: (comm) => turns.list.find((one) => one.comm_id === comm) ?? null,
    isMine: (goal) => turns.list.some((one) => one.goal_id === goal.goal_id && (one.user ?? "") === (goal.user ?? "")),
    /** Remove an answered item. */
    take(item) {
      taken.add(keyOf(item));
      turns.list = turns.list.filter((one) => keyOf(one) !== keyOf(item));
      look();
    },
  };

  /** Follow changes while the page is visible: browsers limit the connections to one host. */
  function listen() {
    end();
    end = document.hidden ? () => {} : follow(() => "/events?waiting=true", 0, { waiting: look, refused: async () => app.who !== null });
  }

  /** Return an item with its whole texts, as soon as they are read. */
  function wholeOf(item) {
    const key = keyOf(item);
    if (!item.cut || wholes.has(key)) return wholes.get(key) ?? item;
    wholes.set(key, item);
    ask(`/seats/${encodeURIComponent(item.as)}/groups/${encodeURIComponent(item.comm_id)}`).then(({ waiting }) => {
      if (waiting?.item === item.item) wholes.set(key, waiting);
    }, (problem) => problem.status === 401 && app.failed(problem));
    return item;
  }

  /** Read the open items; a call during a read causes another one. */
  async function look() {
    isStale = true;
    if (isAsking) return;
    isAsking = true;
    while (isStale && app.who) {
      isStale = false;
      try {
        const [{ waiting }, { questions }] = await Promise.all([
          app.may("seats") ? ask("/seats") : { waiting: [] },
          app.may("goals:write") && app.may("goals:read") ? ask("/questions") : { questions: [] },
        ]);
        turns.list = [...waiting, ...questions].filter((one) => !taken.has(keyOf(one)));
        const listed = new Set(turns.list.map(keyOf));
        for (const [key, one] of wholes) if (one.cut || !listed.has(key)) wholes.delete(key);
      } catch (problem) {
        if (problem.status === 401) app.failed(problem);
      }
    }
    isAsking = false;
    if (turns.list.length && !drawn) [{ turn: drawn }] = await Promise.all([import("./views/turn.js"), sheet("turn")]);
    app.changed();
  }

  look();
  document.addEventListener("visibilitychange", listen);
  listen();
  return turns;
}

export const keyOf = (item) => `${item.as ?? ""}|${item.item}`;
