import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Clock } from "../time/clock.ts";

export interface Command {
  /** A path, or a name that is looked up in PATH. */
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the environment of this process; overrides it. */
  readonly env: Readonly<Record<string, string>>;
}

export interface RunLimits {
  readonly timeoutMs: number;
  /** Longer output is an error. */
  readonly bytesMax: number;
}

/** How much of stderr an error message has. */
const STDERR_CHARS_MAX = 1024;

/**
 * Runs a program with `input` on stdin and resolves with its stdout. Rejects when the program fails, is too slow or
 * writes too much; the error has stderr, never stdout. The program does not outlive the call.
 */
export async function runWithStdin(
  { command, args, env }: Command,
  input: string,
  { timeoutMs, bytesMax }: RunLimits,
  clock: Clock,
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  const timeout = new AbortController();
  const timer = clock.timer(timeoutMs, () => timeout.abort(new Error(`no answer within ${timeoutMs / 1000} seconds`)));
  try {
    // A process group of its own, so that the program's children end with it.
    const child = spawn(command, args, { env: { ...process.env, ...env }, detached: true });
    return await readOutput(child, input, bytesMax, AbortSignal.any([timeout.signal, signal]));
  } catch (error) {
    throw timeout.signal.aborted ? timeout.signal.reason : error;
  } finally {
    timer.cancel();
  }
}

/** Resolves with stdout when the child exits with status 0; kills the child when the signal aborts. */
async function readOutput(
  child: ChildProcessWithoutNullStreams,
  input: string,
  bytesMax: number,
  signal: AbortSignal,
): Promise<string> {
  const exited = Promise.withResolvers<number | NodeJS.Signals | null>();
  const kill = (): void => {
    if (child.pid !== undefined) killGroup(child.pid);
  };
  const output: Buffer[] = [];
  let bytes = 0;
  let stderr = "";
  child.on("error", exited.reject).on("close", (code, killed) => exited.resolve(code ?? killed));
  child.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bytesMax) return kill();
    output.push(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    if (stderr.length < STDERR_CHARS_MAX) stderr += chunk.toString("utf8").slice(0, STDERR_CHARS_MAX);
  });
  // A program may exit without reading all of stdin.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  signal.addEventListener("abort", kill, { once: true });
  try {
    const code = await exited.promise;
    signal.throwIfAborted();
    if (bytes > bytesMax) throw new Error(`stdout is longer than ${bytesMax} bytes`);
    if (code === 0) return Buffer.concat(output).toString("utf8");
    const status = typeof code === "number" ? `exit status ${code}` : `signal: ${code}`;
    throw new Error(stderr === "" ? status : `${status}: ${stderr.trim()}`);
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has exited already.
  }
}
