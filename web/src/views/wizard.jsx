// A new run: a form that is a job file, the plan as the server says it, and the start, once.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { onceKey, start } from "../acts.js";
import { ask, may, Problem, Silent, who } from "../api.js";
import { live, nudge } from "../live.js";
import { key } from "../status.js";
import { line } from "../text.js";
import { go, toast } from "../ui.js";
import { Button, useAsked, useKeys } from "./parts.jsx";

/** What the form says as a job file: what is empty is left out. */
export function jobFile(form) {
  const words = (text) => text.split("\n").map((word) => word.trim()).filter(Boolean);
  const said = {
    for_user: form.user,
    target: form.target.trim(),
    dir: /^\d+$/.test(form.dir.trim()) ? Number(form.dir) : form.dir.trim(),
    command: form.command.trim(),
    args: words(form.args),
    name: form.name.trim(),
    tags: form.tags.trim().split(/[\s,]+/).filter(Boolean),
    rule: form.rule,
    queue: form.queue === "default" ? "" : form.queue,
    priority: form.priority === "" ? undefined : Number(form.priority),
  };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0)));
}

export function Wizard({ query }) {
  const asked = useAsked(async () => {
    const [users, targets, rules, queues] = await Promise.all([
      ask("/users"), ask("/targets").catch(() => ({ targets: [] })), ask("/rules"), ask("/queues"),
    ]);
    return { users: users.users.filter((user) => may.act(user.name)).map((user) => user.name), targets: targets.targets, rules: Object.keys(rules.rules), queues: queues.queues.map((queue) => queue.name) };
  }, []);
  const known = asked.value;
  const [form, set] = useState({ user: who()?.users?.length === 1 ? who().users[0] : "", target: query.get("target") ?? "", dir: "1", command: "", args: "", name: "", tags: "", rule: "", queue: "default", priority: "", now: false });
  const [plan, setPlan] = useState(null);
  const [problem, fail] = useState(null);
  const [busy, isBusy] = useState(false);
  const under = useRef(false);
  const onceIs = useRef("");
  const first = useRef(null);
  const user = form.user || known?.users[0] || "";
  const dirs = useAsked(async () => (user ? (await ask(`/users/${encodeURIComponent(user)}/dirs`)).dirs : {}), [user]);
  const body = useMemo(() => jobFile({ ...form, user }), [form, user]);
  useEffect(() => first.current?.focus(), [Boolean(known)]);
  useKeys({ back: () => (plan ? setPlan(null) : go("jobs")) });
  const field = (name) => ({
    id: `run-${name}`,
    value: form[name],
    onInput: (event) => {
      const { value } = event.currentTarget;
      set((form) => ({ ...form, [name]: value }));
      setPlan(null);
      fail(null);
    },
  });
  const works = async (work) => {
    // A doubled click is one.
    if (under.current) return;
    under.current = true;
    isBusy(true);
    fail(null);
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Problem || error instanceof Silent)) throw error;
      fail(error);
    } finally {
      under.current = false;
      isBusy(false);
    }
  };
  const show = () => works(async () => {
    const said = await ask(`/jobs?start=${form.now ? "now" : "queue"}&dry_run=true`, { method: "POST", body });
    // The key is that of this plan: whatever is pressed twice, or sent again after silence, starts once.
    onceIs.current = onceKey();
    setPlan(said);
    requestAnimationFrame(() => document.getElementById("run-start")?.focus());
  });
  const begin = () => works(async () => {
    const said = await start(body, { now: form.now, once: onceIs.current });
    const [job] = said.jobs;
    toast(said.started.length > 0 ? `${key(job)} has begun` : `${key(job)} waits for its turn`);
    nudge();
    go(`job/${encodeURIComponent(job.user)}/${job.window}`);
  });
  if (!may.actAtAll()) return <p class="empty dim">This token sees, and starts nothing: an operator's does (tpu token create NAME --role operator --user NAME).</p>;
  const targets = ["local", ...(known?.targets ?? []).map((of) => of.alias ?? of.name)];
  return (
    <section class="page wizard" aria-label="New run">
      <header><h1>New run</h1></header>
      {asked.error && <p class="complaint" role="alert">{line(asked.error.message)}</p>}
      <form onSubmit={(event) => {
        event.preventDefault();
        if (plan) begin();
        else show();
      }}>
        <div class="fields">
          {known && known.users.length > 1 && <label>whose<select {...field("user")} value={user} onChange={field("user").onInput}>{known.users.map((name) => <option key={name}>{name}</option>)}</select></label>}
          <label>target<input ref={first} list="targets" required autocomplete="off" autocapitalize="off" spellcheck={false} {...field("target")} placeholder="local, v4-8-2, …" />
            <datalist id="targets">{[...new Set(targets)].map((name) => <option key={name} value={name} />)}</datalist></label>
          <label>directory<input list="dirs" required autocapitalize="off" autocomplete="off" spellcheck={false} {...field("dir")} />
            <datalist id="dirs">{Object.entries(dirs.value ?? {}).map(([slot, path]) => <option key={slot} value={slot}>{path}</option>)}</datalist>
            <span class="dim">{dirs.value?.[form.dir] ? line(dirs.value[form.dir]) : "a slot, or a path"}</span></label>
          <label class="wide">command<input autocapitalize="off" autocomplete="off" spellcheck={false} {...field("command")} placeholder="what the directory's own script is, without" /></label>
          <label class="wide">arguments, one a line<textarea rows={2} autocapitalize="off" autocomplete="off" spellcheck={false} {...field("args")} placeholder="--config.steps=4000" /></label>
          <label>name<input autocapitalize="off" autocomplete="off" {...field("name")} /></label>
          <label>tags<input autocapitalize="off" autocomplete="off" {...field("tags")} placeholder="sweep" /></label>
          <label>when it fails<select {...field("rule")} onChange={field("rule").onInput}><option value="">as the settings say</option>{known?.rules.map((name) => <option key={name}>{name}</option>)}</select></label>
          {known && known.queues.length > 1 && <label>queue<select {...field("queue")} onChange={field("queue").onInput}>{known.queues.map((name) => <option key={name}>{name}</option>)}</select></label>}
          <label>priority<input type="number" min={0} max={100} inputmode="numeric" {...field("priority")} placeholder="50" /></label>
        </div>
        <fieldset class="when"><legend class="hidden">When</legend>
          {[[false, "in its turn"], [true, "at once, or not at all"]].map(([now, says]) => <label key={says}><input type="radio" name="when" checked={form.now === now} onChange={() => {
            set((form) => ({ ...form, now }));
            setPlan(null);
          }} /> {says}</label>)}
        </fieldset>
        {problem && <p class="complaint" role="alert">{line(problem.message)} <span class="dim">{line(problem.hint ?? "")}</span></p>}
        {plan && <PlanOf plan={plan} body={body} now={form.now} />}
        <div class="acts">
          {!plan && <Button kind="good" type="submit" disabled={busy || !form.target.trim()}>show the plan</Button>}
          {plan && <Button id="run-start" kind="good" type="submit" disabled={busy}>{busy ? "starting…" : "start"}</Button>}
          {plan && <Button onClick={() => setPlan(null)}>change it</Button>}
          <Button hint="Esc" onClick={() => go("jobs")}>leave it</Button>
        </div>
      </form>
    </section>
  );
}

function PlanOf({ plan, body, now }) {
  const { jobs, daemon } = live.get();
  const there = jobs.filter((job) => job.target.endsWith(body.target) && job.status === "running").map(key);
  return (
    <div class="plan" data-part="plan" role="status">
      <h2>the plan</h2>
      <table class="facts"><tbody>
        <tr><th scope="row">starts</th><td>{plan.would?.map(key).map(line).join(", ")}{now ? " at once" : " in its turn"}</td></tr>
        {Object.entries(body).map(([name, value]) => <tr key={name}><th scope="row">{name === "for_user" ? "whose" : name}</th><td>{line(Array.isArray(value) ? value.join(" ") : String(value))}</td></tr>)}
        {there.length > 0 && <tr><th scope="row">there now</th><td class="warning">{there.join(", ")}</td></tr>}
        {!now && daemon && !daemon.running && <tr><th scope="row">note</th><td class="warning">the daemon does not run: it begins only when something looks at the queue</td></tr>}
      </tbody></table>
    </div>
  );
}
