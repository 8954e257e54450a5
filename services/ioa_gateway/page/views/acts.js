// Form that cancels a goal.
import { ask, query } from "../api.js";
import { html } from "../parts/words.js";

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
