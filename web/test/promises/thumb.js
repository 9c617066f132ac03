// On the way home, with a thumb: what broke and why, bring it back, stop a sweep, start a run. Each tap is counted, and no
// more are needed than are said here.

import assert from "node:assert/strict";
import { loggedIn, PHONE } from "../browser.js";
import { until } from "../lab.js";

export async function keeps(lab, context) {
  const broke = lab.run("alice", "[ -e \"$PWD/mended\" ] && exec sleep 300; echo 'ValueError: the shapes differ'; exit 1", "tag=baseline");
  // Somebody else's that broke later is not what an operator of alice's looks for.
  lab.run("bob", "sleep 1; exit 3");
  const sweep = [1, 2, 3].map((n) => lab.run("alice", "sleep 300", `tag=sweep${n}`));
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("phone", "--role", "operator", "--user", "alice"), PHONE);
  const taps = [];
  const tap = async (what, part) => {
    await part.click();
    taps.push(what);
  };
  const row = (id) => page.locator(`.grid [data-job="${id}"]`);
  await row(`alice/${broke}`).waitFor();
  await until("it is seen to have failed", async () => (await row(`alice/${broke}`).innerText()).includes("the shapes differ"));

  await tap("to the newest that broke", page.getByRole("button", { name: "newest that broke" }));
  await page.locator('[data-part="evidence"]').getByText("ValueError: the shapes differ").waitFor();
  assert.equal(taps.length, 1, "what broke, and why");

  await tap("rerun", page.locator('[data-part="acts"]').getByRole("button", { name: "rerun" }));
  await tap("rerun, as planned", page.getByRole("dialog").getByRole("button", { name: "rerun" }));
  await page.getByText("goes on as").first().waitFor();
  assert.equal(taps.length, 3, "it is brought back");

  await tap("jobs", page.getByRole("link", { name: "Jobs", exact: true }));
  await page.locator("#filter").fill("status:running tag:sweep");
  await until("the sweep alone is shown", async () => (await page.locator(".grid .body [data-job]").count()) === 3);
  await tap("mark one", page.getByRole("button", { name: `mark alice/${sweep[0]}`, exact: true }));
  await tap("all 3 shown", page.getByRole("button", { name: "mark all 3 shown" }));
  await tap("kill", page.getByRole("toolbar").getByRole("button", { name: "kill" }));
  await tap("kill 3, as planned", page.getByRole("dialog").getByRole("button", { name: "kill 3" }));
  await page.getByText(/: stopped/).waitFor();
  assert.equal(taps.length, 8, "a sweep is stopped");

  await tap("new", page.getByRole("link", { name: "new" }));
  await page.getByLabel("target").fill("local");
  await page.getByLabel("command").fill("sleep 300");
  await tap("next: the plan", page.getByRole("button", { name: "next: the plan" }));
  await tap("start", page.locator("#run-start"));
  await page.locator(".job-page").waitFor();
  assert.equal(taps.length, 11, "a run is started");
  console.log(`${taps.length} taps: ${taps.join("; ")}`);
}
