// A group as one of its people sees it, for the key of a seat alone: the received messages, and the turn.
import { ask } from "../api.js";
import { avatar, empty, html, loading, nothing, page, phasePill, pill, plain, prose, tag, timeOfDay, trouble } from "../parts/words.js";

const AGAIN_MS = 2000;

let known = null;
let problem = null;

export const seat = {
  title: () => known?.goal.slice(0, 80) ?? "Your turn",
  searches: "Search what you have heard",
  enter(app, { id }) {
    const [person, comm] = id.split("/");
    known = problem = null;
    const read = async () => {
      try {
        known = await ask(`/seats/${encodeURIComponent(person)}/groups/${encodeURIComponent(comm)}`);
        problem = null;
      } catch (error) {
        problem = app.failed(error);
      }
    };
    read();
    const timer = setInterval(read, AGAIN_MS);
    return () => clearInterval(timer);
  },
  draw(app) {
    if (!known) return page(problem ? trouble(problem) : loading("what you have heard"));
    const mine = app.turns?.draw(known.comm_id);
    const wanted = app.found.toLowerCase();
    const heard = known.heard.filter((one) => `${one.sender} ${one.content}`.toLowerCase().includes(wanted));
    return html`<section class="head" aria-label="Goal"><div><h1>${plain(known.goal)}</h1><p class="meta">${mine ? pill("wait", "waits for you") : phasePill(known.phase)}<span>with ${known.members.join(", ")}</span></p></div></section>
      <main id="main" class="room alone on-talk" tabindex="-1"><section class="talk" aria-label="Conversation"><div class="log" id="log" role="log" aria-label="What you have heard" tabindex="0">
        ${heard.length ? html`<ol>${heard.map(message)}</ol>` : empty("Nothing was said yet", "")}</div>${mine ?? nothing}</section></main>`;
  },
  after() {
    const log = document.getElementById("log");
    if (log && !log.matches(":hover, :focus")) log.scrollTop = log.scrollHeight;
  },
};

const message = (one) => html`<li class="msg"><time title=${timeOfDay(Date.parse(one.at))}></time>${avatar(one.sender)}<div><header><b>${one.sender}</b>${tag(one.type === "CONCLUDE_GROUP_DISCUSSION" ? "conclude" : one.type.toLowerCase(), "plain")}${
  one.choice ? html`<span class="to">→ <b>${one.choice}</b></span>` : nothing}<span class="turn num">turn ${one.turn}</span></header><div class="body">${prose(one.content)}</div></div></li>`;
