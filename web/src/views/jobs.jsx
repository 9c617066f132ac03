// The jobs: a table whose rows are drawn only where somebody looks, so that ten thousand are no more work than thirty.
//
//   head      how many of each status; filter, groups
//   columns   sort by any
//   rows      lineages and groups folded
//   line      of the chosen job: what broke, in its own words, and what happens next

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { act, ACTS, allowed, isOneGroup, like, subjects, urgency } from "../acts.js";
import { ask, may, who } from "../api.js";
import { live, setFilter, setUser } from "../live.js";
import { COLUMNS, GROUPS, lowest, rows as rowsOf, tally } from "../rows.js";
import { glyphOf, isBroken, isLive, key, kind, shown, toEnd } from "../status.js";
import { counted, figure, line, span } from "../text.js";
import { go, keep, open, toast, toggle, ui } from "../ui.js";
import { Age, Bar, Button, Empty, Failed, Loading, Spark, Status, useKeys, useNarrow, useNow, useWide } from "./parts.jsx";
import { Detail } from "./job.jsx";

const HEADS = { job: "job", dir: "directory", target: "target", status: "status", progress: "done", loss: "loss", age: "age" };

export function Jobs() {
  const { jobs, loaded, problem, filter, user, byKey } = live.use();
  const { sort, down, group, open: unfolded, selected, marked } = ui.use();
  const rows = useMemo(() => rowsOf(jobs, { sort, down, group, open: unfolded }), [jobs, sort, down, group, unfolded]);
  const wide = useWide();
  const at = Math.max(0, rows.findIndex((row) => row.id === selected));
  const chosen = rows[at];
  const job = chosen?.job;
  const grid = useRef(null);
  const scroll = useRef(() => {});

  const choose = (to) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, to))];
    if (row) {
      ui.set({ selected: row.id });
      scroll.current(rows.indexOf(row));
    }
  };
  const openIt = () => {
    if (!chosen) return;
    if (chosen.type === "head" || chosen.type === "group") return fold(chosen);
    go(`job/${encodeURIComponent(job.user)}/${job.window}`);
  };
  const fold = (row) => ui.set(({ open }) => ({ open: toggle(open, row.type === "head" ? `-${row.id}` : row.id) }));
  const meant = () => (chosen?.type === "group" ? chosen.members : job ? [job] : []);
  const sortBy = (column) => keep({ sort: column, down: column === sort ? !down : false });

  useKeys({
    down: () => choose(at + 1),
    up: () => choose(at - 1),
    top: () => choose(0),
    bottom: () => choose(rows.length - 1),
    "page-down": () => choose(at + 15),
    "page-up": () => choose(at - 15),
    open: openIt,
    unfold: () => chosen?.folds > 0 && !chosen.isOpen ? fold(chosen) : chosen?.folded && fold(chosen),
    fold: () => (chosen?.isOpen || (chosen?.type === "head" && !chosen.folded)) && fold(chosen),
    mark: () => {
      if (!job) return;
      markAll(meant());
      choose(at + 1);
    },
    "sort-left": () => keep({ sort: COLUMNS[(COLUMNS.indexOf(sort) + COLUMNS.length - 1) % COLUMNS.length] }),
    "sort-right": () => keep({ sort: COLUMNS[(COLUMNS.indexOf(sort) + 1) % COLUMNS.length] }),
    "sort-reverse": () => keep({ down: !down }),
    group: () => keep({ group: GROUPS[(GROUPS.indexOf(group) + 1) % GROUPS.length] }),
    broken: toNewestBroken,
    filter: () => document.getElementById("filter")?.focus(),
    log: () => job && go(`job/${encodeURIComponent(job.user)}/${job.window}/log`),
    act: (does) => act(does.slice(4), marked.size > 0 ? subjects() : meant()),
    raise: () => waiting((of) => urgency(of, 10)),
    lower: () => waiting((of) => urgency(of, -10)),
    hold: () => act(meant().every((of) => of.held) ? "unhold" : "hold", marked.size > 0 ? subjects() : meant()),
    tag: () => job && open({ type: "tag", job }),
    rule: () => job && open({ type: "rule", job }),
    explain: () => job && open({ type: "explain", job }),
    "dry-plan": () => job && open({ type: "acts", job }),
    like: () => job && like(...(marked.size > 0 ? subjects() : meant())),
    compare: () => compare(),
    copy: () => job && toast(key(job)),
    back: () => {
      if (marked.size > 0) ui.set({ marked: new Set() });
      else if (filter) setFilter("");
    },
  });
  const waiting = (change) => {
    const all = (marked.size > 0 ? subjects() : meant()).filter((of) => of.queue);
    if (all.length === 0) toast("nothing that waits is chosen");
    all.forEach(change);
  };

  if (problem && !loaded) return <Failed error={problem} what="jobs" />;
  // Nothing stands where something else will stand in a moment.
  if (!loaded) return <Loading what="the jobs" />;
  return (
    <div class={`jobs ${wide ? "split" : ""}`}>
      <section class="list" aria-label="Jobs">
        <Head jobs={jobs} filter={filter} user={user} problem={problem} group={group} />
        {marked.size > 0 && <Marks marked={marked} byKey={byKey} shown={jobs} />}
        <Grid {...{ rows, at, sort, down, sortBy, fold, openIt, grid, scroll, wide, loaded, filter, marked }} />
        <EvidenceLine job={job} />
      </section>
      {wide && (
        <aside class="side" aria-label="The chosen job">
          {job ? <Detail job={job} key={key(job)} brief /> : <Empty title="No job is chosen" />}
        </aside>
      )}
    </div>
  );
}

