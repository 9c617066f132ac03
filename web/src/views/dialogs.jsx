// What lies over the page: plans and questions, a tag, a rule, why; commands; the help. One at a time, in the browser's own
// dialog, so that focus stays in it and Esc closes it and nothing else.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { act, ACTS, like, once, path, setRule, setTag, subjects } from "../acts.js";
import { ask, logOut, may, who } from "../api.js";
import { KEYS, works } from "../keys.js";
import { live } from "../live.js";
import { failsAgain, key, kind, shown } from "../status.js";
import { counted, figure, line, moment, since, span } from "../text.js";
import { close, go, open, setTheme, toast, ui } from "../ui.js";
import { Button, Failed, Loading, Status, useAsked } from "./parts.jsx";

export function Dialog({ view }) {
  const { dialog } = ui.use();
  const place = useRef(null);
  const wasOpen = useRef(false);
  // With the key that opens it, before anything is painted: what is typed next finds the prompt, however fast.
  useLayoutEffect(() => {
    const element = place.current;
    if (dialog && !element.open) element.showModal();
    if (!dialog && element.open) element.close();
  }, [dialog]);
  const Of = dialog && { plan: PlanOfAct, confirm: Confirm, tag: Tag, rule: Rule, explain: Explain, acts: ActsOf, help: Help, command: Command, reserve: Reserve, menu: Menu }[dialog.type];
  return (
    <dialog ref={place} aria-label={dialog?.title ?? dialog?.type} onCancel={(event) => {
      event.preventDefault();
      close();
    }} onKeyDownCapture={() => {
      wasOpen.current = ui.get().dialog !== null;
    }} onKeyDown={(event) => {
      // What is typed in it is its own, also what closes it. Once that is said it stands for a moment longer, and has the focus:
      // then a key is the page's.
      if (wasOpen.current) event.stopPropagation();
    }} onClick={(event) => event.target === place.current && close()}>
      {Of && <div class="inside"><Of {...dialog} view={view} /></div>}
    </dialog>
  );
}

function useSettled(promise) {
  const [state, set] = useState(null);
  useEffect(() => {
    let gone = false;
    set(null);
    promise.then((value) => gone || set({ value }), (error) => gone || set({ error }));
    return () => {
      gone = true;
    };
  }, [promise]);
  return state;
}

/** What exactly would be done to which jobs, and what would be refused. */
function PlanOfAct({ of, jobs, plan, carryOut, verb, however }) {
  const state = useSettled(plan);
  const go = useRef(null);
  // What a job is may be another by now than when the key was pressed.
  const { byKey } = live.use();
  const current = (job) => byKey.get(key(job)) ?? job;
  const now = jobs.map(current);
  const all = (state?.value ?? []).map((one) => ({ ...one, job: current(one.job) }));
  const can = all.filter((one) => !one.error);
  // Where nothing is left to go on from, the other way is one tap away; words of the shell would be no help here.
  const isRefused = state && can.length === 0;
  // What has not failed is brought back where whoever has read that wants it all the same; every other check holds.
  const passable = isRefused && !however && ["resume", "rerun"].includes(verb) && now.every((job) => kind(job) !== "error");
  const fromScratch = verb === "resume" && isRefused && !passable && now.every(ACTS.rerun.fits);
  // What a program did wrong it does again, unless something is changed.
  const sameAgain = ["resume", "rerun"].includes(verb) && can.length === 1 && failsAgain(now[0]);
  useEffect(() => {
    go.current?.focus();
  }, [state, passable]);
  return (
    <div data-part="plan" onKeyDown={(event) => {
      if (event.key === "y" && can.length > 0) carryOut();
      if (event.key === "n") close();
    }}>
      <h2>{of.word} {jobs.length === 1 ? key(jobs[0]) : counted(jobs.length, "job")}</h2>
      <p class="dim">{of.says}</p>
      {!state && <Loading what="the plan" />}
      <ul class="plan">
        {all.map(({ job, error }) => (
          <li key={key(job)}><Status job={job} word={false} /> <b>{key(job)}</b> {(job.name ?? job.tags ?? job.title) && <span class="tag">{line(job.name ?? job.tags ?? job.title)}</span>} <span class="dim">{line(job.target)}{job.progress?.step != null && `, step ${job.progress.step}`}{job.progress?.loss != null && `, loss ${figure(job.progress.loss)}`}{job.started_at && `, ${span(since(job.started_at))}`}</span>
            {error && <p class="warning">{line(error.message)} {!fromScratch && !passable && <span class="dim">{line(error.hint ?? "")}</span>}</p>}
            {verb === "clean" && job.lineage?.length > 1 && <p class="dim">with its other attempts: {job.lineage.filter((window) => window !== job.window).join(", ")}</p>}</li>
        ))}
      </ul>
      {state && can.length < all.length && can.length > 0 && <p class="dim">The others stay as they are.</p>}
      {sameAgain && <p class="dim">Nothing of it is changed: what broke it may break it again. <button type="button" class="chip" onClick={() => like(jobs[0])}>a new run with changes, from its first step</button></p>}
      <div class="acts">
        {state && can.length > 0 && <button type="button" ref={go} class={`button ${of.grave ? "grave" : "good"}`} onClick={carryOut}>{of.word}{can.length > 1 ? ` ${can.length}` : ""} <kbd aria-hidden="true">y</kbd></button>}
        {passable && <button type="button" ref={go} class="button" onClick={() => act(verb, now, { however: true })}>{of.word} all the same</button>}
        {fromScratch && <button type="button" ref={go} class="button good" onClick={() => act("rerun", now, { however })}>{ACTS.rerun.says}</button>}
        <Button hint="n" onClick={close}>{can.length > 0 || !state ? "leave it" : "close"}</Button>
      </div>
    </div>
  );
}

