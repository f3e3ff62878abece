/**
 * systemd-logind over D-Bus: the delay lock and the signal PrepareForShutdown. systemd's own programs hold the
 * connections, since Node.js cannot receive the file descriptor of a lock.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { access, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { isPlainObject } from "../../../schema/value/plain-object.ts";
import { formatDuration } from "../../../schema/value/time.ts";
import type { InhibitorLock, ShutdownNotices } from "./shutdown-notices.ts";

export interface LogindPrograms {
  readonly busctl: string;
  readonly systemdInhibit: string;
}

const systemPrograms: LogindPrograms = { busctl: "busctl", systemdInhibit: "systemd-inhibit" };
const CONF_DIR = "/etc/systemd/logind.conf.d";
const CONF_FILE = "99-svclet.conf";
const TIMEOUT_MS = 10_000;
const MANAGER = ["org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager"];
/** The rule contains the sender, since any user of the machine may send a signal of this name. */
const MATCH =
  "type='signal',sender='org.freedesktop.login1',path='/org/freedesktop/login1'," +
  "interface='org.freedesktop.login1.Manager',member='PrepareForShutdown'";
const WHY = "Kubelet needs time to handle node shutdown";

/** Whether systemd runs the machine. */
export async function hasSystemd(directory = "/run/systemd/system"): Promise<boolean> {
  return await access(directory).then(
    () => true,
    () => false,
  );
}

export function createLogind(programs: LogindPrograms = systemPrograms, confDir: string = CONF_DIR): ShutdownNotices {
  const run = async (...args: readonly string[]): Promise<string> =>
    (await promisify(execFile)(programs.busctl, ["--system", ...args], { timeout: TIMEOUT_MS })).stdout;
  const readDelayMs = async (): Promise<number> => {
    const text = await run("get-property", ...MANAGER, "InhibitDelayMaxUSec");
    const microseconds = /^t (\d+)\s*$/.exec(text)?.[1];
    if (microseconds === undefined) throw new Error(`logind has no InhibitDelayMaxUSec: ${JSON.stringify(text)}`);
    return Number(microseconds) / 1000;
  };
  return {
    async prepare(delayMs) {
      if ((await readDelayMs()) >= delayMs) return;
      await mkdir(confDir, { recursive: true, mode: 0o755 });
      const text = `# Written by the node agent for shutdownGracePeriod\n[Login]\nInhibitDelayMaxSec=${Math.ceil(delayMs / 1000)}\n`;
      await writeFile(join(confDir, CONF_FILE), text, { mode: 0o644 });
      const systemd = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
      await run("call", ...systemd, "KillUnit", "ssi", "systemd-logind.service", "all", "1");
      const updated = await readDelayMs();
      if (updated >= delayMs) return;
      const [wanted, found] = [delayMs, updated].map((ms) => formatDuration(BigInt(Math.round(ms)) * 1_000_000n));
      throw new Error(
        `node shutdown manager was unable to update logind InhibitDelayMaxSec to ${wanted} (ShutdownGracePeriod), ` +
          `current value of InhibitDelayMaxSec (${found}) is less than requested ShutdownGracePeriod`,
      );
    },
    async watch({ onWatching, onNotice }, signal) {
      const args = ["--system", "--json=short", "--match", MATCH, "monitor"];
      const child = spawn(programs.busctl, args, { stdio: ["ignore", "pipe", "pipe"] });
      createInterface({ input: child.stderr }).on("line", (line) => {
        if (line.startsWith("Monitoring ")) onWatching();
      });
      createInterface({ input: child.stdout }).on("line", (line) => {
        const isShuttingDown = readNotice(line);
        if (isShuttingDown !== undefined) onNotice(isShuttingDown);
      });
      const stop = (): void => void child.kill("SIGKILL");
      signal.addEventListener("abort", stop, { once: true });
      if (signal.aborted) stop();
      await waitForEnd(child).finally(() => signal.removeEventListener("abort", stop));
      if (!signal.aborted) throw new Error("the connection to logind ended");
    },
    async inhibit() {
      const what = ["--what=shutdown", "--mode=delay", "--who=kubelet", `--why=${WHY}`];
      // cat ends with its input, and the lock with cat: also when the agent is killed.
      const child = spawn(programs.systemdInhibit, [...what, "sh", "-c", "echo locked; exec cat"], {
        stdio: ["pipe", "pipe", "ignore"],
      });
      return await holdLock(child);
    },
  };
}

/** Resolves when the child has the lock. */
async function holdLock(child: ChildProcess): Promise<InhibitorLock> {
  const ended = waitForEnd(child);
  const locked = new Promise<void>((resolve) => child.stdout?.once("data", () => resolve()));
  const failed = ended.then(() => {
    throw new Error("systemd-inhibit ended without a lock");
  });
  child.stdin?.on("error", () => {});
  await Promise.race([locked, failed]);
  failed.catch(() => {});
  return {
    async release() {
      child.stdin?.end();
      await ended.catch(() => {});
    },
  };
}

/** Rejects when the program cannot be started. */
function waitForEnd(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("error", reject).once("close", () => resolve());
  });
}

/** The argument of the signal in a line of `busctl monitor`. */
function readNotice(line: string): boolean | undefined {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isPlainObject(message) || message.member !== "PrepareForShutdown" || !isPlainObject(message.payload)) {
    return undefined;
  }
  const { data } = message.payload;
  const first: unknown = Array.isArray(data) ? data[0] : undefined;
  return typeof first === "boolean" ? first : undefined;
}
