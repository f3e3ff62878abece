import { execFile } from "node:child_process";

export interface CommandOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** What a command prints is kept up to this; more fails the command. */
const OUTPUT_BYTES_MAX = 8 * 2 ** 20;

/** Runs a program to its end, without a shell. Resolves with stdout; rejects with what it said when it failed. */
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
        const said = stderr.trim().split("\n").slice(-5).join("; ");
        const why = cause.killed === true ? `no answer within ${timeoutMs} ms` : said === "" ? cause.message : said;
        reject(new Error(`Cannot run ${file} ${args.join(" ")}: ${why}`, { cause }));
      },
    );
  });
}