function Confirm({ title, word, grave, plan, carryOut }) {
  const state = useSettled(plan);
  return (
    <div data-part="plan">
      <h2>{line(title)}</h2>
      {!state && <Loading what="the plan" />}
      {state?.error && <Failed error={state.error} />}
      {state?.value && <Facts of={state.value} />}
      <div class="acts">
        {state?.value && <Button kind={grave ? "grave" : "good"} onClick={() => {
          close();
          carryOut();
        }}>{word}</Button>}
        <Button onClick={close}>leave it</Button>
      </div>
    </div>
  );
}

/** Whatever the server says, as a table. */
function Facts({ of }) {
  const rows = Object.entries(of).filter(([name, value]) => name !== "schema" && value != null && value !== "");
  const said = (value) => (Array.isArray(value) ? value.map(said).join("; ") : typeof value === "object" ? Object.entries(value).filter(([, v]) => v != null).map(([k, v]) => `${k} ${said(v)}`).join(", ") : String(value));
  return <table class="facts"><tbody>{rows.map(([name, value]) => <tr key={name}><th scope="row">{name.replaceAll("_", " ")}</th><td>{line(said(value))}</td></tr>)}</tbody></table>;
}

function Tag({ job }) {
  const [tag, set] = useState(job.tags ?? "");
  return (
    <form onSubmit={(event) => {
      event.preventDefault();
      close();
      setTag(job, tag.trim());
    }}>
      <h2>tag {key(job)}</h2>
      <label class="hidden" for="tag">tag</label>
      <input id="tag" autofocus value={tag} autocapitalize="off" autocomplete="off" onInput={(event) => set(event.currentTarget.value)} placeholder="empty takes it away" />
      <div class="acts"><Button kind="good" type="submit">take it</Button><Button onClick={close}>leave it</Button></div>
    </form>
  );
}

function Rule({ job }) {
  const asked = useAsked(() => Promise.all([ask("/rules"), ask(path(job))]), [key(job)]);
  if (asked.error) return <Failed error={asked.error} />;
  if (!asked.value) return <Loading what="the rules" />;
  const [known, { job: seen }] = asked.value;
  const rules = Object.entries(known.rules);
  const isNow = (rule) => Object.entries(rule).every(([kind, what]) => (seen.rule[kind] ?? "pass") === what);
  const now = rules.findIndex(([, rule]) => isNow(rule));
  return (
    <div>
      <h2>when {key(job)} fails</h2>
      <p class="dim">What happens by itself, by what went wrong; what is not named stays as it is.</p>
      <ul class="choices">
        {rules.map(([name, rule], at) => (
          <li key={name}><button type="button" autofocus={at === Math.max(0, now)} aria-current={at === now} onClick={() => {
            close();
            setRule(job, name);
          }}><b>{line(name)}</b>{at === now && <span> as it is now</span>} <span class="dim">{Object.entries(rule).filter(([, what]) => what !== "pass").map(([kind, what]) => `${kind}: ${what}`).join(", ") || "nothing happens by itself"}</span></button></li>
        ))}
      </ul>
      <div class="acts"><Button onClick={close}>leave it</Button></div>
    </div>
  );
}

