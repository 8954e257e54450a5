// Files of a goal: links to save them, pictures as they are, and text in a sandbox.
import { bytes, empty, html, icon, nothing } from "./words.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
const isTable = (file) => file.media_type === "text/csv" || file.name.endsWith(".csv");
const sign = (file) => (PICTURES.has(file.media_type) ? "img" : isTable(file) ? "table" : "file");

/** @param {string|null} href where it is fetched */
export const fileLink = (file, href) => (href
  ? html`<a class="file" href=${href} download=${file.name}>${icon(sign(file))}${file.name} <small>${bytes(file.size_bytes)}</small></a>`
  : html`<span class="file">${icon(sign(file))}${file.name} <small>${bytes(file.size_bytes)}</small></span>`);

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
