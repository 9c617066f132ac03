// A new run: a form, empty or as another job was started; the plan as the server says it; and the start, once.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { onceKey, path, start } from "../acts.js";
import { ask, may, Problem, Silent, who } from "../api.js";
import { EMPTY, hasSeveral, inWords, jobFile, Mistyped, runs, SWEEPS, together, typed } from "../form.js";
import { live, nudge } from "../live.js";
import { groupRow } from "../rows.js";
import { key } from "../status.js";
import { counted, line } from "../text.js";
import { go, toast, ui } from "../ui.js";
import { Button, Failed, Loading, useAsked, useKeys } from "./parts.jsx";

/** So many choices are offered as buttons; of more, whoever types is proposed those that fit. */
const MOST = 12;

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** Lines that a text takes on a phone. */
const lines = (text) => Math.min(8, text.split("\n").reduce((sum, of) => sum + Math.max(1, Math.ceil(of.length / 36)), 0));

const NONE = {};

const plain = { autocapitalize: "off", autocomplete: "off", spellcheck: false };

/** What was typed and not started, by what the form was opened for: whoever looks something up finds it again. */
const drafts = new Map();

/** What was sent last, as it was sent, with its key: the same again, from whichever form, is the same request. */
let sent = { what: "", once: "" };

/** Whoever comes next finds nothing of whoever was here. */
export function forget() {
  drafts.clear();
  sent = { what: "", once: "" };
}

