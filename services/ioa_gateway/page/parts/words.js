// Parts of all views: icons, pills, avatars, meters, files, times, numbers, tables and notices.
import { html as markup, svg as drawing, nothing, render } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";

/** Make control characters and direction marks visible, as `ioa.foreign_text` does on a terminal. */
export const fit = (text) => text.replaceAll("\r\n", "\n").replace(/(?![\t\n])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_C}]/gu, (mark) => (mark < " " ? String.fromCharCode(9216 + mark.charCodeAt()) : "\ufffd"));
const seen = (value) => (typeof value === "string" ? fit(value) : Array.isArray(value) ? value.map(seen) : value);
const fitting = (tag) => (strings, ...values) => tag(strings, ...values.map((value, n) => (strings[n].endsWith("value=") ? value : seen(value))));

/** The templates of the page: their values are fit to be read, except values of fields, which are sent back. */
export const html = fitting(markup);
export const svg = fitting(drawing);

export const icon = (name) => html`<svg class="i" aria-hidden="true"><use href="/page/icons.svg#${name}"></use></svg>`;

const ACTS = {
  discussion: ["talk", "talk", "Discussion"],
  draft: ["eye", "prog", "Under review"],
  decision: ["branch", "talk", "Decision"],
  "sync task": ["sync", "sync", "Sync task"],
  "async task": ["async", "async", "Async task"],
  progress: ["prog", "prog", "Progress"],
  thinking: ["prog", "prog", "Thinking"],
  pause: ["wait", "wait", "Pause"],
  conclude: ["end", "end", "Concludes"],
  conclusion: ["end", "end", "Conclusion"],
  question: ["talk", "wait", "Question"],
  answer: ["talk", "good", "Answer"],
  writes: ["file", "async", "Writes"],
  pass: ["back", "prog", "Pass"],
  reject: ["bad", "bad", "Rejects"],
  team: ["nest", "nest", "Team"],
  "nested team": ["nest", "nest", "Nested team"],
  "no team": ["bad", "bad", "No team"],
};

/** The icon, the colour and the word of an act. */
export function look(act, tone) {
  const mark = tone === "bad" ? "bad" : "good";
  return act === "result" ? [mark, mark, "Result"] : (ACTS[act] ?? ["talk", "talk", act]);
}

export function tag(act, tone, more = "") {
  const [name, colour, word] = look(act, tone);
  return html`<span class="tag k-${colour}">${icon(name)}${word}${more}</span>`;
}

const PHASES = {
  opens: "prog", waiting: "prog", discussing: "talk", gathering: "talk", deciding: "talk", handing: "sync", assigned: "sync", paused: "wait", concluding: "end",
};
const ENDS = { concluded: "good", cancelled: "prog" };

/** The colour of a phase, or of the reason of an end. */
export const phaseColour = (phase) => PHASES[phase] ?? ENDS[phase] ?? "bad";

/** A phase or a reason as a pill: a shape and a word besides the colour. */
export const phasePill = (phase) => pill(phaseColour(phase), phase.replaceAll("_", " "), !PHASES[phase]);

export const pill = (colour, word, isHollow = false) =>
  html`<span class="pill k-${colour}"><span class="dot ${isHollow ? "hollow" : ""}" aria-hidden="true"></span>${word}</span>`;

const TASKS = { done: "good", failed: "bad", rejected: "bad" };

export function taskPill({ status, suspect, fraction }) {
  if (status !== "open") return pill(TASKS[status] ?? "prog", status === "waiting" ? "waits" : status, true);
  return suspect ? pill("bad", "no sign of life") : pill("sync", fraction == null ? "running" : percent(fraction));
}

/** The number of an agent's colour. */
const hue = (agent) => ([...agent].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) >>> 0, 0) % 6) + 1;

const initials = (agent) => agent.replace(/^human-/, "").split(/[-_.\s]+/).filter(Boolean).slice(0, 2).map((word) => word[0]).join("").toUpperCase();

/** @param {boolean|null} isOnline null if unknown */
export const avatar = (agent, isOnline = null) =>
  html`<span class="av a${hue(agent)} ${agent.startsWith("human-") ? "human" : ""}" aria-hidden="true">${initials(agent)}${isOnline === null ? nothing
    : html`<span class="dot ${isOnline ? "" : "off"}"></span>`}</span>`;

/** A bar of shares, 0 to 1; the second one is hatched. Widths are properties, because the policy of the page allows no style attribute. */
export const bar = (label, share, lent = 0, kind = "", role = "meter") => html`<span class="bar ${kind}" role=${role} aria-label=${label}
  aria-valuenow=${Math.round(share * 100)} aria-valuemin="0" aria-valuemax="100"><i .style=${`width:${wide(share)}`}></i>${lent
  ? html`<i class="lent" .style=${`width:${wide(lent)}`}></i>` : nothing}</span>`;

const wide = (share) => `${Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10}%`;

export const percent = (fraction) => `${Math.round(fraction * 100)} %`;

/** A number with three digits: 950, 18.2k, 1.3M. */
export const count = (number) => COUNT.format(number).replace("K", "k");
const COUNT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const cost = (micros) => (micros === 0 ? "0" : micros < 10_000 ? "< 0.01" : (micros / 1_000_000).toFixed(2));