/** Marks these, or takes the marks away where all of them have one. */
function markAll(jobs) {
  ui.set(({ marked }) => {
    const isOn = jobs.every((of) => marked.has(key(of)));
    const all = new Set(marked);
    for (const of of jobs) all[isOn ? "delete" : "add"](key(of));
    return { marked: all };
  });
}

function compare() {
  const all = subjects();
  if (all.length < 2) return toast("mark two runs or more to compare", { hint: "Space marks the chosen one" });
  // Marks are for one thing: whoever comes back marks anew what is to be ended.
  ui.set({ marked: new Set() });
  go(`compare/${all.map((job) => encodeURIComponent(key(job))).join("/")}`);
}

/** What broke, and concerns whoever looks: their own, or everybody's where they act for nobody. */
const concerning = (jobs) => jobs.filter((job) => isBroken(job) && (may.act(job.user) || !may.actAtAll()));

function toNewestBroken() {
  const { jobs, ended } = live.get();
  const broken = concerning(jobs).sort((a, b) => (when(b) > when(a) ? 1 : -1));
  function when(job) {
    return ended.get(key(job)) ?? job.started_at ?? "";
  }
  if (broken.length === 0) return toast("nothing is broken");
  ui.set({ selected: key(broken[0]) });
  go(`job/${encodeURIComponent(broken[0].user)}/${broken[0].window}`);
}

