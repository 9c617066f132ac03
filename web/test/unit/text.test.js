// What is pure: text made harmless, rows, keys, job files.

import assert from "node:assert/strict";
import { test } from "node:test";
import { KEYS, meaning } from "../../src/keys.js";
import { rows, tally } from "../../src/rows.js";
import { differing } from "../../src/shell.js";
import { percent, shown, toEnd } from "../../src/status.js";
import { escape, figure, line, span } from "../../src/text.js";

const job = (user, window, more = {}) => ({
  user, window, lineage: [window], leaf: true, dir: { id: 1, path: `/code/${user}` }, target: "local", status: "running", error: null,
  unknown: null, pending: null, queue: null, group: null, member: null, members: null, intent: null, phase: "running", progress: null, started_at: null, ...more,
});

test("what a terminal acts on goes, and what turns a line around is shown", () => {
  assert.equal(line("\u001b[31mred\u001b[0m \u001b]0;title\u0007end"), "red end");
  assert.equal(line("10 %\r20 %\r30 %\r"), "30 %");
  assert.equal(line("a\u202eb"), "a\\u{202e}b");
  assert.equal(line("<script>alert(1)</script>"), "<script>alert(1)</script>");
  assert.equal(escape("a\u0000b\u009bc"), "a\\u{0}b\\u{9b}c");
  assert.equal(line("cut \u001b[38;5;1"), "cut ");
});

test("lineages are folded under their youngest attempt", () => {
  const jobs = [job("alice", 1, { lineage: [1, 3], leaf: false, status: "resumed" }), job("alice", 2), job("alice", 3, { lineage: [1, 3] })];
  assert.deepEqual(rows(jobs).map((row) => row.id), ["alice/2", "alice/3"]);
  assert.deepEqual(rows(jobs, { open: new Set(["alice/3"]) }).map((row) => [row.id, row.depth]), [["alice/2", 0], ["alice/3", 0], ["alice/1", 1]]);
});

test("a group is one row, with what is most urgent in it", () => {
  const jobs = [1, 2, 3].map((n) => job("bob", 10 + n, { group: 9, member: n, status: n === 2 ? "error" : "finished", error: n === 2 ? "oom" : null }));
  const [row, ...rest] = rows(jobs);
  assert.equal(rest.length, 0);
  assert.deepEqual([row.type, row.members.length, row.job.window], ["group", 3, 12]);
  assert.deepEqual(tally(jobs), [["error", 1], ["finished", 2]]);
});

test("members of a group are told apart by what differs, and the lowest loss is marked", () => {
  const losses = [0.7, 0.6, undefined];
  const jobs = losses.map((loss, n) => job("bob", 11 + n, { group: 9, member: n, arguments: `--config.a.lr=${n} --config.steps=9 'note=two words'`, progress: { loss } }));
  const all = rows(jobs, { open: new Set(["bob/group/9"]) });
  assert.deepEqual(all.map((row) => row.own), [undefined, "lr=0", "lr=1", "lr=2"]);
  assert.deepEqual(all.map((row) => Boolean(row.best)), [false, false, true, false]);
  assert.deepEqual(rows(jobs, { open: new Set(["bob/group/9"]), sort: "loss" }).map((row) => row.job.window).slice(1), [12, 11, 13]);
  const [one, other] = [{ arguments: "--config.lr=1 fast" }, { arguments: "--config.lr=1 seed='0 1'" }];
  assert.deepEqual(differing([one, other]), [["fast", ["✓", ""]], ["seed", ["", "0 1"]]]);
  const of = (text) => ({ arguments: text });
  assert.deepEqual(differing([of("--a.dim=1 --b.dim=8"), of("--a.dim=2 --b.dim=8")]), [["dim", ["1", "2"]]]);
  assert.deepEqual(differing([of("--a.dim=1 --b.dim=8"), of("--a.dim=2 --b.dim=9")]).map(([name]) => name), ["a.dim", "b.dim"]);
  assert.deepEqual(differing([of("--lr 0.1 --seed 0.2"), of("--lr 0.2 --seed 0.1")]), [["lr", ["0.1", "0.2"]], ["seed", ["0.2", "0.1"]]]);
});

test("sorted by status what broke stands first, and grouped by target each has a head", () => {
  const jobs = [job("a", 1), job("a", 2, { status: "error", error: "oom" }), job("a", 3, { target: "v4-8" })];
  assert.equal(rows(jobs, { sort: "status" })[0].id, "a/2");
  assert.deepEqual(rows(jobs, { group: "target" }).map((row) => row.type), ["head", "job", "job", "head", "job"]);
  assert.deepEqual(rows(jobs, { group: "target", open: new Set(["-target:local"]) }).map((row) => row.type), ["head", "head", "job"]);
});

test("ten thousand jobs are rows within a moment", () => {
  const jobs = Array.from({ length: 10_000 }, (_, n) => job(`u${n % 7}`, n));
  assert.equal(rows(jobs, { sort: "age", down: true }).length, 10_000);
});

test("status, share done and end are said as the screen says them", () => {
  assert.deepEqual(shown(job("a", 1, { status: "error", error: "oom" })), { glyph: "▲", role: "error", word: "oom" });
  assert.equal(shown(job("a", 1, { queue: "default", held: true })).glyph, "■");
  assert.equal(percent(job("a", 1, { progress: { step: 30, total: 120 } })), 25);
  assert.equal(toEnd(job("a", 1, { progress: { step: 30, total: 120, steps_per_s: 9 } })), 10);
  assert.deepEqual([span(59), span(3720), span(90_000), figure(0.41234567), figure(1e-5)], ["59s", "1h 02m", "1d 01h", "0.4123", "1.00e-5"]);
});

test("no key means two things in one place", () => {
  for (const view of ["jobs", "job", "log", "targets", "queue", "events", "plan", "usage"]) {
    for (const { key } of KEYS) assert.ok(meaning(key, view) === undefined || typeof meaning(key, view) === "string");
  }
  const seen = new Set();
  for (const { key, also = [], at } of KEYS) {
    for (const of of [key, ...also]) {
      assert.ok(!seen.has(`${at} ${of}`), `${of} twice in ${at}`);
      seen.add(`${at} ${of}`);
    }
  }
  assert.equal(meaning("n", "log"), "log-next");
  assert.equal(meaning("n", "jobs"), "new");
  assert.equal(meaning("e", "log"), "log-evidence");
});
