/**
 * The containerd that `svc up` manages: starts it, restarts it when it exits, and stops it. Containers are children of
 * their shims, so they survive a restart of containerd.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import { SOCKET_PATH_BYTES_MAX } from "../../std/net/socket-path.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type ContainerdSettings, containerdConfig } from "./config.ts";
import { findLeakedShims } from "./leaked-shims.ts";

export interface ContainerdOptions {
  /** The program. */
  readonly binary: string;
  readonly settings: ContainerdSettings;
  readonly configFile: string;
  /** containerd's output; a large file is renamed to `.1`. */
  readonly logFile: string;
  readonly pidFile: string;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly env?: NodeJS.ProcessEnv;
}

export interface Containerd extends AsyncDisposable {
  readonly socket: string;
  readonly pid: number | undefined;
  /** Stops the daemon; its containers keep running. Idempotent. */
  close(): Promise<void>;
}

/** The start timeout: containerd reads its database and, after a crash, cleans up. */
const START_MS_MAX = 60_000;
const STOP_MS_MAX = 10_000;
const POLL_MS = 20;
const LOG_BYTES_MAX = 8 * 2 ** 20;
/** After this time a daemon counts as healthy, and its next failure starts the back-off again. */
const HEALTHY_MS = 60_000;

/** Resolves when the socket accepts connections. Rejects with the end of containerd's log when it fails. */
export async function startContainerd(options: ContainerdOptions): Promise<Containerd> {
  const { socket, state, root, cniConfDir, registryConfigDir } = options.settings;
  if (Buffer.byteLength(socket) > SOCKET_PATH_BYTES_MAX) {
    throw new Error(
      `Cannot start containerd: the socket's path ${socket} is longer than ${SOCKET_PATH_BYTES_MAX} bytes`,
    );
  }
  for (const directory of [root, state, dirname(socket), cniConfDir, registryConfigDir]) {
    await mkdir(directory, { recursive: true, mode: 0o711 });
  }
  writeFileSync(options.configFile, containerdConfig(options.settings), { mode: 0o600 });
  await stopOrphan(options);
  for (const { pid, containerId } of findLeakedShims(socket, state)) {
    options.log.info("Terminating a shim without a container", { pid, containerId });
    process.kill(pid, "SIGKILL");
  }
  const daemon = new Daemon(options);
  await daemon.start();
  return daemon;
}

class Daemon implements Containerd {
  readonly socket: string;
  readonly #options: ContainerdOptions;
  readonly #log: Logger;
  readonly #backoff: Backoff;
  readonly #stopping = new AbortController();
  #child: ChildProcess | undefined;
  /** Resolves when the current child has exited. */
  #exited: Promise<void> = Promise.resolve();
  #supervision: Promise<void> = Promise.resolve();

  constructor(options: ContainerdOptions) {
    this.socket = options.settings.socket;
    this.#options = options;
    this.#log = options.log.child("containerd");
    this.#backoff = new Backoff({ initialMs: 500, maxMs: 30_000 }, options.random);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<void> {
    this.#spawn();
    try {
      await this.#waitUntilListening();
    } catch (error) {
      await this.close();
      throw error;
    }
    this.#supervision = this.#supervise();
  }

