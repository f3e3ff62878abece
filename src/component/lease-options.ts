/** Leader election, as the flags of a control plane program configure it. */
import type { ParsedFlags } from "../flags/flag.ts";
import type { leaderElectionFlags } from "./flags.ts";

export interface LeaseOptions {
  readonly namespace: string;
  readonly name: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

/** Undefined: the program works without a lease. */
export function leaseOptions(flags: ParsedFlags<ReturnType<typeof leaderElectionFlags>>): LeaseOptions | undefined {
  if (!flags["leader-elect"]) return undefined;
  return {
    namespace: flags["leader-elect-resource-namespace"],
    name: flags["leader-elect-resource-name"],
    leaseDurationMs: flags["leader-elect-lease-duration"],
    renewDeadlineMs: flags["leader-elect-renew-deadline"],
    retryPeriodMs: flags["leader-elect-retry-period"],
  };
}
