// What is done to jobs and targets: first what would be done, as the server says it, then the question, then the act, each
// once. An answer that does not come is no reason to send a change again: what has become of it is looked at.

import { ask, may, onceKey, Problem, Silent } from "./api.js";
import { live, nudge } from "./live.js";
import { isSuperseded, key, kind, shown } from "./status.js";
import { close, go, open, toast, ui } from "./ui.js";

/** Each act: what it is called, on which jobs it makes sense, and whether it asks. */
export const ACTS = {
  resume: { key: "r", word: "resume", says: "continue from the last checkpoint", done: "resumed", fits: (job) => ended(job) },
  rerun: { key: "R", word: "rerun", says: "start again from scratch", done: "started again", fits: (job) => ended(job) },
  kill: { key: "x", word: "kill", says: "stop it, or take it out of the queue", done: "stopped", grave: true, fits: (job) => !ended(job) && !isSuperseded(job) },
  clean: { key: "c", word: "clean", says: "archive what has ended, with its attempts; its log stays", done: "archived", grave: true, fits: (job) => ended(job) },
  pause: { key: "P", word: "pause", says: "stop it at a checkpoint, and hold what is to go on", done: "paused", grave: true, fits: (job) => job.status === "running" && !job.queue },
  requeue: { key: "Q", word: "requeue", says: "stop it and put it back into the queue", done: "back in the queue", grave: true, fits: (job) => job.status === "running" && !job.queue },
  hold: { key: "h", word: "hold", says: "let it not begin", done: "held", fits: (job) => waits(job) && !job.held },
  unhold: { key: "h", word: "let begin", says: "let it begin in its turn", done: "begins in its turn", fits: (job) => waits(job) && job.held },
  first: { key: "f", word: "first", says: "let it begin before all others of its priority", done: "first of its priority", fits: waits },
  ignore: { key: "i", word: "ignore error", says: "count it as running until it prints another error", done: "counts as running", grave: true, fits: (job) => kind(job) === "error" },
};

export function waits(job) {
  return Boolean(job.queue);
}

function ended(job) {
  return ["error", "finished", "killed"].includes(kind(job)) && !job.queue;
}

/** The marked jobs, else the one that is meant. */
export function subjects(job) {
  const { marked } = ui.get();
  const { byKey } = live.get();
  const all = [...marked].map((id) => byKey.get(id)).filter(Boolean);
  return all.length > 0 ? all : job ? [job] : [];
}

/** Whether whoever is logged in may do something with one of these. */
export function allowed(jobs) {
  return jobs.some((job) => may.act(job.user));
}

const path = (job, verb) => `/jobs/${encodeURIComponent(job.user)}/${job.window}${verb ? `/${verb}` : ""}`;

/** Does something with jobs: what does not ask is done at once, the rest shows its plan. */
export async function act(verb, jobs, { however = false } = {}) {
  const of = ACTS[verb];
  const meant = jobs.filter((job) => may.act(job.user) && of.fits(job));
  if (meant.length === 0) {
    const why = jobs.length === 0 ? "no job is chosen" : !allowed(jobs) ? "this token may not act on these jobs" : `nothing to ${of.word} here`;
    return toast(why, { hint: jobs.length > 0 && allowed(jobs) ? jobs.map((job) => `${key(job)} is ${shown(job).word}`).join(", ") : "" });
  }
  const query = however ? "&however_ended=true" : "";
  const plan = trial(verb, meant, query);
  open({ type: "plan", verb, of, jobs: meant, plan, however, carryOut: () => carryOut(verb, meant, query) });
}

/** What would be done with each: the server's own refusal where it would refuse. */
async function trial(verb, jobs, query) {
  return Promise.all(jobs.map(async (job) => {
    try {
      const said = await ask(`${path(job, verb)}?dry_run=true${query}`, { method: "POST" });
      return { job, would: said };
    } catch (error) {
      return { job, error };
    }
  }));
}

const under = new Set();

