// What waits for the user of the page, as a person in teams or as the user of goals; loaded for keys that may answer. It is read when the gateway
// reports a change, and periodically. While the page is hidden there is no stream. The form of a turn is loaded when the first turn waits.
import { ask, follow } from "./api.js";

/** Know what waits. `look()` finds out, and `app.changed()` says so. */
export function openTurns(app) {
  const taken = new Set(); // items that were answered, until the list knows it
  const wholes = new Map(); // of items whose texts the list cuts: the whole one, or the cut one until that is there
  let drawn = null;
  let isAsking = false;
  let isStale = false;
  let end = () => {};

  const turns = {
    list: [],
    look,
    /** Draw what waits in one group; null if nothing does. */
    draw: (comm) => (drawn && turns.in(comm) ? drawn(app, wholeOf(turns.in(comm))) : null),
    close() {
      document.removeEventListener("visibilitychange", listen);
      end();
    },
    in: (comm) => turns.list.find((one) => one.comm_id === comm) ?? null,
    isMine: (goal) => turns.list.some((one) => one.goal_id === goal.goal_id && (one.user ?? "") === (goal.user ?? "")),
    /** What was answered does not wait any more. */
    take(waits) {
      taken.add(keyOf(waits));
      turns.list = turns.list.filter((one) => keyOf(one) !== keyOf(waits));
      look();
    },
  };

  /** Follow changes while the page is visible: browsers limit the connections to one host. */
  function listen() {
    end();
    end = document.hidden ? () => {} : follow(() => "/events?waiting=true", 0, { waiting: look, refused: async () => app.isIn });
  }

  /** Say what waits with all its words. What its person has heard tells them, which is asked once for each look at the list. */
  function wholeOf(waits) {
    const key = keyOf(waits);
    if (!waits.cut || wholes.has(key)) return wholes.get(key) ?? waits;
    wholes.set(key, waits);
    ask(`/seats/${encodeURIComponent(waits.as)}/groups/${encodeURIComponent(waits.comm_id)}`).then(({ waiting }) => {
      if (waiting?.item !== waits.item) return;
      wholes.set(key, waiting);
      app.changed();
    }, (problem) => problem.status === 401 && app.failed(problem));
    return waits;
  }

  /** Find out what waits; asked while that goes on, it is looked once more. */
  async function look() {
    isStale = true;
    if (isAsking) return;
    isAsking = true;
    while (isStale && app.isIn) {
      isStale = false;
      try {
        const may = (scope) => app.who.scopes.some((one) => one.startsWith(scope));
        const [{ waiting }, { questions }] = await Promise.all([
          may("seats:") ? ask("/seats") : { waiting: [] },
          may("goals:write") && may("goals:read") ? ask("/questions") : { questions: [] },
        ]);
        turns.list = [...waiting, ...questions].filter((one) => !taken.has(keyOf(one)));
        const listed = new Set(turns.list.map(keyOf));
        for (const [key, one] of wholes) if (one.cut || !listed.has(key)) wholes.delete(key);
      } catch (problem) {
        if (problem.status === 401) app.failed(problem);
      }
    }
    isAsking = false;
    if (turns.list.length && !drawn) {
      const [{ turn }] = await Promise.all([import("./views/turn.js"), app.sheet("turn")]);
      drawn = turn;
    }
    app.changed();
  }

  look();
  document.addEventListener("visibilitychange", listen);
  listen();
  return turns;
}

export const keyOf = (waits) => `${waits.as ?? ""}|${waits.item}`;
