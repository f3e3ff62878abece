/** Runs `nft`: each call is one transaction of the kernel, applied as a whole or not at all. */
import { spawn } from "node:child_process";

/** The maximum of the program's output that an error shows. */
const OUTPUT_CHARS_MAX = 2000;
/** 10,000 services have about 1 MB. */
const LISTED_CHARS_MAX = 64 * 2 ** 20;
/** A transaction with 100,000 endpoints takes about a second. */
const TIMEOUT_MS = 60_000;

export interface Nft {
  /** Rejects with what the program printed if the kernel refuses the transaction. */
  apply(commands: string): Promise<void>;
  /** All sets of the family with their elements, in nft's JSON. Absent: they cannot be read. */
  listSets?(family: "ip" | "ip6"): Promise<string>;
}

export function createNft(program: string): Nft {
  return {
    apply: (commands) => runProgram(program, ["-f", "-"], commands),
    async listSets(family) {
      let text = "";
      await runProgram(program, ["-j", "list", "sets", family], "", (part) => {
        text += part;
        return text.length <= LISTED_CHARS_MAX;
      });
      return text;
    },
  };
}

/**
 * Writes the input to the program. Rejects with its error output unless it succeeds. `onOutput` gets parts of its
 * standard output; the program is killed when it returns false.
 */
export function runProgram(
  program: string,
  args: readonly string[],
  input: string,
  onOutput?: (text: string) => boolean,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const child = spawn(program, args, { stdio: "pipe", timeout: TIMEOUT_MS, killSignal: "SIGKILL" });
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    if (onOutput?.(text) === false) child.kill("SIGKILL");
  });
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
