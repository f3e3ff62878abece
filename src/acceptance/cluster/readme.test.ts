/**
 * Runs every command of README.md in order. Differences from a reader's machine: the data directory is temporary,
 * `sudo` and `systemctl` are replaced, and `make test`, which runs this file, is skipped.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import t from "tap";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";
import { command, findMissingRequirement, programs, root, TestCluster } from "./cluster.ts";

const missing = findMissingRequirement();
const blocks = [...readFileSync(join(root, "README.md"), "utf8").matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(
  ([, text = ""]) => text,
);

class Reader {
  readonly env: NodeJS.ProcessEnv;
  readonly #scratch: string;
  #run: ChildProcess | undefined;
  #ended: Promise<string> = Promise.resolve("");

  constructor(scratch: string) {
    this.#scratch = scratch;
    const bin = join(scratch, "bin");
    mkdirSync(bin);
    for (const [name, text] of [
      ["sudo", 'exec "$@"'],
      ["systemctl", 'echo "systemctl $*"'],
    ] as const) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
      chmodSync(join(bin, name), 0o755);
    }
    this.env = { ...process.env, HOME: scratch, PATH: `${bin}${delimiter}${process.env.PATH}` };
  }

  adapt(block: string, dataDir: string): string {
    // The lookbehind excepts paths in pods: `hello:/tmp/`.
    return block
      .replaceAll(/(?<!:)\/tmp\//g, `${this.#scratch}/`)
      .replaceAll("/var/lib/svc", dataDir)
      .replaceAll("/etc/systemd/system", this.#scratch)
      .replaceAll("/etc/bash_completion.d", this.#scratch)
      .replaceAll("svc-linux-x64", `svc-linux-${process.arch}`);
  }

  async makeRun(cluster: TestCluster): Promise<void> {
    const flags = [
      `--data-dir=${cluster.dataDir}`,
      `--secure-port=${cluster.port}`,
      `--agent-port=${await freePort()}`,
      "--pod-cidr=10.251.0.0/24",
      "--stop-pods",
    ];
    // A new process group, so that SIGINT reaches make and svc as from a terminal.
    const child = spawn("sh", ["-c", `exec make run ARGS='${flags.join(" ")}' >'${cluster.logFile}' 2>&1`], {
      cwd: root,
      env: this.env,
      detached: true,
      stdio: "ignore",
    });
    this.#run = child;
    this.#ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve(String(code ?? signal))));
    await until("make run to be up", async () => {
      if (child.exitCode !== null) throw new Error(`make run ended with ${child.exitCode}:\n${cluster.log()}`);
      return cluster.log().includes("svc is up after") ? true : undefined;
    });
  }

  endRun(): Promise<string> {
    if (this.#run?.pid !== undefined) process.kill(-this.#run.pid, "SIGINT");
    return this.#ended;
  }
}

t.test("README.md has commands to run", (t) => {
  t.ok(blocks.length > 5);
  t.ok(blocks.includes("make run\n"));
  t.ok(blocks.includes("make test\n"));
  t.end();
});

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("the commands of README.md succeed", async (t) => {
    const scratch = mkdtempSync(join(tmpdir(), "svc-readme-"));
    t.teardown(() => rmSync(scratch, { recursive: true, force: true }));
    const reader = new Reader(scratch);
    await using cluster = await TestCluster.create({ program: programs.bundle });
    for (const block of blocks) {
      await t.test(block.trim().split("\n")[0]!, async (t) => {
        if (block === "make test\n") return;
        if (block === "make run\n") {
          await reader.makeRun(cluster);
          return;
        }
        const { code, stdout, stderr } = await command("sh", ["-euc", reader.adapt(block, cluster.dataDir)], {
          env: reader.env,
          timeoutMs: 240_000,
        });
        t.equal(code, 0, code === 0 ? "status 0" : `${stdout}\n${stderr}`);
      });
    }
    t.match(await reader.endRun(), /^(?:0|2|SIGINT)$/, "SIGINT ends make run");
    t.same(await cluster.remains(), [], "no remains with --stop-pods");
  });
}
