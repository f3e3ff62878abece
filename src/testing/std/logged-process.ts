import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";

const STOP_MS_MAX = 20_000;

export interface LoggedProcessOptions {
  /** Receives stdout and stderr, appended. */
  readonly logFile: string;
  readonly cwd?: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A child process whose output goes to a file. */
export class LoggedProcess implements AsyncDisposable {
  readonly logFile: string;
  /** Resolves with the exit code, or the name of the signal that ended the process. */
  readonly exited: Promise<number | string>;
  readonly #child: ChildProcess;

  constructor([file = "", ...args]: readonly string[], { logFile, cwd, env: added }: LoggedProcessOptions) {
    // The test runner makes every child Node.js process load a tracer.
    const { NODE_OPTIONS: _, ...inherited } = process.env;
    const env = { ...inherited, ...added };
    const log = openSync(logFile, "a", 0o600);
    const child = spawn(file, args, { stdio: ["ignore", log, log], env, ...(cwd === undefined ? {} : { cwd }) });
    closeSync(log);
    this.logFile = logFile;
    this.#child = child;
    this.exited = new Promise((resolve) => {
      child.once("error", (error) => resolve(error.message));
      child.once("exit", (code, signal) => resolve(code ?? signal ?? ""));
    });
  }

  /** Undefined when the program cannot be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  get isRunning(): boolean {
    return this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get log(): string {
    return readFileSync(this.logFile, "utf8");
  }

  /** Sends a signal, and SIGKILL after a timeout. */
  async stop(signal: NodeJS.Signals): Promise<number | string> {
    this.#child.kill(signal);
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS_MAX);
    const result = await this.exited;
    clearTimeout(timer);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
  }
}
