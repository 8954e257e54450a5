// The frame of the page: the session and the view. A view has `title`, `enter(app, route)`, which returns a function that leaves it, and
// `draw(app)`. The page is drawn each second, after each key, click and input, and after each response and event of the gateway. A view
// calls `app.changed()` only after a timer and after scrolling.
import { render } from "./vendor/lit-html/lit-html.js";
import { ask, now, onNews, query } from "./api.js";
import { fit, html, icon, loading, nothing, page, sheet, trouble } from "./parts/words.js";

const root = document.getElementById("app");
const VIEWS = [
  [/^\/$/, "goals"],
  [/^\/goals\/([^/]+)$/, "room"],
  [/^\/turns\/([^/]+\/[^/]+)$/, "seat"],
  [/^\/agents$/, "agents"],
  [/^\/traces\/([^/]+)$/, "trace"],
  [/^\/policies$/, "policy"],
];
const AGENTS_MS = 10_000;
const AGAIN_MS = 3000;

const app = {
  view: { title: () => "IoA", draw: () => page(loading("the page")) },
  who: null, // {user, scopes} of the session
  isLive: true, // whether the gateway answers
  agents: new Map(), // by id
  agentsProblem: undefined, // of the last reading of the agents; undefined before it, null if there is none
  online: () => [...app.agents.values()].filter((agent) => agent.online),
  readAgents,
  found: "", // the text in the search field
  draft: null, // the order and the files that the form of the next view begins with
  turns: null, // the open turns and questions, for a key that may answer
  may: (scope) => app.who?.scopes.some((one) => one === scope || one.startsWith(`${scope}:`)),
  now,
  changed,
  go,
  failed,
};

let leave = () => {}; // leaves the view; can be called again
let routed = 0; // counts, so that the last address wins
let isDue = false;
let away = null; // why the gateway does not answer
let denied = null; // why the last key or token was rejected

/** Draw the page soon. */
function changed() {
  if (isDue) return;
  isDue = true;
  const later = document.hidden ? setTimeout : requestAnimationFrame; // a hidden page has no frames, but its title is visible
  later(() => {
    isDue = false;
    draw();
  });
}

/** Go to another address of this page. */
function go(path) {
  history.pushState(null, "", path);
  route();
}

/** Show the view of the address. A view is loaded when it is first shown. */
async function route(isNew = true) {
  const { pathname, searchParams } = new URL(location.href);
  const [shape, name] = VIEWS.find(([one]) => one.test(pathname)) ?? VIEWS[0];
  const [, id = ""] = shape.exec(pathname) ?? [];
  leave();
  const number = ++routed;
  const [loaded] = await Promise.all([import(`./views/${name}.js`), name === "room" || sheet("lists")]);
  if (number !== routed || !app.who) return; // the address has changed
  app.view = loaded[name];
  leave = app.view.enter(app, { id: decodeURIComponent(id), query: searchParams }) ?? (() => {});
  draw();
  if (isNew) document.getElementById("main")?.focus();
}

/** Handle the problem of a request: without a session, ask for a key. Return the problem for the view to show. */
function failed(problem) {
  if (problem.status === 0 || problem.status === 503) app.isLive = false;
  if (problem.status === 401 && app.who) {
    app.who = denied = null;
    leave();
  }
  return problem;
}

// ---------------------------------------------------------------- signing in and out

async function signIn(shown) {
  try {
    await ask("/session", { method: "POST", body: shown });
    await begin();
  } catch (problem) {
    denied = problem;
  }
}

/** Show the view of the address if the browser has a session. */
async function begin() {
  try {
    app.who = await ask("/session");
    away = denied = null;
  } catch (problem) {
    away = problem;
    setTimeout(begin, AGAIN_MS);
  }
  if (!app.who) return;
  if (app.may("seats") || app.may("goals:write")) app.turns ??= (await import("./turns.js")).openTurns(app);
  route(false);
  lookAround();
}

async function signOut() {
  try {
    await ask("/session", { method: "DELETE" });
  } catch (problem) {
    failed(problem); // the session continues
    return;
  }
  app.turns?.close();
  Object.assign(app, { who: null, agents: new Map(), turns: null });
  denied = null;
  leave();
  history.replaceState(null, "", "/");
}

