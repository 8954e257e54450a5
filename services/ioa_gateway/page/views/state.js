// How a group stood at an entry, in figures: loaded by the first who wants to see them.
import { cost, count, empty, html, nothing, phasePill, timeOfDay } from "../parts/words.js";

/** @param {import("../room.js").Mark|null} mark */
export function state(shown, mark) {
  if (!mark) return empty("Nothing yet", "");
  const spent = mark.budget.spent;
  return html`<section class="lane"><h3>As of entry ${mark.seq}</h3><dl class="facts"><dt>phase</dt><dd>${phasePill(mark.phase)}</dd><dt>turn</dt><dd>${mark.turn}</dd>
    <dt>may speak</dt><dd>${mark.floor.join(", ") || "nobody"}</dd>${mark.waits.length ? html`<dt>waits for</dt><dd>${mark.waits.join(", ")}</dd>` : nothing}
    <dt>turns</dt><dd>${mark.budget.turns_taken} here, ${mark.budget.nested_turns} in nested teams, ${mark.budget.turns_lent} lent</dd>
    <dt>tokens</dt><dd>${count(spent.tokens_in)} read, ${count(spent.tokens_out)} written${spent.tokens_cached ? `, ${count(spent.tokens_cached)} cached` : ""}</dd>
    <dt>cost</dt><dd>${cost(spent.cost_micros)}</dd>${spent.fallbacks ? html`<dt>rules decided</dt><dd>${spent.fallbacks} times in a model's place</dd>` : nothing}
    <dt>ends by</dt><dd>${timeOfDay(Date.parse(mark.budget.deadline))}</dd><dt>group</dt><dd class="mono">${shown.comm}</dd></dl></section>`;
}
