// The page: who looks at it, which view, and when it is drawn again. A view has `title`, `enter(app, route)`, which returns what ends
// it, and `draw(app)`; it keeps what it knows in itself, and says `app.changed()`.
import { render } from "./vendor/lit-html/lit-html.js";
import { ask, now } from "./api.js";
import { fit, html, icon, loading, nothing, sheet, trouble } from "./parts/words.js";

const root = document.getElementById("app");
const VIEWS = [
  [/^\/$/, "goals", "/"],
  [/^\/goals\/([^/]+)$/, "room", "/"],
  [/^\/turns\/([^/]+\/[^/]+)$/, "seat", "/"],
  [/^\/agents$/, "agents", "/agents"],
  [/^\/traces\/([^/]+)$/, "trace", "/"],
  [/^\/policies$/, "policy", "/policies"],
];
const NO_VIEW = { title: () => "IoA", enter: () => null, draw: () => html`<main id="main" class="page" tabindex="-1">${loading("the page")}</main>` };
const AGENTS_MS = 10_000;
const AGAIN_MS = 3000;

const app = {
  view: NO_VIEW,
  section: "/",
  isIn: false,
  who: null, // {user, scopes} of the session
  isLive: true,
  live,
  agents: new Map(),
  found: "", // what is searched for
  now,
  changed,
  go,
  failed,
  sheet,
  turns: null, // what waits, for who may answer as a person
};

let leave = () => {};
let routed = 0; // counts, so that the last address wins
let isDue = false;
let away = null; // why nobody answers
let denied = null; // why the last key or token was refused

/** Note whether the gateway answers. */
function live(isLive) {
  app.isLive = isLive;
  changed();
}

function changed() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    draw();
  });
}

/** Go to another address of this page. */
function go(path, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  route(!replace);
}

function leaveView() {
  leave();
  leave = () => {};
}

/** Show what the address says. A view is loaded when it is first looked at. */
async function route(isNew = true) {
  const { pathname, searchParams } = new URL(location.href);
  const [, name, section, match] = VIEWS.map(([shape, ...rest]) => [shape, ...rest, shape.exec(pathname)]).find((one) => one[3]) ?? [null, "goals", "/", []];
  leaveView();
  const number = ++routed;
  app.section = section;
  const [loaded] = await Promise.all([import(`./views/${name}.js`), name === "room" || sheet("lists")]);
  const view = loaded[name];
  if (number !== routed || !app.isIn) return; // somebody has gone on meanwhile
  app.view = view;
  leave = view.enter(app, { id: match[1] ? decodeURIComponent(match[1]) : "", query: searchParams }) ?? (() => {});
  draw();
  if (isNew) document.getElementById("main")?.focus({ preventScroll: false });
}

/** Heed what a request met: whoever is not let in is asked for a key. Returns the problem for the view to show. */
function failed(problem) {
  if (problem.status === 0 || problem.status === 503) app.isLive = false;
  if (problem.status === 401 && app.isIn) {
    app.isIn = false;
    denied = null;
    leaveView();
  }
  changed();
  return problem;
}

// ---------------------------------------------------------------- signing in and out

async function signIn(shown) {
  try {
    await ask("/session", { method: "POST", body: shown });
    await begin();
  } catch (problem) {
    denied = problem;
    draw();
  }
}

/** See whether somebody is signed in already, and show what he asked for. */
async function begin() {
  try {
    app.who = await ask("/session");
    away = null;
  } catch (problem) {
    away = problem; // nobody can say yet whether a key is needed
    setTimeout(begin, AGAIN_MS);
    return draw();
  }
  denied = null;
  app.isIn = app.who !== null;
  if (!app.isIn) return draw();
  if (app.who.scopes.some((scope) => /^seats:|^goals:write/.test(scope))) app.turns ??= (await import("./turns.js")).openTurns(app);
  route(false);
  lookAround();
}

async function signOut() {
  try {
    await ask("/session", { method: "DELETE" });
  } catch (problem) {
    return failed(problem); // the session goes on, and whoever leaves a browser to others has to know
  }
  app.agents = new Map();
  app.turns?.close();
  app.turns = null;
  app.isIn = false;
  denied = null;
  leaveView();
  history.replaceState(null, "", "/");
  draw();
}

