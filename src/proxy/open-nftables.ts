/** Finds the programs of the proxy, and prepares the kernel. */
import type { Logger } from "../std/log/logger.ts";
import {
  BRIDGE_FILTER,
  BRIDGE_FILTER_6,
  enableSettings,
  IP_FORWARD,
  loadBridgeFilter,
  systemKernel,
} from "../std/net/kernel-settings.ts";
import { createNft } from "../std/nftables/nft.ts";
import { findSystemProgram } from "../std/process/system-programs.ts";
import { readListeningPorts } from "./listening-ports.ts";
import type { ProxyHost } from "./service-proxy.ts";

export const NFT_MISSING =
  "Cannot run the service proxy: nft is not installed. On Debian or Ubuntu, apt-get install nftables";

/** Undefined if nft is missing. */
export async function openNftables(log: Logger, find = findSystemProgram): Promise<ProxyHost | undefined> {
  const program = await find("nft");
  if (program === undefined) return undefined;
  const conntrack = await find("conntrack");
  if (conntrack === undefined) {
    log.v(1)?.info("conntrack is not installed: UDP flows to endpoints that are gone end only when they are idle");
  }
  await prepareKernel(log);
  return { nft: createNft(program), conntrack, listeningPorts: () => readListeningPorts() };
}

/** Replies between pods on one bridge pass nftables only with the settings of bridges: it restores their addresses. */
export async function prepareKernel(log: Logger, host = systemKernel): Promise<void> {
  await loadBridgeFilter(host).catch((error: unknown) => {
    log.warn("Services cannot connect pods of one bridge: br_netfilter is not loaded", { error: String(error) });
  });
  await enableSettings([BRIDGE_FILTER, BRIDGE_FILTER_6, IP_FORWARD], "services", log, host);
}
