// The files of a goal beside each other, pictures as they are, and text in a sandbox: loaded by the first who wants to see them.
import { empty, html, nothing } from "../parts/words.js";
import { PICTURES, fileLink } from "../parts/files.js";

/** @param {(file) => string|null} hrefOf */
export function files(list, hrefOf) {
  if (!list.length) return empty("No files yet", "What agents make appears here.");
  return html`<ul class="lane">${list.slice(0, 60).map((file) => html`<li class="art">${preview(file, hrefOf(file))}
    <footer>${fileLink(file, hrefOf(file))}<small>${file.act === "team" ? "given with the goal" : `by ${file.by}`}</small></footer></li>`)}</ul>`;
}

function preview(file, href) {
  if (!href) return nothing;
  if (PICTURES.has(file.media_type)) return html`<img src=${href} alt=${file.name} loading="lazy">`;
  if (!file.media_type.startsWith("text/")) return nothing;
  const view = `${href}${href.includes("?") ? "&" : "?"}view=1`;
  return html`<details><summary>Show ${file.name}</summary><iframe sandbox title=${file.name} src=${view} loading="lazy"></iframe></details>`;
}
