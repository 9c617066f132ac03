// The other tabs: targets and hosts, queue, events, plan, usage.

import { useEffect, useMemo, useState } from "preact/hooks";
import { act, once, urgency } from "../acts.js";
import { ask, may } from "../api.js";
import { live, setFilter } from "../live.js";
import { glyphOf, key } from "../status.js";
import { counted, figure, line, moment, since, span } from "../text.js";
import { go, open, toast } from "../ui.js";
import { Age, Button, Empty, Failed, Loading, useAsked, useKeys, useNow } from "./parts.jsx";

/** A board is asked for again while it is looked at, and when something happens. */
function useBoard(asking, every = 3000) {
  const asked = useAsked(asking, []);
  const { events } = live.use();
  useEffect(() => asked.again(), [events.length]);
  useEffect(() => {
    const clock = setInterval(() => document.visibilityState === "visible" && asked.again(), every);
    return () => clearInterval(clock);
  }, []);
  return asked;
}

/** Rows that keys go through. */
function useRows(count, meanings = {}) {
  const [at, set] = useState(0);
  const to = (next) => {
    const place = Math.max(0, Math.min(count - 1, next));
    set(place);
    document.querySelector(`[data-at="${place}"]`)?.scrollIntoView({ block: "nearest" });
  };
  useKeys({ down: () => to(at + 1), up: () => to(at - 1), top: () => to(0), bottom: () => to(count - 1), "page-down": () => to(at + 12), "page-up": () => to(at - 12), back: () => go("jobs"), ...Object.fromEntries(Object.entries(meanings).map(([name, does]) => [name, (what) => does(at, what)])) });
  return [at, set];
}

const STATES = { ready: ["●", "running"], creating: ["◌", "starting"], preempted: ["▼", "error"], missing: ["○", "killed"], deleting: ["○", "killed"], stopped: ["○", "killed"], unhealthy: ["▲", "warning"] };
const stateOf = (word) => STATES[word] ?? ["·", "unknown"];

export function Targets() {
  const asked = useBoard(async () => {
    const [targets, hosts] = await Promise.all([ask("/targets"), ask("/hosts").catch(() => ({ hosts: [] }))]);
    return { ...targets, ...hosts };
  });
  const now = useNow(5000);
  const all = asked.value?.targets ?? [];
  const [at, set] = useRows(all.length, {
    open: (at) => all[at] && toJobsOf(all[at].name),
    reapply: (at) => all[at] && make(all[at], "reapply"),
  });
  if (asked.error && !asked.value) return <Failed error={asked.error} what="targets" />;
  if (!asked.value) return <Loading what="the targets" />;
  const { targets, hosts, in_use: inUse, silent } = asked.value;
  const ready = targets.filter((of) => of.state === "ready").length;
  return (
    <section class="page board" aria-label="Targets">
      <header><h1>Targets</h1><p class="dim">{targets.length === 0 ? "none is registered" : `${ready} of ${targets.length} ready`}{inUse.map((of) => ` · ${of.targets} × ${of.type} in ${of.zone}`).join("")}</p></header>
      {asked.error && <p class="complaint" role="alert">{line(asked.error.message)}: as of before</p>}
      {silent.length > 0 && <p class="complaint">nothing is heard of {silent.map((of) => line(of.zone ?? "")).join(", ")}</p>}
      <ul class="cards">
        {targets.map((of, n) => {
          const [glyph, role] = stateOf(of.state);
          return (
            <li key={of.name} class={`card ${n === at ? "selected" : ""}`} data-at={n} data-target={of.name} onClick={() => set(n)}>
              <div class="first"><span class={`status ${role}`}><span class="glyph" aria-hidden="true">{glyph}</span>{line(of.raw_state?.toLowerCase() ?? of.state)}</span><b>{line(of.alias ?? of.name)}</b><span class="push dim">{of.since && <Age at={of.since} now={now} />}</span></div>
              <p class="dim">{[of.type, of.zone, of.pricing, of.chips && counted(of.chips, "chip")].filter(Boolean).map(line).join(" · ")}</p>
              <p>{of.user ? <><b>{line(of.user)}</b> {line(of.standing)}</> : <span class="dim">{line(of.standing)}</span>}{of.jobs > 0 && <> · <a href="#/jobs" onClick={(event) => {
                event.preventDefault();
                toJobsOf(of.name);
              }}>{counted(of.jobs, "job")}</a></>}{of.per_hour != null && <span class="dim"> · {figure(of.per_hour)} an hour{of.hours != null && `, ${figure(of.per_hour * of.hours)} so far`}</span>}</p>
              {of.symptoms?.map((text) => <p key={text} class="warning">{line(text)}</p>)}
              {may.targets() && (
                <div class="acts">
                  {of.state !== "ready" && <Button kind="good" onClick={() => make(of, "apply")}>make it</Button>}
                  <Button hint={n === at ? "A" : undefined} kind="grave" onClick={() => make(of, "reapply")}>make it anew</Button>
                  {of.standing === "reserved" ? <Button onClick={() => release(of)}>give back</Button> : <Button onClick={() => open({ type: "reserve", target: of })}>reserve</Button>}
                </div>
              )}
            </li>
          );
        })}
      </ul>
      {targets.length === 0 && <p class="dim">No target is registered, so that jobs run on hosts: <code>local</code> is the machine that serves. On the machine, <code>tpu register NAME --type v4-8 --zone ZONE</code> tells of one.</p>}
      <h2>Hosts</h2>
      <ul class="cards">{hosts.map((host) => <Host key={host.name} host={host} now={now} again={asked.again} />)}</ul>
    </section>
  );
}

