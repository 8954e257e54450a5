// A policy as it is drawn, where a group stands in it, which ways it took, and what was refused.
import { ask, query } from "../api.js";
import { openGoal } from "../goal.js";
import { hrefOf } from "./goals.js";
import { clock, empty, html, loading, nothing, phasePill, several, svg, trouble } from "../parts/words.js";
import { isOver, standing } from "../room.js";

let rows = null;
let teams = []; // stored teams
let team = null; // the stored team that is drawn
let problem = null;
let goal = null;
let here = null; // the place of the node where the group stands
let centred = null; // the one that was scrolled to

export const policy = {
  title: () => "Policies",
  searches: "Search policies",
  enter(app, { id, query: asked }) {
    goal = null;
    problem = null;
    here = null;
    centred = null;
    team = null;
    if (asked.get("team")) {
      ask(`/teams/${encodeURIComponent(asked.get("team"))}`).then((found) => {
        team = found;
      }).catch((error) => {
        problem = app.failed(error);
      }).finally(app.changed);
      return () => {};
    }
    if (id) {
      goal = openGoal(app, id, asked.get("user") ?? "");
      return goal.close;
    }
    ask("/teams").then((found) => {
      teams = found.teams;
      app.changed();
    }, () => {});
    ask(`/goals${query({ limit: 200 })}`).then(({ goals }) => {
      rows = goals.filter((row) => row.team);
    }).catch((error) => {
      problem = app.failed(error);
    }).finally(app.changed);
    return () => {};
  },
  draw: (app) => html`<main id="main" class="page" tabindex="-1">${goal ? ofGoal(app) : team ? ofTeam() : list(app)}</main>`,
  after() {
    if (here === centred) return; // whoever has scrolled away stays there until the group goes on
    centred = here;
    document.querySelector(".g-now")?.scrollIntoView({ block: "nearest", inline: "center" });
  },
};

function list(app) {
  if (problem) return trouble(problem);
  const wanted = app.found.toLowerCase();
  const shown = (rows ?? []).filter((row) => !wanted || row.goal.toLowerCase().includes(wanted));
  const stored = teams.filter((one) => !wanted || one.name.toLowerCase().includes(wanted));
  return html`<header><h1>Policies</h1></header>${stored.length ? html`<section class="panel stored"><h2>Stored teams</h2><ul class="says">${stored.map((one) => html`<li>
    <a href=${`/policies${query({ team: one.name })}`}>${one.name}</a> <span class="muted">version ${one.version}${one.user ? `, by ${one.user}` : ""}</span></li>`)}</ul></section>` : nothing}
    <h2 class="h">In the last 200 goals</h2>${rows === null ? loading("policies") : shown.length
    ? html`<div class="rows"><table><caption class="sr">Goals under a policy</caption><thead><tr><th scope="col">goal</th><th scope="col">state</th><th scope="col">roles</th><th scope="col">nodes</th></tr></thead><tbody>${shown.map((row) => html`<tr>
      <td class="what"><a href=${`/policies${hrefOf(row).slice("/goals".length)}`}>${row.goal}</a></td><td>${phasePill(row.status)}</td><td>${row.team.policy.roles.map((role) => role.name).join(", ")}</td>
      <td>${row.team.policy.nodes.map((node) => node.name).join(" → ")}</td></tr>`)}</tbody></table></div>`
    : empty("No policy leads a goal", "A team file with a policy says who speaks when: `ioa team run FILE`, and `ioa team draw FILE` draws it.")}`;
}