  async close(): Promise<void> {
    this.#stopping.abort(new DOMException("containerd is stopped", "AbortError"));
    const child = this.#child;
    if (child?.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      const hard = this.#options.clock.timer(STOP_MS_MAX, () => child.kill("SIGKILL"));
      await this.#exited;
      hard.cancel();
    }
    await this.#supervision;
    rmSync(this.#options.pidFile, { force: true });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #spawn(): void {
    const { binary, configFile, logFile, pidFile, env } = this.#options;
    rotateLog(logFile);
    rmSync(this.socket, { force: true });
    const output = openSync(logFile, "a", 0o600);
    try {
      // A new session, so that Ctrl-C in a terminal does not reach it: it is stopped after the agent.
      const child = spawn(binary, ["--config", configFile], {
        detached: true,
        stdio: ["ignore", output, output],
        env: removeServiceManagerVariables(env ?? process.env),
      });
      this.#child = child;
      this.#exited = new Promise((resolve) => {
        child.once("exit", () => resolve());
        child.once("error", (error) => {
          this.#log.error("Failed to start containerd", error, { binary });
          resolve();
        });
      });
      if (child.pid !== undefined) writeFileSync(pidFile, `${child.pid}\n`, { mode: 0o600 });
    } finally {
      closeSync(output);
    }
  }

  async #waitUntilListening(): Promise<void> {
    const { clock, logFile } = this.#options;
    const deadline = clock.monotonic() + START_MS_MAX;
    let exited = false;
    void this.#exited.then(() => {
      exited = true;
    });
    while (!(await isListening(this.socket))) {
      this.#stopping.signal.throwIfAborted();
      if (exited)
        throw new Error(`Cannot start containerd: it exited immediately; the end of ${logFile}:\n${readTail(logFile)}`);
      if (clock.monotonic() > deadline) {
        throw new Error(
          `Cannot start containerd: no answer within ${START_MS_MAX} ms; the end of ${logFile}:\n${readTail(logFile)}`,
        );
      }
      await clock.sleep(POLL_MS);
    }
  }

  async #supervise(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const since = clock.monotonic();
      await this.#exited;
      if (signal.aborted) return;
      if (clock.monotonic() - since > HEALTHY_MS) this.#backoff.reset();
      const delay = this.#backoff.next();
      this.#log.warn("containerd exited; restarting it", {
        exitCode: this.#child?.exitCode,
        delayMs: Math.round(delay),
      });
      try {
        await clock.sleep(delay, signal);
        this.#spawn();
        await this.#waitUntilListening();
      } catch (error) {
        if (signal.aborted) return;
        this.#log.error("Failed to restart containerd", error);
      }
    }
  }
}

/** Without these variables containerd does not notify the service manager in place of this process. */
export function removeServiceManagerVariables(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { NOTIFY_SOCKET: _socket, WATCHDOG_USEC: _interval, WATCHDOG_PID: _pid, ...rest } = env;
  return rest;
}

/** Stops a daemon that survived a killed svc, because it locks the database. Its containers keep running. */
async function stopOrphan(options: ContainerdOptions): Promise<void> {
  const { pidFile, configFile, clock, log } = options;
  const pid = Number.parseInt(readIfPresent(pidFile), 10);
  const runs = (): boolean => Number.isInteger(pid) && isOwnProcess(pid, configFile);
  if (!runs()) return;
  log.info("Replacing the containerd of an earlier run; its containers keep running", { pid });
  const deadline = clock.monotonic() + STOP_MS_MAX;
  process.kill(pid, "SIGTERM");
  while (runs()) {
    if (clock.monotonic() > deadline) process.kill(pid, "SIGKILL");
    await clock.sleep(POLL_MS);
  }
}

/** Process ids are reused: the command line must have this configuration file. */
function isOwnProcess(pid: number, configFile: string): boolean {
  return readIfPresent(`/proc/${pid}/cmdline`).split("\0").includes(configFile);
}

function readIfPresent(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

export function isListening(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    const done = (listening: boolean): void => {
      connection.destroy();
      resolve(listening);
    };
    connection.once("connect", () => done(true)).once("error", () => done(false));
  });
}

function rotateLog(logFile: string): void {
  const size = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) renameSync(logFile, `${logFile}.1`);
}

const TAIL_LINES = 10;

function readTail(path: string): string {
  return readIfPresent(path).trimEnd().split("\n").slice(-TAIL_LINES).join("\n");
}

/**
 * The snapshotter of a containerd root never changes: images are unpacked for one. A fresh root gets overlayfs when the
 * file system takes it, else plain copies. `mountOverlay` tries it in a directory.
 */
export async function chooseSnapshotter(
  root: string,
  mountOverlay: (directory: string) => Promise<void>,
  log: Logger,
): Promise<"overlayfs" | "native"> {
  const file = join(root, "snapshotter");
  const chosen = readIfPresent(file).trim();
  if (chosen === "overlayfs" || chosen === "native") return chosen;
  await mkdir(root, { recursive: true, mode: 0o711 });
  let snapshotter: "overlayfs" | "native" = "overlayfs";
  try {
    await mountOverlay(root);
  } catch (error) {
    snapshotter = "native";
    log.warn("overlayfs does not work here: images are copied for every container", {
      directory: root,
      reason: String(error),
    });
  }
  writeFileSync(file, `${snapshotter}\n`);
  return snapshotter;
}
