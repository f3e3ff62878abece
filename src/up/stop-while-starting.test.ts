import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { freePort } from "../testing/std/free-port.ts";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
const skip = process.platform === "linux" && process.getuid?.() === 0 ? false : "only root runs nodes, on Linux";

t.test("svc up stops at the first signal without a runtime", { skip }, async (t) => {
  const directory = t.testdir();
  const dataDir = join(directory, "data");
  // Where it has its sockets.
  const runDir = `/run/svc-${createHash("sha256").update(dataDir).digest("hex").slice(0, 8)}`;
  t.teardown(() => rm(runDir, { recursive: true, force: true }));
  const flags = {
    "data-dir": dataDir,
    "container-runtime-endpoint": `unix://${join(directory, "missing.sock")}`,
    "secure-port": await freePort(),
    "agent-port": await freePort(),
    "bind-address": "127.0.0.1",
    "node-name": "waiting",
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const program = spawn(process.execPath, [MAIN, "up", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  t.teardown(() => program.kill("SIGKILL"));
  let output = "";
  const waiting = new Promise<void>((resolve) => {
    for (const stream of [program.stdout, program.stderr]) {
      stream.on("data", (piece: Buffer) => {
        output += piece.toString();
        if (output.includes("Waiting for the container runtime")) resolve();
      });
    }
  });
  const ended = once(program, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  await Promise.race([waiting, ended]);
  t.match(output, /Waiting for the container runtime/);
  program.kill("SIGTERM");
  t.same(await ended, [0, null], output);
  t.notOk(existsSync(runDir), "it leaves no directory of sockets");
});
