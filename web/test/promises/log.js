// The log: followed as it comes, searched, to the line that broke; markup, colours and what turns a line around are text.

import assert from "node:assert/strict";
import { loggedIn } from "../browser.js";
import { until } from "../lab.js";

export async function keeps(lab, context) {
  const hostile = String.raw`printf '<script>window.ran=1</script><img src=x onerror="window.ran=1">\n\033[31mred\033[0m \033]0;title\007end\n\342\200\256turned\n'`;
  const follows = lab.run("alice", `${hostile}; for n in $(seq 400); do echo line $n; done; while [ ! -e go ]; do sleep 0.1; done; echo after all; sleep 300`);
  const broke = lab.run("alice", "for n in $(seq 500); do echo step $n; done; echo 'Traceback (most recent call last):'; echo 'ValueError: the shapes differ'; exit 1");
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("desk", "--role", "viewer"));
  await page.goto(`${lab.address}/#/job/alice/${follows}/log`);
  const log = page.locator('[data-part="log"]');
  await log.getByText("line 400", { exact: true }).waitFor();
  await page.locator(".lines").focus();
  await page.keyboard.press("g");
  await log.getByText('<script>window.ran=1</script><img src=x onerror="window.ran=1">').waitFor();
  await log.getByText("red end").waitFor();
  await log.getByText("\\u{202e}turned").waitFor();
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.equal(await page.locator(".lines img, .lines script").count(), 0);
  // It stays where somebody reads; at the end it follows.
  const { code } = JSON.parse(lab.tpu("--json", "explain", String(follows), "alice")).job.dir ? { code: JSON.parse(lab.tpu("--json", "explain", String(follows), "alice")).job.stage_dir } : {};
  const { writeFileSync } = await import("node:fs");
  writeFileSync(`${code}/go`, "");
  await log.getByText(/new lines? below/).waitFor();
  await page.keyboard.press("G");
  await log.getByText("after all", { exact: true }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("line 3[0-9]9");
  await page.keyboard.press("Enter");
  await log.locator("mark", { hasText: "line 309" }).waitFor();
  await page.keyboard.press("Enter");
  await log.locator("mark", { hasText: "line 319" }).waitFor();
  // A job that broke opens at the line that says why.
  await page.goto(`${lab.address}/#/job/alice/${broke}`);
  await page.locator('[data-part="evidence"]').getByText("ValueError: the shapes differ").waitFor();
  await page.getByRole("link", { name: "in the output" }).first().click();
  const line = page.locator('.line[data-part="evidence"]');
  await line.waitFor();
  await until("it is seen", () => line.isVisible());
  assert.match(await line.innerText(), /ValueError: the shapes differ/);
}
