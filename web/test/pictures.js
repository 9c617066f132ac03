// The pictures of the README: `node web/test/pictures.js ADDRESS DIRECTORY`, with the token on the standard input.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { browser, DESK, loggedIn, PHONE } from "./browser.js";

const [address, directory] = process.argv.slice(2);
const { context, end } = await browser();
const page = await loggedIn(context, address, readFileSync(0, "utf8").trim());
try {
  await page.locator('.grid [data-job]').first().waitFor();
  const broken = await page.locator(".grid .is-error[data-job]").first().getAttribute("data-job");
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.setViewportSize({ ...DESK, height: 810 });
    await page.goto(`${address}/#/jobs`);
    await page.locator(`.grid [data-job="${broken}"]`).click();
    await page.locator(".side .u-wrap").waitFor();
    await page.locator(".side .tail", { hasText: /\S/ }).waitFor();
    // Curves of rows come one after the other.
    await page.waitForTimeout(2500);
    await page.screenshot({ path: join(directory, `page-jobs-${colorScheme}.png`) });
    await page.setViewportSize(PHONE);
    await page.goto(`${address}/#/job/${broken}`);
    await page.locator(".job-page .u-wrap").waitFor();
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(directory, `page-phone-${colorScheme}.png`) });
  }
} finally {
  await end();
}
