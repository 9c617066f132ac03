// A target is taken away: its job comes back, and whoever looks sees it happen.

import { loggedIn } from "../browser.js";

export async function keeps(lab, context) {
  lab.env.TPU_CLOUD = "sim";
  lab.tpu("register", "one", "--type", "v4-8", "--zone", "us-central2-b", "--spot");
  lab.tpu("apply", "one");
  const { launched } = JSON.parse(lab.tpu("run", "one", "alice", "rule=pre", "--json", "--", "bash", "-c", 'echo step ${TPU_CHECKPOINT_STEP:-1}; echo weights > "$TPU_LOG_DIR/step_10.pt"; sleep 300', "job"));
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("phone", "--role", "admin"));
  const row = page.locator('.grid [data-job^="alice/"]');
  await row.getByText("running").waitFor();
  // Nobody would bring it back: that is said.
  await page.locator('[data-part="daemon"]').waitFor();
  lab.tpu("daemon", "start");
  await page.locator('[data-part="daemon"]').waitFor({ state: "hidden" });
  lab.tpu("sim", "preempt", "one");
  const next = page.locator(`.grid [data-job="alice/${launched.window + 1}"]`);
  await next.getByText("running").waitFor({ timeout: 60_000 });
  await next.getByRole("button", { name: /earlier attempt/ }).click();
  await page.locator(`.grid [data-job="alice/${launched.window}"]`).getByText("resumed").waitFor();
}