/** A stored team: its drawing, its limits and its roles. */
function ofTeam() {
  const drawn = { nodes: team.team.nodes.map(written) };
  const limits = drawn.nodes.map((node) => [node.name, [node.max && `at most ${several(node.max, "turn")} a visit`, node.visits && `at most ${several(node.visits, "visit")}`].filter(Boolean).join(", ")]);
  return html`<header><h1>${team.name}</h1><span class="muted">version ${team.version}${team.team.goal ? ` · ${team.team.goal}` : ""}</span></header>
    <div class="split"><div class="graph">${graph(drawn, null, { visits: new Map(), taken: new Map() })}</div><aside class="panel"><h2>Limits</h2><dl>
      <dt>whole group</dt><dd>${team.team.max_turns ? `at most ${several(team.team.max_turns, "turn")}` : "the turns of the goal"}</dd>
      ${limits.filter(([, text]) => text).map(([name, text]) => html`<dt>${name}</dt><dd>${text}</dd>`)}</dl>
      <h3>Roles</h3><dl>${Object.entries(team.team.roles).map(([name, role]) => html`<dt>${name}</dt><dd>${typeof role === "string" ? role : (role.agent ?? role.human ?? role.need ?? "")}</dd>`)}</dl></aside></div>`;
}

/** A node with all fields; those with their defaults are not sent. */
function written(node) {
  const targets = node.then === undefined ? [] : [node.then].flat();
  const exits = (node.exits ?? targets.map((to) => ({ to }))).map((way) => ({ by: "rule", when: null, ...way }));
  return { turns: { mode: "order" }, ...node, exits };
}

function ofGoal(app) {
  if (!goal.doc) return goal.problem ? trouble(goal.problem) : loading("the policy");
  const room = goal.story.rooms.get(goal.doc.comm_id);
  const found = room?.charter?.policy ?? goal.launch?.body.charter?.policy ?? goal.doc.team?.policy;
  if (!found) return empty("No policy leads this goal", "Its members decide who speaks.");
  const drawn = { ...found, nodes: found.nodes.map(written) };
  const mark = room ? standing(room, Infinity) : null;
  const walk = room ? walked(room) : { visits: new Map(), taken: new Map(), refused: [] };
  here = mark && mark.node != null && !isOver(mark.phase) ? mark.node : null;
  const node = here === null ? null : drawn.nodes[here];
  const since = room?.edges.at(-1)?.[0];
  const began = room?.marks[0]?.at ?? 0;
  const entered = room?.marks.find((one) => one.seq === since)?.at ?? began;
  const cast = (role) => room?.charter?.cast.find((one) => one.role === role)?.members.join(", ") ?? "";
  return html`<header><h1>Policy</h1>${phasePill(goal.doc.result ? goal.doc.status : (mark?.phase ?? goal.doc.status))}<a class="btn end" href=${hrefOf(goal.doc)}>Open the room</a></header>
    <p class="muted under">${goal.doc.goal}</p>
    <div class="split"><div class="graph">${graph(drawn, here, walk)}</div><aside class="panel">
      ${node ? html`<h2>In “${node.name}” since ${clock(entered - began)}</h2><dl><dt>may speak</dt><dd>${mark.floor.join(", ") || "nobody now"}</dd><dt>roles</dt><dd>${node.roles.join(", ")}</dd>
        <dt>who is next</dt><dd>${MODES[node.turns.mode]?.(node.turns) ?? node.turns.mode}</dd><dt>entered</dt><dd>${several(walk.visits.get(here) ?? 1, "time")}${node.visits ? ` of ${node.visits}` : ""}</dd>
        <dt>leaves</dt><dd>${node.exits.length ? node.exits.map((way) => html`<div>→ ${way.to}: ${whyOf(node, way)}</div>`) : atLast(node)}</dd></dl>`
        : html`<h2>${goal.doc.result ? "It has ended" : "It has not begun"}</h2>`}
      <h3>Cast</h3><dl>${drawn.roles.map((role) => html`<dt>${role.name}</dt><dd>${cast(role.name) || html`<span class="muted">nobody</span>`}${role.secret ? html` <span class="muted">(secret)</span>` : nothing}</dd>`)}</dl>
      <h3>What was refused</h3>${walk.refused.length ? html`<ul class="says">${walk.refused.map((row) => html`<li><span class="muted">turn ${row.turn}</span> ${row.text}</li>`)}</ul>` : html`<p class="muted">nothing</p>`}</aside></div>`;
}