const signing = () => html`<main id="main" class="page sign" tabindex="-1"><form class="panel" @submit=${(event) => {
  event.preventDefault();
  const key = new FormData(event.target).get("key").trim();
  if (key) signIn({ key });
}}><h1>Sign in</h1><p class="muted">Enter a key. <code>ioa keys create --name me</code> makes one; <code>ioa up --web</code> prints a link that needs none.</p>
  <label for="key">Key</label><input id="key" name="key" type="password" autocomplete="current-password" placeholder="ioa_…" required
    aria-describedby=${denied ? "denied" : nothing} aria-invalid=${denied ? "true" : nothing}>
  ${denied ? html`<p class="bad" id="denied" role="alert">${icon("bad")}${denied.message}</p>` : nothing}
  <p><button class="btn main">Sign in</button></p></form></main>`;

// ---------------------------------------------------------------- the frame around each view

const LINKS = [["/", "Goals", "goals:read"], ["/agents", "Agents", "agents:read"], ["/policies", "Policies", "goals:read"]];

function top() {
  const [section] = LINKS.findLast(([path]) => location.pathname.startsWith(path));
  return html`<a class="skip" href="#main">Skip to the content</a>
  <header class="top"><a class="brand" href="/">${icon("brand")}IoA</a>
    ${app.who ? html`<nav aria-label="Main"><ul>${LINKS.filter(([path, , scope]) => path === "/" || app.may(scope)).map(([path, word, scope]) => html`<li><a href=${path} aria-current=${section === path ? "page" : nothing}>${app.may(scope) ? word : "Turns"}</a></li>`)}</ul></nav>
    <form class="find" role="search" @submit=${(event) => event.preventDefault()}>${icon("find")}<input type="search" id="find" aria-label="Search what is shown here"
      placeholder=${app.view.searches ?? "Search"} .value=${app.found} @input=${(event) => { app.found = event.target.value; }}><kbd aria-hidden="true">/</kbd></form>
    <p class="live" role="status"><span class="dot ${app.isLive ? "is-live" : "is-away"}"></span><span>${app.isLive ? html`<b>live</b>` : html`<b class="bad">out of reach</b>`}${
      app.agents.size ? ` · ${app.online().length} of ${app.agents.size} agents` : ""}</span></p>
    <button class="btn quiet icon" type="button" title="Sign out" aria-label="Sign out" @click=${signOut}>${icon("out")}</button>` : nothing}</header>`;
}

function draw() {
  if (app.who) app.view.before?.(app);
  const waits = app.turns?.list.length ? `(${app.turns.list.length}) ` : "";
  document.title = app.who ? `${waits}${fit(app.view.title(app))} · IoA` : away ? "IoA" : "Sign in · IoA";
  render(html`${top()}${app.who ? app.view.draw(app) : away ? page(trouble(away)) : signing()}`, root);
  if (app.who) app.view.after?.(app);
}

/** Read all pages of the agents. */
async function readAgents() {
  try {
    const found = [];
    for (let cursor = ""; cursor !== null;) {
      const page = await ask(`/agents${query({ cursor })}`);
      found.push(...page.agents);
      cursor = page.next;
    }
    app.agents = new Map(found.map((agent) => [agent.agent_id, agent]));
    app.isLive = true;
    app.agentsProblem = null;
  } catch (problem) {
    app.agentsProblem = failed(problem);
  }
}

function lookAround() {
  if (!app.who) return;
  app.turns?.look();
  if (!document.hidden && app.may("agents:read")) readAgents();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.hasAttribute("download")) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || link.target) return;
  event.preventDefault();
  if (url.hash) document.querySelector(url.hash)?.focus();
  else go(url.pathname + url.search);
});

document.addEventListener("keydown", (event) => {
  if (!app.who || event.metaKey || event.ctrlKey || event.altKey) return;
  const isTyping = event.target.closest("input:not([type=range]), textarea, select");
  if (event.key === "Escape" && event.target.id === "find") {
    app.found = "";
    event.target.blur();
  } else if (event.key === "/" && !isTyping) {
    event.preventDefault();
    document.getElementById(app.view.focus ?? "find")?.focus();
  } else if (!isTyping) app.view.key?.(app, event);
});

addEventListener("popstate", () => app.who && route());
document.addEventListener("visibilitychange", () => {
  isDue = false; // a frame that was due is not drawn while the page is hidden
  changed();
});
for (const kind of ["click", "input", "change", "keydown"]) addEventListener(kind, changed);
onNews((isLive = app.isLive) => {
  app.isLive = isLive;
  changed();
});
setInterval(() => document.hidden || changed(), 1000);
setInterval(lookAround, AGENTS_MS);

root.replaceChildren(); // the frame of index.html
const shown = new URL(location.href);
const token = shown.searchParams.get("token"); // valid once
if (token) {
  shown.searchParams.delete("token");
  history.replaceState(null, "", shown.pathname + shown.search);
  await signIn({ token });
} else {
  await begin();
}
