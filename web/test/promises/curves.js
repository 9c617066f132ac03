// Curves of two runs beside each other: marked, compared, zoomed; and of one that prints more while its curve is on its way.

import assert from "node:assert/strict";
import { loggedIn } from "../browser.js";

export async function keeps(lab, context) {
  const falls = (by) => `for n in $(seq 10 10 200); do echo "step $n/200 loss 0.$((999 - n * ${by}))"; done`;
  const [one, two] = [lab.run("alice", falls(4), "tag=slow"), lab.run("alice", falls(3), "tag=slower")];
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("desk", "--role", "viewer"));
  for (const number of [one, two]) {
    await page.locator(`.grid [data-job="alice/${number}"]`).getByText("finished").waitFor();
    await page.getByRole("button", { name: `mark alice/${number}` }).click();
  }
  await page.getByRole("button", { name: "compare" }).click();
  const curve = page.locator('[data-part="curve"]');
  await curve.locator("canvas").waitFor();
  await curve.getByText(`alice/${one}`).waitFor();
  await curve.getByText(`alice/${two}`).waitFor();
  await page.locator(".apart", { hasText: "slower" }).waitFor();
  const box = await curve.locator(".u-over").boundingBox();
  await page.mouse.move(box.x + box.width / 4, box.y + 40);
  await curve.getByText(/^step \d+/).waitFor();
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await curve.getByRole("button", { name: "all" }).click();
  assert.equal(await curve.getByRole("button", { name: "all" }).count(), 0);

  // Over a slow network, of a run that has always printed something more until the answer is here.
  const quick = lab.run("alice", "n=0; while :; do n=$((n + 1)); echo \"step $n/100000 loss 0.5\"; sleep 0.2; done");
  await page.route("**/curve", async (route) => {
    await new Promise((go) => setTimeout(go, 3000));
    await route.continue();
  });
  await page.goto(`${lab.address}/#/job/alice/${quick}`);
  await page.locator('.job-page [data-part="curve"] canvas').waitFor({ timeout: 12_000 });
}