function Host({ host, now, again }) {
  const { figures: f, capacity: c } = host;
  const slots = c.gpus ?? c.jobs;
  const taken = new Map(host.jobs.flatMap((of) => (of.share?.gpus ?? []).map((gpu) => [gpu, of.job])));
  const cells = slots ? Array.from({ length: slots }, (_, n) => taken.get(n) ?? (c.gpus ? null : host.jobs[n]?.job ?? null)) : host.jobs.map((of) => of.job);
  return (
    <li class="card" data-host={host.name}>
      <div class="first"><span class={`status ${host.drained ? "warning" : f?.silent ? "unknown" : "running"}`}><span class="glyph" aria-hidden="true">{host.drained ? "■" : f?.silent ? "?" : "●"}</span>{host.drained ? "drained" : f?.silent ? "silent" : "open"}</span><b>{line(host.name)}</b><span class="push dim">{host.pools.map(line).join(", ")}</span></div>
      <div class="slots" role="img" aria-label={slots ? `${cells.filter(Boolean).length} of ${slots} taken` : counted(host.jobs.length, "job")}>
        {cells.map((job, n) => <span key={n} class={`slot ${job ? "taken" : ""}`} title={job ?? "free"}>{job ? line(job) : ""}</span>)}
        {cells.length === 0 && <span class="dim">nobody is there</span>}
      </div>
      {f && <p class="dim num">{f.silent ? line(f.silent) : `load ${figure(f.load)} on ${counted(f.cpus, "CPU")} · ${Math.round((100 * f.used_mib) / f.mem_mib)} % of ${Math.round(f.mem_mib / 1024)} GiB`}{f.as_of && <> · <Age at={f.as_of} now={now} /> ago</>}</p>}
      {host.drained && <p class="dim">by {line(host.drained.by)}, {moment(host.drained.since)}{host.drained.why && `: ${line(host.drained.why)}`}</p>}
      {may.administer() && (
        <div class="acts"><Button onClick={() => once(`${host.drained ? "undrain" : "drain"} ${host.name}`, async () => {
          await ask(`/hosts/${encodeURIComponent(host.name)}/${host.drained ? "undrain" : "drain"}`, { method: "POST" });
          toast(host.drained ? `${host.name} takes jobs again` : `${host.name} takes no new jobs; what runs there goes on`);
          again();
        })}>{host.drained ? "let jobs begin" : "drain"}</Button></div>
      )}
    </li>
  );
}

