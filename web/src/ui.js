// What the person has chosen: where they are, what is marked, folded and sorted, and what lies over the page. What is worth
// keeping is kept in this browser; no token is.

import { store } from "./store.js";

const KEPT = "tpu.page";

function kept() {
  try {
    const said = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    return { sort: said.sort ?? "job", down: Boolean(said.down), group: said.group ?? "none", theme: said.theme ?? "system" };
  } catch {
    return { sort: "job", down: false, group: "none", theme: "system" };
  }
}

export const ui = store({
  ...kept(),
  route: read(),
  selected: "",
  marked: new Set(),
  open: new Set(),
  dialog: null,
  toasts: [],
  busy: 0,
});

/** Keeps what is to be the same next time. */
export function keep(change) {
  ui.set(change);
  const { sort, down, group, theme } = ui.get();
  try {
    localStorage.setItem(KEPT, JSON.stringify({ sort, down, group, theme }));
  } catch {
    // A browser that keeps nothing shows the page all the same.
  }
}

/** Where the page is: `#/job/alice/7/log?filter=…`. */
export function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { tab: parts[0] || "jobs", parts: parts.slice(1), query: new URLSearchParams(query ?? "") };
}

export function go(path, { replace = false } = {}) {
  const hash = `#/${path}`;
  if (replace) history.replaceState(null, "", hash);
  else if (location.hash !== hash) history.pushState(null, "", hash);
  ui.set({ route: read(), dialog: null });
}

export function wander() {
  addEventListener("popstate", () => ui.set({ route: read(), dialog: null }));
  addEventListener("hashchange", () => ui.set({ route: read() }));
}

let toasts = 0;
/** Says what became of something. What went wrong stays until it is read. */
export function toast(text, { hint = "", bad = false, to = "" } = {}) {
  toasts += 1;
  const id = toasts;
  ui.set(({ toasts }) => ({ toasts: [...fewer(toasts), { id, text, hint, bad, to }] }));
  // What somebody did wrong stays until they have read it; news have their place elsewhere as well.
  if (!bad || to) setTimeout(() => dismiss(id), to ? 20_000 : 6000);
}

/** So few that another has room: what is said elsewhere as well goes first. */
function fewer(toasts) {
  if (toasts.length < 4) return toasts;
  const at = toasts.findIndex((of) => !of.bad || of.to);
  return toasts.filter((_, n) => n !== Math.max(0, at));
}

/** What was told of a place is known to whoever is there. */
export function arrived(place) {
  if (ui.get().toasts.some((of) => of.to === place)) ui.set(({ toasts }) => ({ toasts: toasts.filter((of) => of.to !== place) }));
}

export function dismiss(id) {
  ui.set(({ toasts }) => ({ toasts: toasts.filter((of) => of.id !== id) }));
}

let from = null;
export function open(dialog) {
  from ??= document.activeElement;
  ui.set({ dialog });
}

export function close() {
  ui.set({ dialog: null });
  const before = from;
  from = null;
  // Where somebody was, they are again.
  queueMicrotask(() => before?.isConnected && before.focus?.());
}

export function toggle(set, key) {
  const next = new Set(set);
  if (!next.delete(key)) next.add(key);
  return next;
}

export function setTheme(theme) {
  keep({ theme });
  document.documentElement.dataset.theme = theme;
}
