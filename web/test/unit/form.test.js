// What a form sends, and what fills it in.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, jobFile, Mistyped, runs, together, typed } from "../../src/form.js";

const form = (said) => ({ ...EMPTY, user: "alice", target: "local", ...said });

test("what is typed is sent under the keys of a job file, and what is empty is not", () => {
  const sent = jobFile(form({ configs: "lr=0.01 note='two words'", command: "./train.sh --fast", tag: "sweep", rules: "resume", priority: "70", name: "mine" }));
  assert.deepEqual(sent, { for_user: "alice", target: "local", dir: 1, configs: { lr: "0.01", note: "two words" }, command: ["./train.sh", "--fast"], tag: "sweep", rules: "resume", priority: 70, name: "mine" });
  assert.deepEqual(jobFile(form()), { for_user: "alice", target: "local", dir: 1 });
  assert.deepEqual(jobFile(form({ dir: "/data/code" })).dir, "/data/code");
});

test("a command is words where a shell would take it as such, and a line of the shell else", () => {
  const command = (text) => jobFile(form({ command: text })).command;
  assert.deepEqual(command("python 'my train.py'"), ["python", "my train.py"]);
  for (const line of ["FOO=1 python t.py", "source env.sh", "~/train.sh", "echo `date`", "echo {1..3}", "! false", "cd x\npython y.py", "echo a; sleep 1", "a && b", "run > out", "echo $HOME", "ls *.py", "a | b", "echo \"$HOME\"", "echo ${A}"]) assert.equal(command(line), line);
});

test("several values of a config are several runs, where that is wished", () => {
  const sent = (said) => jobFile(form(said));
  assert.deepEqual(sent({ configs: "lr=0.1,0.01 seed=0-4 mode=fast", sweep: "each" }), { for_user: "alice", target: "local", dir: 1, configs: { mode: "fast" }, array: { lr: "0.1,0.01", seed: "0-4" } });
  assert.equal(sent({ configs: "lr=0.1,0.01 seed=0,1", sweep: "zip" }).zip, true);
  assert.deepEqual(sent({ configs: "lr=0.1,0.01" }).configs, { lr: "0.1,0.01" });
  assert.throws(() => sent({ configs: "lr=0.1", sweep: "each" }), Mistyped);
  assert.throws(() => sent({ configs: "fast" }), Mistyped);
  assert.throws(() => sent({ configs: "a=1; rm" }), Mistyped);
});

test("short names are shown and typed, and long ones are sent", () => {
  const aliases = { lr: "config.training.learning_rate" };
  const from = { target: "local", dir: "1", configs: { "config.training.learning_rate": "0.01" } };
  const filled = { ...typed(from, aliases), user: "bob" };
  assert.equal(filled.configs, "lr=0.01");
  assert.deepEqual(jobFile(filled, from, aliases).configs, from.configs);
  const sent = jobFile({ ...filled, configs: "lr=0.01 config.training.learning_rate=0.02 lr=0.03" }, from, aliases);
  assert.deepEqual(sent.configs, { "config.training.learning_rate": "0.03" });
});

test("a line of the shell stays one, and is compared as it stands", () => {
  const from = { target: "local", dir: "1", command: "cd x\npython y.py\n" };
  const filled = { ...typed(from), user: "alice" };
  assert.equal(jobFile(filled, from).command, from.command);
  assert.equal(jobFile({ ...filled, command: "python y.py" }, from).command, "python y.py");
});

test("what was one value with a comma stays one", () => {
  const from = { target: "local", dir: "1", configs: { betas: "0.9,0.99" }, array: { lr: ["1", "2"], layers: ["1,2", "3"] } };
  const filled = { ...typed(from), user: "alice" };
  const sent = jobFile({ ...filled, configs: `${filled.configs} seed=1` }, from);
  assert.deepEqual([sent.configs, sent.array], [{ betas: "0.9,0.99", seed: "1" }, from.array]);
  assert.equal(runs(from), 4);
});

test("what is said twice is as it was said last", () => {
  assert.deepEqual(jobFile(form({ configs: "lr=0.03 seed=1 lr=0.02,0.05", sweep: "each" })).configs, { seed: "1" });
  assert.deepEqual(jobFile(form({ configs: "lr=0.03\nlr=0.02" })).configs, { lr: "0.02" });
});

test("members of a group are one file again, with as many runs", () => {
  const of = (configs) => ({ target: "local", dir: "1", configs });
  const each = together([of({ lr: "1", steps: "9" }), of({ lr: "2", steps: "9" })]);
  assert.deepEqual(each, { target: "local", dir: "1", configs: { steps: "9" }, array: { lr: ["1", "2"] } });
  for (const odd of [[of({ lr: "1" }), of({})], [of({ lr: "1" }), { ...of({ lr: "2" }), command: ["x"] }], [of({ lr: "1,2" }), of({ lr: "3,4" })], [of({ lr: "1" }), of({ lr: "1" })], [{ target: "local" }, of({ lr: "1" })]]) {
    assert.throws(() => together(odd), Mistyped);
  }
  const waits = { ...of({}), array: { lr: ["1", "2", "3"] } };
  assert.equal(together([of({ lr: "1" }), waits]), waits);
  const zip = together([of({ lr: "1", seed: "1" }), of({ lr: "2", seed: "2" }), of({ lr: "3", seed: "1" })]);
  assert.deepEqual([zip.array, zip.zip], [{ lr: ["1", "2", "3"], seed: ["1", "2", "1"] }, "true"]);
  assert.deepEqual([runs(each), runs(zip), runs({ array: { lr: "1,2", seed: "0-4" } }), runs(of({}))], [2, 3, 10, null]);
  assert.deepEqual([typed(zip).sweep, typed(zip).configs], ["zip", "lr=1,2,3 seed=1,2,1"]);
});

test("words are typed as they are read", () => {
  for (const command of [["./train.sh", "--lr=0.01"], ["a b", "it's", "", "$HOME", "*", "a\\b"]]) {
    const { command: text } = typed({ target: "local", command });
    assert.deepEqual(jobFile(form({ command: text })).command, command);
  }
  assert.equal(typed({ target: "local", configs: { lr: "0.01" } }).configs, "lr=0.01");
});

const FROM = {
  target: { slurm: "lab", qos: "high" }, dir: "2", configs: { lr: "0.01" }, command: ["./train.sh", "two words"], env: { A: "b" }, rules: { preempted: "resume" }, tag: "t",
  array: { seed: ["0", "1"] }, max_parallel: "1", priority: "70", gpus: "1",
};

test("what another job was started with is sent as it was, but for what is changed", () => {
  const filled = { ...typed(FROM), user: "alice" };
  assert.deepEqual(jobFile(filled, FROM), { for_user: "alice", ...FROM });
  const { configs, array, ...rest } = jobFile({ ...filled, configs: "lr=0.02 seed=0,1", tag: "" }, FROM);
  assert.deepEqual([configs, array], [{ lr: "0.02" }, FROM.array]);
  const { configs: _, array: __, tag: ___, ...same } = FROM;
  assert.deepEqual(rest, { for_user: "alice", ...same });
  const one = jobFile({ ...filled, configs: "lr=0.02", sweep: "" }, FROM);
  assert.deepEqual([one.array, one.max_parallel, one.env], [undefined, undefined, FROM.env]);
  assert.deepEqual(jobFile({ ...filled, target: "local" }, FROM).target, "local");
  assert.deepEqual(jobFile({ ...filled, command: "" }, FROM).command, undefined);
});
