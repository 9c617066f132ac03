// Builds the page: web/src → web/dist, which the program takes in. `node build.js` writes, `node build.js --check` says
// whether what is there is what the sources give.
//
// The bundler is esbuild: one program, no plug-ins. What it writes depends on the sources and on the versions in
// package-lock.json alone, so that everybody gets the same bytes.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");

/** Everything that the page consists of, by name. */
async function parts() {
  const common = { bundle: true, minify: true, write: false, target: ["es2022"], legalComments: "none", logLevel: "warning" };
  const script = await build({
    ...common,
    entryPoints: [join(here, "src/main.jsx")],
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  const style = await build({ ...common, entryPoints: [join(here, "src/page.css")] });
  const made = {
    "page.js": script.outputFiles[0].text,
    "page.css": style.outputFiles[0].text,
    "icon.svg": readFileSync(join(here, "src/icon.svg"), "utf8"),
    "manifest.json": readFileSync(join(here, "src/manifest.json"), "utf8"),
  };
  const sum = createHash("sha256");
  for (const name of Object.keys(made)) sum.update(name).update(made[name]);
  const version = sum.digest("hex").slice(0, 12);
  made["index.html"] = readFileSync(join(here, "src/index.html"), "utf8").replaceAll("VERSION", version);
  return made;
}

const made = await parts();
if (process.argv.includes("--check")) {
  const other = Object.keys(made).filter((name) => {
    const path = join(dist, name);
    return !existsSync(path) || readFileSync(path, "utf8") !== made[name];
  });
  if (other.length > 0) {
    console.error(`web/dist is not what web/src gives (${other.join(", ")}): ./x page builds it`);
    process.exit(1);
  }
} else {
  mkdirSync(dist, { recursive: true });
  for (const name of readdirSync(dist)) if (!(name in made)) rmSync(join(dist, name));
  let sum = 0;
  for (const [name, text] of Object.entries(made)) {
    writeFileSync(join(dist, name), text);
    const packed = gzipSync(text, { level: 9 }).length;
    sum += packed;
    console.log(`${name.padEnd(14)} ${String(text.length).padStart(7)} bytes, ${String(packed).padStart(6)} packed`);
  }
  console.log(`${"in all".padEnd(14)} ${" ".repeat(13)}  ${String(sum).padStart(6)} packed`);
}
