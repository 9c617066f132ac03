// A real Chromium for whoever tests or pictures the page.

import { mkdtempSync, rmSync } from "node:fs";
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
  return {
    context,
    async end() {
      await context.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
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
