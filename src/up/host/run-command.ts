import { execFile } from "node:child_process";

export interface CommandOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The maximum output of a command; more fails it. */
const OUTPUT_BYTES_MAX = 8 * 2 ** 20;

/** Runs a program without a shell. Resolves with stdout; rejects with the end of stderr when it fails. */
export function runCommand(file: string, args: readonly string[], options: CommandOptions): Promise<string> {
  const { timeoutMs, signal } = options;
  return new Promise((resolve, reject) => {
    execFile(
      file,
      [...args],
      {
        timeout: timeoutMs,
        maxBuffer: OUTPUT_BYTES_MAX,
        killSignal: "SIGKILL",
        ...(signal === undefined ? {} : { signal }),
      },
      (cause, stdout, stderr) => {
        if (cause === null) return resolve(stdout);
        const output = stderr.trim().split("\n").slice(-5).join("; ");
        const why = cause.killed === true ? `no answer within ${timeoutMs} ms` : output === "" ? cause.message : output;
        reject(new Error(`Cannot run ${file} ${args.join(" ")}: ${why}`, { cause }));
      },
    );
  });
}