function Explain({ job }) {
  const asked = useAsked(() => ask(path(job, "explain")), [key(job)]);
  const of = asked.value?.job;
  return (
    <div>
      <h2>why {key(job)} is as it is</h2>
      {asked.error && <Failed error={asked.error} />}
      {!of && !asked.error && <Loading what="why" />}
      {of && (
        <>
          <p><Status job={of} /></p>
          {of.evidence && <p class={`quote ${shown(of).role}`}><q>{line(of.evidence.line)}</q><span class="dim"> seen by {line(of.evidence.source)}, {line(of.evidence.rule)}</span></p>}
          {(of.reason ?? of.pending?.reason ?? of.unknown) && <p>{line(of.reason ?? of.pending?.reason ?? of.unknown)}</p>}
          {of.next && <p><b>next</b> {line(of.next.action)}: {line(of.next.reason)}</p>}
          {asked.value.chosen && <p class="dim">{line(asked.value.chosen)}</p>}
          {asked.value.figures && <Facts of={asked.value.figures} />}
        </>
      )}
      <div class="acts">{of?.evidence && <Button kind="good" onClick={() => go(`job/${encodeURIComponent(job.user)}/${job.window}/log?at=evidence`)}>in the output</Button>}<Button hint="Esc" onClick={close}>close</Button></div>
    </div>
  );
}

/** Everything that could be done with a job now, with what it does; what ends or begins something shows its plan first. */
function ActsOf({ job }) {
  const acts = Object.entries(ACTS).filter(([, of]) => of.fits(job)).map(([verb, of]) => [of.word, of.says, () => act(verb, [job])]);
  const all = may.act(job.user) ? [
    ...acts,
    ["another like it", "start a new run as this one was, with changes", () => like(job)],
    ["tag", "give it a word by which it is found", () => open({ type: "tag", job })],
    ["rule", "what happens by itself when it fails", () => open({ type: "rule", job })],
  ] : [];
  return (
    <div>
      <h2>what can be done with {key(job)}</h2>
      <ul class="choices">{all.map(([word, says, does], at) => <li key={word}><button type="button" autofocus={at === 0} onClick={does}><b>{word}</b> <span class="dim">{says}</span></button></li>)}</ul>
      {all.length === 0 && <p class="dim">nothing, with this token</p>}
      <div class="acts"><Button hint="Esc" onClick={close}>close</Button></div>
    </div>
  );
}

function Reserve({ target }) {
  const [hours, set] = useState(24);
  const [user, setUser] = useState(who()?.users?.[0] ?? "");
  const asked = useAsked(() => ask("/users"), []);
  const users = (asked.value?.users ?? []).filter((of) => may.act(of.name)).map((of) => of.name);
  const whose = user || users[0] || "";
  return (
    <form onSubmit={(event) => {
      event.preventDefault();
      close();
      once(`reserve ${target.name}`, async () => {
        const said = await ask(`/targets/${encodeURIComponent(target.name)}/reserve`, { method: "POST", body: { for_user: whose, seconds: Math.round(hours * 3600) } });
        toast(`${target.alias ?? target.name} is kept for ${said.user} until ${moment(said.until)}`);
      });
    }}>
      <h2>reserve {line(target.alias ?? target.name)}</h2>
      <p class="dim">Nobody else's jobs begin there meanwhile; what runs there goes on.</p>
      <div class="fields">
        <label>for<select value={whose} onChange={(event) => setUser(event.currentTarget.value)}>{users.map((name) => <option key={name}>{name}</option>)}</select></label>
        <label>hours<input type="number" min={1} max={168} value={hours} onInput={(event) => set(Number(event.currentTarget.value))} /></label>
      </div>
      <div class="acts"><Button kind="good" type="submit" disabled={!whose}>reserve</Button><Button onClick={close}>leave it</Button></div>
    </form>
  );
}

