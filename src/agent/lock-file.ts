/** One agent at a time on a node: kubelet's lock on a file (flock), so that either agent waits for the other. */
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import type { Clock } from "../std/time/clock.ts";

const CHECK_INTERVAL_MS = 1_000;

export interface LockFile extends AsyncDisposable {
  /**
   * Resolves when another process waits for the lock; rejects with the signal's reason, or when the kernel hides it.
   */
  waitForContention(clock: Clock, signal: AbortSignal): Promise<void>;
}

/** Resolves when no other process holds the lock; keeps it until this process ends or the result is disposed. */
export async function acquireLock(path: string, signal: AbortSignal): Promise<LockFile> {
  const file = await open(path, constants.O_RDONLY | constants.O_CREAT, 0o600);
  try {
    await runFlock(file, signal);
  } catch (error) {
    await file.close();
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`unable to acquire file lock on ${JSON.stringify(path)}: ${message}`, { cause: error });
  }
  return {
    waitForContention: (clock, until) => waitForWaiter(file, clock, until),
    [Symbol.asyncDispose]: () => file.close(),
  };
}

/** A lock of flock(2) belongs to the open file: it stays when the flock program exits. */
function runFlock(file: FileHandle, signal: AbortSignal): Promise<void> {
  const child = spawn("flock", ["-x", "3"], { stdio: ["ignore", "ignore", "pipe", file.fd], signal });
  let stderr = "";
  child.stderr?.on("data", (text: Buffer) => {
    stderr += text.toString();
  });
  return new Promise((resolve, reject) => {
    const missing = new Error("the program flock of util-linux was not found");
    const fail = (error: NodeJS.ErrnoException): void => reject(error.code === "ENOENT" ? missing : error);
    child.once("error", fail).once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`flock ended with ${code}: ${stderr.trim()}`));
    });
  });
}

/** `1: FLOCK  ADVISORY  WRITE 15269 fe:00:2147644 0 EOF`; a waiting process has `1: -> FLOCK …`. */
async function waitForWaiter(file: FileHandle, clock: Clock, signal: AbortSignal): Promise<void> {
  const own = await readFile(`/proc/self/fdinfo/${file.fd}`, "utf8");
  const [, inode] = /^lock:.* FLOCK .* ([0-9a-f]+:[0-9a-f]+:\d+) /m.exec(own) ?? [];
  if (inode === undefined) throw new Error("the kernel does not show which processes wait for file locks");
  for (;;) {
    const all = await readFile("/proc/locks", "utf8");
    if (all.split("\n").some((line) => line.includes("-> FLOCK ") && line.includes(` ${inode} `))) return;
    await clock.sleep(CHECK_INTERVAL_MS, signal);
  }
}
