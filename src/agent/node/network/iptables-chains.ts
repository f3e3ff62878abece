/**
 * What others expect of a node's agent in the kernel's packet filter: a chain that shows which of the two kinds of
 * iptables the node uses, and a rule against packets that claim to come from elsewhere to the loopback network.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Clock } from "../../../std/time/clock.ts";
import type { Logger } from "../../../std/log/logger.ts";

/** Runs one of the family's programs. Rejects with what it said. */
export type Iptables = (program: "iptables" | "ip6tables", words: readonly string[]) => Promise<void>;

export interface IptablesChainsOptions {
  readonly iptables: Iptables;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

type Program = Parameters<Iptables>[0];

/** Names that container networks and service proxies look for. */
const HINT = "KUBE-IPTABLES-HINT";
const FIREWALL = "KUBE-FIREWALL";
/** When one of them is gone, somebody has emptied the table, and our rules are gone with it. */
const CANARY = "KUBE-KUBELET-CANARY";
const TABLES = ["mangle", "nat", "filter"] as const;
const CHECK_INTERVAL_MS = 60_000;

/** Service proxies let loopback addresses be routed; nobody but the node itself may use that. */
const MARTIANS_RULE = [
  ...["-m", "comment", "--comment", "block incoming localnet connections"],
  ...["-d", "127.0.0.0/8", "!", "-s", "127.0.0.0/8"],
  ...["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP"],
];

/** Keeps chains and rules until the signal aborts. Never rejects: where there is no packet filter, nothing is kept. */
export async function maintainIptablesChains(options: IptablesChainsOptions): Promise<void> {
  await Promise.all((["iptables", "ip6tables"] as const).map((program) => maintain(program, options)));
}

async function maintain(program: Program, options: IptablesChainsOptions): Promise<void> {
  const { iptables, clock, log, signal } = options;
  const run = async (...words: readonly string[]): Promise<void> => await iptables(program, words);
  let failing = false;
  while (!signal.aborted) {
    try {
      if (!(await chainsExist(run))) await createChains(program, run);
      failing = false;
    } catch (error) {
      if (isMissingProgram(error)) return log.info("No iptables chains are kept: there is no such program", { program });
      if (!failing) log.warn("Cannot make iptables chains", { program, error: String(error) });
      failing = true;
    }
    await clock.sleep(CHECK_INTERVAL_MS, signal).catch(() => undefined);
  }
}

type Run = (...words: readonly string[]) => Promise<void>;

async function chainsExist(run: Run): Promise<boolean> {
  for (const table of TABLES) {
    if (!(await succeeds(run("-t", table, "-S", CANARY)))) return false;
  }
  return true;
}

async function createChains(program: Program, run: Run): Promise<void> {
  await ensureChain(run, "mangle", HINT);
  if (program === "iptables") {
    await ensureChain(run, "filter", FIREWALL);
    await ensureRule(run, "-A", FIREWALL, MARTIANS_RULE);
    for (const from of ["OUTPUT", "INPUT"]) await ensureRule(run, "-I", from, ["-j", FIREWALL]);
  }
  // Last: as long as they are missing, all is made again.
  for (const table of TABLES) await ensureChain(run, table, CANARY);
}

async function ensureChain(run: Run, table: string, name: string): Promise<void> {
  if (!(await succeeds(run("-t", table, "-S", name)))) await run("-t", table, "-N", name);
}

async function ensureRule(run: Run, option: "-A" | "-I", chainName: string, words: readonly string[]): Promise<void> {
  if (!(await succeeds(run("-t", "filter", "-C", chainName, ...words)))) {
    await run("-t", "filter", option, chainName, ...words);
  }
}

/** Only an answer counts: a program that is not there has not said no. */
async function succeeds(command: Promise<void>): Promise<boolean> {
  try {
    await command;
    return true;
  } catch (error) {
    if (isMissingProgram(error)) throw error;
    return false;
  }
}

function isMissingProgram(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}

const execFileAsync = promisify(execFile);

/** The machine's. Waits for others who change the tables, five seconds at most. */
export const systemIptables: Iptables = async (program, words) => {
  await execFileAsync(program, ["-w", "5", ...words]);
};
