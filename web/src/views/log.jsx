// The whole output of a job: read piece by piece, followed as it comes, searched, of all workers or one; drawn only where
// somebody looks. What a job prints is text and nothing else.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, follow, Problem } from "../api.js";
import { counted, line } from "../text.js";
import { isLive, key } from "../status.js";
import { go, toast } from "../ui.js";
import { copy, useKeys } from "./parts.jsx";

const HEIGHT = 18;
/** Lines that are kept; of a longer log the first are let go. */
const MOST = 200_000;
const WORKER = /^\[worker (\d+)\] /;

export function Log({ job, query }) {
  const [lines, set] = useState([]);
  const [state, tell] = useState("reading");
  const [problem, fail] = useState(null);
  const [worker, setWorker] = useState(query.get("worker") ?? "");
  const [search, setSearch] = useState("");
  const [only, setOnly] = useState("");
  const [followed, setFollowed] = useState(true);
  const [wrap, setWrap] = useState(() => matchMedia("(max-width: 719px)").matches);
  const [hit, setHit] = useState(-1);
  const [missed, miss] = useState(0);
  const box = useRef(null);
  const following = useRef(true);
  const wantsEvidence = useRef(query.get("at") === "evidence");
  const id = key(job);
  following.current = followed;

  useEffect(() => {
    const stop = new AbortController();
    let rest = "";
    let all = [];
    const add = (text) => {
      const parts = (rest + text).split("\n");
      rest = parts.pop();
      const fresh = parts.map((part) => line(part));
      all = all.concat(fresh);
      if (all.length > MOST) all = all.slice(-MOST);
      set(rest ? all.concat(line(rest)) : all);
      if (!following.current) miss((count) => count + fresh.length);
    };
    set([]);
    tell("reading");
    fail(null);
    const path = `/jobs/${encodeURIComponent(job.user)}/${job.window}/logs`;
    const of = worker === "" ? "" : `&worker=${worker}`;
    (async () => {
      let offset = 0;
      try {
        for (;;) {
          const said = await ask(`${path}?offset=${offset}${of}`);
          if (stop.signal.aborted) return;
          add(said.text);
          if (said.next_offset === offset) break;
          offset = said.next_offset;
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        tell("over");
        return fail(error);
      }
      tell("following");
      follow(`${path}?offset=${offset}&follow=true${of}`, {
        signal: stop.signal,
        heard: ({ event, data }) => {
          const said = JSON.parse(data);
          if (event === "problem") return fail(new Problem(said.status, said));
          add(said.text);
        },
        ended: (problem) => {
          tell("over");
          if (problem && problem.status !== 409) fail(problem);
        },
      });
    })();
    return () => stop.abort();
  }, [id, worker]);

  const workers = useMemo(() => [...new Set(lines.slice(0, 4000).map((text) => WORKER.exec(text)?.[1]).filter(Boolean))].sort((a, b) => a - b), [lines.length > 4000, lines.length]);
  const shown = useMemo(() => {
    if (!only) return lines;
    const inverse = only.startsWith("!");
    const test = matcher(inverse ? only.slice(1) : only);
    return lines.filter((text) => test(text) !== inverse);
  }, [lines, only]);
  const hits = useMemo(() => {
    if (!search) return [];
    const test = matcher(search);
    return shown.flatMap((text, at) => (test(text) ? [at] : []));
  }, [shown, search]);

  const scrollTo = (at) => {
    const element = box.current;
    if (wrap) element.querySelector(`[data-line="${at}"]`)?.scrollIntoView({ block: "center" });
    else element.scrollTop = at * HEIGHT - element.clientHeight / 2;
  };
  const toHit = (turn) => {
    if (hits.length === 0) return toast(search ? `nothing says ${search}` : "search first", { hint: "/" });
    const next = hit < 0 ? (turn > 0 ? 0 : hits.length - 1) : (hit + turn + hits.length) % hits.length;
    setHit(next);
    setFollowed(false);
    scrollTo(hits[next]);
  };
  const evidenceAt = useMemo(() => {
    const said = job.evidence?.line && line(job.evidence.line).trim();
    if (!said) return -1;
    for (let at = shown.length - 1; at >= 0; at -= 1) if (shown[at].includes(said)) return at;
    // A line that is cut where it is told begins alike.
    const start = said.slice(0, 60);
    for (let at = shown.length - 1; at >= 0; at -= 1) if (shown[at].includes(start)) return at;
    return job.evidence.line_no ? shown.length - job.evidence.line_no : -1;
  }, [shown, job.evidence?.line]);
  const toEvidence = () => {
    if (evidenceAt < 0) return toast("no line of this output says what broke", { hint: job.evidence ? line(job.evidence.line) : "nothing broke" });
    setFollowed(false);
    requestAnimationFrame(() => scrollTo(evidenceAt));
    return undefined;
  };
  useEffect(() => {
    if (wantsEvidence.current && state !== "reading" && evidenceAt >= 0) {
      wantsEvidence.current = false;
      toEvidence();
    }
  }, [state, evidenceAt]);
  useLayoutEffect(() => {
    const element = box.current;
    if (followed && element) element.scrollTop = element.scrollHeight;
  }, [shown, followed, wrap]);

  const nextWorker = () => setWorker((now) => (workers.length === 0 ? "" : now === "" ? workers[0] : workers[workers.indexOf(now) + 1] ?? ""));
  const copyShown = async () => {
    const text = hit >= 0 && hits[hit] !== undefined ? shown[hits[hit]] : shown.slice(-500).join("\n");
    toast((await copy(text)) ? "copied" : "this browser lets nothing be copied");
  };
  const back = () => {
    if (search || only) {
      setSearch("");
      setOnly("");
      setHit(-1);
    } else go(`job/${encodeURIComponent(job.user)}/${job.window}`);
  };
  const focus = (id) => document.getElementById(id)?.focus();
  useKeys({
    "log-follow": () => setFollowed(!followed),
    "log-next": () => toHit(1),
    "log-previous": () => toHit(-1),
    "log-evidence": toEvidence,
    "log-wrap": () => setWrap(!wrap),
    "log-worker": nextWorker,
    "log-filter": () => focus("log-only"),
    "log-search": () => focus("log-search"),
    "log-copy": copyShown,
    "log-top": () => {
      setFollowed(false);
      box.current.scrollTop = 0;
    },
    "log-bottom": () => setFollowed(true),
    back,
  });
  const typed = (change) => ({
    onInput: (event) => {
      change(event.currentTarget.value);
      setHit(-1);
    },
    onKeyDown: (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        toHit(event.shiftKey ? -1 : 1);
      }
      if (event.key === "Escape") {
        event.stopPropagation();
        change("");
        box.current.focus();
      }
    },
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: false,
  });
  return (
    <section class="log" data-part="log" aria-label={`Output of ${id}`}>
      <header class="tools">
        <label class="filter"><span class="hidden">Search</span><span class="glyph dim" aria-hidden="true">/</span><input id="log-search" type="search" placeholder="search" value={search} {...typed(setSearch)} /></label>
        {search && <span class="num dim" role="status">{hits.length === 0 ? "none" : `${hit < 0 ? "" : `${hit + 1} of `}${hits.length}`}</span>}
        {search && <><button type="button" class="chip" onClick={() => toHit(-1)} aria-label="previous hit">↑</button><button type="button" class="chip" onClick={() => toHit(1)} aria-label="next hit">↓</button></>}
        <label class="filter narrow"><span class="hidden">Only lines that match</span><span class="glyph dim" aria-hidden="true">&</span><input id="log-only" type="search" placeholder="only lines with" value={only} {...typed(setOnly)} /></label>
        {workers.length > 1 && (
          <label class="pick"><span class="hidden">Worker</span>
            <select value={worker} onChange={(event) => setWorker(event.currentTarget.value)}>
              <option value="">all workers</option>
              {workers.map((of) => <option key={of} value={of}>worker {of}</option>)}
            </select>
          </label>
        )}
        {evidenceAt >= 0 && <button type="button" class="chip error" onClick={toEvidence}>▲ evidence <kbd aria-hidden="true">e</kbd></button>}
        <button type="button" class="chip" aria-pressed={wrap} onClick={() => setWrap(!wrap)}>wrap</button>
        <button type="button" class="chip" onClick={copyShown}>copy</button>
        <button type="button" class="chip" aria-pressed={followed} onClick={() => {
          setFollowed(!followed);
          miss(0);
        }}>follow <kbd aria-hidden="true">f</kbd></button>
      </header>
      {problem && <p class="complaint" role="alert">{line(problem.message)} <span class="dim">{line(problem.hint ?? "")}</span></p>}
      <Lines {...{ shown, box, wrap, search, evidenceAt, hitAt: hit >= 0 ? hits[hit] : -1 }}
        onUser={(isAtEnd) => {
          if (isAtEnd && !followed) {
            setFollowed(true);
            miss(0);
          } else if (!isAtEnd && followed) setFollowed(false);
        }} />
      <footer class="dim">
        <span>{counted(shown.length, "line")}{only && ` of ${lines.length}`}</span>
        <span role="status">{state === "reading" ? "reading…" : state === "over" ? "it prints nothing more" : isLive(job) ? (followed ? "following" : missed > 0 ? `${counted(missed, "new line")} below` : "not following") : ""}</span>
        {!followed && <button type="button" class="chip" onClick={() => {
          setFollowed(true);
          miss(0);
        }}>to the end ↓</button>}
      </footer>
    </section>
  );
}