function toJobsOf(target) {
  setFilter(`tpu:${target}`);
  go("jobs");
}

/** Shows what would be done to a target, and does it when that is confirmed. */
function make(target, verb) {
  const where = `/targets/${encodeURIComponent(target.name)}/${verb}`;
  const plan = ask(`${where}?dry_run=true`, { method: "POST", body: {} });
  open({
    type: "confirm",
    title: verb === "apply" ? `make ${target.alias ?? target.name}` : `delete ${target.alias ?? target.name} with all that is on it, and make it again`,
    word: verb === "apply" ? "make it" : "delete and make anew",
    grave: verb === "reapply",
    plan,
    carryOut: () => once(`${verb} ${target.name}`, async () => {
      await ask(where, { method: "POST", body: {} });
      toast(`${target.alias ?? target.name} is being made`, { hint: "Events tell the end: made, or not made" });
    }),
  });
}

function release(target) {
  return once(`give back ${target.name}`, async () => {
    await ask(`/targets/${encodeURIComponent(target.name)}/release`, { method: "POST", body: target.user ? { for_user: target.user } : {} });
    toast(`${target.alias ?? target.name} is given back`);
  });
}

export function Queue() {
  const asked = useBoard(() => ask("/queue"));
  const { byKey } = live.use();
  const now = useNow(5000);
  const entries = asked.value?.entries ?? [];
  const jobOf = (entry) => byKey.get(key(entry)) ?? { ...entry, lineage: [entry.window], status: "starting", leaf: true };
  const [at, set] = useRows(entries.length, {
    open: (at) => entries[at] && go(`job/${encodeURIComponent(entries[at].user)}/${entries[at].window}`),
    raise: (at) => entries[at] && move(entries[at], 10),
    lower: (at) => entries[at] && move(entries[at], -10),
    hold: (at) => entries[at] && act(entries[at].held ? "unhold" : "hold", [jobOf(entries[at])]),
    act: (at, does) => entries[at] && act(does.slice(4), [jobOf(entries[at])]),
    explain: (at) => entries[at] && open({ type: "explain", job: entries[at] }),
  });
  const move = async (entry, by) => {
    await urgency(entry, by);
    asked.again();
  };
  if (asked.error && !asked.value) return <Failed error={asked.error} what="queue" />;
  if (!asked.value) return <Loading what="the queue" />;
  const { queues } = asked.value;
  return (
    <section class="page board" aria-label="Queue">
      <header><h1>Queue</h1>
        <ul class="queues">{queues.map((of) => (
          <li key={of.name}><b>{line(of.name)}</b> <span class={of.state === "open" ? "dim" : "warning"}>{of.state}{of.max_parallel != null && `, ${of.max_parallel} at once`}</span>
            {may.administer() && (of.state === "open"
              ? <Button onClick={() => setQueue(of, "pause", asked.again)}>pause</Button>
              : <Button onClick={() => setQueue(of, "resume", asked.again)}>let begin</Button>)}</li>
        ))}</ul>
      </header>
      {entries.length === 0 && <Empty title="Nothing waits">{may.actAtAll() && <a href="#/new">Start a run</a>}</Empty>}
      <ol class="queue">
        {entries.map((entry, n) => {
          const mine = may.act(entry.user);
          const job = jobOf(entry);
          return (
            <li key={key(entry)} class={`card ${n === at ? "selected" : ""}`} data-at={n} data-job={key(entry)} onClick={() => set(n)}>
              <span class="place num" aria-label={`place ${entry.position}`}>{entry.position}</span>
              <div class="what">
                <p><a href={`#/job/${encodeURIComponent(entry.user)}/${entry.window}`}><b>{key(entry)}</b></a> {(entry.name ?? job.tags ?? job.title) && <span class="tag">{line(entry.name ?? job.tags ?? job.title)}</span>}{entry.members && <span class="dim"> {counted(entry.members.length, "member")}</span>} <span class="dim">{line(entry.wants)} · {queues.length > 1 && `${line(entry.queue)} · `}priority </span><b class="num" data-part="priority">{entry.priority}</b></p>
                <p class={entry.held ? "warning" : "dim"}>{entry.held && "■ "}{entry.reason ? line(entry.reason) : entry.held ? "held" : "begins at the next look"}</p>
                <p class="dim num">waits <Age at={entry.since} now={now} />{entry.expected_start && <> · expected {moment(entry.expected_start)} (in {span(-since(entry.expected_start, now))})</>}</p>
              </div>
              {mine && (
                <div class="acts">
                  <Button aria-label={`${key(entry)} sooner`} onClick={() => move(entry, 10)}>↑</Button>
                  <Button aria-label={`${key(entry)} later`} onClick={() => move(entry, -10)}>↓</Button>
                  <Button onClick={() => act("first", [job])}>first</Button>
                  <Button onClick={() => act(entry.held ? "unhold" : "hold", [{ ...job, queue: entry.queue, held: entry.held }])}>{entry.held ? "let begin" : "hold"}</Button>
                  <Button kind="grave" onClick={() => act("kill", [{ ...job, queue: entry.queue }])}>take out</Button>
                </div>
              )}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function setQueue(of, verb, again) {
  return once(`${verb} ${of.name}`, async () => {
    await ask(`/queues/${encodeURIComponent(of.name)}/${verb}`, { method: "POST" });
    toast(verb === "pause" ? `nothing of ${of.name} begins` : `${of.name} lets jobs begin`);
    again();
  });
}

const KINDS = { error: "error", preempted: "error", denied: "error", "not-made": "error", finished: "finished", killed: "killed", run: "running", started: "running", resumed: "superseded", resume: "superseded", made: "running" };

export function Events() {
  const { events } = live.use();
  const [filter, set] = useState("");
  const shown = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (event) => words.every((word) => {
      const not = word.startsWith("!");
      const of = not ? word.slice(1) : word;
      const text = `${event.kind} ${event.user ?? ""}/${event.job ?? ""} ${event.actor} ${event.text}`.toLowerCase();
      return text.includes(of) !== not;
    });
    return events.filter(fits).reverse().slice(0, 500);
  }, [events, filter]);
  const [at, choose] = useRows(shown.length, {
    open: (at) => shown[at]?.job != null && go(`job/${encodeURIComponent(shown[at].user)}/${shown[at].job}`),
    filter: () => document.getElementById("events-filter")?.focus(),
    back: () => (filter ? set("") : go("jobs")),
  });
  return (
    <section class="page board" aria-label="Events">
      <header><h1>Events</h1>
        <label class="filter"><span class="hidden">Filter</span><span class="glyph dim" aria-hidden="true">/</span><input id="events-filter" type="search" placeholder="preempted alice !started" value={filter} onInput={(event) => set(event.currentTarget.value)} onKeyDown={(event) => {
          if (event.key === "Enter" || event.key === "Escape") event.currentTarget.blur();
        }} autocomplete="off" autocapitalize="off" spellcheck={false} /></label>
      </header>
      {shown.length === 0 && <Empty title={filter ? "No event matches" : "Nothing has happened yet"} />}
      <ol class="events all">
        {shown.map((event, n) => (
          <li key={`${event.at} ${event.kind} ${event.job} ${n}`} class={n === at ? "selected" : ""} data-at={n} onClick={() => choose(n)}>
            <time datetime={event.at}>{moment(event.at)}</time>
            <span class={`kind ${KINDS[event.kind] ?? "dim"}`}>{line(event.kind)}</span>
            <span class="what">{event.job != null ? <a href={`#/job/${encodeURIComponent(event.user)}/${event.job}`}>{event.user}/{event.job}</a> : event.user ?? ""} {line(event.text)} <span class="dim">{line(event.actor)}</span></span>
          </li>
        ))}
      </ol>
    </section>
  );
}

export function Plan() {
  const asked = useBoard(() => ask("/plan"));
  const { byKey } = live.use();
  const all = asked.value?.jobs ?? [];
  const due = all.filter((of) => of.next && of.next.action !== "pass");
  const waits = all.filter((of) => of.next?.action === "pass" && (byKey.get(key(of))?.leaf ?? true));
  const mine = waits.filter((of) => may.act(of.user));
  const others = waits.filter((of) => !may.act(of.user));
  const rows = [...due, ...mine, ...others];
  const [at, set] = useRows(rows.length, { open: (at) => rows[at] && go(`job/${encodeURIComponent(rows[at].user)}/${rows[at].window}`) });
  if (asked.error && !asked.value) return <Failed error={asked.error} what="plan" />;
  if (!asked.value) return <Loading what="the plan" />;
  const row = (of, n) => {
    const [glyph, role] = glyphOf(of.status);
    return (
      <li key={key(of)} class={`card ${n === at ? "selected" : ""}`} data-at={n} data-job={key(of)} onClick={() => set(n)}>
        <div class="first"><span class={`status ${role}`}><span class="glyph" aria-hidden="true">{glyph}</span>{line(of.error ?? of.status)}</span><a href={`#/job/${encodeURIComponent(of.user)}/${of.window}`}><b>{key(of)}</b></a>
          <span class="push">{of.next.action !== "pass" && <b>{line(of.next.action)}{of.next.in_s != null && ` in ${span(of.next.in_s)}`}</b>}</span></div>
        <p>{line(of.next.reason)}{of.next.budget_left != null && <span class="dim"> · {counted(of.next.budget_left, "time")} more at most</span>}</p>
        {of.evidence && <p class="dim quote">{line(of.evidence.line)}</p>}
      </li>
    );
  };
  return (
    <section class="page board" aria-label="Plan">
      <header><h1>Plan</h1><p class="dim">what happens by itself next{!asked.value.monitor.running && ", once the daemon runs"}</p></header>
      {due.length === 0 && <Empty title="Nothing is due" />}
      <ul class="cards">{due.map(row)}</ul>
      {mine.length > 0 && <><h2>left to you</h2><ul class="cards">{mine.map((of, n) => row(of, due.length + n))}</ul></>}
      {others.length > 0 && <><h2>left to others</h2><ul class="cards">{others.map((of, n) => row(of, due.length + mine.length + n))}</ul></>}
    </section>
  );
}

const BY = ["user", "target", "type", "zone", "tag", "week", "kind"];
const PERIODS = [["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"], ["", "all time"]];

export function Usage() {
  const [by, setBy] = useState("user");
  const [period, setPeriod] = useState(1);
  const asked = useAsked(() => ask(`/usage?by=${by}${PERIODS[period][0] ? `&since=${PERIODS[period][0]}` : ""}`), [by, period]);
  useKeys({ "usage-by": () => setBy(BY[(BY.indexOf(by) + 1) % BY.length]), "usage-period": () => setPeriod((period + 1) % PERIODS.length), back: () => go("jobs") });
  const said = asked.value;
  const hasCost = said?.rows.some((row) => row.cost_known > 0);
  const most = Math.max(0.0001, ...(said?.rows ?? []).map((row) => row.hours));
  const percent = (share) => (share == null ? "" : `${Math.round(100 * share)} %`);
  const columns = [
    ["hours", (row) => figure(row.hours)],
    hasCost && ["cost", (row) => (row.cost ?? row.cost_known ? `${row.cost == null ? "≥ " : ""}${figure(row.cost ?? row.cost_known)}` : "")],
    ["attempts", (row) => row.attempts],
    ["goodput", (row) => percent(row.goodput)],
    ["preempted", (row) => row.preemptions || ""],
    ["an hour", (row) => (row.preemptions ? figure(row.preemptions_per_hour) : "")],
    ["finished", (row) => row.finished || ""],
    ["failed", (row) => row.failed || ""],
    ["waited", (row) => (row.waits ? span(row.waited_s / row.waits) : "")],
  ].filter(Boolean);
  return (
    <section class="page board" aria-label="Usage">
      <header><h1>Usage</h1>
        <label class="pick">by <select value={by} onChange={(event) => setBy(event.currentTarget.value)}>{BY.map((of) => <option key={of}>{of}</option>)}</select></label>
        <label class="pick"><span class="hidden">of </span><select value={period} onChange={(event) => setPeriod(Number(event.currentTarget.value))}>{PERIODS.map(([, says], n) => <option key={n} value={n}>{says}</option>)}</select></label>
      </header>
      {asked.error && <Failed error={asked.error} what="usage" />}
      {!said && !asked.error && <Loading what="what ran" />}
      {said && said.rows.length === 0 && <Empty title="Nothing ran in this time" />}
      {said && said.rows.length > 0 && (
        <>
          <div class="scroll" tabindex={0} role="region" aria-label="What ran">
            <table class="usage">
              <thead><tr><th scope="col">{by}</th><th scope="col"><span class="hidden">share</span></th>{columns.map(([name]) => <th scope="col" key={name} class="num">{name}</th>)}</tr></thead>
              <tbody>{[...said.rows, said.total].map((row, n) => (
                <tr key={row.key} class={n === said.rows.length ? "total" : ""}><th scope="row">{line(row.key)}</th>
                  <td class="share">{n < said.rows.length && <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect class="done" width={(100 * row.hours) / most} height="8" rx="1" /></svg>}</td>
                  {columns.map(([name, of]) => <td key={name} class="num">{of(row)}</td>)}</tr>
              ))}</tbody>
            </table>
          </div>
          <Days days={said.by_day} />
          {said.total.lines.length > 0 && <><h2>what broke</h2><ul class="failures">{said.total.lines.map((of) => <li key={of.kind + of.line}><b class="num">{of.times}×</b> <span class="error">{line(of.kind)}</span> <span class="mono">{line(of.line)}</span></li>)}</ul></>}
        </>
      )}
    </section>
  );
}

function Days({ days }) {
  if (!days || days.length < 2) return null;
  const most = Math.max(...days.map((of) => of.hours));
  return (
    <><h2>hours by day</h2>
      <div class="days" role="img" aria-label={days.map((of) => `${of.day}: ${figure(of.hours)}`).join(", ")}>
        {days.slice(-60).map((of) => <span key={of.day} title={`${of.day}: ${figure(of.hours)} hours`} style={{ height: `${Math.max(2, (100 * of.hours) / most)}%` }} />)}
      </div></>
  );
}

/** Who there is, and where they work; what each may is the token's affair. */
export function Users() {
  const asked = useAsked(async () => {
    const { users } = await ask("/users");
    const dirs = await Promise.all(users.map((user) => ask(`/users/${encodeURIComponent(user.name)}/dirs`).then((said) => said.dirs, () => ({}))));
    return users.map((user, at) => ({ ...user, dirs: dirs[at] }));
  }, []);
  const { user } = live.use();
  useKeys({ back: () => go("jobs") });
  if (asked.error) return <Failed error={asked.error} what="users" />;
  if (!asked.value) return <Loading what="the users" />;
  return (
    <section class="page board" aria-label="Users">
      <header><h1>Users</h1></header>
      <ul class="cards">
        {asked.value.map((of) => (
          <li key={of.name} class={`card ${user === of.name ? "selected" : ""}`}>
            <div class="first"><b>{line(of.name)}</b><span class="push dim">{counted(of.jobs, "job")}</span></div>
            {Object.entries(of.dirs).map(([slot, path]) => <p key={slot} class="dim mono">{slot} {line(path)}</p>)}
            <div class="acts"><Button onClick={() => {
              live.set({ user: user === of.name ? "" : of.name });
              setFilter(live.get().filter);
              go("jobs");
            }}>{user === of.name ? "everybody's jobs" : "only these jobs"}</Button></div>
          </li>
        ))}
      </ul>
    </section>
  );
}