const MODES = {
  order: () => "in order",
  nominate: () => "each names the next",
  random: () => "at random",
  hub: (turns) => `${turns.by} names who answers`,
  together: () => "side by side",
  ask: (turns) => `${turns.by} chooses who speaks`,
};

function whyOf(node, way) {
  const told = way.when ? conditions(way.when) : [];
  if (way.by === "speaker") told.unshift(`${node.turns.mode === "hub" ? node.turns.by : "the speaker"} chooses`);
  else if (way.by !== "rule") told.unshift(`${way.by} judges`);
  if (way.remove) told.push(`whom ${way.remove.by === "most" ? "most" : "the last"} named as ${way.remove.field} is out`);
  return told.join(" and ") || atLast(node);
}

function atLast(node) {
  if (node.max != null) return `after ${several(node.max, "turn")}`;
  return node.exits.every((way) => way.by === "rule" && !way.when) ? "after a round" : "at last";
}

function conditions(when) {
  const told = [];
  if (when.turns != null) told.push(`after ${several(when.turns, "turn")}`);
  if (when.rounds != null) told.push(`after ${several(when.rounds, "round")}`);
  if (when.visits != null) told.push(`from visit ${when.visits} on`);
  if (when.field != null) {
    const who = { last: "the last", any: "any", all: "each", most: "most" }[when.by ?? "last"];
    const value = when.equals === true ? "yes" : when.equals === false ? "no" : when.equals;
    told.push(`${who} ${when.field}${when.of ? ` of ${when.of}` : ""} ${when.equals != null ? `= ${value}` : when.like ? `like ${when.like}` : "is given"}`);
  }
  if (when.left != null) told.push(`${when.at_most} of ${when.left} left at most`);
  return told;
}

/** How a policy was walked: how often each node was entered, which ways were taken, and what was refused. */
function walked(room) {
  const visits = new Map();
  const taken = new Map();
  const first = room.marks.find((mark) => mark.node != null);
  if (first) visits.set(first.node, 1);
  for (const [, from, to] of room.edges) {
    visits.set(to, (visits.get(to) ?? 0) + 1);
    taken.set(`${from}>${to}`, (taken.get(`${from}>${to}`) ?? 0) + 1);
  }
  const refused = room.rows.filter((row) => row.act === "refused" || row.act === "repetition");
  return { visits, taken, refused };
}

// ---------------------------------------------------------------- the picture

const W = 132;
const H = 74;
const GAP = 92; // between two nodes, at least; what leads on from one to the next is written there in full
const LINE = 20; // characters of a line there
const END = 56; // how wide the end is
const LEAST = 0.72; // how much smaller than it is written it is drawn at the most: what does not fit is scrolled to

