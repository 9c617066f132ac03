// Every view at both sizes, light and dark: nothing that axe calls serious, nothing wider than the screen.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { DESK, loggedIn, PHONE } from "../browser.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function keeps(lab, context) {
  const broke = lab.run("alice", "for n in $(seq 10 10 200); do echo \"step $n/400 loss 0.$((999 - n * 4))\"; done; echo 'ValueError: the shapes differ'; exit 1", "tag=sweep");
  lab.run("bob", "for n in $(seq 10 10 100); do echo \"step $n/400 loss 0.$((999 - n * 4))\"; done; sleep 300");
  lab.submit("alice", "true", "--hold");
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("desk", "--role", "admin"));
  await page.locator(`.grid [data-job="alice/${broke}"]`).waitFor();
  const found = [];
  const look = async (name) => {
    // The page lets no script in that is not its own; the debugger's way is another.
    const said = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
    for (const of of said.violations.filter((of) => ["serious", "critical"].includes(of.impact))) {
      found.push(`${name}: ${of.id}: ${of.nodes.slice(0, 2).map((node) => `${node.html.slice(0, 160)} ${node.failureSummary ?? ""}`).join(" | ")}`);
    }
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(over <= 0, `${name} is ${over} pixels wider than the screen`);
  };
  const views = { jobs: ".grid [data-job]", [`job/alice/${broke}`]: ".u-wrap", [`job/alice/${broke}/log`]: ".line", targets: "[data-host]", queue: ".queue li", events: ".events li", plan: ".board h1", usage: ".board table, .board .empty", users: ".card", new: "form" };
  for (const [size, scheme] of [[DESK, "dark"], [DESK, "light"], [PHONE, "light"], [PHONE, "dark"]]) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    // Each view once at each size and in each scheme; of the other two pairs those that most is in.
    const isWhole = (size === DESK) === (scheme === "dark");
    for (const [view, part] of Object.entries(views).slice(0, isWhole ? undefined : 2)) {
      await page.goto(`${lab.address}/#/${view}`);
      await page.locator(part).first().waitFor();
      await look(`${view}, ${size.width}, ${scheme}`);
    }
    await page.getByRole("button", { name: /^menu/ }).click();
    await page.getByRole("dialog").waitFor();
    await look(`menu, ${size.width}, ${scheme}`);
    await page.keyboard.press("Escape");
  }
  // What is pressed with a thumb is as large as one.
  await page.goto(`${lab.address}/#/job/alice/${broke}`);
  await page.locator('[data-part="acts"] button').first().waitFor();
  const small = await page.locator('[data-part="acts"] button, nav a, .top .button, .top .chip').evaluateAll((all) => all.map((of) => of.getBoundingClientRect()).filter((box) => box.height < 44 || box.width < 40).length);
  assert.equal(small, 0);
  assert.deepEqual(found, []);
}