function Help({ view }) {
  const [search, set] = useState("");
  const groups = ["Look", "Act", "Filter", "Tabs", "Page", "Log", "Usage"];
  const fits = (of) => (of.says + of.key + of.does).toLowerCase().includes(search.toLowerCase());
  return (
    <div class="help">
      <h2>keys</h2>
      <label class="filter"><span class="hidden">Search the keys</span><span class="glyph dim" aria-hidden="true">/</span><input type="search" autofocus value={search} onInput={(event) => set(event.currentTarget.value)} placeholder="search" /></label>
      <div class="groups">
        {groups.map((group) => {
          const all = KEYS.filter((of) => of.group === group && fits(of));
          return all.length > 0 && (
            <section key={group}><h3>{group}</h3><dl>{all.map((of) => <div key={of.key + of.at} class={works(of, view) ? "" : "dim"}><dt><kbd>{of.label ?? of.key.replace("Arrow", "")}</kbd></dt><dd>{of.says}</dd></div>)}</dl></section>
          );
        })}
      </div>
      <p class="dim">Filter: text, status:error tag:sweep tpu:v4 type:v3+ zone:eu dir:net user:bob age&gt;2h, !not. The log: words or a regular expression.</p>
      <div class="acts"><Button hint="Esc" onClick={close}>close</Button></div>
    </div>
  );
}

/** Everything by its name: acts on the chosen or marked jobs, tabs, themes, a job by its number. */
function Command() {
  const [typed, set] = useState("");
  const { selected } = ui.get();
  const job = live.get().byKey.get(selected);
  const jobs = subjects(job);
  const all = [
    ...Object.entries(ACTS).filter(([, of]) => jobs.some(of.fits)).map(([verb, of]) => [`${verb} ${jobs.map(key).join(" ")}`, of.says, () => act(verb, jobs)]),
    ...["jobs", "targets", "queue", "events", "plan", "usage", "users"].map((tab) => [tab, "show it", () => go(tab)]),
    ["new", "start a run", () => go("new")],
    ...(jobs.length === 1 ? [[`new like ${key(jobs[0])}`, "start a run as that one was, with changes", () => like(jobs[0])]] : []),
    ...["dark", "light", "system"].map((theme) => [`theme ${theme}`, "how the page looks", () => setTheme(theme)]),
    ...(jobs.length > 1 ? [["compare", "the marked runs", () => go(`compare/${jobs.map((of) => encodeURIComponent(key(of))).join("/")}`)]] : []),
    ...[...live.get().byKey.values()].slice(0, 2000).map((of) => [`job ${key(of)}`, `${shown(of).word}, ${of.tags ?? of.dir.path}`, () => go(`job/${encodeURIComponent(of.user)}/${of.window}`)]),
    ["logout", "end the session", leave],
  ];
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter(([name, says]) => words.every((word) => name.toLowerCase().includes(word) || says.toLowerCase().includes(word))).slice(0, 12);
  const run = (of) => {
    close();
    of?.[2]();
  };
  return (
    <form class="command" onSubmit={(event) => {
      event.preventDefault();
      // Nothing is no command, whatever stands first.
      run(words.length > 0 ? found[0] : undefined);
    }}>
      <label><span class="hidden">Command</span><span class="glyph dim" aria-hidden="true">:</span><input autofocus value={typed} autocapitalize="off" autocomplete="off" spellcheck={false} placeholder="kill, resume, job alice/7, theme light, …" onInput={(event) => set(event.currentTarget.value)} /></label>
      <ul class="choices">{found.map((of, at) => <li key={of[0]}><button type="button" class={at === 0 && words.length > 0 ? "first" : ""} onClick={() => run(of)}><b>{line(of[0])}</b> <span class="dim">{line(of[1])}</span></button></li>)}</ul>
    </form>
  );
}

async function leave() {
  try {
    await logOut();
  } finally {
    location.hash = "";
    location.reload();
  }
}

function Menu() {
  const session = who();
  const { theme } = ui.use();
  return (
    <div>
      <h2>{session?.name ? line(session.name) : "tpu"}</h2>
      <p class="dim">{session?.role}{session?.users?.length > 0 && ` of ${session.users.map(line).join(", ")}`}{session?.targets && ", targets too"} · tpu {session?.version}</p>
      <fieldset class="when"><legend>looks</legend>{["system", "dark", "light"].map((of) => <label key={of}><input type="radio" name="theme" checked={theme === of} onChange={() => setTheme(of)} /> {of === "system" ? "as this machine has it" : of}</label>)}</fieldset>
      <ul class="choices">
        <li><button type="button" autofocus onClick={() => go("users")}><b>users</b> <span class="dim">who there is, and where they work</span></button></li>
        <li><button type="button" onClick={() => ui.set({ dialog: { type: "help" } })}><b>keys</b> <span class="dim">what each does</span></button></li>
        <li><button type="button" onClick={leave}><b>log out</b> <span class="dim">ends this session</span></button></li>
      </ul>
      <div class="acts"><Button hint="Esc" onClick={close}>close</Button></div>
    </div>
  );
}