function Head({ jobs, filter, user, problem, group }) {
  const counts = useMemo(() => tally(jobs), [jobs]);
  const broken = useMemo(() => concerning(jobs).length, [jobs]);
  // Whoever acts for one user alone mostly looks for that one's jobs.
  const mine = who()?.users?.length === 1 ? who().users[0] : "";
  const others = useMemo(() => mine !== "" && jobs.some((job) => job.user !== mine) && jobs.some((job) => job.user === mine), [jobs, mine]);
  const narrow = useNarrow();
  const [typed, type] = useState(filter);
  const timer = useRef(0);
  const own = useRef(filter);
  // What comes from elsewhere is shown; what was typed here stays as it stands, for more of it may be there by now.
  useLayoutEffect(() => {
    if (filter === own.current) return;
    clearTimeout(timer.current);
    own.current = filter;
    type(filter);
  }, [filter]);
  const apply = (text) => {
    clearTimeout(timer.current);
    own.current = text.trim();
    setFilter(own.current);
  };
  const change = (text) => {
    type(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => apply(text), 180);
  };
  return (
    <header class="bar-of-list">
      <h1 class="hidden">Jobs</h1>
      <ul class="counts" aria-label="How many of each status">
        {counts.map(([word, count]) => {
          const [glyph, role] = glyphOf(word);
          const text = `status:${word}`;
          const on = filter === text;
          return (
            <li key={word}>
              <button type="button" class={`chip ${role} ${on ? "on" : ""}`} aria-pressed={on} onClick={() => setFilter(on ? "" : text)} title={on ? "show all again" : `show only these`}>
                <span class="glyph" aria-hidden="true">{glyph}</span> {count} {word}
              </button>
            </li>
          );
        })}
        {counts.length === 0 && <li class="dim">no jobs</li>}
        {broken > 0 && <li class="jump"><button type="button" class="chip link" onClick={toNewestBroken}>newest that broke → <kbd aria-hidden="true">E</kbd></button></li>}
      </ul>
      <div class="tools">
        <label class="filter">
          <span class="hidden">Filter</span>
          <span class="glyph dim" aria-hidden="true">/</span>
          <input
            id="filter" type="search" value={typed} placeholder={narrow ? "filter" : "filter: status:error tag:sweep age>2h"} autocomplete="off" autocapitalize="off" spellcheck={false}
            onInput={(event) => change(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter") {
                apply(event.currentTarget.value);
                document.getElementById("rows")?.focus();
              } else if (event.key === "Escape") {
                event.stopPropagation();
                type("");
                apply("");
                document.getElementById("rows")?.focus();
              }
            }}
          />
        </label>
        {narrow && <Order group={group} />}
        {!narrow && <button type="button" class="chip" onClick={() => keep({ group: GROUPS[(GROUPS.indexOf(group) + 1) % GROUPS.length] })} title="group by target, by directory, or not">
          {group === "none" ? "group" : `by ${HEADS[group]}`} <kbd aria-hidden="true">v</kbd>
        </button>}
        {user && <button type="button" class="chip on" onClick={() => setUser("")}>only {line(user)} ✕</button>}
        {!user && others && <button type="button" class="chip" title={`only ${mine}'s jobs`} onClick={() => setUser(mine)}>only {line(mine)}</button>}
      </div>
      {problem && <p class="complaint" role="alert">{line(problem.message)} <span class="dim">{line(problem.hint)}</span></p>}
    </header>
  );
}

/** Where no heads of columns are: in which order, and grouped by what. */
function Order({ group }) {
  const { sort } = ui.use();
  return (
    <select class="order" aria-label="order" value={group === "none" ? sort : `by ${group}`} onChange={(event) => {
      const [, by] = /^by (.*)$/.exec(event.currentTarget.value) ?? [];
      keep(by ? { group: by } : { group: "none", sort: event.currentTarget.value, down: false });
    }}>
      {COLUMNS.map((column) => <option key={column} value={column}>by {HEADS[column]}</option>)}
      {GROUPS.filter((of) => of !== "none").map((of) => <option key={of} value={`by ${of}`}>grouped by {HEADS[of]}</option>)}
    </select>
  );
}

/** What can be done with the marked jobs. */
function Marks({ marked, byKey, shown }) {
  const all = shown.filter((job) => job.leaf);
  const jobs = [...marked].map((id) => byKey.get(id)).filter(Boolean);
  const fitting = Object.entries(ACTS).filter(([, of]) => jobs.some((job) => may.act(job.user) && of.fits(job)));
  return (
    <div class="marks" role="toolbar" aria-label="The marked jobs">
      <span>{counted(marked.size, "job")} marked</span>
      {marked.size < all.length && all.length <= 200 && <Button onClick={() => ui.set({ marked: new Set(all.map(key)) })}>mark all {all.length} shown</Button>}
      {/* Those that are always there stand first, so that none is where another was. */}
      <Button hint="Esc" onClick={() => ui.set({ marked: new Set() })}>unmark</Button>
      <Button hint="=" disabled={marked.size < 2} onClick={compare}>compare</Button>
      {isOneGroup(jobs) && allowed(jobs) && <Button hint="N" onClick={() => like(...jobs)}>another like it</Button>}
      {fitting.map(([verb, of]) => <Button key={verb} hint={of.key} kind={verb === "kill" ? "grave" : ""} onClick={() => act(verb, jobs)}>{of.word}</Button>)}
    </div>
  );
}

