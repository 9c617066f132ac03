// Serves web/dist anew with each request and hands on all else to a server that runs: `node dev.js PORT SERVER`, for whoever
// works on the page and does not want to build the program each time.

import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [port, server] = process.argv.slice(2);
const dist = join(dirname(fileURLToPath(import.meta.url)), "dist");
const kinds = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml", json: "application/json" };

createServer(async (asked, answer) => {
  const part = asked.url === "/" ? "index.html" : /^\/page\/\w+\/([\w.]+)$/.exec(asked.url)?.[1];
  if (part) {
    const bytes = await readFile(join(dist, part)).catch(() => null);
    answer.writeHead(bytes ? 200 : 404, { "content-type": kinds[part.split(".").at(-1)], "cache-control": "no-store" });
    return answer.end(bytes);
  }
  const headers = { ...asked.headers, host: server };
  if (headers.origin) headers.origin = `http://${server}`;
  if (headers.cookie) headers.cookie = headers.cookie.replaceAll(`tpu_session_${port}`, `tpu_session_${server.split(":")[1]}`);
  const onward = request({ host: "127.0.0.1", port: server.split(":")[1], path: asked.url, method: asked.method, headers }, (said) => {
    const all = { ...said.headers };
    if (all["set-cookie"]) all["set-cookie"] = all["set-cookie"].map((cookie) => cookie.replace(`tpu_session_${server.split(":")[1]}`, `tpu_session_${port}`));
    answer.writeHead(said.statusCode, all);
    said.pipe(answer);
  });
  onward.on("error", () => answer.destroy());
  answer.on("close", () => onward.destroy());
  asked.pipe(onward);
}).listen(Number(port), "127.0.0.1");
