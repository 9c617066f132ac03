// One job: what it does, what broke and what happens next; its lineage in time, its curve, its output, what it runs.

import { useEffect, useState } from "preact/hooks";
import { act, ACTS, like, path, urgency } from "../acts.js";
import { ask, may } from "../api.js";
import { live } from "../live.js";
import { failsAgain, isLive, key, kind, shown, successor, toEnd } from "../status.js";
import { figure, line, moment, since, span } from "../text.js";
import { arrived, go, open, toast, ui } from "../ui.js";
import { Curves } from "./curve.jsx";
import { Log } from "./log.jsx";
import { Bar, Button, copy, Failed, Loading, Status, useAsked, useKeys, useNarrow, useNow } from "./parts.jsx";

/** The whole view, for a job that the table may not have: one behind a filter, or of another user. */
export function Job({ user, window: number, part, query }) {
  const id = `${user}/${number}`;
  const { byKey } = live.use();
  const [alone, set] = useState(null);
  const [problem, fail] = useState(null);
  const known = byKey.get(id);
  useEffect(() => {
    let gone = false;
    const look = () => ask(path({ user, window: number })).then((said) => gone || (set(said.job), fail(null)), (error) => gone || fail(error));
    look();
    const clock = setInterval(() => !live.get().byKey.has(id) && document.visibilityState === "visible" && look(), 2000);
    return () => {
      gone = true;
      clearInterval(clock);
    };
  }, [id]);
  const job = known && alone ? { ...alone, ...known } : known ?? alone;
  useEffect(() => {
    ui.set({ selected: id });
    arrived(`job/${encodeURIComponent(user)}/${number}`);
  }, [id]);
  if (!job) return problem ? <Failed error={problem} what={id} /> : <Loading what={id} />;
  if (part === "log") return <div class="page full"><Title job={job} /><Log job={job} query={query} key={id} /></div>;
  return <div class="page job-page"><Title job={job} big /><Detail job={job} key={id} /></div>;
}

function Title({ job, big }) {
  return (
    <header class={`title-of-job ${big ? "big" : ""}`} data-job={key(job)}>
      <button type="button" class="back" onClick={() => (big ? go("jobs") : go(`job/${encodeURIComponent(job.user)}/${job.window}`))} aria-label={big ? "back to the jobs" : "back to the job"}>‹</button>
      <h1>{key(job)} {(job.name ?? job.tags ?? job.title) && <span class="tag">{line(job.name ?? job.tags ?? job.title)}</span>}</h1>
      <Status job={job} />
    </header>
  );
}

/** What is known of a job; `brief` beside the table. */
export function Detail({ job, brief = false }) {
  const now = useNow(1000);
  const next = successor(job);
  useKeys(brief ? {} : {
    log: () => go(`job/${encodeURIComponent(job.user)}/${job.window}/log`),
    act: (does) => act(does.slice(4), [job]),
    raise: () => job.queue && urgency(job, 10),
    lower: () => job.queue && urgency(job, -10),
    hold: () => act(job.held ? "unhold" : "hold", [job]),
    tag: () => open({ type: "tag", job }),
    rule: () => open({ type: "rule", job }),
    explain: () => open({ type: "explain", job }),
    "dry-plan": () => open({ type: "acts", job }),
    like: () => like(job),
    copy: async () => toast((await copy(key(job))) ? `copied ${key(job)}` : key(job)),
    open: () => go("jobs"),
    back: () => go("jobs"),
  });
  const p = job.progress;
  const eta = toEnd(job);
  const facts = [
    ["epoch", p?.epoch != null && `${figure(p.epoch)}${p.epochs ? ` / ${figure(p.epochs)}` : ""}`],
    ["step", p?.step != null && `${p.step}${p.total ? ` / ${p.total}` : ""}`],
    // The newest that was printed, be it at a step or of the whole: the curve below says the one of its last step.
    ["last loss", figure(p?.loss)],
    ["learning rate", figure(p?.lr)],
    ["speed", p?.steps_per_s != null && `${figure(p.steps_per_s)} it/s`],
    ["left", eta !== undefined && `${span(eta)}, until ${moment(now + eta * 1000)}`],
  ].filter(([, value]) => value);
  return (
    <div class="detail" data-job={key(job)}>
      <section class="now" data-part="status">
        {brief && <div class="line-of-title"><h2><a href={`#/job/${encodeURIComponent(job.user)}/${job.window}`}>{key(job)}</a> {(job.name ?? job.tags ?? job.title) && <span class="tag">{line(job.name ?? job.tags ?? job.title)}</span>}</h2><Status job={job} /></div>}
        <Bar job={job} />
        {facts.length > 0 && <dl class="figures">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd class="num">{value}</dd></div>)}</dl>}
        <Why job={job} />
        {next && <p class="next">goes on as <a href={`#/job/${encodeURIComponent(job.user)}/${next}`}>{job.user}/{next}</a></p>}
        <Acts job={job} />
      </section>
      {p?.loss != null && <section data-part="curves"><h2>loss</h2><Curves jobs={[job]} /></section>}
      <section data-part="tail"><h2>output <a class="more" href={`#/job/${encodeURIComponent(job.user)}/${job.window}/log`}>whole log <kbd aria-hidden="true">l</kbd></a></h2><Tail job={job} /></section>
      <section data-part="timeline"><h2>attempts</h2><Timeline job={job} now={now} /></section>
      {!brief && <section data-part="settings"><h2>settings</h2><Settings job={job} now={now} /></section>}
      {!brief && !job.queue && <section data-part="script"><Script job={job} /></section>}
    </div>
  );
}

