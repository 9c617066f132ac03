// The page: who is logged in, where they are, and what the keys do.
//
//   api    how the server is asked        live   what it says, kept fresh       rows   from jobs to rows
//   acts   what is done, with its plan    ui     where somebody is              keys   the table of keys
//   views/ what is seen
//
// Preact draws it: the same way to write views as React, in a few kilobytes; everything else is the browser's own.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, known, logIn, may, onOver, Silent } from "./api.js";
import { meaning } from "./keys.js";
import { begin, end, live, STALE } from "./live.js";
import { isBroken } from "./status.js";
import { counted, line, span } from "./text.js";
import { dismiss, go, open, read, setTheme, toast, ui, wander } from "./ui.js";
import { Events, Plan, Queue, Targets, Usage, Users } from "./views/boards.jsx";
import { Compare } from "./views/curve.jsx";
import { Dialog } from "./views/dialogs.jsx";
import { Job } from "./views/job.jsx";
import { Jobs } from "./views/jobs.jsx";
import { useNow } from "./views/parts.jsx";
import { forget, Wizard } from "./views/wizard.jsx";

const TABS = [["jobs", "Jobs"], ["targets", "Targets"], ["queue", "Queue"], ["events", "Events"], ["plan", "Plan"], ["usage", "Usage"]];
const THEMES = ["system", "dark", "light"];

function Page() {
  const [session, set] = useState(undefined);
  const [over, isOver] = useState("");
  useEffect(() => {
    onOver((why) => {
      end();
      // Whoever logs in next is perhaps somebody else.
      forget();
      ui.set({ toasts: [], marked: new Set(), selected: "", dialog: null });
      set(null);
      isOver(why ?? "");
    });
    enter().then(set);
  }, []);
  useEffect(() => {
    if (session) begin();
    return end;
  }, [session]);
  if (session === undefined) return <p class="empty dim" aria-live="polite"> </p>;
  if (session === null) return <LogIn over={over} done={(session) => {
    isOver("");
    set(session);
  }} />;
  return <Shell />;
}

/** Logs in by the code of a link, which leaves the address before anything is asked; else by what the browser has. */
async function enter() {
  const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, "", location.pathname);
    ui.set({ route: read() });
    try {
      return await logIn({ code });
    } catch (error) {
      const session = await again(known);
      if (!session) toast(error.message, { hint: "tpu serve --open prints another link", bad: true });
      return session;
    }
  }
  return again(known);
}

/** A server that begins just now is waited for. */
async function again(asking) {
  for (let pause = 500; ; pause = Math.min(5000, pause * 2)) {
    try {
      return await asking();
    } catch (error) {
      if (!(error instanceof Silent) && !(error.status >= 500)) throw error;
      await new Promise((go) => setTimeout(go, pause));
    }
  }
}

function LogIn({ over, done }) {
  const [problem, fail] = useState(null);
  const [busy, isBusy] = useState(false);
  const input = useRef(null);
  useEffect(() => input.current?.focus(), []);
  return (
    <main class="login">
      <h1><Mark /> tpu</h1>
      {over && <p class="warning" role="status">{line(over)}: log in again.</p>}
      <form onSubmit={async (event) => {
        event.preventDefault();
        if (busy) return;
        isBusy(true);
        fail(null);
        const token = input.current.value.trim();
        try {
          const session = await logIn({ token });
          input.current.value = "";
          done(session);
        } catch (error) {
          fail(error);
          isBusy(false);
          input.current?.select();
        }
      }}>
        <label for="token">Token</label>
        <input id="token" ref={input} type="password" autocomplete="current-password" required placeholder="tpu_…" aria-describedby="how" />
        {problem && <p class="complaint" role="alert">{line(problem.message)}</p>}
        <button type="submit" class="button good" disabled={busy}>log in</button>
      </form>
      <p class="dim" id="how">On the machine, <code>tpu token create phone --role operator --user NAME</code> makes one, and <code>tpu serve --open</code> a link that needs none.</p>
      <Toasts />
    </main>
  );
}

const Mark = () => <svg class="logo" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><rect x="2" y="13" width="4" height="8" rx="1" /><rect x="8" y="9" width="4" height="12" rx="1" /><rect x="14" y="5" width="4" height="16" rx="1" class="up" /><rect x="20" y="2" width="3" height="19" rx="1" /></svg>;

function Shell() {
  const { route } = ui.use();
  const { loaded, problem } = live.use();
  const view = viewOf(route);
  useEffect(() => {
    const press = (event) => pressed(event, viewOf(ui.get().route));
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  useEffect(() => {
    const [user, number] = route.parts;
    const name = route.tab === "job" ? `${user}/${number}` : TABS.find(([tab]) => tab === route.tab)?.[1] ?? route.tab;
    document.title = `${name} · tpu`;
    // Whoever listens is told where they are, and keys work at once.
    if (document.activeElement === document.body || document.activeElement === null) document.getElementById("rows")?.focus();
  }, [route]);
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main").focus();
      }}>to the content</a>
      <Top tab={route.tab === "job" || route.tab === "compare" ? "jobs" : route.tab} />
      <Banner />
      <main id="main" tabindex={-1} hidden={!loaded && !problem}><View route={route} /></main>
      <Toasts />
      <Dialog view={view} />
    </div>
  );
}

function viewOf(route) {
  if (route.tab === "job") return route.parts[2] === "log" ? "log" : "job";
  return route.tab;
}

