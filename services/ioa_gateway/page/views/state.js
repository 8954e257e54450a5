// The state of a group at an entry, in figures.
import { cost, count, empty, html, nothing, phasePill, timeOfDay } from "../parts/words.js";

/** @param {number} place the number of the entry in its room */
export function state(entry, place) {
  if (!entry) return empty("Nothing yet", "");
  const { budget, phase, turn, floor, waits_for, comm_id } = entry;
  const { spent } = budget;
  return html`<section class="lane"><h3>As of entry ${place}</h3><dl class="facts"><dt>phase</dt><dd>${phasePill(phase)}</dd><dt>turn</dt><dd>${turn}</dd>
    <dt>may speak</dt><dd>${floor.join(", ") || "nobody"}</dd>${waits_for.length ? html`<dt>waits for</dt><dd>${waits_for.join(", ")}</dd>` : nothing}
    <dt>turns</dt><dd>${budget.turns_taken} here, ${budget.nested_turns} in nested teams, ${budget.turns_lent} lent</dd>
    <dt>tokens</dt><dd>${count(spent.tokens_in)} read, ${count(spent.tokens_out)} written${spent.tokens_cached ? `, ${count(spent.tokens_cached)} cached` : ""}</dd>
    <dt>cost</dt><dd>${cost(spent.cost_micros)}</dd>${spent.fallbacks ? html`<dt>rules decided</dt><dd>${spent.fallbacks} times in a model's place</dd>` : nothing}
    <dt>ends by</dt><dd>${timeOfDay(Date.parse(budget.deadline))}</dd><dt>group</dt><dd class="mono">${comm_id}</dd></dl></section>`;
}
