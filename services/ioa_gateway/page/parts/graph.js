// A policy as a drawing from top to bottom: its nodes, its exits, and the path of a group.
import { cut, html, several, sheet, svg } from "./words.js";

const W = 132;
const H = 60;
const SIDE = 98; // space beside the nodes for exits that lead back (left) or skip nodes (right)
const GAP = 34; // between two nodes, at least
const LINE = 15; // characters of a line of a label
const ROW = 14; // height of a line

await sheet("graph");

/** A node with all fields; fields with their defaults are not sent. */
export function complete(node) {
  const exits = node.exits?.length ? node.exits : [{ to: "end" }];
  return { turns: { mode: "order" }, ...node, exits: exits.map((exit) => ({ by: "rule", when: null, ...exit })) };
}

/** Draw a policy with the current node and the path (`walked`). Exits to the next node are straight lines, other exits are curves. */
export function graph(nodes, here = null, { last, visits, taken } = walked([])) {
  const names = [...nodes.map((node) => node.name), "end"];
  const all = nodes.flatMap((node, from) => node.exits.map((exit) => ({ from, to: names.indexOf(exit.to), why: reason(node, exit) })));
  const exits = [...Map.groupBy(all, (exit) => `${exit.from}>${exit.to}`).values()].map((some) => ({ ...some[0], why: [...new Set(some.map((exit) => exit.why))].join(", or ") }));
  const labels = names.slice(1).map((_, place) => folded(exits.find((exit) => exit.from === place && exit.to === place + 1)?.why ?? ""));
  const tops = labels.reduce((some, lines) => [...some, some.at(-1) + H + Math.max(GAP, lines.length * ROW + 16)], [8]);
  const left = exits.some((exit) => exit.to <= exit.from) ? SIDE : 12;
  const width = left + W + SIDE;
  const isTaken = ({ from, to }) => taken.has(`${from}>${to}`) || (to === nodes.length && here === null && from === last);
  const edge = (exit) => {
    const kind = isTaken(exit) ? "taken" : "";
    const line = (path, text) => svg`<path class="g-edge ${kind}" marker-end="url(#arrow)" d=${path}></path>${text}`;
    if (exit.to === exit.from + 1) {
      const [x, from, to] = [left + W / 2, tops[exit.from] + H, tops[exit.to]];
      return line(`M${x} ${from}V${to - 5}`, label(labels[exit.from], x + 8, (from + to) / 2, kind, "start"));
    }
    const side = exit.to <= exit.from ? -1 : 1;
    const x = side < 0 ? left : left + W;
    const [from, to] = [tops[exit.from] + H / 2 + 8 * side, tops[exit.to] + H / 2 - 8 * side];
    const bend = x + side * Math.min(84, 40 + 16 * Math.abs(exit.to - exit.from));
    return line(`M${x} ${from}C${bend} ${from} ${bend} ${to} ${x + 5 * side} ${to}`, label(folded(exit.why), x + side * 48, (from + to) / 2, kind, "middle"));
  };
  const box = (name, place) => {
    const count = visits.get(place) ?? 0;
    const kind = place === here ? "g-now" : count || (place === nodes.length && here === null && last !== null) ? "g-done" : "";
    const times = place === here ? "the group is here" : count > 1 ? `${count} times` : count ? "passed" : "";
    return svg`<rect class="g-node ${kind}" x=${left} y=${tops[place]} width=${W} height=${place === nodes.length ? H / 2 : H} rx="10"></rect><text class="g-t" x=${left + 10} y=${tops[place] + 20}>${cut(name, 15)}</text>
      <text class="g-s" x=${left + 10} y=${tops[place] + 36}>${cut(nodes[place]?.roles.join(", ") ?? "", 18)}</text><text class="g-s" x=${left + 10} y=${tops[place] + 51}>${place < nodes.length ? times : ""}</text>`;
  };
  return html`<div class="graph"><svg viewBox="0 0 ${width} ${tops.at(-1) + H / 2 + 8}" width=${width} role="img" aria-label=${`The nodes of the policy: ${names.join(", ")}${here === null ? "" : `; the group stands in ${names[here]}`}`}>${svg`<defs><marker id="arrow" viewBox="0 0 8 8"
    refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="11" markerHeight="11" orient="auto-start-reverse"><path class="g-head" d="M0 0l8 4-8 4z"></path></marker></defs>${exits.map(edge)}${names.map(box)}`}</svg></div>
    <details class="ways"><summary>All exits in words</summary><ul class="says">${exits.map((exit) => html`<li><b>${names[exit.from]}</b> → <b>${names[exit.to]}</b>: ${exit.why}${isTaken(exit) ? " (taken)" : ""}</li>`)}</ul></details>`;
}

const label = (lines, x, y, kind, anchor) => lines.map((line, place) => svg`<text class="g-s ${kind}"
  x=${x} y=${y + 4 + ROW * (place - (lines.length - 1) / 2)} text-anchor=${anchor}>${line}</text>`);

/** Break a text into lines, without cutting a word. */
function folded(text) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= LINE) lines.push("");
    lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

/** The path of a group through its policy: visits of each node, taken exits, the last node, and since when the group is there. */
export function walked(entries) {
  const visits = new Map();
  const taken = new Set();
  let [last, since] = [null, 0];
  for (const { node, time } of entries) {
    if (node === null || node === last) continue;
    visits.set(node, (visits.get(node) ?? 0) + 1);
    if (last !== null) taken.add(`${last}>${node}`);
    [last, since] = [node, time];
  }
  return { visits, taken, last, since };
}

/** When an exit is taken, in words. */
function reason(node, exit) {
  const parts = conditions(exit.when ?? {});
  if (exit.by === "speaker") parts.unshift(`${node.turns.mode === "hub" ? node.turns.by : "the speaker"} chooses`);
  else if (exit.by !== "rule") parts.unshift(`${exit.by} judges`);
  if (exit.remove) parts.push(`the member that ${exit.remove.by === "most" ? "most" : "the last"} named as ${exit.remove.field} is removed`);
  if (parts.length) return parts.join(" and ");
  if (node.max != null) return `after ${several(node.max, "turn")}`;
  return node.exits.every((one) => one.by === "rule" && !one.when) ? "after a round" : "otherwise";
}

const BY = { last: "the last", any: "any", all: "each", most: "most" };
const valueOf = ({ equals, like }) => (equals == null ? (like ? `like ${like}` : "is given") : `= ${equals === true ? "yes" : equals === false ? "no" : equals}`);
/** The conditions of an exit in words. */
const CONDITIONS = {
  turns: (when) => `after ${several(when.turns, "turn")}`,
  rounds: (when) => `after ${several(when.rounds, "round")}`,
  visits: (when) => `from visit ${when.visits}`,
  field: (when) => `${BY[when.by ?? "last"]} ${when.field}${when.of ? ` of ${when.of}` : ""} ${valueOf(when)}`,
  left: (when) => `at most ${when.at_most} of ${when.left} left`,
};
const conditions = (when) => Object.keys(CONDITIONS).filter((name) => when[name] != null).map((name) => CONDITIONS[name](when));
