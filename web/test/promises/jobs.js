// The table: found by the screen's filter, sorted, folded, opened; changes show within a moment; by the keyboard alone.

import assert from "node:assert/strict";
import { loggedIn } from "../browser.js";
import { until } from "../lab.js";

export async function keeps(lab, context) {
  const broken = lab.run("alice", "echo step 1 loss 0.5; echo 'ValueError: too big'; exit 3", "tag=sweep");
  const runs = lab.run("alice", "echo step 1/10 loss 0.5; sleep 300");
  const bobs = lab.run("bob", "echo step 1");
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("desk", "--role", "admin"));
  const row = (id) => page.locator(`.grid [data-job="${id}"]`);
  await row(`alice/${runs}`).getByText("running").waitFor();
  await row(`bob/${bobs}`).getByText("finished").waitFor();
  await row(`alice/${broken}`).waitFor();

  // By the keyboard alone: filter, choose, open, come back.
  await page.locator("#rows").focus();
  await page.keyboard.press("/");
  // Who pauses behind a word goes on where they were.
  await page.keyboard.type("status:error ");
  await row(`alice/${runs}`).waitFor({ state: "detached" });
  await page.keyboard.type("tag:sweep");
  assert.equal(await page.locator("#filter").inputValue(), "status:error tag:sweep");
  await page.keyboard.press("Enter");
  await until("the others are gone", async () => (await page.locator(".grid .body [data-job]").count()) === 1);
  await row(`alice/${broken}`).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(`.job-page [data-job="alice/${broken}"]`).first().waitFor();
  for (const part of ["status", "timeline", "tail", "settings", "evidence"]) await page.locator(`[data-part="${part}"]`).first().waitFor();
  await page.getByText("alice/" + broken, { exact: false }).first().waitFor();
  await page.keyboard.press("Escape");
  await row(`alice/${broken}`).waitFor();
  await page.keyboard.press("Escape");
  await row(`bob/${bobs}`).waitFor();
  await page.keyboard.press("G");
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`bob/${bobs}$`));
  await page.keyboard.press("1");
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("start again from scratch").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  // The prompt has the key that follows, before anything is painted; and nothing is no command.
  const focused = await page.evaluate(async () => {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: ":", bubbles: true, cancelable: true }));
    const { port1, port2 } = new MessageChannel();
    await new Promise((next) => {
      port1.onmessage = next;
      port2.postMessage(null);
    });
    return document.activeElement.closest("dialog")?.querySelector("input") === document.activeElement;
  });
  assert.ok(focused, "what is typed right behind : is for the prompt");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.keyboard.press(":");
  await page.keyboard.type("targets");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Targets", exact: true }).waitFor();
  await page.keyboard.press("1");

  // What is wrong with a filter is said; what another says comes by itself.
  await page.keyboard.press("/");
  await page.keyboard.type("age>never");
  await page.keyboard.press("Enter");
  await page.locator(".complaint").waitFor();
  await page.keyboard.press("/");
  await page.locator("#filter").fill("");
  await page.keyboard.press("Enter");
  await row(`alice/${runs}`).waitFor();
  lab.tpu("kill", String(runs), "alice", "--yes");
  await row(`alice/${runs}`).getByText("killed").waitFor();
  page.problems = page.problems.filter((said) => !said.includes("400"));
}
