// A token or a link logs in, once; no token stands in an address, in the page, or where the browser keeps things; a session
// ends when it is ended and when its token is.

import assert from "node:assert/strict";
import { loggedIn } from "../browser.js";

export async function keeps(lab, context) {
  const token = lab.token("phone", "--role", "admin");
  await lab.serve("--open");
  const wrong = await context.newPage();
  await wrong.goto(lab.address);
  await wrong.getByLabel("Token").fill("tpu_nothing");
  await wrong.getByRole("button", { name: "log in" }).click();
  await wrong.getByText("this token opens nothing").waitFor();
  await wrong.close();

  const page = await loggedIn(context, lab.address, token);
  await page.getByText("There are no jobs").waitFor();
  const cookies = await context.cookies(`${lab.address}/api/v1/jobs`);
  assert.equal(cookies.length, 1);
  assert.ok(cookies[0].httpOnly && cookies[0].sameSite === "Strict", JSON.stringify(cookies));
  assert.ok(!cookies[0].value.includes(token));
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie + location.href + document.documentElement.outerHTML);
  assert.ok(!kept.includes(token), "the token is kept");
  // The cookie alone is nothing: without the page's header nothing is seen, and nothing changed without what belongs to it.
  const statuses = await page.evaluate(async () => {
    const status = async (path, how) => (await fetch(path, how)).status;
    return [
      await status("/api/v1/jobs"),
      await status("/api/v1/jobs", { headers: { "X-Tpu-Page": "1" } }),
      await status("/api/v1/queues/default/pause", { method: "POST", headers: { "X-Tpu-Page": "1" } }),
      await status("/cloudmesh/queue/", { headers: { "X-Tpu-Page": "1" } }),
    ];
  });
  assert.deepEqual(statuses, [401, 200, 403, 401]);
  page.problems = [];
  await page.reload();
  await page.getByText("There are no jobs").waitFor();
  // The form is shown once the page has been loaded again, not when a request is refused before that: a token that somebody
  // types at once would be lost.
  const refused = page.waitForResponse((answer) => answer.status() === 401);
  let formsBefore;
  await page.route("**/api/v1/session/end", async (route) => {
    const answer = await route.fetch();
    await (await refused).finished();
    // The page has drawn what it makes of the refusal.
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    formsBefore = await page.getByLabel("Token").count();
    await route.fulfill({ response: answer });
  });
  await page.getByRole("button", { name: /^menu/ }).click();
  const loaded = page.waitForEvent("load");
  await page.getByRole("button", { name: /^log out/ }).click();
  await loaded;
  assert.equal(formsBefore, 0, "the form is shown before the page is loaded again");
  await page.getByLabel("Token").waitFor();
  const status = await page.evaluate(async () => (await fetch("/api/v1/jobs", { headers: { "X-Tpu-Page": "1" } })).status);
  assert.equal(status, 401);
  await page.close();

  // A link logs in once, and what it says leaves the address.
  const code = /#login=([\w-]+)/.exec(lab.said)[1];
  const linked = await context.newPage();
  await linked.goto(`${lab.address}/#login=${code}`);
  await linked.locator(".shell").waitFor();
  assert.ok(!linked.url().includes("login"), linked.url());
  const list = lab.tpu("token", "list");
  const name = /link-\w+/.exec(list)[0];
  lab.tpu("token", "revoke", name);
  await linked.getByText("log in again").waitFor();
  await linked.goto("about:blank");
  await linked.goto(`${lab.address}/#login=${code}`);
  await linked.getByText("this link has been used").waitFor();
}
