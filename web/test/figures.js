// What the page costs (spec: P20), in a real Chromium: `./x page --figures`. Ten thousand jobs; what comes over the wire, how
// long until they are seen, what jumps, how long a frame takes, how soon a change is seen.

import { readFileSync, writeFileSync } from "node:fs";
import { browser, loggedIn } from "./browser.js";
import { Lab, until } from "./lab.js";

const JOBS = Number(process.argv[2] ?? 10_000);
const lab = new Lab();
const { context, end } = await browser();
try {
  const path = lab.env.TPU_DATA;
  const data = JSON.parse(readFileSync(path, "utf8"));
  const { alice } = data.users;
  for (let n = 1; n <= JOBS; n += 1) {
    alice.job_data.push({ user: "alice", windows_id: n, job_dir_id: 1, job_dir: alice.working_dir[1], tpu: `v4-${n % 40}`, job_tags: `sweep-${n % 100}`, log_dir: null, stage_dir: null, extra_configs: "", status: n % 9 ? "finished" : "error", error: n % 9 ? null : "OOM", stage: 0, monitor: true, rules: {}, extra_msgs: {}, start_time: "20250420_011026", customized_settings: {} });
  }
  alice.windows_offset = JOBS + 1;
  writeFileSync(path, JSON.stringify(data));
  const job = lab.run("bob", "sleep 1000");
  await lab.serve();
  const page = await loggedIn(context, lab.address, lab.token("figures", "--role", "admin"));
  await page.locator(".grid [data-job]").first().waitFor({ timeout: 60_000 });
  const bytes = await page.evaluate(() => performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).filter((of) => of.name.includes("/page/") || of.entryType === "navigation").reduce((sum, of) => sum + of.transferSize, 0));
  console.log(`what the page consists of, over the wire: ${(bytes / 1000).toFixed(1)} kB`);
  const firsts = [];
  let jumps = 0;
  for (let n = 0; n < 5; n += 1) {
    await page.addInitScript(() => {
      window.jumps = 0;
      new PerformanceObserver((list) => list.getEntries().forEach((of) => {
        window.jumps += of.hadRecentInput ? 0 : of.value;
        window.jumped = (window.jumped ?? "") + of.sources.map(({ node }) => ` ${node?.className?.baseVal ?? node?.className ?? node?.nodeName}`).join("");
      })).observe({ type: "layout-shift", buffered: true });
    });
    await page.goto("about:blank");
    const begun = Date.now();
    await page.goto(`${lab.address}/#/jobs`, { waitUntil: "commit" });
    await page.locator(".grid [data-job]").first().waitFor();
    firsts.push(Date.now() - begun);
    await page.waitForTimeout(1500);
    jumps = Math.max(jumps, await page.evaluate(() => window.jumps));
    if (jumps > 0) console.log(`  what jumped:${await page.evaluate(() => window.jumped)}`);
  }
  console.log(`first view of ${JOBS} jobs: ${firsts.join(", ")} ms; layout shift ${jumps.toFixed(4)}`);
  await until("all are there", async () => Number(await page.locator("#rows").getAttribute("aria-rowcount")) > JOBS, 60_000);
  // What the page itself does for a frame: the time of the only thread that draws, whatever else the machine does.
  const cdp = await context.newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  const spent = async () => Object.fromEntries((await cdp.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value])).TaskDuration;
  const before = await spent();
  const frames = await page.evaluate(async () => {
    const rows = document.getElementById("rows");
    const times = [];
    for (let n = 0; n < 240; n += 1) {
      const begun = performance.now();
      rows.scrollTop += 997;
      await new Promise((go) => requestAnimationFrame(go));
      times.push(performance.now() - begun);
    }
    return times.sort((a, b) => a - b);
  });
  const each = (1000 * ((await spent()) - before)) / frames.length;
  const at = (share) => frames[Math.floor(frames.length * share)].toFixed(1);
  console.log(`${JOBS} rows scrolled a screenful a frame: ${each.toFixed(1)} ms of its thread a frame; from frame to frame median ${at(0.5)}, p95 ${at(0.95)} ms; rows in the page: ${await page.locator(".grid .body .row").count()}`);
  await page.evaluate((id) => {
    window.seen = new Promise((tell) => {
      const look = () => ([...document.querySelectorAll(".events.all .what")].some((of) => of.textContent.includes(id) && of.textContent.includes("tag")) ? tell(Date.now()) : requestAnimationFrame(look));
      look();
    });
    location.hash = "#/events";
  }, `bob/${job}`);
  await page.locator(".events.all").waitFor();
  lab.tpu("add-tag", String(job), "seen", "bob");
  const told = Date.now();
  console.log(`an event is seen ${Math.max(0, (await page.evaluate(() => window.seen)) - told)} ms after the command that made it has ended`);
} finally {
  await end();
  await lab.end();
}
