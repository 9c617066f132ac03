// A run that is like another: the form filled in as that was started, sent as it was but for what is changed; the form's
// fields are those of a job file; what cannot go on from a checkpoint starts from scratch with one tap.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loggedIn } from "../browser.js";
import { until } from "../lab.js";

export async function keeps(lab, context) {
  lab.tpu("-a", "lr", "config.training.learning_rate", "alice");
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("phone", "--role", "operator", "--user", "alice"));
  const jobs = () => Object.values(JSON.parse(lab.tpu("--json", "check", "alice")).jobs);
  const started = async () => {
    await page.locator("#run-start").click();
    await page.locator(".job-page").waitFor();
    return Number(/alice\/(\d+)/.exec(page.url())[1]);
  };
  const script = (number) => lab.tpu("script", String(number), "alice");

  // Every field of the form is sent, and taken.
  await page.goto(`${lab.address}/#/new`);
  await page.getByLabel("target").fill("local");
  await page.getByLabel("configs").fill("lr=0.01 config.note='two words'");
  await page.getByLabel("command").fill("bash -c 'echo \"given $*\"; until [ -e \"$HOME/go\" ]; do sleep 0.1; done; exit 3' job");
  await page.getByLabel("name").fill("first-one");
  await page.getByLabel("tag").fill("tried");
  await page.getByLabel("when it fails").selectOption("pass");
  await page.getByLabel("priority").fill("70");
  await page.getByRole("button", { name: "next: the plan" }).click();
  const first = await started();
  // It breaks once it was seen to run.
  await page.locator(".job-page").getByText("running").first().waitFor();
  await page.goto(`${lab.address}/#/jobs`);
  await page.locator(`.grid [data-job="alice/${first}"]`).getByText("running").waitFor();
  // Also while the list shows only what it is not any more.
  await page.locator("#filter").fill("status:running");
  await page.locator(".grid .body [data-job]").first().waitFor();
  writeFileSync(join(lab.root, "go"), "");
  await until("it has failed", () => jobs().find((job) => job.window === first)?.status === "error");
  const given = "--config.training.learning_rate=0.01";
  assert.match(script(first), new RegExp(given));
  const job = jobs().find((of) => of.window === first);
  assert.deepEqual([job.name, job.tags], ["first-one", "tried"]);

  // That is said wherever somebody looks, with the way there.
  await page.locator(".toasts").getByText(`alice/${first} broke: error`).waitFor();
  await page.locator("#filter").press("Escape");
  await page.locator(".toasts").getByRole("link", { name: `alice/${first} broke: error` }).click();

  // Another like it: what was said is there, and what is changed is marked.
  await page.locator(".job-page").getByText("error").first().waitFor();
  await page.keyboard.press("N");
  const value = (name) => page.getByLabel(name).inputValue();
  await until("the form is filled in", async () => (await page.getByLabel("configs").count()) === 1 && (await value("configs")).includes("lr=0.01"));
  assert.deepEqual([await value("target"), await value("directory"), await value("tag"), await value("when it fails"), await value("name")], ["local", "1", "tried", "pass", "first-one"]);
  assert.match(await value("configs"), /config.note=/);
  await page.getByLabel("configs").fill((await value("configs")).replace("lr=0.01", "lr=0.02"));
  await page.getByText("was lr=0.01").waitFor();
  await page.getByRole("button", { name: "next: the plan" }).click();
  const second = await started();
  await until("it has failed as well", () => jobs().find((job) => job.window === second)?.status === "error");
  const [one, other] = [script(first), script(second)].map((text) => text.match(/echo "given.*/)[0]);
  assert.equal(other.replace("0.02", "0.01"), one, "nothing else differs");
  assert.notEqual(other, one);

  // It wrote no checkpoint: resume offers the other way, once, and the attempt that went on is offered nothing that ends it.
  await page.locator('[data-part="acts"]').getByRole("button", { name: "resume" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "start again from scratch" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^rerun/ }).click();
  await page.getByText("goes on as").first().waitFor();
  const acts = () => page.locator('[data-part="acts"]').innerText();
  await until("nothing of what is over is ended", async () => !/kill|resume/.test(await acts()));
  assert.match(await acts(), /another like it/);

  // A sweep: several values are several runs.
  await page.goto(`${lab.address}/#/new?from=alice%2F${first}`);
  await until("the form is filled in", async () => (await page.getByLabel("configs").count()) === 1 && (await value("configs")).includes("lr=0.01"));
  await page.getByLabel("configs").fill("lr=0.1,0.2 config.seed=0-1");
  await page.getByLabel("several values").selectOption("each");
  await page.getByRole("button", { name: "next: the plan" }).click();
  await page.locator("#run-start").click();
  await page.locator(".grid .row.under").nth(3).waitFor();
  await until("four have run", () => jobs().filter((job) => job.group != null && job.status === "error").length === 4);
  assert.deepEqual(jobs().filter((job) => job.group != null).map((job) => script(job.window).match(/learning_rate=([\d.]+)/)[1]).sort(), ["0.1", "0.1", "0.2", "0.2"]);

  // A group is marked as a whole, also where some of it is already; then it is not.
  const marked = page.locator(".marks > span");
  await page.locator(".grid .row.under .mark").first().click();
  await marked.getByText("1 job marked").waitFor();
  const group = page.getByRole("button", { name: /^(un)?mark group/ });
  await group.click();
  await marked.getByText("4 jobs marked").waitFor();
  await group.click();
  await marked.waitFor({ state: "detached" });

  // What was typed is there again after a look elsewhere, until it is started or thrown away.
  await page.goto(`${lab.address}/#/new`);
  await page.getByLabel("configs").fill("lr=0.5");
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.locator(".grid").waitFor();
  await page.getByRole("link", { name: "new" }).click();
  await until("it is there again", async () => (await value("configs")) === "lr=0.5");
  await page.getByRole("button", { name: "begin anew" }).click();
  await until("it is empty", async () => (await value("configs")) === "");

  // A start whose answer is lost is left: it has started once, and the form does not hold it a second time.
  await page.getByLabel("target").fill("local");
  await page.getByLabel("configs").fill("lr=0.7");
  await page.getByLabel("command").fill("sleep 300");
  await page.getByRole("button", { name: "next: the plan" }).click();
  const count = jobs().length;
  await page.locator("#run-start").waitFor();
  lab.deaf = true;
  await page.locator("#run-start").click();
  await until("it has begun", () => jobs().length === count + 1);
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  lab.mend();
  await page.locator(".toasts").getByText("has begun").last().waitFor();
  await page.getByRole("link", { name: "new" }).click();
  await until("it is empty", async () => (await value("configs")) === "");
  assert.equal(jobs().length, count + 1, "it was started twice");
  // Of what was cut off the browser complains by itself.
  page.problems = page.problems.filter((what) => !/net::ERR_/.test(what));

  // What somebody stopped starts again for whoever says so twice; what the rule says is marked among the rules.
  const stopped = lab.run("alice", "sleep 300");
  lab.tpu("kill", String(stopped), "alice", "-y");
  await page.goto(`${lab.address}/#/job/alice/${stopped}`);
  await page.locator(".title-of-job").getByText("killed", { exact: true }).waitFor();
  await page.keyboard.press("u");
  await page.getByRole("dialog").locator("[aria-current=true]", { hasText: "pass" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  // The list may be older than the question, and say that it has failed: the question goes by what the list says next.
  let isOld = true;
  await page.route("**/api/v1/jobs?*", async (route) => {
    const { "if-none-match": _, ...headers } = route.request().headers();
    const response = await route.fetch({ headers });
    const body = await response.json();
    const old = body.jobs.find((job) => job.window === stopped && job.user === "alice");
    if (isOld && old) Object.assign(old, { status: "error", error: "killed-by-signal" });
    await route.fulfill({ response, json: body });
  });
  await page.locator(".title-of-job").getByText("killed-by-signal").waitFor();
  await page.keyboard.press("R");
  await page.getByRole("dialog").getByText("was killed").waitFor();
  assert.equal(await page.getByRole("dialog").getByRole("button", { name: "rerun all the same" }).count(), 0);
  isOld = false;
  await page.getByRole("dialog").getByRole("button", { name: "rerun all the same" }).click();
  await page.unrouteAll({ behavior: "wait" });
  await page.getByRole("dialog").getByRole("button", { name: "rerun", exact: true }).click();
  await page.getByText("goes on as").first().waitFor();

  // One's own jobs, with a tap.
  lab.run("bob", "sleep 300");
  await page.goto(`${lab.address}/#/jobs`);
  await page.locator('.grid [data-job^="bob/"]').waitFor();
  await page.getByRole("button", { name: "only alice" }).click();
  await page.locator('.grid [data-job^="bob/"]').waitFor({ state: "detached" });
  await page.getByRole("button", { name: "only alice ✕" }).click();
  await page.locator('.grid [data-job^="bob/"]').waitFor();

  // Whoever logs in next in this tab finds nothing of whoever was here.
  await page.locator(".grid .mark").first().click();
  await marked.waitFor();
  await page.getByRole("link", { name: "new" }).click();
  await page.getByLabel("configs").fill("lr=0.9");
  lab.tpu("token", "revoke", "phone");
  await page.getByLabel("Token").fill(lab.token("other", "--role", "operator", "--user", "alice"));
  assert.equal(await page.locator(".toast").count(), 0);
  await page.getByRole("button", { name: "log in" }).click();
  await until("the form is empty", async () => (await page.getByLabel("configs").count()) === 1 && (await value("configs")) === "");
  await page.getByRole("link", { name: "Jobs", exact: true }).click();
  await page.locator(".grid [data-job]").first().waitFor();
  assert.equal(await marked.count(), 0);
}
