// What is done by the page: a run by the form, with its plan, started once however often it is pressed; a job that is killed
// after its plan was shown; the order of the queue.

import assert from "node:assert/strict";
import { loggedIn } from "../browser.js";
import { until } from "../lab.js";

export async function keeps(lab, context) {
  const [first, second] = ["hold", "hold"].map(() => lab.submit("alice", "sleep 300", "--hold"));
  const bobs = lab.run("bob", "sleep 300");
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("phone", "--role", "operator", "--user", "alice"));
  await page.goto(`${lab.address}/#/new`);
  await page.getByLabel("target").fill("local");
  await page.getByLabel("command").fill("echo begun; sleep 300");
  await page.getByText("at once, or not at all").click();
  await page.getByRole("button", { name: "next: the plan" }).click();
  await page.locator('[data-part="plan"]').getByText("at once").waitFor();
  const jobs = () => Object.values(JSON.parse(lab.tpu("--json", "check", "alice")).jobs);
  const before = jobs().length;
  // Twice at once, as an impatient thumb does.
  await page.locator("#run-start").evaluate((button) => {
    button.click();
    button.click();
  });
  await page.locator(".job-page").getByText("running").first().waitFor();
  assert.equal(jobs().length, before + 1, "it was started twice");

  const number = Number(/alice\/(\d+)/.exec(page.url())[1]);
  await page.keyboard.press("x");
  const dialog = page.getByRole("dialog");
  await dialog.getByText(`alice/${number}`).first().waitFor();
  await page.keyboard.press("n");
  await dialog.waitFor({ state: "hidden" });
  assert.equal(jobs().find((job) => job.window === number).status, "running");
  await page.keyboard.press("x");
  await dialog.getByRole("button", { name: "kill" }).click();
  await page.locator(".title-of-job").getByText("killed", { exact: true }).waitFor();

  // An operator acts for their own.
  await page.goto(`${lab.address}/#/job/bob/${bobs}`);
  await page.locator('[data-part="status"]').waitFor();
  assert.equal(await page.locator('[data-part="acts"]').count(), 0);

  await page.goto(`${lab.address}/#/queue`);
  const order = async () => page.locator(".queue [data-job]").evaluateAll((rows) => rows.map((row) => row.dataset.job));
  await until("both wait", async () => (await order()).length === 2);
  assert.deepEqual(await order(), [`alice/${first}`, `alice/${second}`]);
  await page.getByRole("button", { name: `alice/${second} sooner` }).click();
  await until("the order is another", async () => (await order())[0] === `alice/${second}`);
  await page.getByRole("button", { name: `alice/${second} later` }).click();
  await until("it is as it was", async () => (await order())[0] === `alice/${first}`);
}
