// How a job's status looks: a glyph, a word and a role, never a colour alone. The same as on the screen.

const LOOKS = {
  running: ["●", "running"],
  starting: ["◌", "starting"],
  pending: ["◌", "starting"],
  queued: ["◇", "starting"],
  held: ["■", "warning"],
  error: ["▲", "error"],
  unknown: ["?", "unknown"],
  finished: ["✓", "finished"],
  killed: ["○", "killed"],
  diverged: ["▲", "warning"],
  stalled: ["▲", "warning"],
  "started-over": ["▲", "warning"],
  "idle-prompt": ["▲", "warning"],
  "needs-you": ["▲", "error"],
  resumed: ["↻", "superseded"],
  rerunned: ["↻", "superseded"],
};

/** What is amiss with a job at work. */
const AMISS = ["diverged", "stalled", "started-over", "idle-prompt"];

/** The order in which the head counts them. */
export const COUNTED = ["running", "starting", "pending", "queued", "held", ...AMISS, "needs-you", "error", "unknown", "finished", "killed"];

/** Which of the words above a job has. */
export function kind(job) {
  if (job.unknown && isLive(job)) return "unknown";
  if (job.queue) return job.held ? "held" : "queued";
  if (job.pending) return "pending";
  return job.status in LOOKS ? job.status : job.status === "unset" ? "starting" : "unknown";
}

/** The word under which a job is counted: what a person wants to know of has one of its own. */
export function standing(job) {
  const of = kind(job);
  if (of === "running" && AMISS.includes(job.phase)) return job.phase;
  return of === "error" && job.needs_person ? "needs-you" : of;
}

/** Glyph, role and words of a job. */
export function shown(job) {
  const of = kind(job);
  const [glyph, role] = LOOKS[of];
  if (job.intent && isLive(job)) return { glyph: "◌", role: "warning", word: job.intent };
  // Of an error whose cause nobody knows the word says that it is one.
  if (of === "error") return { glyph, role, word: job.error && job.error !== "unknown" ? job.error : "error" };
  if (of === "running" && ["diverged", "stalled", "started-over"].includes(job.phase)) {
    return { glyph: "▲", role: "warning", word: job.phase };
  }
  if (of === "starting" && job.evidence?.rule === "copying") return { glyph, role, word: job.evidence.line };
  if (of === "running" && job.phase && job.phase !== "running") return { glyph, role, word: job.phase };
  if (isSuperseded(job)) {
    const next = successor(job);
    return { glyph, role, word: `${of}${next ? ` → ${next}` : ""}` };
  }
  return { glyph, role, word: of };
}

/** The attempt that goes on with a job. */
export function successor(job) {
  const at = job.lineage.indexOf(job.window);
  return at >= 0 ? job.lineage[at + 1] : undefined;
}

/** Whether another attempt goes on with it. */
export function isSuperseded(job) {
  return ["resumed", "rerunned"].includes(kind(job));
}

export function isLive(job) {
  return job.status === "running" || job.status === "starting" || job.status === "unset";
}

/** Whether it broke and nobody goes on with it. */
export function isBroken(job) {
  return kind(job) === "error" && job.leaf;
}

/** Whether it failed by its program's own fault: the same again fails the same again, unless something is changed. */
export function failsAgain(job) {
  return kind(job) === "error" && job.error_origin === "program";
}

/** What glyph a status word has that stands by itself. */
export function glyphOf(word) {
  return LOOKS[word] ?? ["·", "unknown"];
}

/** How much of a job is done, 0 to 100; undefined where nobody knows. */
export function percent(job) {
  const p = job.progress;
  if (!p) return undefined;
  if (p.percent != null) return p.percent;
  if (p.step != null && p.total) return Math.min(100, (100 * p.step) / p.total);
  if (p.epoch != null && p.epochs) return Math.min(100, (100 * p.epoch) / p.epochs);
  return undefined;
}

/** Seconds to its end, as it says or as its speed gives. */
export function toEnd(job) {
  const p = job.progress;
  if (!p || !isLive(job)) return undefined;
  if (p.eta_s != null) return p.eta_s;
  if (p.steps_per_s > 0 && p.total && p.step != null) return (p.total - p.step) / p.steps_per_s;
  return undefined;
}

export const key = (job) => `${job.user}/${job.window}`;
