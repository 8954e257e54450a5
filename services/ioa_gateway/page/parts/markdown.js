// What agents wrote in Markdown, drawn by templates of our own from the tokens of a reader that is vendored: no text becomes markup, and
// nothing is loaded from elsewhere. It is loaded for the first text that bears a mark.
import { Lexer, Tokenizer, defaults } from "../vendor/marked/marked.esm.js";
import { html, nothing, sheet } from "./words.js";

const MOST = 10_000; // characters of a text that is read at once; a longer one stands as it was written
const MOST_MARKS = 1_000; // the reader compares each of these with the others of its paragraph
const MOST_CELLS = 4_000; // of all tables of a text: few rows make very many of them where the head has many columns
const LONGEST = 50; // ms that a text of many characters may take: of lists in lists, each reads again what is in it
const MANY = 2_000; // what is shorter takes less, and is drawn however busy the machine is
const ALLOWED = 1_000; // ms that reading may take at once, and a tenth of the time thereafter: who watches goes before who writes
const DEEPEST = 12; // lists and quotations in each other
const MOST_LINKED = MOST; // characters of where links lead to, together: few that refer to a long address make thousands of it

await sheet("markdown");

let linked = 0;
let left = ALLOWED;
let since = performance.now();

/** Draw a text; null if it is to stand as it was written. */
export function marked(text) {
  if (text.length > MOST || (text.match(/[*_~]/g)?.length ?? 0) > MOST_MARKS) return null;
  const began = performance.now();
  left = Math.min(ALLOWED, left + (began - since) / 10);
  since = began;
  if (left < 0) return null;
  linked = 0;
  try {
    return blocks(new Lexer({ ...defaults, tokenizer: new BoundedReader(text.length > MANY ? began + LONGEST : Infinity) }).lex(text), 0);
  } catch (error) {
    if (error instanceof RangeError) return null; // nested deeper than can be read, or it takes too much
    throw error;
  } finally {
    left -= performance.now() - began;
  }
}

/** Finds what a text is made of: each kind by a method, of which each looks at the time. */
class BoundedReader extends Tokenizer {
  constructor(until) {
    super();
    this.until = until;
    this.cells = 0;
    this.depth = 0;
  }

  list(text) {
    return this.nested(() => super.list(text));
  }

  blockquote(text) {
    return this.nested(() => super.blockquote(text));
  }

  nested(read) {
    if (this.depth === DEEPEST) return undefined;
    this.depth += 1;
    try {
      return read();
    } finally {
      this.depth -= 1;
    }
  }

  table(text) {
    const [, head, , rows = ""] = this.rules.block.table.exec(text) ?? [];
    if (head === undefined) return undefined;
    const cells = head.trim().replace(/^\||\|$/g, "").split("|").length * (1 + rows.trimEnd().split("\n").length);
    if (this.cells + cells > MOST_CELLS) return undefined;
    this.cells += cells;
    return super.table(text);
  }
}

for (const name of Object.getOwnPropertyNames(Tokenizer.prototype)) {
  if (name === "constructor") continue;
  const found = BoundedReader.prototype[name];
  BoundedReader.prototype[name] = function (...given) {
    if (performance.now() > this.until) throw new RangeError("It takes too long.");
    return found.apply(this, given);
  };
}

const blocks = (tokens, depth) => tokens.map((one) => block(one, depth));

function block(one, depth) {
  switch (one.type) {
    case "space":
    case "checkbox":
      return nothing;
    case "heading":
      return one.depth < 3 ? html`<h3>${line(one, depth)}</h3>` : html`<h4>${line(one, depth)}</h4>`;
    case "code":
      return html`<pre tabindex="0"><code>${one.text}</code></pre>`;
    case "blockquote":
      return html`<blockquote>${blocks(one.tokens, depth + 1)}</blockquote>`;
    case "hr":
      return html`<hr>`;
    case "list":
      return one.ordered ? html`<ol .style=${`counter-reset: item ${one.start - 1}`}>${items(one, depth)}</ol>` : html`<ul>${items(one, depth)}</ul>`;
    case "table":
      return html`<div class="wide-table" tabindex="0" role="group" aria-label="Table"><table><thead><tr>${one.header.map((cell) => html`<th scope="col" class=${cell.align ?? ""}>${line(cell, depth)}</th>`)}</tr></thead>
        <tbody>${one.rows.map((row) => html`<tr>${row.map((cell) => html`<td class=${cell.align ?? ""}>${line(cell, depth)}</td>`)}</tr>`)}</tbody></table></div>`;
    case "text":
      return line(one, depth);
    case "paragraph":
      return html`<p>${line(one, depth)}</p>`;
    default:
      return html`<p>${one.raw.trimEnd()}</p>`; // markup and references stand as they were written
  }
}

const items = (list, depth) => list.items.map((one) => html`<li>${one.task ? (one.checked ? "☑ " : "☐ ") : nothing}${blocks(one.tokens, depth + 1)}</li>`);

const line = (one, depth) => (one.tokens && depth <= DEEPEST ? one.tokens.map((part) => inline(part, depth + 1)) : one.raw);

function inline(one, depth) {
  switch (one.type) {
    case "strong":
      return html`<strong>${line(one, depth)}</strong>`;
    case "em":
      return html`<em>${line(one, depth)}</em>`;
    case "del":
      return html`<del>${line(one, depth)}</del>`;
    case "codespan":
      return html`<code>${one.text}</code>`;
    case "br":
      return html`<br>`;
    case "link":
    case "image":
      return link(one, depth);
    case "checkbox":
      return nothing;
    case "escape":
      return one.text;
    default:
      return one.raw;
  }
}

/** A link tells where it leads, whatever its words say. Pictures of elsewhere are links too: to load one would tell who reads this. */
function link(one, depth) {
  const words = one.type === "image" ? one.text : line(one, depth);
  if (!/^https?:\/\//i.test(one.href)) return one.raw;
  linked += one.href.length;
  if (linked > MOST_LINKED) throw new RangeError("Its links lead too far.");
  return html`<a href=${one.href} target="_blank" rel="noopener noreferrer nofollow">${words}</a>${one.autolink || one.text === one.href ? nothing : html` <small>(${one.href})</small>`}`;
}