/** What broke, in its own words, and what happens next by itself. */
function Why({ job }) {
  const { daemon } = live.use();
  const { role, glyph } = shown(job);
  const log = `#/job/${encodeURIComponent(job.user)}/${job.window}/log?at=evidence`;
  const says = job.reason ?? job.pending?.reason ?? job.unknown ?? job.target_unknown;
  return (
    <div class="why" data-part="evidence">
      {job.evidence && (
        <p class={`quote ${role}`}><span class="glyph" aria-hidden="true">{glyph}</span> <q>{line(job.evidence.line)}</q>
          <span class="dim"> {job.evidence.rule}{job.evidence.worker != null && `, worker ${line(job.evidence.worker)}`} <a href={log} class="more">in the output</a></span></p>
      )}
      {says && <p class="dim">{line(says)}</p>}
      {job.queue && <p>waits in <a href="#/queue">{line(job.queue)}</a>, place {job.position}, priority {job.priority}</p>}
      {job.next && (
        <p class="next"><b>next</b> {job.next.action === "pass" ? line(job.next.reason) : `${line(job.next.action)}${job.next.in_s != null ? ` in ${span(job.next.in_s)}` : ""}: ${line(job.next.reason)}`}
          {daemon && !daemon.running && job.next.action !== "pass" && <span class="warning"> The daemon does not run: nothing happens by itself.</span>}</p>
      )}
    </div>
  );
}

function Acts({ job }) {
  const narrow = useNarrow();
  if (!may.act(job.user)) return null;
  const all = Object.entries(ACTS).filter(([, of]) => of.fits(job));
  const button = ([verb, of], at) => <Button key={verb} hint={of.key} kind={verb === "kill" ? "grave" : at === 0 && kind(job) !== "finished" && !failsAgain(job) ? "good" : ""} onClick={() => act(verb, [job])}>{of.word}</Button>;
  const another = <Button hint="N" onClick={() => like(job)}>another like it</Button>;
  // On a phone the likeliest are buttons, and all stand behind one more with what they do.
  const first = all.slice(0, kind(job) === "error" ? 2 : narrow ? 1 : 3);
  const rest = all.slice(first.length);
  return (
    <div class="acts" data-part="acts">
      {kind(job) === "finished" && another}
      {first.map(button)}
      {job.queue && <><Button hint="+" onClick={() => urgency(job, 10)}>sooner</Button><Button hint="-" onClick={() => urgency(job, -10)}>later</Button></>}
      {!narrow && rest.map((one) => button(one, 1))}
      {kind(job) !== "finished" && another}
      {!narrow && <Button hint="t" onClick={() => open({ type: "tag", job })}>tag</Button>}
      {!narrow && <Button hint="u" onClick={() => open({ type: "rule", job })}>rule</Button>}
      {narrow && <Button onClick={() => open({ type: "acts", job })}>more…</Button>}
    </div>
  );
}

