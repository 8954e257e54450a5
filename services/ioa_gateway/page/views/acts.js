// Forms in place that cancel a goal, and that run it again from a message.
import { ask, goalHref, query, token } from "../api.js";
import { banner, html, nothing } from "../parts/words.js";

let problem = null;
let key = token();

/** A form with the field `text`, a button that sends it, and a button that closes the form. */
const form = (app, kind, [field, button, back], send, close) => html`<form class="confirm ${kind}" @submit=${async (event) => {
  event.preventDefault();
  problem = null;
  try {
    await send(new FormData(event.target).get("text"));
    close();
  } catch (error) {
    problem = app.failed(error);
  }
}}>${field}${problem ? banner(problem, "") : nothing}${button}<button class="btn quiet" type="button" @click=${() => {
  problem = null;
  close();
}}>${back}</button></form>`;

/** Ask for the reason of a cancellation. */
export const cancelForm = (app, goal, close) => form(app, "", [
  html`<label for="why">Cancel it?</label><input id="why" name="text" placeholder="Why" maxlength="4000">`,
  html`<button class="btn danger">Cancel the goal</button>`, "Keep it",
], (why) => ask(`${goal.path}/cancel${query({ user: goal.user })}`, { method: "POST", body: { why } }), close);

/** Ask for the new text of a message, and launch a goal that continues from there. */
export const rerunForm = (app, goal, row, close) => form(app, "rerun", [
  html`<label for="message">Run again with this message in its place</label><textarea id="message" name="text" rows="3" required maxlength="32000" .value=${row.text}></textarea>`,
  html`<button class="btn main">Run again</button>`, "Close",
], async (message) => {
  const launched = await ask(`${goal.path}/rerun${query({ user: goal.user })}`, { method: "POST", body: { at: row.seq, message }, headers: { "Idempotency-Key": key } });
  key = token();
  app.go(goalHref(launched));
}, close);