function View({ route }) {
  const [user, number, part] = route.parts;
  switch (route.tab) {
    case "job": return <Job user={user} window={Number(number)} part={part} query={route.query} key={`${user}/${number}`} />;
    case "compare": return <Compare ids={route.parts} key={route.parts.join()} />;
    case "targets": return <Targets />;
    case "queue": return <Queue />;
    case "events": return <Events />;
    case "plan": return <Plan />;
    case "usage": return <Usage />;
    case "users": return <Users />;
    case "new": return <Wizard query={route.query} key={route.query.toString()} />;
    default: return <Jobs />;
  }
}

function Top({ tab }) {
  const { daemon } = live.use();
  const { busy } = ui.use();
  return (
    <header class="top">
      <a class="name" href="#/jobs" aria-label="tpu, the jobs"><Mark /><span>tpu</span></a>
      <nav aria-label="Tabs"><ul>{TABS.map(([id, name], at) => <li key={id}><a href={`#/${id}`} aria-current={tab === id ? "page" : undefined}>{name}<kbd aria-hidden="true">{at + 1}</kbd></a></li>)}</ul></nav>
      <span class="push state">
        {busy > 0 && <span class="busy" role="status">working…</span>}
        <Fresh />
        {daemon && <button type="button" onClick={how} class={`daemon ${daemon.running ? "running" : "warning"}`} title={daemon.running ? `its last turn was ${span(daemon.turn_age_s ?? 0)} ago` : "nothing happens by itself"}><span class="glyph" aria-hidden="true">{daemon.running ? "●" : "○"}</span><span class="word">daemon{daemon.running ? "" : " off"}</span></button>}
      </span>
      {may.actAtAll() && <a class="button good new" href="#/new">new<span class="word">run</span><kbd aria-hidden="true">n</kbd></a>}
      <button type="button" class="chip menu" aria-label="menu: keys, looks, users, log out" onClick={() => open({ type: "menu" })}>☰</button>
    </header>
  );
}

/** How all is, for whoever wants to sleep again: asked now, and of everything, whatever the list is filtered by. */
async function how() {
  try {
    const { jobs, monitor } = await ask("/jobs?limit=1000&filter=status:error&fields=leaf,status,error,queue");
    const broken = jobs.filter(isBroken);
    const mine = broken.filter((job) => may.act(job.user));
    const runs = monitor.running ? `the daemon runs: its last turn was ${span(monitor.turn_age_s ?? 0)} ago` : "the daemon does not run: nothing happens by itself";
    const [first] = mine;
    toast(broken.length === 0 ? "no job is broken" : `${counted(broken.length, "job")} broken, ${mine.length} of them yours`, {
      hint: runs,
      bad: mine.length > 0 || !monitor.running,
      to: first ? `job/${encodeURIComponent(first.user)}/${first.window}` : "jobs",
    });
  } catch (error) {
    toast(`how all is: ${error.message}`, { hint: error.hint, bad: true });
  }
}

function Fresh() {
  const { heardAt, stale } = live.use();
  const now = useNow(1000);
  if (!stale) return null;
  return <span class="warning num">{span((now - heardAt) / 1000)} old</span>;
}

/** What everybody has to know before they read on: that this is old, or that nothing happens by itself. */
function Banner() {
  const { stale, heardAt, daemon, loaded } = live.use();
  const now = useNow(1000);
  return (
    <div role="status" aria-live="polite" class="banners">
      {stale && <p class="banner stale" data-part="stale"><b>Out of date:</b> the server has not answered for {span(Math.max(STALE, now - heardAt) / 1000)}. What is shown is as of then; it catches up by itself.</p>}
      {!stale && loaded && daemon && !daemon.running && <p class="banner" data-part="daemon"><b>The daemon does not run:</b> nothing happens by itself. On the machine: <code>tpu daemon start</code></p>}
    </div>
  );
}

function Toasts() {
  const { toasts } = ui.use();
  return (
    <div class="toasts" role="log" aria-label="What became of it" aria-live="polite">
      {toasts.map((of) => <div key={of.id} class={`toast ${of.bad ? "bad" : ""}`}><p>{of.to ? <a href={`#/${of.to}`} onClick={() => dismiss(of.id)}>{line(of.text)}</a> : line(of.text)}</p>{of.hint && <p class="dim">{line(of.hint)}</p>}<button type="button" aria-label="dismiss" onClick={() => dismiss(of.id)}>✕</button></div>)}
    </div>
  );
}

/** A key: what it means where somebody is, or nothing while they type. */
function pressed(event, view) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
  if (ui.get().dialog) return;
  const { target } = event;
  const types = target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  if (types) {
    if (event.key === "Escape") target.blur();
    return;
  }
  // A button or a link that has the focus does its own.
  const isOwn = target instanceof HTMLElement && /^(BUTTON|A|SUMMARY)$/.test(target.tagName) && (event.key === "Enter" || event.key === " ");
  if (isOwn) return;
  const does = meaning(event.key, view);
  if (!does) return;
  const page = {
    help: () => open({ type: "help" }),
    command: () => open({ type: "command" }),
    new: () => go("new"),
    users: () => go("users"),
    theme: () => {
      const next = THEMES[(THEMES.indexOf(ui.get().theme) + 1) % THEMES.length];
      setTheme(next);
      toast(`looks: ${next === "system" ? "as this machine has it" : next}`);
    },
  }[does];
  if (page) {
    event.preventDefault();
    return page();
  }
  if (does.startsWith("tab ")) {
    event.preventDefault();
    return go(does.slice(4));
  }
  const told = new CustomEvent("tpu-key", { detail: { does }, cancelable: true });
  dispatchEvent(told);
  if (told.defaultPrevented) event.preventDefault();
  else if (does === "back" && ui.get().toasts.length > 0) dismiss(ui.get().toasts.at(-1).id);
}

document.documentElement.dataset.theme = ui.get().theme;
wander();
const place = document.getElementById("page");
place.textContent = "";
render(<Page />, place);
