// Forms that cancel a goal, and that run it again from a message on.
import { ask, query, token } from "../api.js";
import { hrefOf } from "./goals.js";
import { banner, html, nothing } from "../parts/words.js";

/** Ask whether a goal is to be cancelled, and why. `done` is told what went wrong, if anything did. */
export const cancelling = (goal, done) => html`<form class="confirm" @submit=${async (event) => {
  event.preventDefault();
  const why = new FormData(event.target).get("why");
  try {
    await ask(`${goal.path}/cancel${query({ user: goal.user })}`, { method: "POST", body: { why } });
    done();
  } catch (error) {
    done(error);
  }
}}><label for="why">Cancel it?</label><input id="why" name="why" placeholder="Why" maxlength="4000"><button class="btn danger">Cancel the goal</button>
  <button class="btn quiet" type="button" @click=${() => done()}>Keep it</button></form>`;

let problem = null;
let key = token();

/** Ask for the new text of a message, and launch a goal that continues from there. `done` closes the form. */
export const rerunning = (app, goal, row, done) => html`<form class="confirm rerun" @submit=${async (event) => {
  event.preventDefault();
  const message = new FormData(event.target).get("message");
  try {
    const launched = await ask(`${goal.path}/rerun${query({ user: goal.user })}`, { method: "POST", body: { at: row.seq, message }, headers: { "Idempotency-Key": key } });
    [problem, key] = [null, token()];
    done();
    app.go(hrefOf(launched));
  } catch (error) {
    problem = app.failed(error);
    app.changed();
  }
}}><label for="message">Run again with this message in its place</label><textarea id="message" name="message" rows="3" required maxlength="32000" .value=${row.text}></textarea>
  ${problem ? banner(problem, "") : nothing}<button class="btn main">Run again</button><button class="btn quiet" type="button" @click=${() => {
    problem = null;
    done();
  }}>Close</button></form>`;
