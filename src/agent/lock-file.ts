/** One agent at a time on a node: a lock on a file, as Kubernetes' agent takes it, so that each waits for the other. */
import { spawn } from "node:child_process";
import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import type { Clock } from "../std/time/clock.ts";

const CHECK_INTERVAL_MS = 1_000;

export interface LockFile extends AsyncDisposable {
  /** Resolves when somebody waits for the lock; rejects with the signal's reason, or when the kernel does not tell. */
  waitForContention(clock: Clock, signal: AbortSignal): Promise<void>;
}

/** Resolves when nobody else holds the lock any more; it lasts as long as this process, or until it is disposed of. */
export async function acquireLock(path: string, signal: AbortSignal): Promise<LockFile> {
  const file = await open(path, constants.O_RDONLY | constants.O_CREAT, 0o600);
  try {
    await runFlock(file, signal);
  } catch (error) {
    await file.close();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`unable to acquire file lock on ${JSON.stringify(path)}: ${why}`, { cause: error });
  }
  return {
    waitForContention: (clock, until) => waitForWaiter(file, clock, until),
    [Symbol.asyncDispose]: () => file.close(),
  };
}

/** A lock of flock(2) belongs to the open file, not to the process that asked for it: the program may end. */
function runFlock(file: FileHandle, signal: AbortSignal): Promise<void> {
  const child = spawn("flock", ["-x", "3"], { stdio: ["ignore", "ignore", "pipe", file.fd], signal });
  let said = "";
  child.stderr?.on("data", (text: Buffer) => {
    said += text.toString();
  });
  return new Promise((resolve, reject) => {
    const missing = new Error("the program flock of util-linux is not there");
    const fail = (error: NodeJS.ErrnoException): void => reject(error.code === "ENOENT" ? missing : error);
    child.once("error", fail).once("close", (code) => {
      if (code === 0) resolve();
      else reject(new Error(`flock ended with ${code}: ${said.trim()}`));
    });
  });
}

/** `1: FLOCK  ADVISORY  WRITE 15269 fe:00:2147644 0 EOF`; of those who wait `1: -> FLOCK …`. */
async function waitForWaiter(file: FileHandle, clock: Clock, signal: AbortSignal): Promise<void> {
  const own = await readFile(`/proc/self/fdinfo/${file.fd}`, "utf8");
  const [, inode] = /^lock:.* FLOCK .* ([0-9a-f]+:[0-9a-f]+:\d+) /m.exec(own) ?? [];
  if (inode === undefined) throw new Error("the kernel does not tell who waits for file locks");
  for (;;) {
    const all = await readFile("/proc/locks", "utf8");
    if (all.split("\n").some((line) => line.includes("-> FLOCK ") && line.includes(` ${inode} `))) return;
    await clock.sleep(CHECK_INTERVAL_MS, signal);
  }
}