/** Nodes in a row, in their order, the end behind them; ways to the next one are straight, ways back go above, others below. */
function graph(drawn, here, { visits, taken }) {
  const names = [...drawn.nodes.map((node) => node.name), "end"];
  const at = (name) => names.indexOf(name);
  const every = drawn.nodes.flatMap((node, from) => (node.exits.length ? node.exits : [{ to: "end", by: "rule", when: null }]).map((way) => ({ from, to: at(way.to), why: whyOf(node, way) })));
  const together = Map.groupBy(every, (way) => `${way.from}>${way.to}`);
  const ways = [...together.values()].map((some) => ({ ...some[0], why: [...new Set(some.map((way) => way.why))].join(", or ") }));
  const lines = names.slice(1).map((_, place) => folded(ways.find((way) => way.from === place && way.to === place + 1)?.why ?? ""));
  const gaps = lines.map((some) => Math.max(GAP, Math.max(...some.map((line) => line.length)) * 6.6 + 24));
  const lefts = gaps.reduce((some, gap) => [...some, some.at(-1) + W + gap], [20]);
  const left = (place) => lefts[place];
  const lifts = (some) => some.reduce((most, way) => Math.max(most, Math.abs(way.to - way.from)), 0);
  const back = ways.filter((way) => way.to <= way.from);
  const skips = ways.filter((way) => way.to > way.from + 1);
  const top = 30 + lifts(back) * 34 + (back.length ? 30 : 0);
  const height = top + H + 30 + lifts(skips) * 34 + (skips.length ? 20 : 0);
  const width = left(names.length - 1) + END + 20;
  const wide = (place) => (place === names.length - 1 ? END : W);
  const isTaken = ({ from, to }) => taken.has(`${from}>${to}`) || (to === names.length - 1 && here === null && visits.has(from) && from === drawn.nodes.length - 1);
  const edge = (way) => {
    const kind = isTaken(way) ? "taken" : "";
    const y = top + H / 2;
    if (way.to === way.from + 1) {
      const x = left(way.from) + W;
      const gap = gaps[way.from];
      return svg`<path class="g-edge ${kind}" marker-end="url(#arrow)" d=${`M${x} ${y}h${gap - 6}`}></path>
        ${lines[way.from].map((line, number, all) => label(line, x + gap / 2 - 4, y - 8 - 14 * (all.length - 1 - number), kind, LINE + 12))}`;
    }
    const isBack = way.to <= way.from;
    const from = left(way.from) + W / 2 + (isBack ? -14 : 14);
    const to = left(way.to) + wide(way.to) / 2 + (isBack ? 14 : -14);
    const far = 34 * Math.max(1, Math.abs(way.to - way.from)) + 14;
    const edgeY = isBack ? top : top + H;
    const bend = isBack ? edgeY - far : edgeY + far;
    return svg`<path class="g-edge ${kind}" marker-end="url(#arrow)" d=${`M${from} ${edgeY}C${from} ${bend} ${to} ${bend} ${to} ${edgeY + (isBack ? -4 : 4)}`}></path>
      ${label(way.why, (from + to) / 2, isBack ? edgeY - far * 0.75 - 6 : edgeY + far * 0.75 + 16, kind, 44)}`;
  };
  const box = (name, place) => {
    const node = drawn.nodes[place];
    const count = visits.get(place) ?? 0;
    const isEnd = !node;
    const kind = place === here ? "g-now" : count || (isEnd && here === null && visits.size) ? "g-done" : "";
    const under = isEnd ? "" : short(node.roles.join(", "), 18);
    const times = place === here ? "the group is here" : count > 1 ? `${count} times` : count ? "passed" : "";
    return svg`<rect class="g-node ${kind}" x=${left(place)} y=${top} width=${wide(place)} height=${H} rx="10"></rect><text class="g-t" x=${left(place) + 12} y=${top + 25}>${short(name, 14)}</text>
      <text class="g-s" x=${left(place) + 12} y=${top + 44}>${under}</text><text class="g-s" x=${left(place) + 12} y=${top + 62}>${times}</text>`;
  };
  const told = here === null ? "" : `; the group stands in ${names[here]}`;
  return html`<svg viewBox="0 0 ${width} ${height}" width=${width * LEAST} role="img" aria-label=${`The nodes of the policy: ${names.join(", ")}${told}`}>${svg`<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="11" markerHeight="11"
    orient="auto-start-reverse"><path class="g-head" d="M0 0l8 4-8 4z"></path></marker></defs>${ways.map(edge)}${names.map(box)}`}</svg>
    <details class="ways"><summary>All ways in words</summary><ul class="says">${ways.map((way) => html`<li><b>${names[way.from]}</b> → <b>${names[way.to]}</b>: ${way.why}${isTaken(way) ? " (taken)" : ""}</li>`)}</ul></details>`;
}

/** The lines of a text, none of them cut. */
function folded(text) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= LINE) lines.push("");
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

const label = (text, x, y, kind, most) => svg`<text class="g-s ${kind}" x=${x} y=${y} text-anchor="middle"><title>${text}</title>${short(text, most)}</text>`;
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
