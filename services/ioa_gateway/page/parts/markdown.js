// Markdown of agents, drawn by templates from the tokens of the vendored reader: no text becomes markup, and nothing is loaded from
// elsewhere. Loaded for the first text that contains a mark.
import { lexer } from "../vendor/marked/marked.esm.js";
import { html, nothing, sheet } from "./words.js";

const MOST = 10_000; // characters; a longer text stands as it was written
const ROWS = 200; // of a table
const COLUMNS = 50;

await sheet("markdown");

/** Draw a text; null if it is to stand as it was written. */
export function marked(text) {
  if (text.length > MOST) return null;
  try {
    return blocks(lexer(text));
  } catch (error) {
    if (error instanceof RangeError) return null; // nested deeper than the reader's stack
    throw error;
  }
}

const blocks = (tokens) => tokens.map(block);

function block(one) {
  switch (one.type) {
    case "space":
    case "checkbox":
      return nothing;
    case "heading":
      return one.depth < 3 ? html`<h3>${line(one)}</h3>` : html`<h4>${line(one)}</h4>`;
    case "code":
      return html`<pre tabindex="0"><code>${one.text}</code></pre>`;
    case "blockquote":
      return html`<blockquote>${blocks(one.tokens)}</blockquote>`;
    case "hr":
      return html`<hr>`;
    case "list":
      return one.ordered ? html`<ol .style=${`counter-reset: item ${one.start - 1}`}>${items(one)}</ol>` : html`<ul>${items(one)}</ul>`;
    case "table":
      return html`<div class="wide-table" tabindex="0" role="group" aria-label="Table"><table><thead><tr>${one.header.slice(0, COLUMNS).map((cell) => html`<th scope="col" class=${cell.align ?? ""}>${line(cell)}</th>`)}</tr></thead>
        <tbody>${one.rows.slice(0, ROWS).map((row) => html`<tr>${row.slice(0, COLUMNS).map((cell) => html`<td class=${cell.align ?? ""}>${line(cell)}</td>`)}</tr>`)}</tbody></table></div>`;
    case "text":
      return line(one);
    case "paragraph":
      return html`<p>${line(one)}</p>`;
    default:
      return html`<p>${one.raw.trimEnd()}</p>`; // markup and references stand as they were written
  }
}

const items = (list) => list.items.map((one) => html`<li>${one.task ? (one.checked ? "☑ " : "☐ ") : nothing}${blocks(one.tokens)}</li>`);

const line = (one) => (one.tokens ? one.tokens.map(inline) : one.raw);

function inline(one) {
  switch (one.type) {
    case "strong":
      return html`<strong>${line(one)}</strong>`;
    case "em":
      return html`<em>${line(one)}</em>`;
    case "del":
      return html`<del>${line(one)}</del>`;
    case "codespan":
      return html`<code>${one.text}</code>`;
    case "br":
      return html`<br>`;
    case "link":
    case "image":
      return link(one);
    case "checkbox":
      return nothing;
    case "escape":
      return one.text;
    default:
      return one.raw;
  }
}

/** A link shows where it leads. A picture from elsewhere is a link too: to load it would report the reader to that site. */
function link(one) {
  if (!/^https?:\/\//i.test(one.href)) return one.raw;
  const words = one.type === "image" ? one.text : line(one);
  return html`<a href=${one.href} target="_blank" rel="noopener noreferrer nofollow">${words}</a>${one.autolink || one.text === one.href ? nothing : html` <small>(${one.href})</small>`}`;
}