/** The end of the output, as it is now. */
function Tail({ job }) {
  // A phone's thumb moves the page: nothing in it moves up and down by itself.
  const lines = useNarrow() ? 10 : 14;
  const [text, set] = useState(null);
  const [problem, fail] = useState(null);
  useEffect(() => {
    let gone = false;
    let offset = 0;
    let all = "";
    let timer;
    const look = async () => {
      try {
        for (let turn = 0; turn < 40 && !gone; turn += 1) {
          const said = await ask(`${path(job, "logs")}?offset=${offset}`);
          all = (all + said.text).slice(-20_000);
          const done = said.next_offset === offset;
          offset = said.next_offset;
          if (done) break;
        }
        if (gone) return;
        set(all.trimEnd().split("\n").slice(-lines).map(line).join("\n"));
        fail(null);
      } catch (error) {
        if (!gone) fail(error);
      }
      if (!gone && isLive(live.get().byKey.get(key(job)) ?? job)) timer = setTimeout(look, 1500);
    };
    look();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [key(job), job.status, lines]);
  if (problem) return <p class="tail dim">{line(problem.message)}{problem.hint && <> · {line(problem.hint)}</>}</p>;
  return <pre class="tail" tabindex={0} role="region" aria-label="the last lines">{text === null ? " " : text || (isLive(job) ? "it has printed nothing yet" : "it has printed nothing")}</pre>;
}

const MARKS = { preempted: "▼", error: "▲", failed: "▲", finished: "✓", killed: "○", resumed: "↻", resume: "↻", rerun: "↻", started: "●", run: "●" };

/** The attempts as bars over time, preemptions and errors as marks; below them what has happened, in words. */
function Timeline({ job, now }) {
  const lineage = job.lineage.join(" ");
  const asked = useAsked(async () => {
    const all = await Promise.all(job.lineage.map((window) => ask(path({ user: job.user, window }, "timeline")).then((said) => said.events, () => [])));
    return job.lineage.map((window, at) => ({ window, events: all[at] }));
  }, [key(job), lineage, job.status, job.error]);
  const { byKey } = live.use();
  const narrow = useNarrow();
  const [isWhole, all] = useState(false);
  if (asked.error && !asked.value) return <Failed error={asked.error} />;
  if (!asked.value) return <Loading what="what has happened" />;
  const attempts = asked.value.map(({ window, events }) => {
    const of = byKey.get(`${job.user}/${window}`) ?? (window === job.window ? job : null);
    const from = of?.started_at ?? events[0]?.at;
    const isOn = of ? isLive(of) && !of.queue : false;
    const to = isOn ? now : Date.parse(events.findLast((event) => ["finished", "error", "killed", "preempted"].includes(event.kind))?.at ?? events.at(-1)?.at ?? from);
    // What waits at its engine is not at work.
    const worked = of?.worked?.map((one) => [Date.parse(one.from), one.until ? Date.parse(one.until) : to]) ?? [[Date.parse(from), to]];
    return { window, events, job: of, from: Date.parse(from), to, worked };
  }).filter((of) => !Number.isNaN(of.from));
  if (attempts.length === 0) return <p class="dim">It has not begun.</p>;
  const begin = Math.min(...attempts.map((of) => of.from));
  const end = Math.max(begin + 1000, ...attempts.map((of) => of.to));
  const x = (at) => Math.max(0, Math.min(100, (100 * (at - begin)) / (end - begin)));
  const events = attempts.flatMap(({ window, events }) => events.map((event) => ({ ...event, window }))).sort((a, b) => (a.at < b.at ? 1 : -1));
  return (
    <div class="timeline">
      <div class="bars">
        {attempts.map((of) => (
          <a key={of.window} class={`attempt ${of.window === job.window ? "this" : ""}`} href={`#/job/${encodeURIComponent(job.user)}/${of.window}`}>
            <span class="num"><span class="hidden">attempt </span>{of.window}<span class="hidden">, {of.job ? shown(of.job).word : "over"}, </span></span>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{of.worked.map(([from, to]) => <rect key={from} class={of.job ? shown(of.job).role : "finished"} x={x(from)} width={Math.max(1, x(to) - x(from))} y="2" height="6" rx="1" />)}</svg>
            <span class="num dim">{span(of.worked.reduce((sum, [from, to]) => sum + Math.max(0, to - from), 0) / 1000)}</span>
          </a>
        ))}
      </div>
      <ol class="events">
        {events.slice(0, isWhole ? 200 : narrow ? 6 : 40).map((event, at) => (
          <li key={at}><time datetime={event.at}>{moment(event.at)}</time><span class="glyph" aria-hidden="true">{MARKS[event.kind] ?? "·"}</span><b>{event.window !== job.window && `${event.window} `}{line(event.kind)}</b> <span>{line(event.text)}</span></li>
        ))}
      </ol>
      {!isWhole && events.length > (narrow ? 6 : 40) && <Button onClick={() => all(true)}>all {events.length}</Button>}
    </div>
  );
}

function Settings({ job, now }) {
  const files = useAsked(async () => (job.queue || !job.stage_dir ? null : ask(path(job, "files")).catch(() => null)), [key(job), job.status]).value;
  const rule = job.rule && Object.entries(job.rule).filter(([, what]) => what !== "pass").map(([kind, what]) => `${kind}: ${what}`).join(", ");
  const rows = [
    ["target", job.target],
    ["zone", job.zone],
    ["directory", `${job.dir.id != null ? `${job.dir.id} · ` : ""}${job.dir.path}`],
    ["arguments", job.arguments],
    ["started", job.started_at && `${moment(job.started_at)} (${span(since(job.started_at, now))} ago)`],
    ["rule", rule === "" ? "pass: nothing happens by itself" : rule],
    ["attempt", `${job.lineage.indexOf(job.window) + 1} of ${job.lineage.length}`],
    ["restarts", job.restarts || ""],
    ["exit code", job.exit_code],
    ["logs in", job.log_dir],
    ["code in", job.stage_dir],
    ["wrote", files && wrote(files)],
    ["run", files?.run_link],
  ].filter(([, value]) => value != null && value !== "");
  return <table class="facts"><tbody>{rows.map(([name, value]) => <tr key={name}><th scope="row">{name}</th><td>{name === "run" && /^https?:\/\//.test(value) ? <a href={value} target="_blank" rel="noopener noreferrer">{breakable(line(value))}</a> : breakable(line(String(value)))}</td></tr>)}</tbody></table>;
}

/** What a job wrote, by name: its files, and where its links lead to. */
function wrote({ files, count, linked, shared }) {
  const names = files.slice(0, 8).map((file) => file.path);
  const more = count > names.length ? [`and ${count - names.length} more`] : [];
  const beside = linked.length > 0 ? [`and beside the code: ${linked.join(", ")}`] : [];
  return [...names, ...more, ...beside].join(", ") + (shared ? " (with the others of its group)" : "");
}

/** A path is broken behind its slashes, and not in the middle of a name. */
const breakable = (text) => text.split(/(?<=\/)/).flatMap((part, at) => (at === 0 ? [part] : [<wbr key={at} />, part]));

function Script({ job }) {
  const [isOpen, show] = useState(false);
  const asked = useAsked(async () => (isOpen ? (await ask(path(job, "script"), { raw: true })).text : null), [key(job), isOpen]);
  return (
    <details onToggle={(event) => {
      show(event.currentTarget.open);
      if (event.currentTarget.open) event.currentTarget.scrollIntoView({ block: "start", behavior: "smooth" });
    }}>
      <summary><h2>script</h2></summary>
      {asked.error ? <p class="dim">{line(asked.error.message)} · {line(asked.error.hint ?? "")}</p> : asked.value && (
        <><pre class="script" tabindex={0} role="region" aria-label="the script">{asked.value.split("\n").map(line).join("\n")}</pre>
          <Button onClick={async () => toast((await copy(asked.value)) ? "copied" : "this browser lets nothing be copied")}>copy</Button></>
      )}
    </details>
  );
}
