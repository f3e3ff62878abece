/** Runs `nft`: each call is one transaction of the kernel, applied as a whole or not at all. */
import { spawn } from "node:child_process";

/** The maximum of the program's output that an error shows. */
const OUTPUT_CHARS_MAX = 2000;
/** A transaction with 100,000 endpoints takes about a second. */
const TIMEOUT_MS = 60_000;

export interface Nft {
  /** Rejects with what the program printed if the kernel refuses the transaction. */
  apply(commands: string): Promise<void>;
}

export function createNft(program: string): Nft {
  return { apply: (commands) => runProgram(program, ["-f", "-"], commands) };
}

/** Writes the input to the program. Rejects with its output unless it succeeds. */
export function runProgram(program: string, args: readonly string[], input: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const child = spawn(program, args, { stdio: ["pipe", "ignore", "pipe"], timeout: TIMEOUT_MS, killSignal: "SIGKILL" });
  let output = "";
  child.stderr.setEncoding("utf8");
  child.stderr.on("data", (text: string) => {
    if (output.length < OUTPUT_CHARS_MAX) output += text.slice(0, OUTPUT_CHARS_MAX - output.length);
  });
  child.on("error", (error) => reject(new Error(`Cannot run ${program}: ${error.message}`, { cause: error })));
  child.on("close", (code, signal) => {
    if (code === 0) resolve();
    else reject(new Error(`${program} ${args.join(" ")} failed (${signal ?? code}): ${output.trim()}`));
  });
  // The program may end before it has read everything: its exit status is the result.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  return promise;
}
