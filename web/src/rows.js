// From jobs to the rows of the table, without looking at anything else: lineages folded under their youngest attempt,
// groups under their head, sorted, and grouped by target or directory where that is wished.

import { differing, GIVEN } from "./shell.js";
import { COUNTED, key, kind, percent, standing } from "./status.js";

const RANK = Object.fromEntries([...COUNTED, "resumed", "rerunned"].map((word, at) => [word, at]));
const BROKEN_FIRST = { error: -2, unknown: -1 };

/** What a column is sorted by. */
export const SORTS = {
  job: (job) => [job.user, job.window],
  dir: (job) => [job.dir.path],
  target: (job) => [job.target],
  status: (job) => [BROKEN_FIRST[kind(job)] ?? RANK[kind(job)] ?? 99],
  progress: (job) => [percent(job) ?? -1],
  loss: (job) => [job.progress?.loss ?? Infinity],
  age: (job) => [job.started_at ? -Date.parse(job.started_at) : Infinity],
};

/** The columns in their order: what `<` and `>` go through. */
export const COLUMNS = Object.keys(SORTS);

/** The ways to group: `v` goes through them. */
export const GROUPS = ["none", "target", "dir"];

/** Compares two jobs by a column; where they are the same, by their names. */
export function compare(sort, down) {
  const by = SORTS[sort] ?? SORTS.job;
  const turn = down ? -1 : 1;
  return (a, b) => turn * ordered(by(a), by(b)) || ordered(SORTS.job(a), SORTS.job(b));
}

function ordered(a, b) {
  for (let at = 0; at < a.length; at += 1) {
    if (a[at] < b[at]) return -1;
    if (a[at] > b[at]) return 1;
  }
  return 0;
}

/**
 * The rows: `{type: "head", ...}` of a group, `{type: "job", job, depth, folds, members}`.
 * `open` has the keys of what is unfolded; heads of groups are open unless `open` has `-` before their key.
 */
export function rows(jobs, { sort = "job", down = false, group = "none", open = new Set() } = {}) {
  const all = new Map(jobs.map((job) => [key(job), job]));
  const leaves = jobs.filter((job) => isTop(job, all));
  const order = compare(sort, down);
  const tops = gathered(leaves, order, sort !== "job");
  if (group === "none") return tops.flatMap((top) => unfolded(top, all, open));
  const of = group === "target" ? (job) => job.target : (job) => job.dir.path;
  const groups = new Map();
  for (const top of tops) {
    const name = of(top.job);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(top);
  }
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([name, tops]) => {
    const id = `${group}:${name}`;
    const folded = open.has(`-${id}`);
    const head = { type: "head", id, name, folded, jobs: tops.flatMap((top) => top.members ?? [top.job]) };
    return folded ? [head] : [head, ...tops.flatMap((top) => unfolded(top, all, open))];
  });
}

/** Whether a job stands for itself: nobody who is there goes on with it. */
function isTop(job, all) {
  const at = job.lineage.indexOf(job.window);
  return !job.lineage.slice(at + 1).some((later) => all.has(`${job.user}/${later}`));
}

/** What the row of a group is called. */
export const groupRow = ({ user, window }) => `${user}/group/${window}`;

/** Members of a group stand under one row. */
function gathered(leaves, order, isSorted) {
  const groups = new Map();
  const tops = [];
  for (const job of leaves) {
    if (job.group == null || (job.members && !job.queue)) {
      tops.push({ job });
      continue;
    }
    const id = groupRow({ user: job.user, window: job.group });
    if (!groups.has(id)) {
      const top = { id, members: [] };
      groups.set(id, top);
      tops.push(top);
    }
    groups.get(id).members.push(job);
  }
  for (const top of groups.values()) {
    // In the order in which they were wished, unless somebody sorts by anything else than names.
    top.members.sort(isSorted ? order : (a, b) => (a.member ?? 1e9) - (b.member ?? 1e9));
    // The row of a group says what is most urgent to know of it.
    top.job = [...top.members].sort((a, b) => SORTS.status(a)[0] - SORTS.status(b)[0])[0];
    if (top.members.length === 1) delete top.members;
  }
  return tops.sort((a, b) => order(a.job, b.job));
}

function unfolded(top, all, open) {
  if (top.members) {
    const isOpen = open.has(top.id);
    const row = { type: "group", id: top.id, job: top.job, members: top.members, folds: top.members.length, isOpen };
    if (!isOpen) return [row];
    // What tells members apart stands beside their names; the lowest loss of all is marked.
    const apart = differing(top.members);
    const best = lowest(top.members);
    const under = (job, at) => {
      const own = apart.filter(([, values]) => values[at] !== "").map(([name, values]) => (values[at] === GIVEN ? name : `${name}=${values[at]}`)).join(" ");
      return attempts(job, all, open, 1).map((row) => (row.depth === 1 ? { ...row, own, best: job === best } : row));
    };
    return [row, ...top.members.flatMap(under)];
  }
  return attempts(top.job, all, open, 0);
}

function attempts(job, all, open, depth) {
  const at = job.lineage.indexOf(job.window);
  const before = job.lineage.slice(0, at).map((window) => all.get(`${job.user}/${window}`)).filter(Boolean);
  const id = key(job);
  const isOpen = open.has(id) && before.length > 0;
  const row = { type: "job", id, job, depth, folds: before.length, isOpen };
  if (!isOpen) return [row];
  const under = before.reverse().map((job) => ({ type: "job", id: key(job), job, depth: depth + 1, folds: 0, isOpen: false }));
  return [row, ...under];
}

/** The one of jobs whose loss is lowest, if any has one. */
export function lowest(jobs) {
  return jobs.filter((job) => job.progress?.loss != null).sort(compare("loss", false))[0];
}

/** How many of each status, in the order of the head; what another goes on with is not counted. */
export function tally(jobs) {
  const counts = {};
  for (const job of jobs) {
    const of = standing(job);
    counts[of] = (counts[of] ?? 0) + (job.members && job.queue ? job.members.length : 1);
  }
  return COUNTED.filter((word) => counts[word]).map((word) => [word, counts[word]]);
}