/** Only the rows that are seen are there, with as much room above and below as the others would take. */
function Grid({ rows, at, sort, down, sortBy, fold, openIt, grid, scroll, wide, loaded, filter, marked }) {
  const narrow = useNarrow();
  const height = narrow ? 68 : 34;
  const [view, look] = useState({ top: 0, size: 900 });
  const now = useNow(1000);
  const waits = useRef(false);
  useLayoutEffect(() => {
    const element = grid.current;
    const measure = () => look({ top: element.scrollTop, size: element.clientHeight });
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  scroll.current = (row) => {
    const element = grid.current;
    const head = narrow ? 0 : 32;
    const top = row * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + height > element.scrollTop + element.clientHeight - head) element.scrollTop = top + height + head - element.clientHeight;
  };
  // Whoever comes finds what was chosen before.
  useLayoutEffect(() => {
    if (at > 0) scroll.current(at);
  }, []);
  const first = Math.max(0, Math.floor(view.top / height) - 4);
  const last = Math.min(rows.length, Math.ceil((view.top + view.size) / height) + 4);
  // A row that scrolls out becomes the one that scrolls in: what is there is changed, and nothing is made anew.
  const places = last - first + 8 - ((last - first) % 8);
  return (
    <div
      id="rows" class="grid" role="grid" tabindex={0} ref={grid} aria-label="Jobs" aria-rowcount={rows.length + 1} aria-colcount={COLUMNS.length}
      aria-activedescendant={rows[at] ? `row-${at}` : undefined}
      onScroll={(event) => {
        if (waits.current) return;
        waits.current = true;
        const element = event.currentTarget;
        requestAnimationFrame(() => {
          waits.current = false;
          look({ top: element.scrollTop, size: element.clientHeight });
        });
      }}
    >
      <div role="rowgroup">
        <div class="row head" role="row" aria-rowindex={1}>
          {COLUMNS.map((column) => (
            <span key={column} class={`cell ${column}`} role="columnheader" aria-sort={column === sort ? (down ? "descending" : "ascending") : "none"}>
              <button type="button" tabindex={-1} onClick={() => sortBy(column)}>{HEADS[column]}{column === sort ? (down ? " ▾" : " ▴") : ""}</button>
            </span>
          ))}
        </div>
      </div>
      {rows.length === 0 && <Nothing loaded={loaded} filter={filter} />}
      <div role="rowgroup" class="body" style={{ height: `${rows.length * height}px` }}>
        {rows.slice(first, last).map((row, offset) => {
          const place = first + offset;
          return (
            <Row
              key={place % places} {...{ row, place, narrow, now, marked, fold }} top={place * height} height={height} selected={place === at}
              onChoose={(twice) => {
                const same = ui.get().selected === row.id;
                ui.set({ selected: row.id });
                if (row.type === "head") fold(row);
                else if (!wide || twice) row.type === "group" ? fold(row) : go(`job/${encodeURIComponent(row.job.user)}/${row.job.window}`);
                else if (same && row.type === "group") fold(row);
              }}
            />
          );
        })}
      </div>
    </div>
  );
}

function Nothing({ loaded, filter }) {
  if (!loaded) return <p class="empty dim" aria-live="polite">reading the jobs…</p>;
  if (filter) {
    return (
      <div class="empty" role="row"><div role="gridcell"><p class="title">No job matches {line(filter)}</p>
        <Button hint="Esc" onClick={() => setFilter("")}>show all</Button></div></div>
    );
  }
  return (
    <div class="empty" role="row"><div role="gridcell"><p class="title">There are no jobs</p>
      {may.actAtAll() && <Button kind="good" hint="n" onClick={() => go("new")}>start a run</Button>}</div></div>
  );
}

function Row({ row, place, narrow, now, marked, fold, top, height, selected, onChoose }) {
  const common = {
    id: `row-${place}`,
    role: "row",
    "aria-rowindex": place + 2,
    "aria-selected": selected,
    style: { transform: `translateY(${top}px)`, height: `${height}px` },
    onClick: (event) => onChoose(event.detail > 1),
  };
  if (row.type === "head") {
    return (
      <div {...common} class={`row group ${selected ? "selected" : ""}`} aria-expanded={!row.folded}>
        <span role="gridcell" class="cell all"><span class="fold" aria-hidden="true">{row.folded ? "▸" : "▾"}</span> {line(row.name)} <span class="dim">{counted(row.jobs.length, "job")}: {tally(row.jobs).map(([word, n]) => `${n} ${word}`).join(", ")}</span></span>
      </div>
    );
  }
  const { job } = row;
  const isMarked = row.type === "group" ? row.members.every((of) => marked.has(key(of))) : marked.has(key(job));
  const folds = row.folds > 0;
  const mark = (
    <button
      type="button" class="mark" tabindex={-1} aria-label={`${isMarked ? "unmark" : "mark"} ${row.type === "group" ? `group ${job.group}` : key(job)}`} aria-pressed={isMarked}
      onClick={(event) => {
        event.stopPropagation();
        const all = row.type === "group" ? row.members : [job];
        markAll(all);
      }}
    ><span class="box" aria-hidden="true">{isMarked ? "✓" : ""}</span></button>
  );
  const name = row.type === "group" ? `${job.user}/${job.group} · ${narrow ? counted(row.members.length, "job") : row.members.length}` : key(job);
  const unfold = folds && (
    <button type="button" class="fold" tabindex={-1} aria-label={`${row.isOpen ? "hide" : "show"} ${row.type === "group" ? counted(row.folds, "member") : counted(row.folds, "earlier attempt")}`}
      onClick={(event) => {
        event.stopPropagation();
        fold(row);
      }}>{row.isOpen ? "▾" : "▸"}{row.type !== "group" && <span class="dim">{row.folds}{narrow && " earlier"}</span>}</button>
  );
  const classes = `row ${selected ? "selected" : ""} ${isMarked ? "marked" : ""} ${row.depth ? "under" : ""} is-${kind(job)}`;
  const said = { ...common, class: classes, "data-job": row.type === "group" ? `${job.user}/${job.group}` : key(job), "aria-expanded": folds ? row.isOpen : undefined };
  const status = row.type === "group" ? <Tally members={row.members} /> : <Status job={job} />;
  const eta = toEnd(job);
  if (narrow) {
    return (
      <div {...said}>
        <span role="gridcell" class="cell pick">{mark}</span>
        <span role="gridcell" class="cell both">
          <span class="first"><span class="name">{line(name)}</span><Label job={job} own={row.own} />{unfold}<span class="push">{status}</span></span>
          <span class="second">
            {isBroken(job) && job.evidence ? <span class="evidence">{line(gist(job.evidence.line))}</span> : <><Bar job={job} /><Loss row={row} width={44} /></>}
            <span class="push num dim"><Times job={job} now={now} eta={eta} /></span>
          </span>
        </span>
      </div>
    );
  }
  return (
    <div {...said}>
      <span role="gridcell" class="cell job">{mark}<span class="name">{line(name)}</span>{unfold}</span>
      <span role="gridcell" class="cell dir"><span class="path" title={line(job.dir.path)}>{line(base(job.dir.path))}</span> <Label job={job} own={row.own} /></span>
      <span role="gridcell" class="cell target" title={line(job.target)}>{line(short(job.target))}</span>
      <span role="gridcell" class="cell status">{status}</span>
      <span role="gridcell" class="cell progress"><Bar job={job} /></span>
      <span role="gridcell" class="cell loss"><Loss row={row} width={64} /></span>
      <span role="gridcell" class="cell age num"><Times job={job} now={now} eta={eta} /></span>
    </div>
  );
}

/** The loss of a job with its curve; of a group the lowest of its members. */
function Loss({ row, width }) {
  if (row.type !== "group") {
    const loss = row.job.progress?.loss;
    return <><Curve job={row.job} width={width} />{loss != null && <span class={`num ${row.best ? "best" : ""}`} title={row.best ? "the lowest of its group now" : undefined}><span class="of dim">loss </span>{figure(loss)}{row.best && <span class="hidden">, the lowest now</span>}</span>}</>;
  }
  const best = lowest(row.members);
  return best ? <span class="num"><span class="dim">lowest now </span>{figure(best.progress.loss)}</span> : <span class="spark none" />;
}

/** What an error says, without the name of its type: there is little room, and what it says comes behind that. */
const gist = (text) => text.replace(/^[\w.]*(Error|Exception): (?=.)/, "");

function Tally({ members }) {
  return (
    <span class="tally">{tally(members).map(([word, count]) => {
      const [glyph, role] = glyphOf(word);
      return <span key={word} class={`status ${role}`} title={word}><span class="glyph" aria-hidden="true">{glyph}</span>{count}<span class="hidden"> {word}</span></span>;
    })}</span>
  );
}

function Times({ job, now, eta }) {
  const ended = live.get().ended.get(key(job));
  if (!isLive(job) && ended && !job.queue) return <span title="since it ended"><Age at={ended} now={now} /> ago</span>;
  return <><Age at={job.started_at} now={now} />{eta !== undefined && <span class="dim" title="to its end"> · {span(eta)} left</span>}</>;
}

const Label = ({ job, own }) => {
  const text = own || (job.name ?? job.tags ?? job.title);
  return text ? <span class="tag">{line(text)}</span> : null;
};

/** The last part of a path, as the screen shows directories. */
const base = (path) => path.replace(/\/+$/, "").split("/").at(-1) || path;

/** What tells a target apart: the screen calls it by its alias where it has one. */
const short = (name) => name.replace(/^.*-tpuvm-/, "").replace("preemptible-", "p");

/** The curve of a job in the table: asked for while it is seen, and again when it has gone on. */
function Curve({ job, width }) {
  const id = key(job);
  const [drawn, set] = useState({ id, points: curves.get(id)?.points });
  const step = job.progress?.step ?? job.progress?.epoch;
  const wanted = job.progress?.loss != null;
  useEffect(() => {
    if (!wanted) return undefined;
    let gone = false;
    curveOf(job, step).then((points) => gone || set({ id, points }));
    return () => {
      gone = true;
    };
  }, [id, step, wanted]);
  const points = drawn.id === id ? drawn.points : curves.get(id)?.points;
  return wanted ? <Spark points={points} width={width} /> : <span class="spark none" />;
}

const curves = new Map();
let turn = Promise.resolve();

/** One after the other, and of a job that runs not more often than every five seconds. */
function curveOf(job, step) {
  const id = key(job);
  const before = curves.get(id);
  if (before && (before.step === step || Date.now() - before.at < 5000)) return Promise.resolve(before.points);
  const asked = { step, at: Date.now(), points: before?.points };
  curves.set(id, asked);
  turn = turn.then(async () => {
    try {
      const said = await ask(`/jobs/${encodeURIComponent(job.user)}/${job.window}/curve`);
      asked.points = thin(said.attempts.flatMap((attempt) => attempt.points), 60);
    } catch {
      // Without a curve the row says the figure alone.
    }
  });
  return turn.then(() => asked.points);
}

function thin(points, most) {
  if (points.length <= most) return points;
  const every = points.length / most;
  return Array.from({ length: most }, (_, at) => points[Math.min(points.length - 1, Math.floor((at + 1) * every) - 1)]);
}

function EvidenceLine({ job }) {
  if (!job) return null;
  const { glyph, role } = shown(job);
  const said = job.evidence && (kind(job) === "error" || isLive(job)) ? job.evidence.line : job.reason ?? job.pending?.reason ?? job.unknown ?? job.target_unknown;
  const next = job.next ? `${job.next.action === "pass" ? "" : `${job.next.action}${job.next.in_s != null ? ` in ${span(job.next.in_s)}` : ""}: `}${job.next.reason}` : "";
  return (
    <footer class="evidence-line" data-part="evidence">
      <span class={`glyph ${role}`} aria-hidden="true">{glyph}</span>
      <span class="name">{key(job)}</span>
      <span class="said">{said ? line(said) : line(shown(job).word)}</span>
      {next && <span class="dim next">{line(next)}</span>}
    </footer>
  );
}
