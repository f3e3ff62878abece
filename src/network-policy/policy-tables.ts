import type { Logger } from "../std/log/logger.ts";
import type { IpFamily } from "../std/net/ip.ts";
import type { Nft } from "../std/nftables/nft.ts";
import { tablePrefix } from "../std/nftables/table.ts";
import { removePolicyRules } from "./policy-rules.ts";
import type { PolicySet } from "./policy-set.ts";

export interface PolicyTablesOptions {
  /** The name of the tables of nftables; others are not changed. */
  readonly table: string;
  /** IPv6 only where the host has it. */
  readonly families: readonly IpFamily[];
  readonly nft: Nft;
  /** Prepares the host before the first rules, and checks it again; returns what prevents enforcement. */
  readonly prepareHost: () => Promise<string | undefined>;
  readonly log: Logger;
}

/** The tables of the kernel that enforce a `PolicySet`. */
export class PolicyTables {
  readonly #options: PolicyTablesOptions;
  readonly #report: (problem: string | undefined) => void;
  /** Whether the kernel may have the tables: those of the last run may exist. */
  #isInstalled = true;
  #rebuilds = true;

  /** `report` is called with what prevents enforcement, and with undefined when nothing does. */
  constructor(options: PolicyTablesOptions, report: (problem: string | undefined) => void) {
    this.#options = options;
    this.#report = report;
  }

  /** The next transaction replaces all rules. */
  rebuild(): void {
    this.#rebuilds = true;
  }

  /** Applies the changes of the set since the last call. Rejects if the kernel refuses them. */
  async install(set: PolicySet): Promise<void> {
    const replaces = this.#rebuilds || !this.#isInstalled;
    this.#rebuilds = false;
    if (replaces) this.#report(await this.#options.prepareHost());
    const text = replaces ? set.takeAll() : set.takeChanges();
    this.#isInstalled = true;
    if (text !== "") await this.#options.nft.apply(text);
  }

  /** Idempotent. Logs a failure: the rules that stay are those of policies that were. */
  async remove(): Promise<void> {
    const { nft, table, families, log } = this.#options;
    if (!this.#isInstalled) return;
    this.#isInstalled = false;
    await nft.apply(removePolicyRules(table, families)).catch((error: unknown) => {
      log.error("Cannot remove the rules of network policies", error);
    });
  }

  /** Rejects if a table is missing: other programs may flush all rules of the host, or change its settings. */
  async check(): Promise<void> {
    const { nft, table, families, prepareHost } = this.#options;
    if (!this.#isInstalled) return;
    this.#report(await prepareHost());
    // One call each: nft lists only tables of the family of the last command.
    for (const family of families) {
      await nft.apply(`list chain ${tablePrefix({ family, table })} ingress-forward\n`);
    }
  }
}
