import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { until } from "../../testing/std/until.ts";
import { pauseElf } from "./pause.ts";

/** `State:` of /proc/PID/status: S sleeping, Z a zombie. */
function stateOf(pid: number): string {
  return /^State:\s+(\w)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "";
}

function start(directory: string): ChildProcess {
  const path = join(directory, "pause");
  writeFileSync(path, pauseElf(process.arch === "arm64" ? "arm64" : "amd64"));
  chmodSync(path, 0o755);
  return spawn(path, { stdio: "ignore" });
}

t.test("pauseElf() sleeps until a signal, and then exits with 0", async (t) => {
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    const child = start(t.testdir({}));
    await once(child, "spawn");
    const pid = child.pid!;
    await until("the process is in state S", () => stateOf(pid) === "S");
    // Being stopped and continued interrupts the wait, which must then start again.
    child.kill("SIGSTOP");
    await until("the process is in state T", () => stateOf(pid) === "T");
    child.kill("SIGCONT");
    await until("the process is in state S", () => stateOf(pid) === "S");
    child.kill(signal);
    t.same(await once(child, "exit"), [0, null]);
  }
});

t.test("pauseElf() builds a small static executable for each architecture", async (t) => {
  for (const [arch, machine] of [
    ["amd64", 62],
    ["arm64", 183],
  ] as const) {
    const program = pauseElf(arch);
    t.equal(program.readUInt16LE(18), machine);
    t.equal(program.readBigUInt64LE(64 + 32), BigInt(program.length), "the segment holds the whole file");
    t.ok(program.length < 512);
  }
});
