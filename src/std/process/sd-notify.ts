/**
 * The service manager's notification protocol (sd_notify(3)): READY=1, STOPPING=1, STATUS=, WATCHDOG=1.
 *
 * Node has no unix datagram sockets, so a short-lived child sends the datagrams: `systemd-notify`, which is present
 * wherever systemd is, else `socat`. The unit therefore needs `NotifyAccess=all`. NOTIFY_SOCKET stays in the
 * environment.
 */
import { execFile } from "node:child_process";
import type { Logger } from "../log/logger.ts";
import type { Clock, Timer } from "../time/clock.ts";

export interface NotifierOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Logger;
  /** The process' own id; WATCHDOG_PID must name it if it names one. */
  readonly pid?: number | undefined;
  /** Sends one datagram of `KEY=value` lines; the children described above when absent. */
  readonly send?: ((assignments: readonly string[]) => Promise<void>) | undefined;
}

/** Notifies the service manager; every method does nothing when the process was not started by one. */
export interface Notifier extends AsyncDisposable {
  ready(status?: string): Promise<void>;
  stopping(): Promise<void>;
  status(text: string): Promise<void>;
  /** Sends WATCHDOG=1 every half of WATCHDOG_USEC while `healthy` resolves with true. */
  watchdog(healthy: () => Promise<boolean>): void;
}

export function createNotifier(options: NotifierOptions): Notifier {
  const socket = options.env.NOTIFY_SOCKET;
  if (socket === undefined || socket === "") return silent;
  if (!socket.startsWith("/") && !socket.startsWith("@")) {
    options.log.warn("Not notifying the service manager: NOTIFY_SOCKET is neither a path nor abstract", { socket });
    return silent;
  }
  return new SystemdNotifier(options, socket);
}

const silent: Notifier = {
  ready: async () => {},
  stopping: async () => {},
  status: async () => {},
  watchdog: () => {},
  [Symbol.asyncDispose]: async () => {},
};

class SystemdNotifier implements Notifier {
  readonly #options: NotifierOptions;
  readonly #send: (assignments: readonly string[]) => Promise<void>;
  #timer: Timer | undefined;
  #closed = false;
  /** Datagrams are sent one after the other, in the order of the calls. */
  #queue: Promise<void> = Promise.resolve();

  constructor(options: NotifierOptions, socket: string) {
    this.#options = options;
    this.#send = options.send ?? ((assignments) => sendByChild(socket, options.env, assignments));
  }

  ready(status?: string): Promise<void> {
    return this.#notify(status === undefined ? ["READY=1"] : ["READY=1", statusLine(status)]);
  }

  stopping(): Promise<void> {
    return this.#notify(["STOPPING=1"]);
  }

  status(text: string): Promise<void> {
    return this.#notify([statusLine(text)]);
  }

  watchdog(healthy: () => Promise<boolean>): void {
    const interval = watchdogIntervalMs(this.#options.env, this.#options.pid ?? process.pid);
    if (interval === undefined || this.#closed) return;
    const beat = async (): Promise<void> => {
      const well = await healthy().catch(() => false);
      if (this.#closed) return;
      if (well) await this.#notify(["WATCHDOG=1"]);
      else this.#options.log.warn("Not feeding the service manager's watchdog: the health check failed");
      if (!this.#closed) this.#timer = this.#options.clock.timer(interval, () => void beat());
    };
    this.#timer?.cancel();
    void beat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    await this.#queue;
  }

  #notify(assignments: readonly string[]): Promise<void> {
    this.#queue = this.#queue.then(async () => {
      try {
        await this.#send(assignments);
      } catch (error) {
        this.#options.log.warn("Cannot notify the service manager", { message: assignments.join(" "), err: error });
      }
    });
    return this.#queue;
  }
}

/** Half of WATCHDOG_USEC in milliseconds; undefined when no watchdog watches this process. */
export function watchdogIntervalMs(env: NotifierOptions["env"], pid: number): number | undefined {
  const microseconds = Number(env.WATCHDOG_USEC);
  if (!Number.isSafeInteger(microseconds) || microseconds <= 0) return undefined;
  const watched = env.WATCHDOG_PID;
  if (watched !== undefined && watched !== "" && Number(watched) !== pid) return undefined;
  return microseconds / 2000;
}

function statusLine(text: string): string {
  return `STATUS=${text.replace(/[\r\n]+/g, " ")}`;
}

/** A service manager that does not read its socket must not block the program. */
const SEND_TIMEOUT_MS = 5000;

async function sendByChild(socket: string, env: NotifierOptions["env"], assignments: readonly string[]): Promise<void> {
  try {
    await systemdNotify({ ...env, NOTIFY_SOCKET: socket }, assignments);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const address = socket.startsWith("@") ? `ABSTRACT-SENDTO:${socket.slice(1)}` : `UNIX-SENDTO:${socket}`;
    await runProgram("socat", ["-u", "STDIN", address], env, assignments.join("\n"));
  }
}

/**
 * Run by root, systemd-notify sends with our PID and need not wait until the manager has looked up the sender. Before
 * systemd 246 it never waits and has no such option.
 */
async function systemdNotify(env: NotifierOptions["env"], assignments: readonly string[]): Promise<void> {
  if (process.getuid?.() === 0) {
    try {
      await runProgram("systemd-notify", ["--no-block", ...assignments], env, "");
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") throw error;
    }
  }
  await runProgram("systemd-notify", assignments, env, "");
}

function runProgram(file: string, args: readonly string[], env: NotifierOptions["env"], input: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile(file, args, { env, timeout: SEND_TIMEOUT_MS }, (error) => {
      if (error === null) resolve();
      else reject(error);
    });
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}
