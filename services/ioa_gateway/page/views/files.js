// The files of a goal: pictures, and the beginning of each text when it is opened. Other pages are shown in a sandbox.
import { PICTURES, empty, fileLink, html, isTable, nothing, prose, sheet } from "../parts/words.js";
import { render } from "../vendor/lit-html/lit-html.js";

const SHOWN_BYTES = 64_000;
const ROWS = 200;

/** @param {(file) => string|null} hrefOf */
export function files(list, hrefOf) {
  if (!list.length) return empty("No files yet", "What agents make appears here.");
  return html`<ul class="lane">${list.slice(0, 60).map((file) => html`<li class="art">${preview(file, hrefOf(file))}
    <footer>${fileLink(file, hrefOf(file))}<small>${file.isInput ? "given with the goal" : `by ${file.by}`}</small></footer></li>`)}</ul>`;
}

function preview(file, href) {
  if (!href) return nothing;
  if (PICTURES.has(file.media_type)) return html`<img src=${href} alt=${file.name} loading="lazy">`;
  if (!file.media_type.startsWith("text/")) return nothing;
  if (file.media_type === "text/html") {
    const view = `${href}${href.includes("?") ? "&" : "?"}view=1`;
    return html`<details><summary>Show ${file.name}</summary><iframe sandbox title=${file.name} src=${view} loading="lazy"></iframe></details>`;
  }
  const open = ({ target }) => target.open && !target.lastElementChild.firstChild && show(file, href, target.lastElementChild);
  return html`<details @toggle=${open}><summary>Show ${file.name}</summary><div class="text"></div></details>`;
}

/** Fetch the beginning of a file and draw it in an element. */
async function show(file, href, place) {
  render(html`<p>Loading …</p>`, place);
  try {
    await sheet("markdown");
    const response = await fetch(href, { headers: { Range: `bytes=0-${SHOWN_BYTES - 1}` } });
    const text = response.ok ? await response.text() : `The gateway answered ${response.status}.`;
    render(html`${drawn(file, text)}${file.size_bytes > SHOWN_BYTES ? html`<p><em>The rest of the file is not shown.</em></p>` : nothing}`, place);
  } catch {
    render(html`<p>The gateway does not answer.</p>`, place);
  }
}

function drawn(file, text) {
  if (isTable(file)) return table(cells(text, file.media_type === "text/tab-separated-values" ? "\t" : ","));
  return file.media_type.endsWith("markdown") ? prose(text) : html`<pre tabindex="0">${text}</pre>`;
}

const table = (rows) => html`<div class="wide-table" tabindex="0" role="group" aria-label="Table"><table>
  ${rows.slice(0, ROWS).map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</table></div>
  ${rows.length > ROWS ? html`<p><em>${rows.length - ROWS} more rows are not shown.</em></p>` : nothing}`;

/** Read comma-separated values (RFC 4180). */
function cells(text, separator) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(new RegExp(`(?:"((?:[^"]|"")*)"|([^${separator}\r\n"]*))(${separator}|\r?\n|$)`, "g"))) {
    rows.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end !== separator) rows.push([]);
  }
  return rows.filter((row) => row.some(Boolean));
}
