// A real Chromium for whoever tests or pictures the page.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1440, height: 900 };

/** Starts it; gone with `end`. */
export async function browser(program = process.env.TPU_TEST_CHROMIUM ?? "/usr/bin/chromium") {
  const home = mkdtempSync(join(tmpdir(), "tpu-page-"));
  const context = await chromium.launchPersistentContext(home, { executablePath: program, args: SWITCHES, viewport: DESK, locale: "en-GB", timezoneId: "UTC" });
  /** Its processes, the first of which has its directory among its words. */
  const signal = (name) => {
    for (const pid of below((words) => words.includes(home))) process.kill(pid, name);
  };
  return {
    context,
    /** Has it stand still, as when the machine sleeps, and go on. */
    sleep: () => signal("SIGSTOP"),
    wake: () => signal("SIGCONT"),
    async end() {
      await context.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Processes that `is` knows by their words, and all that came of them. */
function below(is) {
  const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
    try {
      const [, parent] = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ");
      return [{ pid: Number(pid), parent: Number(parent), words: readFileSync(`/proc/${pid}/cmdline`, "utf8") }];
    } catch {
      return []; // It has gone meanwhile.
    }
  });
  const found = new Set(all.filter(({ words }) => is(words)).map(({ pid }) => pid));
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const { pid, parent } of all) if (found.has(parent)) found.add(pid);
  }
  return found;
}

/** A page that is logged in by a token. */
export async function loggedIn(context, address, token, size = DESK) {
  const page = await context.newPage();
  await page.setViewportSize(size);
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (said) => said.type() === "error" && !/status of (401|404|409|410|422)/.test(said.text()) && page.problems.push(said.text()));
  await page.goto(address);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "log in" }).click();
  await page.locator(".shell").waitFor();
  return page;
}
