// A place of its own for a test of the page: users, jobs and a server that is started, ended and cut off on purpose.
//
// The place is that of whoever starts the test (tests/page), by the variables of its environment; TPU_PAGE_PROGRAM says
// which `tpu`. By itself, for whoever works on the page, it makes one below the temporary directory.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const PROGRAM = process.env.TPU_PAGE_PROGRAM ?? "tpu";

export class Lab {
  constructor() {
    this.env = { ...process.env };
    this.own = this.env.TPU_DATA === undefined;
    if (this.own) this.make();
    this.root = this.env.TPU_PAGE_ROOT ?? this.own;
    this.server = null;
    this.cables = new Set();
  }

  /** What tests/common/env.rs makes. */
  make() {
    const root = mkdtempSync(join(tmpdir(), "tpu-page-lab-"));
    this.own = root;
    const user = (id, name) => ({ id, name, tmux_name: name, working_dir: { 1: join(root, `code-${name}`) }, job_data: [], config_aliases: {}, settings: { monitor_after_run: true, time_zone: "us" }, windows_offset: 1, logs: [] });
    for (const name of ["alice", "bob"]) mkdirSync(join(root, `code-${name}`));
    for (const name of ["config", "share", "state", "cache", "runtime"]) mkdirSync(join(root, name));
    writeFileSync(join(root, "data.json"), JSON.stringify({
      users: { alice: user(0, "alice"), bob: user(1, "bob") }, user_list: ["alice", "bob"], id_list: [0, 1], id_user_dict: { 0: "alice", 1: "bob" }, user_id_dict: { alice: 0, bob: 1 },
      tpu_aliases: {}, all_tpus: { preemptible: [], spot: [] }, monitor_config: { test_freq: 3600, checking_freq: 30 }, wandb_api_key: null, conda_env_name: "NNX", monitor_all_check_time: 20, MONITOR_logs: [], ack_MONITOR: false,
    }));
    const { PATH, LANG } = process.env;
    this.env = { PATH, LANG, HOME: root, TMUX_TMPDIR: root, TPU_TMUX_SOCKET: "page", TPU_DATA: join(root, "data.json"), XDG_CONFIG_HOME: join(root, "config"), XDG_DATA_HOME: join(root, "share"), XDG_STATE_HOME: join(root, "state"), XDG_CACHE_HOME: join(root, "cache"), XDG_RUNTIME_DIR: join(root, "runtime"), TZ: "UTC", SHELL: "/bin/bash", COLUMNS: "100" };
  }

  /** Runs a command; one that starts a job in the code of alice. */
  tpu(...words) {
    const cwd = words.includes("--") ? join(this.root, "code-alice") : this.root;
    return execFileSync(PROGRAM, words, { env: this.env, cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  /** Begins a job of a user's on this machine; its number. */
  run(user, script, ...more) {
    return JSON.parse(this.tpu("run", "local", user, ...more, "--json", "--", "bash", "-c", script, "job")).launched.window;
  }

  /** Lets a job wait in the queue; its number. */
  submit(user, script, ...more) {
    return JSON.parse(this.tpu("submit", "local", user, ...more, "--json", "--", "bash", "-c", script, "job")).jobs[0].window;
  }

  token(name, ...more) {
    return this.tpu("token", "create", name, ...more).trim();
  }

  /** Serves on a port that stays the same, behind a cable that can be cut. */
  async serve(...more) {
    this.behind ??= await freePort();
    this.server = spawn(PROGRAM, ["serve", "--listen", `127.0.0.1:${this.behind}`, ...more], { env: this.env, cwd: this.root, stdio: ["ignore", "pipe", "inherit"] });
    this.said = "";
    this.server.stdout.on("data", (bytes) => {
      this.said += bytes;
    });
    await answers(this.behind);
    if (process.env.TPU_PAGE_SOURCES && !this.sources) {
      // What web/dist is now, and not what the program was built with.
      this.sources = await freePort();
      this.proxy = spawn("node", [join(HERE, "../dev.js"), String(this.sources), `127.0.0.1:${this.behind}`], { stdio: "ignore" });
      await answers(this.sources);
    }
    if (!this.cable) await this.lay();
    return (this.address = `http://127.0.0.1:${this.port}`);
  }

  /** Ends the server, as somebody at a terminal does. */
  async stop() {
    const { server } = this;
    this.server = null;
    if (!server) return;
    const ended = new Promise((tell) => server.once("exit", tell));
    server.kill("SIGTERM");
    await ended;
  }

  async lay() {
    /** Whether nothing gets through; whether what is asked arrives, and no answer does. */
    this.cut = false;
    this.deaf = false;
    this.cable = createServer((near) => {
      const far = connect(this.sources ?? this.behind, "127.0.0.1");
      const ends = [near, far];
      this.cables.add(ends);
      // A cut cable says nothing: what is sent is lost, and nobody is told.
      near.on("data", (bytes) => this.cut || ends.isForgotten || far.write(bytes));
      far.on("data", (bytes) => this.cut || this.deaf || ends.isForgotten || near.write(bytes));
      const close = () => {
        this.cables.delete(ends);
        near.destroy();
        far.destroy();
      };
      for (const end of ends) end.on("close", close).on("error", close);
    });
    await new Promise((tell) => this.cable.listen(0, "127.0.0.1", tell));
    this.port = this.cable.address().port;
  }

  /** Whatever is connected leads nowhere from now on, without a word, as when a router forgets it. */
  forget() {
    for (const ends of this.cables) ends.isForgotten = true;
  }

  /** The network is there again: what was on its way is not. */
  mend() {
    this.cut = false;
    this.deaf = false;
    for (const [near, far] of this.cables) {
      near.destroy();
      far.destroy();
    }
  }

  async end() {
    await this.stop();
    for (const [near, far] of this.cables) {
      near.destroy();
      far.destroy();
    }
    this.cable?.close();
    this.proxy?.kill();
    if (!this.own) return;
    try {
      this.tpu("daemon", "stop");
    } catch {
      // None runs.
    }
    try {
      execFileSync("tmux", ["-L", this.env.TPU_TMUX_SOCKET, "kill-server"], { env: this.env, stdio: "ignore" });
    } catch {
      // None runs.
    }
    rmSync(this.own, { recursive: true, force: true });
  }
}

async function freePort() {
  const server = createServer();
  await new Promise((tell) => server.listen(0, "127.0.0.1", tell));
  const { port } = server.address();
  await new Promise((tell) => server.close(tell));
  return port;
}

/** Waits until somebody listens on a port. */
function answers(port) {
  return until(`somebody listens on ${port}`, () => new Promise((tell) => {
    const tried = connect(port, "127.0.0.1", () => {
      tried.destroy();
      tell(true);
    });
    tried.on("error", () => tell(false));
  }));
}

/** Waits until something is so. */
export async function until(what, is, patience = 60_000) {
  const end = Date.now() + patience;
  for (;;) {
    if (await is()) return;
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((go) => setTimeout(go, 60));
  }
}
