// Tests what the page promises, in a real Chromium on a real server: `node web/test/page.js PROMISE…`. tests/page starts it.

import { browser } from "./browser.js";
import { Lab } from "./lab.js";

for (const name of process.argv.slice(2)) {
  const { keeps } = await import(`./promises/${name}.js`);
  const lab = new Lab();
  const opened = await browser();
  opened.context.setDefaultTimeout(60_000);
  try {
    await keeps(lab, opened.context, opened);
    for (const page of opened.context.pages()) {
      if (page.problems?.length > 0) throw new Error(`the page complained:\n${page.problems.join("\n")}`);
    }
    console.log(`${name}: kept`);
  } catch (error) {
    for (const [at, page] of opened.context.pages().entries()) {
      if (process.env.TPU_PAGE_PICTURES) await page.screenshot({ path: `${process.env.TPU_PAGE_PICTURES}/${name}-${at}.png` }).catch(() => {});
      console.error(`--- ${page.url()}\n${await page.locator("body").innerText().catch(() => "")}`);
    }
    console.error(error);
    process.exitCode = 1;
  } finally {
    await opened.end();
    await lab.end();
  }
}