export function Wizard({ query }) {
  const about = query.toString();
  const asked = useAsked(async () => {
    const [users, targets, rules, queues] = await Promise.all([
      ask("/users"), ask("/targets").catch(() => ({ targets: [] })), ask("/rules"), ask("/queues"),
    ]);
    return { users: users.users.filter((user) => may.act(user.name)).map((user) => user.name), targets: targets.targets, rules: Object.keys(rules.rules), queues: queues.queues.map((queue) => queue.name) };
  }, []);
  const known = asked.value;
  const all = query.getAll("from").map((id) => /^([^/]+)\/(\d+)$/.exec(id)).filter(Boolean);
  const [like] = all;
  const opened = { ...EMPTY, user: like?.[1] ?? (who()?.users?.length === 1 ? who().users[0] : ""), target: query.get("target") ?? "" };
  const [form, set] = useState(drafts.get(about) ?? opened);
  const [isDraft, drafted] = useState(drafts.has(about));
  const precedent = useAsked(() => Promise.all(all.map(([, user, window]) => ask(path({ user, window }, "jobfile")))), [about]);
  const [plan, setPlan] = useState(null);
  const [problem, fail] = useState(null);
  const [busy, isBusy] = useState(false);
  const under = useRef(false);
  const here = useRef(true);
  useEffect(() => () => {
    here.current = false;
  }, []);
  const first = useRef(null);
  const user = form.user || known?.users[0] || "";
  const dirs = useAsked(async () => (user ? (await ask(`/users/${encodeURIComponent(user)}/dirs`)).dirs : {}), [user]);
  // Short names are those of whoever started what it is to be like: they mean the same to everybody then.
  const whose = like?.[1] ?? user;
  const aliases = useAsked(async () => (whose ? (await ask(`/users/${encodeURIComponent(whose)}/aliases`)).aliases : {}), [whose]);
  const table = aliases.value ?? NONE;
  const read = useMemo(() => {
    if (!precedent.value || !aliases.asked || precedent.value.length === 0) return {};
    try {
      return { from: together(precedent.value.map((of) => of.job_file)) };
    } catch (error) {
      if (!(error instanceof Mistyped)) throw error;
      return { problem: error };
    }
  }, [precedent.value, aliases.asked]);
  const from = read.from ?? null;
  const before = useMemo(() => (from ? typed(from, table) : null), [from, table]);
  useEffect(() => before && !isDraft && set((form) => ({ ...before, user: form.user, now: form.now })), [before]);
  // Where there is one target, it is that one.
  useEffect(() => {
    if (known?.targets.length === 0 && form.target === "" && !like && !isDraft) set((form) => ({ ...form, target: "local" }));
  }, [Boolean(known)]);
  useEffect(() => first.current?.focus(), [Boolean(known), Boolean(before), dirs.asked, aliases.asked]);
  useKeys({ back: () => (plan ? setPlan(null) : go("jobs")) });
  const field = (name) => ({
    id: `run-${name}`,
    value: form[name],
    onInput: (event) => {
      const { value } = event.currentTarget;
      change(name, value);
    },
  });
  const change = (name, value) => {
    set((form) => {
      drafts.set(about, { ...form, [name]: value });
      return drafts.get(about);
    });
    setPlan(null);
    fail(null);
  };
  const anew = () => {
    drafts.delete(about);
    drafted(false);
    setPlan(null);
    set(before ? { ...before, user: form.user } : opened);
  };
  /** What a field that was changed says of the other job. */
  const was = (field) => before && form[field] !== before[field] && <span class="dim">was {before[field] === "" ? "empty" : line(before[field])}</span>;
  const works = async (work) => {
    // A doubled click is one.
    if (under.current) return;
    under.current = true;
    isBusy(true);
    fail(null);
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Problem || error instanceof Silent || error instanceof Mistyped)) throw error;
      fail(error);
    } finally {
      under.current = false;
      isBusy(false);
    }
  };
  const show = () => works(async () => {
    const body = jobFile({ ...form, user }, from, table);
    const said = await ask(`/jobs?start=${form.now ? "now" : "queue"}&dry_run=true`, { method: "POST", body });
    setPlan({ ...said, body });
    requestAnimationFrame(() => document.getElementById("run-start")?.focus());
  });
  const begin = () => works(async () => {
    // The key is that of what is sent: whatever is pressed twice, or sent again after silence, starts once.
    const asked = JSON.stringify([plan.body, form.now]);
    if (sent.what !== asked) sent = { what: asked, once: onceKey() };
    drafts.delete(about);
    let said;
    try {
      said = await start(plan.body, { now: form.now, once: sent.once });
    } catch (error) {
      drafts.set(about, form);
      // What was refused has done nothing, and may be tried anew.
      if (!(error instanceof Silent)) sent = { what: "", once: "" };
      throw error;
    }
    sent = { what: "", once: "" };
    const [job] = said.jobs;
    const what = job.members ? `${key(job)}: ${counted(job.members.length, "run")}${said.started.length > 0 ? `, ${said.started.length} have begun` : " in their turn"}` : said.started.length > 0 ? `${key(job)} has begun` : `${key(job)} waits for its turn`;
    toast(what);
    nudge();
    // Whoever has gone elsewhere meanwhile stays there.
    if (!here.current) return undefined;
    if (!job.members) return go(`job/${encodeURIComponent(job.user)}/${job.window}`);
    // A group has no page of its own: its members are shown where all jobs are.
    const row = groupRow(job);
    ui.set(({ open }) => ({ selected: row, open: new Set([...open, row]) }));
    return go("jobs");
  });
  if (!may.actAtAll()) return <p class="empty dim">This token sees, and starts nothing: an operator's does (tpu token create NAME --role operator --user NAME).</p>;
  // All of it at once: nothing that comes later moves what a thumb is about to touch.
  if (![asked, precedent, dirs, aliases].every((of) => of.asked)) return <Loading what="what there is" />;
  // Nothing is started that is only half as the other was.
  const unread = precedent.error ?? read.problem;
  if (unread) {
    return (
      <section class="page wizard" aria-label="New run"><header><h1>New run</h1></header>
        <Failed error={unread} what={line(like[0])} />
        <div class="acts"><Button onClick={precedent.again}>try again</Button><Button onClick={() => go("new")}>an empty form</Button></div></section>
    );
  }
  const targets = [...new Set(["local", ...(known?.targets ?? []).map((of) => of.alias ?? of.name)])];
  const names = Object.keys(aliases.value ?? {});
  return (
    <section class="page wizard" aria-label="New run">
      <header><h1>New run</h1>{like && <span class="dim">as <a href={`#/job/${encodeURIComponent(like[1])}/${like[2]}`}>{line(like[0])}</a>{all.length > 1 && ` to ${line(all.at(-1)[0])} were`}{all.length === 1 && " was"}, but for what you change; from the first step</span>}</header>
      {asked.error && <p class="complaint" role="alert">{line(asked.error.message)}</p>}
      {all.length > 1 && from && <p class="warning">Not said again: how many of them run at once.</p>}
      {[...new Set((precedent.value ?? []).flatMap((of) => of.left_out))].map((what) => <p key={what} class="warning">Not said again: {line(what)}</p>)}
      {isDraft && <p class="dim">As you left it. <button type="button" class="chip" onClick={anew}>begin anew</button></p>}
      <form onSubmit={(event) => {
        event.preventDefault();
        if (plan) begin();
        else show();
      }}>
        <div class="fields">
          {known && known.users.length > 1 && <label>whose<select {...field("user")} value={user} onChange={field("user").onInput}>{known.users.map((name) => <option key={name}>{name}</option>)}</select></label>}
          <label>target<input ref={like ? undefined : first} list="targets" required {...plain} {...field("target")} placeholder="local, v4-8-2, …" />
            <datalist id="targets">{targets.map((name) => <option key={name} value={name} />)}</datalist>{was("target")}</label>
          {form.target === "" && targets.length <= MOST && <Offers of={targets} take={(name) => change("target", name)} />}
          <label>directory<input list="dirs" required {...plain} {...field("dir")} />
            <datalist id="dirs">{Object.entries(dirs.value ?? {}).map(([slot, path]) => <option key={slot} value={slot}>{path}</option>)}</datalist>
            <span class="dim">{dirs.value?.[form.dir] ? line(dirs.value[form.dir]) : "a slot, or a path"}</span></label>
          <label class="wide">configs<textarea ref={like ? first : undefined} rows={Math.max(2, lines(form.configs))} {...plain} {...field("configs")} placeholder="lr=0.01 batch=32" />{was("configs")}</label>
          {names.length > 0 && names.length <= MOST && <Offers of={names} mark="=" take={(name) => {
            // The value that it has is what is typed over.
            const there = new RegExp(`(^|\\s)(?:${escaped(name)}|${escaped(aliases.value[name])})=(\\S*)`).exec(form.configs);
            const text = there ? form.configs : `${form.configs.trimEnd()} ${name}=`.trimStart();
            const end = there ? there.index + there[0].length : text.length;
            if (!there) change("configs", text);
            requestAnimationFrame(() => {
              const area = document.getElementById("run-configs");
              area?.focus();
              area?.setSelectionRange(end - (there?.[2].length ?? 0), end);
            });
          }} />}
          <label class="wide">several values<select {...field("sweep")} onChange={field("sweep").onInput}>{SWEEPS.map(([value, says]) => <option key={value} value={value}>{says}</option>)}</select>
            {form.sweep === "" && hasSeveral(form.configs) ? <span class="warning">One run gets them as one value. <button type="button" class="chip" onClick={() => change("sweep", "each")}>make it several runs</button></span> : <span class="dim">as in lr=0.1,0.01 seed=0-4</span>}</label>
          <label class="wide">command<textarea rows={lines(form.command)} {...plain} {...field("command")} placeholder="empty: the directory's own script" />{was("command")}</label>
          <label>name<input {...plain} {...field("name")} /></label>
          <label>tag<input {...plain} {...field("tag")} />{was("tag")}</label>
          <label>when it fails<select {...field("rules")} onChange={field("rules").onInput}><option value="">as the settings say</option>{[...new Set([...(known?.rules ?? []), form.rules].filter(Boolean))].map((name) => <option key={name} value={name}>{name === "pass" ? "pass: nothing by itself" : name}</option>)}</select></label>
          {known && (known.queues.length > 1 || form.queue !== "") && <label>queue<select {...field("queue")} onChange={field("queue").onInput}><option value="">default</option>{known.queues.filter((name) => name !== "default").map((name) => <option key={name}>{name}</option>)}</select></label>}
          <label>priority<input type="number" min={0} max={100} inputmode="numeric" {...field("priority")} placeholder="50" />{was("priority")}</label>
        </div>
        <fieldset class="when"><legend class="hidden">When</legend>
          {[[false, "in its turn"], [true, "at once, or not at all"]].map(([now, says]) => <label key={says}><input type="radio" name="when" checked={form.now === now} onChange={() => {
            change("now", now);
          }} /> {says}</label>)}
        </fieldset>
        {problem && <p class="complaint" role="alert">{line(problem.message)} <span class="dim">{line(problem.hint ?? "")}</span></p>}
        {plan && <PlanOf plan={plan} now={form.now} />}
        <div class="acts">
          {!plan && <Button kind="good" type="submit" disabled={busy}>next: the plan</Button>}
          {plan && <Button id="run-start" kind="good" type="submit" disabled={busy}>{busy ? "starting…" : "start"}</Button>}
          {plan && <Button onClick={() => setPlan(null)}>change it</Button>}
          <Button hint="Esc" onClick={() => go("jobs")}>leave it</Button>
        </div>
      </form>
    </section>
  );
}