export const bytes = (size) => (size < 1000 ? `${size} B` : size < 1_000_000 ? `${Math.round(size / 1000)} kB` : `${(size / 1_000_000).toFixed(1)} MB`);

export const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
export const isTable = (file) => ["text/csv", "text/tab-separated-values"].includes(file.media_type);

/** A file's name and size: a link, if its address is known. */
export const fileLink = (file, href) => html`<a class="file" href=${href ?? nothing} download=${file.name}>
  ${icon(PICTURES.has(file.media_type) ? "img" : isTable(file) ? "table" : "file")}${file.name} <small>${bytes(file.size_bytes)}</small></a>`;

const two = (number) => String(number).padStart(2, "0");

/** A duration in whole units: seconds, minutes, hours, days. */
function units(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  return [seconds, Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)];
}

/** A duration: 0.9 s, 18 s, 4:41, 2 h 05, 3 d. */
export function span(ms) {
  const [seconds, minutes, hours, days] = units(ms);
  if (seconds < 10) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  if (minutes < 1) return `${seconds} s`;
  if (hours < 1) return clock(ms);
  return days < 1 ? `${hours} h ${two(minutes % 60)}` : `${days} d`;
}

/** Minutes and seconds since a begin, and hours if there are any. */
export function clock(ms) {
  const [seconds, minutes, hours] = units(ms);
  return hours ? `${hours}:${two(minutes % 60)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

export function ago(ms) {
  const [seconds, minutes, hours, days] = units(ms);
  if (seconds < 2) return "now";
  return `${days ? `${days} d` : hours ? `${hours} h` : minutes ? `${minutes} min` : `${seconds} s`} ago`;
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
export const timeOfDay = (at) => (Date.now() - at > 20 * 3_600_000 ? `${DAY.format(at)} ` : "") + TIME.format(at);

/** Marks of Markdown, in a line or at its beginning. */
const MARKS = /[*_`[<\\|~]|:\/\/|^ *(?:[#>+=-]|\d+[.)] )/m;
let marked = null; // draws Markdown; loaded for the first text with a mark

/** Text of agents: plain paragraphs until Markdown can be drawn. */
customElements.define("ioa-prose", class extends HTMLElement {
  set text(text) {
    this.raw = text;
    render((marked && MARKS.test(text) && marked(text)) || text.split(/\n{2,}/).map((part) => html`<p>${part}</p>`), this);
    if (!marked && MARKS.test(text)) {
      import("./markdown.js").then((found) => {
        ({ marked } = found);
        this.text = this.raw;
      });
    }
  }
});
export const prose = (text) => html`<ioa-prose .text=${text}></ioa-prose>`;

/** Load a style sheet; the promise ends when it is applied. */
export function sheet(name) {
  const href = `/page/${name}.css`;
  if (document.querySelector(`link[href="${href}"]`)) return null;
  return new Promise((done) => {
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: done, onerror: done });
    document.head.append(link);
  });
}

/** The text of Markdown in one line, for lists. */
export const plain = (text) => text.split("\n").map((line) => line.replace(/^\s*(?:#+|[-*+>]|\d+\.)\s+/, "").replace(/\*\*|`/g, "").trim()).filter(Boolean).join(" · ").replaceAll(": · ", ": ");

export const cut = (text, most) => (text.length > most ? `${text.slice(0, most)} …` : text);

/** A menu of options: each is a value and its word, if they differ. */
export const menu = (label, value, options, change, isRequired = false) => html`<select aria-label=${label} ?required=${isRequired} @change=${change}>${options.map(([one, word = one]) => html`
  <option value=${one} ?selected=${value === one}>${word}</option>`)}</select>`;

/** A table; each column has a head, a class, and a function that draws the cell of a row. */
export const table = (kind, caption, columns, rows, keyOf, kindOf = () => "") => html`<div class="rows ${kind}"><table><caption class="sr">${caption}</caption>
  <thead><tr>${columns.map(([head]) => html`<th scope="col">${head}</th>`)}</tr></thead>
  <tbody>${repeat(rows, keyOf, (row) => html`<tr class=${kindOf(row)}>${columns.map(([, of, cell]) => html`<td class=${of}>${cell(row)}</td>`)}</tr>`)}</tbody></table></div>`;

export const several = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

/** A problem in place of a view. */
export const trouble = (problem, again) => html`<div class="empty" role="alert">${icon("bad")}<h2>${coded(problem.message)}</h2>
  ${problem.hint ? html`<p class="muted">${coded(problem.hint)}</p>` : nothing}
  ${again ? html`<p><button class="btn" type="button" @click=${again}>Try again</button></p>` : nothing}</div>`;

/** A problem beside other content. */
export const banner = (problem, kind = "banner") => html`<p class="bad ${kind}" role="alert">${icon("bad")}<span>${coded(`${problem.message} ${problem.hint ?? ""}`)}</span></p>`;

/** Show text between backticks as code. */
const coded = (text) => text.split("`").map((part, place) => (place % 2 ? html`<code>${part}</code>` : part));

export const empty = (title, text) => html`<div class="empty"><h2>${title}</h2><p class="muted">${coded(text)}</p></div>`;

/** The content of a view. */
export const page = (content) => html`<main id="main" class="page" tabindex="-1">${content}</main>`;

export const loading = (what) => html`<div class="empty" role="status"><span class="dot pulse" aria-hidden="true"></span><p class="muted">Loading ${what} …</p></div>`;

export { nothing };
