/** Runs `ip` and `bridge` of iproute2, many commands at once. */
import { type ChildProcess, spawn } from "node:child_process";
import { findSystemProgram } from "../std/process/system-programs.ts";

export interface ProgramResult {
  readonly stdout: string;
  /** Empty if all commands succeeded. */
  readonly stderr: string;
}

/** iproute2 in the network of the node. */
export interface RouteTools {
  /** Runs each line as a command of `ip`, the others after one that failed too. Output is JSON, a line per command. */
  ip(lines: readonly string[], family?: "-6"): Promise<ProgramResult>;
  /** Likewise for `bridge`. */
  bridge(lines: readonly string[]): Promise<ProgramResult>;
  /** Starts `ip monitor`, which writes a line for each change of links, addresses and routes until it is killed. */
  monitor(): ChildProcess;
}

export const IP_MISSING =
  "Cannot connect pods of different nodes: ip and bridge are not installed. On Debian or Ubuntu, apt-get install iproute2";

/** A list of 10,000 routes has 1 MB. */
const OUTPUT_CHARS_MAX = 16 * 2 ** 20;
const ERROR_CHARS_MAX = 2000;
const TIMEOUT_MS = 20_000;

/** Undefined if a program is missing. */
export async function findRouteTools(find = findSystemProgram): Promise<RouteTools | undefined> {
  const [ip, bridge] = [await find("ip"), await find("bridge")];
  return ip === undefined || bridge === undefined ? undefined : createRouteTools([ip], [bridge]);
}

/** Each program with the words before its own arguments. */
export function createRouteTools(ip: readonly string[], bridge: readonly string[]): RouteTools {
  const options = ["-json", "-details", "-force", "-batch", "-"];
  return {
    ip: (lines, family) => runProgram([...ip, ...(family === undefined ? [] : [family]), ...options], lines),
    bridge: (lines) => runProgram([...bridge, ...options], lines),
    monitor: () => {
      const [program = "", ...args] = [...ip, "-oneline", "monitor", "link", "address", "route"];
      return spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
    },
  };
}

/** Rejects if the program cannot run at all, takes too long or writes too much. */
function runProgram(words: readonly string[], lines: readonly string[]): Promise<ProgramResult> {
  const { promise, resolve, reject } = Promise.withResolvers<ProgramResult>();
  const [program = "", ...args] = words;
  const child = spawn(program, args, { stdio: "pipe", timeout: TIMEOUT_MS, killSignal: "SIGKILL" });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (stdout.length > OUTPUT_CHARS_MAX) child.kill("SIGKILL");
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < ERROR_CHARS_MAX) stderr += text.slice(0, ERROR_CHARS_MAX - stderr.length);
  });
  child.on("error", (error) => reject(new Error(`Cannot run ${program}: ${error.message}`, { cause: error })));
  child.on("close", (code, signal) => {
    // The exit status is 1 if any command failed; stderr says which.
    if (signal === null && (code === 0 || stderr !== "")) resolve({ stdout, stderr: code === 0 ? "" : stderr.trim() });
    else reject(new Error(`${words.join(" ")} failed (${signal ?? code}): ${stderr.trim()}`));
  });
  child.stdin.on("error", () => {});
  child.stdin.end(`${lines.join("\n")}\n`);
  return promise;
}
