// Small parts that all views are made of.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { figure, line, moment, since, span } from "../text.js";
import { percent, shown } from "../status.js";

/** The time, every so often: ages grow by it. */
export function useNow(every = 1000) {
  const [now, tell] = useState(Date.now());
  useEffect(() => {
    const clock = setInterval(() => document.visibilityState === "visible" && tell(Date.now()), every);
    return () => clearInterval(clock);
  }, [every]);
  return now;
}

/** Something that is asked for once, and again when `deps` are others or `again` is called. */
export function useAsked(asking, deps) {
  const [state, set] = useState({ value: undefined, error: null, asked: false });
  const [turn, again] = useState(0);
  useEffect(() => {
    let gone = false;
    asking().then(
      (value) => gone || set({ value, error: null, asked: true }),
      (error) => gone || set((before) => ({ ...before, error, asked: true })),
    );
    return () => {
      gone = true;
    };
  }, [...deps, turn]);
  return { ...state, again: () => again((n) => n + 1) };
}

export function Status({ job, word = true }) {
  const { glyph, role, word: said } = shown(job);
  return (
    <span class={`status ${role}`}>
      <span class="glyph" aria-hidden="true">{glyph}</span>
      {word ? <span class="word">{line(said)}</span> : <span class="hidden">{line(said)}</span>}
    </span>
  );
}

export function Bar({ job }) {
  const done = percent(job);
  if (done === undefined) return <span class="bar none" />;
  const text = `${done < 10 ? done.toFixed(1) : Math.round(done)} %`;
  return (
    <span class="bar" role="progressbar" aria-label={`done, ${text}`} aria-valuenow={Math.round(done)} aria-valuemin={0} aria-valuemax={100}>
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="todo" width="100" height="8" rx="2" />
        <rect class="done" width={Math.max(1, done)} height="8" rx="2" />
      </svg>
      <span class="num">{text}</span>
    </span>
  );
}

/** A curve as small as a word. */
export function Spark({ points, width = 96, height = 20 }) {
  if (!points || points.length < 2) return <span class="spark none" />;
  const [low, high] = points.reduce(([low, high], p) => [Math.min(low, p.loss), Math.max(high, p.loss)], [Infinity, -Infinity]);
  const first = points[0].step;
  const wide = points.at(-1).step - first || 1;
  const x = (p) => (((p.step - first) / wide) * (width - 2) + 1).toFixed(1);
  const y = (p) => (height - 2 - ((p.loss - low) / (high - low || 1)) * (height - 4)).toFixed(1);
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`loss from ${figure(points[0].loss)} to ${figure(points.at(-1).loss)}`}>
      <polyline points={points.map((p) => `${x(p)},${y(p)}`).join(" ")} />
    </svg>
  );
}

export function Age({ at, now }) {
  if (!at) return null;
  return <time datetime={at} title={moment(at)}>{span(since(at, now))}</time>;
}

/** A button with its key beside its word. */
export function Button({ children, hint, onClick, kind = "", disabled = false, ...rest }) {
  return (
    <button type="button" class={`button ${kind}`} onClick={onClick} disabled={disabled} {...rest}>
      {children}
      {hint && <kbd aria-hidden="true">{hint}</kbd>}
    </button>
  );
}

/** Says what is so and what to do where there is nothing to show. */
export function Empty({ title, children }) {
  return (
    <div class="empty">
      <p class="title">{title}</p>
      {children && <p class="dim">{children}</p>}
    </div>
  );
}

export function Failed({ error, what }) {
  return (
    <div class="empty" role="alert">
      <p class="title">{what ? `${what}: ` : ""}{line(error.message)}</p>
      {error.hint && <p class="dim">{line(error.hint)}</p>}
    </div>
  );
}

/** Waits a moment before it says that it waits, so that nothing flickers. */
export function Loading({ what }) {
  const [late, isLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => isLate(true), 400);
    return () => clearTimeout(timer);
  }, []);
  return <p class="loading dim" aria-live="polite">{late ? `reading ${what}…` : ""}</p>;
}

/** A list whose rows can be chosen with keys: hands on what a key means. */
// They are heard from the moment at which the view is there: who types fast loses none.
export function useKeys(meanings) {
  const now = useRef(meanings);
  now.current = meanings;
  useLayoutEffect(() => {
    const hear = (event) => {
      const act = now.current[event.detail.does] ?? (event.detail.does.startsWith("act ") ? now.current.act : undefined);
      if (act) {
        event.preventDefault();
        act(event.detail.does);
      }
    };
    addEventListener("tpu-key", hear);
    return () => removeEventListener("tpu-key", hear);
  }, []);
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS a browser has no clipboard for pages: the old way still works.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function useMedia(query) {
  const [is, set] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const hear = () => set(media.matches);
    media.addEventListener("change", hear);
    return () => media.removeEventListener("change", hear);
  }, [query]);
  return is;
}
export const useNarrow = () => useMedia("(max-width: 719px)");
export const useWide = () => useMedia("(min-width: 1180px)");
