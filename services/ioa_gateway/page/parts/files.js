// Files of a goal: links to save them.
import { bytes, html, icon, nothing } from "./words.js";

export const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
export const isTable = (file) => ["text/csv", "text/tab-separated-values"].includes(file.media_type);
const sign = (file) => (PICTURES.has(file.media_type) ? "img" : isTable(file) ? "table" : "file");

/** A file's name and size: a link, if its address is known. */
export const fileLink = (file, href) => html`<a class="file" href=${href ?? nothing} download=${file.name}>${icon(sign(file))}${file.name} <small>${bytes(file.size_bytes)}</small></a>`;