function Lines({ shown, box, wrap, search, evidenceAt, hitAt, onUser }) {
  const [view, look] = useState({ top: 0, size: 800 });
  const byUser = useRef(false);
  useLayoutEffect(() => {
    const element = box.current;
    const measure = () => look({ top: element.scrollTop, size: element.clientHeight });
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const touched = () => {
    byUser.current = true;
  };
  // Lines that are broken have no height that is known before: of these the last thousands are drawn as they are.
  const first = wrap ? Math.max(0, shown.length - 3000) : Math.max(0, Math.floor(view.top / HEIGHT) - 20);
  const last = wrap ? shown.length : Math.min(shown.length, Math.ceil((view.top + view.size) / HEIGHT) + 20);
  const from = wrap && evidenceAt >= 0 && evidenceAt < first ? Math.max(0, evidenceAt - 50) : wrap && hitAt >= 0 && hitAt < first ? Math.max(0, hitAt - 50) : first;
  const test = useMemo(() => (search ? splitter(search) : null), [search]);
  return (
    <div
      class={`lines ${wrap ? "wrap" : ""}`} ref={box} tabindex={0} role="log" aria-label="output" aria-live="off"
      onWheel={touched} onTouchMove={touched} onKeyDown={touched} onPointerDown={touched}
      onScroll={(event) => {
        const element = event.currentTarget;
        look({ top: element.scrollTop, size: element.clientHeight });
        if (!byUser.current) return;
        byUser.current = false;
        onUser(element.scrollTop + element.clientHeight >= element.scrollHeight - HEIGHT);
      }}
    >
      <div class="all" style={wrap ? {} : { height: `${shown.length * HEIGHT}px` }}>
        <div style={wrap ? {} : { transform: `translateY(${from * HEIGHT}px)` }}>
          {shown.slice(from, last).map((text, offset) => {
            const at = from + offset;
            const role = at === evidenceAt ? "evidence" : at === hitAt ? "at" : "";
            return <div key={at} data-line={at} class={`line ${role}`} data-part={at === evidenceAt ? "evidence" : undefined}>{test ? test(text) : text || " "}</div>;
          })}
        </div>
      </div>
    </div>
  );
}

/** As a regular expression where it is one, else as it stands; small letters mean both. */
function expression(text, flags = "") {
  const all = flags + (text === text.toLowerCase() ? "i" : "");
  try {
    return new RegExp(text, all);
  } catch {
    return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), all);
  }
}

function matcher(text) {
  const of = expression(text);
  return (line) => of.test(line);
}

function splitter(text) {
  const of = expression(text, "g");
  return (line) => {
    const parts = [];
    let at = 0;
    for (const found of line.slice(0, 20_000).matchAll(of)) {
      if (found[0] === "") break;
      parts.push(line.slice(at, found.index), <mark key={found.index}>{found[0]}</mark>);
      at = found.index + found[0].length;
    }
    parts.push(line.slice(at));
    return parts;
  };
}