/** Choices that a thumb takes. */
function Offers({ of, take, mark = "" }) {
  return <div class="offers wide">{of.map((name) => <button key={name} type="button" class="chip" onClick={() => take(name)}>{line(name)}{mark}</button>)}</div>;
}

/** What people call the keys of a job file. */
const NAMES = { for_user: "whose", array: "several values", zip: "first with first" };

function PlanOf({ plan, now }) {
  const { jobs, daemon } = live.get();
  const { body } = plan;
  const many = runs(body);
  const there = jobs.filter((job) => typeof body.target === "string" && job.target.endsWith(body.target) && job.status === "running").map(key);
  return (
    <div class="plan" data-part="plan" role="status">
      <h2>the plan</h2>
      <table class="facts"><tbody>
        <tr><th scope="row">starts</th><td>{plan.would?.map(key).map(line).join(", ")}{many !== null && `: ${counted(many, "run")}`}{now ? " at once" : " in its turn"}</td></tr>
        {Object.entries(body).map(([name, value]) => <tr key={name}><th scope="row">{NAMES[name] ?? name}</th><td>{line(inWords(value))}</td></tr>)}
        {there.length > 0 && <tr><th scope="row">beside</th><td>{there.join(", ")}</td></tr>}
        {!now && daemon && !daemon.running && <tr><th scope="row">note</th><td class="warning">the daemon does not run: it begins only when something looks at the queue</td></tr>}
      </tbody></table>
    </div>
  );
}
