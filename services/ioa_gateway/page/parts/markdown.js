// Markdown of agents, drawn by templates from the tokens of the vendored lexer: no text becomes markup, and nothing is loaded from other
// sites. Loaded for the first text that contains a mark.
import { lexer } from "../vendor/marked/marked.esm.js";
import { html, nothing, sheet } from "./words.js";

const MOST = 10_000; // characters; a longer text stays as it was written
const ROWS = 200; // of a table
const COLUMNS = 50;

await sheet("markdown");

/** Draw a text; null if it stays as it was written. */
export function marked(text) {
  if (text.length > MOST) return null;
  try {
    return blocks(lexer(text));
  } catch (error) {
    if (error instanceof RangeError) return null; // nested deeper than the lexer's stack
    throw error;
  }
}

const as = (known, one, other) => (known[one.type] ?? other)(one);
const blocks = (tokens) => tokens.map((one) => as(BLOCKS, one, written));
const line = (one) => (one.tokens ? one.tokens.map((part) => as(PARTS, part, (other) => other.raw)) : one.raw);
const cells = (row, cell) => row.slice(0, COLUMNS).map(cell);
const items = (list) => list.items.map((one) => html`<li>${one.task ? (one.checked ? "☑ " : "☐ ") : nothing}${blocks(one.tokens)}</li>`);
const written = (one) => html`<p>${one.raw.trimEnd()}</p>`; // markup and references stay as they were written

const BLOCKS = {
  space: () => nothing,
  checkbox: () => nothing,
  text: line,
  hr: () => html`<hr>`,
  paragraph: (one) => html`<p>${line(one)}</p>`,
  heading: (one) => (one.depth < 3 ? html`<h3>${line(one)}</h3>` : html`<h4>${line(one)}</h4>`),
  code: (one) => html`<pre tabindex="0"><code>${one.text}</code></pre>`,
  blockquote: (one) => html`<blockquote>${blocks(one.tokens)}</blockquote>`,
  list: (one) => (one.ordered ? html`<ol .style=${`counter-reset: item ${one.start - 1}`}>${items(one)}</ol>` : html`<ul>${items(one)}</ul>`),
  table: (one) => html`<div class="wide-table" tabindex="0" role="group" aria-label="Table"><table>
    <thead><tr>${cells(one.header, (cell) => html`<th scope="col" class=${cell.align ?? ""}>${line(cell)}</th>`)}</tr></thead>
    <tbody>${one.rows.slice(0, ROWS).map((row) => html`<tr>${cells(row, (cell) => html`<td class=${cell.align ?? ""}>${line(cell)}</td>`)}</tr>`)}</tbody></table></div>`,
};

const PARTS = {
  checkbox: () => nothing,
  br: () => html`<br>`,
  escape: (one) => one.text,
  strong: (one) => html`<strong>${line(one)}</strong>`,
  em: (one) => html`<em>${line(one)}</em>`,
  del: (one) => html`<del>${line(one)}</del>`,
  codespan: (one) => html`<code>${one.text}</code>`,
  link,
  image: link,
};

/** A link shows its target. A picture of another site is a link, because loading it would report the reader to that site. */
function link(one) {
  if (!/^https?:\/\//i.test(one.href)) return one.raw;
  const words = one.type === "image" ? one.text : line(one);
  return html`<a href=${one.href} target="_blank" rel="noopener noreferrer nofollow">${words}</a>${one.autolink || one.text === one.href ? nothing : html` <small>(${one.href})</small>`}`;
}
