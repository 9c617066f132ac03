// A page that hears nothing says so within five seconds, and catches up by itself: the server restarted, the network cut, the
// machine asleep. What was under way meanwhile is not done twice. TPU_PROVE_PAGE says for how many seconds it is cut and sleeps.

import assert from "node:assert/strict";
import { loggedIn } from "../browser.js";
import { until } from "../lab.js";

const LASTS = 1000 * Number(process.env.TPU_PROVE_PAGE ?? 6);

/**
 * Waits until the page says that it hears nothing: within five seconds, as its own timers count them. While it is kept from
 * running, those that count here stand as still as those that it goes by.
 */
async function saysSo(page) {
  const quarters = await page.evaluate(() => new Promise((tell) => {
    let count = 0;
    const timer = setInterval(() => {
      count += 1;
      if (count < 240 && !document.querySelector('[data-part="stale"]')) return;
      clearInterval(timer);
      tell(count);
    }, 250);
  }));
  assert.ok(quarters <= 20, `it was silent for ${quarters / 4} s`);
}

export async function keeps(lab, context, { sleep, wake }) {
  const job = lab.run("alice", "sleep 300");
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("phone", "--role", "admin"));
  await page.evaluate(() => {
    window.same = true;
  });
  const row = (id) => page.locator(`.grid [data-job="${id}"]`);
  await row(`alice/${job}`).getByText("running").waitFor();
  const stale = page.locator('[data-part="stale"]');

  await lab.stop();
  await saysSo(page);
  await stale.waitFor();
  const other = lab.run("alice", "sleep 300");
  await lab.serve();
  await stale.waitFor({ state: "hidden" });
  await row(`alice/${other}`).getByText("running").waitFor();

  // Cut without a word: what is sent is lost, and so is what was asked for meanwhile.
  await page.goto(`${lab.address}/#/new`);
  await page.getByLabel("whose").selectOption("alice");
  await page.getByLabel("target").fill("local");
  await page.getByLabel("command").fill("sleep 300");
  await page.getByText("at once, or not at all").click();
  await page.getByRole("button", { name: "next: the plan" }).click();
  await page.locator("#run-start").waitFor();
  const count = () => Object.values(JSON.parse(lab.tpu("--json", "check", "alice")).jobs).length;
  const before = count();
  // What is asked arrives, and its answer does not.
  lab.deaf = true;
  await page.locator("#run-start").click();
  await until("it has begun", () => count() > before);
  lab.cut = true;
  await saysSo(page);
  await stale.waitFor();
  await new Promise((go) => setTimeout(go, LASTS));
  lab.mend();
  await stale.waitFor({ state: "hidden" });
  await page.locator(".job-page").getByText("running").first().waitFor();
  assert.equal(count(), before + 1, "it was started twice");

  // While it sleeps the world goes on, and what connects them is forgotten: neither side is told.
  await page.goto(`${lab.address}/#/events`);
  const tagged = async (tag) => {
    lab.tpu("add-tag", String(job), tag, "alice");
    await page.locator(".events.all").getByText(tag).first().waitFor();
  };
  await tagged("awake");
  sleep();
  lab.forget();
  lab.tpu("kill", String(other), "alice", "--yes");
  const meanwhile = lab.run("alice", "sleep 300");
  await new Promise((go) => setTimeout(go, LASTS));
  wake();
  await tagged("again");
  await stale.waitFor({ state: "hidden" });
  await page.keyboard.press("1");
  await row(`alice/${other}`).getByText("killed").waitFor();
  await row(`alice/${meanwhile}`).getByText("running").waitFor();
  assert.equal(count(), before + 2, "it was started twice");
  assert.equal(await page.evaluate(() => window.same), true, "it was loaded anew");
  page.problems = [];
}