/** Does it, each job once: what is being done already is not done again. */
async function carryOut(verb, jobs, query) {
  close();
  const of = ACTS[verb];
  const done = [];
  await Promise.all(jobs.map(async (job) => {
    const id = `${verb} ${key(job)}`;
    if (under.has(id)) return;
    under.add(id);
    ui.set(({ busy }) => ({ busy: busy + 1 }));
    try {
      const said = await ask(`${path(job, verb)}?dry_run=false${query}`, { method: "POST", patience: 120_000 });
      done.push(job);
      const next = said.launched;
      if ((verb === "resume" || verb === "rerun") && next?.window && next.window !== job.window) toast(`${key(job)} goes on as ${next.window}`);
    } catch (error) {
      failed(`${of.word} ${key(job)}`, error);
    } finally {
      under.delete(id);
      ui.set(({ busy }) => ({ busy: busy - 1 }));
    }
  }));
  if (done.length > 0) {
    toast(`${done.map(key).join(", ")}: ${of.done}`);
    ui.set({ marked: new Set() });
  }
  nudge();
}

/** Says what was not done, and what is not known. */
export function failed(what, error) {
  if (error instanceof Silent) {
    nudge();
    return toast(`${what}: the server did not answer`, { hint: "whether it was done shows as soon as it answers again; it is not sent again by itself", bad: true });
  }
  if (error instanceof Problem) return toast(`${what}: ${error.message}`, { hint: error.hint, bad: true });
  throw error;
}

/** Does one thing at a time under one name; a second click meanwhile does nothing. */
export async function once(name, work) {
  if (under.has(name)) return undefined;
  under.add(name);
  ui.set(({ busy }) => ({ busy: busy + 1 }));
  try {
    return await work();
  } catch (error) {
    failed(name, error);
    return undefined;
  } finally {
    under.delete(name);
    ui.set(({ busy }) => ({ busy: busy - 1 }));
    nudge();
  }
}

/** Makes what waits more or less urgent, by ten as on the screen. */
export function urgency(job, by) {
  const priority = Math.max(0, Math.min(100, (job.priority ?? 50) + by));
  if (priority === job.priority) return toast(`${key(job)} has priority ${priority}: there is nothing beyond`);
  return once(`priority of ${key(job)}`, async () => {
    await ask(path(job), { method: "PATCH", body: { priority } });
    toast(`${key(job)} has priority ${priority}`);
  });
}

export function setTag(job, tags) {
  return once(`tag ${key(job)}`, async () => {
    await ask(path(job), { method: "PATCH", body: { tags } });
    toast(tags ? `${key(job)} is tagged ${tags}` : `${key(job)} has no tag now`);
  });
}

export function setRule(job, rule) {
  return once(`rule of ${key(job)}`, async () => {
    await ask(path(job), { method: "PATCH", body: { rule } });
    toast(`${key(job)} has the rule ${rule} now`);
  });
}

/** A new run as a job was, changed; as all members of a group were, where it is one. */
export function like(...jobs) {
  if (!jobs.every((job) => may.act(job.user)) || jobs.length === 0) return toast("this token may not act on these jobs");
  if (jobs.length > 1 && !isOneGroup(jobs)) return toast("these are no group: another is started like one of them");
  if (jobs.length > MOST) return toast(`a group of ${jobs.length} is too many for a form`, { hint: "its job file starts it again: tpu submit FILE" });
  return go(`new?${jobs.map((job) => `from=${encodeURIComponent(key(job))}`).join("&")}`);
}

/** Whether jobs are members of one group. */
export function isOneGroup(jobs) {
  return jobs.length > 1 && jobs.every((job) => job.group != null && job.group === jobs[0].group && job.user === jobs[0].user);
}

/** So many members are asked what they were started with. */
const MOST = 64;

/** Starts jobs. The key belongs to what was planned: the same again, by a doubled click or after silence, starts nothing. */
export async function start(body, { now, once: onceIs }) {
  for (let pause = 500; ; pause *= 2) {
    try {
      return await ask(`/jobs?start=${now ? "now" : "queue"}`, { method: "POST", body, headers: { "Idempotency-Key": onceIs }, patience: 120_000 });
    } catch (error) {
      const passes = error instanceof Silent || (error instanceof Problem && error.status === 409 && /being carried out/.test(error.message));
      if (!passes || pause > 8000) throw error;
      await new Promise((go) => setTimeout(go, pause));
    }
  }
}

export { onceKey, path };