const signing = () => html`<main id="main" class="page sign" tabindex="-1"><form class="panel" @submit=${(event) => {
  event.preventDefault();
  const key = new FormData(event.target).get("key").trim();
  if (key) signIn({ key });
}}><h1>Sign in</h1><p class="muted">Show a key. <code>ioa keys create --name me</code> makes one; <code>ioa up --web</code> prints a link that needs none.</p>
  <label for="key">Key</label><input id="key" name="key" type="password" autocomplete="current-password" placeholder="ioa_…" required
    aria-describedby=${denied ? "denied" : nothing} aria-invalid=${denied ? "true" : nothing}>
  ${denied ? html`<p class="bad" id="denied" role="alert">${icon("bad")}${denied.message}</p>` : nothing}
  <p><button class="btn main">Sign in</button></p></form></main>`;

// ---------------------------------------------------------------- the frame around each view

const LINKS = [["/", "Goals", "goals:read"], ["/agents", "Agents", "agents:read"], ["/policies", "Policies", "goals:read"]];

function top() {
  const online = [...app.agents.values()].filter((agent) => agent.online).length;
  return html`<a class="skip" href="#main" @click=${(event) => {
    event.preventDefault();
    document.getElementById("main")?.focus();
  }}>Skip to the content</a>
  <header class="top"><a class="brand" href="/">${icon("brand")}IoA</a>
    ${app.isIn ? html`<nav aria-label="Main"><ul>${LINKS.filter(([path, , scope]) => path === "/" || app.who.scopes.includes(scope)).map(([path, word, scope]) => html`<li><a href=${path} aria-current=${app.section === path ? "page" : nothing}>${app.who.scopes.includes(scope) ? word : "Turns"}</a></li>`)}</ul></nav>
    <form class="find" role="search" @submit=${(event) => event.preventDefault()}>${icon("find")}<input type="search" id="find" aria-label="Search what is shown here"
      placeholder=${app.view.searches ?? "Search"} .value=${app.found} @input=${(event) => {
        app.found = event.target.value;
        changed();
      }}><kbd aria-hidden="true">/</kbd></form>
    <p class="live" role="status"><span class="dot ${app.isLive ? "is-live" : "is-away"}"></span><span>${app.isLive ? html`<b>live</b>` : html`<b class="bad">out of reach</b>`}${
      app.agents.size ? ` · ${online} of ${app.agents.size} agents` : ""}</span></p>
    <button class="btn quiet icon" type="button" title="Sign out" aria-label="Sign out" @click=${signOut}>${icon("out")}</button>` : nothing}</header>`;
}

function draw() {
  if (app.isIn) app.view.before?.(app);
  const waits = app.turns?.list.length ? `(${app.turns.list.length}) ` : ""; // told in a tab that nobody looks at, too
  document.title = app.isIn ? `${waits}${fit(app.view.title(app))} · IoA` : away ? "IoA" : "Sign in · IoA";
  render(html`${top()}${app.isIn ? app.view.draw(app) : away ? html`<main id="main" class="page" tabindex="-1">${trouble(away)}</main>` : signing()}`, root);
  if (app.isIn) app.view.after?.(app);
}

async function lookAround() {
  if (!app.isIn) return;
  app.turns?.look();
  if (document.hidden || !app.who.scopes.includes("agents:read")) return;
  try {
    const { agents: found } = await ask("/agents");
    app.agents = new Map(found.map((agent) => [agent.agent_id, agent]));
    app.isLive = true;
  } catch (problem) {
    if (problem.status === 401) failed(problem);
    else app.isLive = problem.status !== 0 && problem.status !== 503;
  }
  changed();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.hasAttribute("download")) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || link.target) return;
  event.preventDefault();
  go(url.pathname + url.search);
});

document.addEventListener("keydown", (event) => {
  if (!app.isIn || event.metaKey || event.ctrlKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape" && event.target.id === "find") {
      app.found = "";
      event.target.blur();
      changed();
    }
    return;
  }
  if (event.key === "/") {
    event.preventDefault();
    document.getElementById(app.view.focus ?? "find")?.focus();
  } else app.view.key?.(app, event);
});

addEventListener("popstate", () => {
  if (app.isIn) route();
});
setInterval(() => document.hidden || changed(), 1000);
setInterval(lookAround, AGENTS_MS);

root.replaceChildren(); // what stood there until the scripts came
const shown = new URL(location.href);
const token = shown.searchParams.get("token");
if (token) {
  shown.searchParams.delete("token"); // it lets in once, and is of no use to whoever sees it later
  history.replaceState(null, "", shown.pathname + shown.search);
  await signIn({ token });
} else {
  await begin();
}
