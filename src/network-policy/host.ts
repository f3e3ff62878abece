/** What network policies need of their host. */
import { access } from "node:fs/promises";
import type { Logger } from "../std/log/logger.ts";
import type { IpFamily } from "../std/net/ip.ts";
import {
  BRIDGE_FILTER,
  BRIDGE_FILTER_6,
  enableSettings,
  loadBridgeFilter,
  systemKernel,
} from "../std/net/kernel-settings.ts";

const IPV6 = "/proc/net/if_inet6";

/** The IP families of the host. */
export async function findFamilies(path = IPV6): Promise<readonly IpFamily[]> {
  return await access(path).then(
    (): readonly IpFamily[] => ["IPv4", "IPv6"],
    () => ["IPv4"],
  );
}

/**
 * Lets packets between pods of one bridge pass nftables. Returns the reason if they do not: the family `bridge` of
 * nftables sees them too, but without connection tracking (CONFIG_NF_CONNTRACK_BRIDGE) it cannot find replies.
 */
export async function prepareBridges(log: Logger, host = systemKernel): Promise<string | undefined> {
  const failure = await loadBridgeFilter(host).catch((error: unknown) => error);
  if (failure === undefined) await enableSettings([BRIDGE_FILTER, BRIDGE_FILTER_6], "network policies", log, host);
  if ((await host.read(BRIDGE_FILTER)) === "1") return undefined;
  const reason = failure === undefined ? "the setting cannot be changed" : String(failure);
  return `Packets between pods of one bridge do not pass network policies: net.bridge.bridge-nf-call-iptables is off (${reason})`;
}
