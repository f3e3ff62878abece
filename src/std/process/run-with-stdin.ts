/** Asks a program on its input, and has its answer from its output. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Clock } from "../time/clock.ts";

export interface Command {
  /** A path, or a name that is looked for where programs are. */
  readonly command: string;
  readonly args: readonly string[];
  /** Beside this process' own variables; where both have one, this counts. */
  readonly env: Readonly<Record<string, string>>;
}

export interface RunLimits {
  readonly timeoutMs: number;
  /** A longer answer is none. */
  readonly bytesMax: number;
}

/** What a program complains about is told, but not at length. */
const STDERR_CHARS_MAX = 1024;

/** Rejects with why there is no answer, never with what the program wrote to its output. It ends either way. */
export async function runWithStdin(
  { command, args, env }: Command,
  asked: string,
  { timeoutMs, bytesMax }: RunLimits,
  clock: Clock,
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  const late = new AbortController();
  const timer = clock.timer(timeoutMs, () => late.abort(new Error(`no answer within ${timeoutMs / 1000} seconds`)));
  try {
    // In a process group of its own, which ends as a whole.
    const child = spawn(command, args, { env: { ...process.env, ...env }, detached: true });
    return await readOutput(child, asked, bytesMax, AbortSignal.any([late.signal, signal]));
  } catch (error) {
    throw late.signal.aborted ? late.signal.reason : error;
  } finally {
    timer.cancel();
  }
}

/** What the child writes until it ends well. It does not outlive the signal. */
async function readOutput(
  child: ChildProcessWithoutNullStreams,
  asked: string,
  bytesMax: number,
  signal: AbortSignal,
): Promise<string> {
  const ended = Promise.withResolvers<number | NodeJS.Signals | null>();
  const kill = (): void => {
    if (child.pid !== undefined) killGroup(child.pid);
  };
  const output: Buffer[] = [];
  let bytes = 0;
  let complaint = "";
  child.on("error", ended.reject).on("close", (code, killed) => ended.resolve(code ?? killed));
  child.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bytesMax) return kill();
    output.push(chunk);
  });
  child.stderr.on("data", (chunk: Buffer) => {
    if (complaint.length < STDERR_CHARS_MAX) complaint += chunk.toString("utf8").slice(0, STDERR_CHARS_MAX);
  });
  // A program need not listen to the end to know its answer.
  child.stdin.on("error", () => undefined);
  child.stdin.end(asked);
  signal.addEventListener("abort", kill, { once: true });
  try {
    const code = await ended.promise;
    signal.throwIfAborted();
    if (bytes > bytesMax) throw new Error(`it answered more than ${bytesMax} bytes`);
    if (code === 0) return Buffer.concat(output).toString("utf8");
    const how = typeof code === "number" ? `exit status ${code}` : `signal: ${code}`;
    throw new Error(complaint === "" ? how : `${how}: ${complaint.trim()}`);
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
