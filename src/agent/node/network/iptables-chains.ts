/**
 * The iptables chains that other programs expect from kubelet: a chain that shows whether the node uses iptables-legacy
 * or iptables-nft, and a rule that drops packets from other addresses to the loopback network.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";

/** Runs iptables or ip6tables. Rejects with its stderr. */
export type Iptables = (program: "iptables" | "ip6tables", args: readonly string[]) => Promise<void>;

export interface IptablesChainsOptions {
  readonly iptables: Iptables;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

type Program = Parameters<Iptables>[0];

/** Names that CNI plugins and kube-proxy look for. */
const HINT = "KUBE-IPTABLES-HINT";
const FIREWALL = "KUBE-FIREWALL";
/** When one of them is missing, another program has flushed the table, and our rules with it. */
const CANARY = "KUBE-KUBELET-CANARY";
const TABLES = ["mangle", "nat", "filter"] as const;
const CHECK_INTERVAL_MS = 60_000;

/** kube-proxy enables routing of loopback addresses; only the node itself may use them. */
const MARTIANS_RULE = [
  ...["-m", "comment", "--comment", "block incoming localnet connections"],
  ...["-d", "127.0.0.0/8", "!", "-s", "127.0.0.0/8"],
  ...["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "DROP"],
];

/** Restores missing chains and rules until the signal aborts. Never rejects; without iptables it does nothing. */
export async function maintainIptablesChains(options: IptablesChainsOptions): Promise<void> {
  await Promise.all((["iptables", "ip6tables"] as const).map((program) => maintain(program, options)));
}

async function maintain(program: Program, options: IptablesChainsOptions): Promise<void> {
  const { iptables, clock, log, signal } = options;
  const run = async (...args: readonly string[]): Promise<void> => await iptables(program, args);
  let failing = false;
  while (!signal.aborted) {
    try {
      if (!(await chainsExist(run))) await createChains(program, run);
      failing = false;
    } catch (error) {
      if (isMissingProgram(error))
        return log.info("Not maintaining iptables chains: the program was not found", { program });
      if (!failing) log.warn("Cannot create iptables chains", { program, error: String(error) });
      failing = true;
    }
    await clock.sleep(CHECK_INTERVAL_MS, signal).catch(() => undefined);
  }
}

type Run = (...args: readonly string[]) => Promise<void>;

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
  // Last: as long as the canaries are missing, everything is created again.
  for (const table of TABLES) await ensureChain(run, table, CANARY);
}

async function ensureChain(run: Run, table: string, name: string): Promise<void> {
  if (!(await succeeds(run("-t", table, "-S", name)))) await run("-t", table, "-N", name);
}

async function ensureRule(run: Run, option: "-A" | "-I", chainName: string, args: readonly string[]): Promise<void> {
  if (!(await succeeds(run("-t", "filter", "-C", chainName, ...args)))) {
    await run("-t", "filter", option, chainName, ...args);
  }
}

/** Whether the command succeeds; rejects when the program is missing. */
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

/** The machine's iptables. Waits up to 5 s for the xtables lock. */
export const systemIptables: Iptables = async (program, args) => {
  await execFileAsync(program, ["-w", "5", ...args]);
};
