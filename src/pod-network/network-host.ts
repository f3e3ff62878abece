/** Finds the programs by which the pod network changes its host. */
import { createNft, type Nft } from "../std/nftables/nft.ts";
import { findSystemProgram } from "../std/process/system-programs.ts";
import type { NetworkHost } from "./pod-network.ts";
import { findRouteTools } from "./programs.ts";

/** `nft` replaces the host's. */
export async function openNetworkHost(nft?: Nft, find = findSystemProgram): Promise<NetworkHost> {
  const program = nft === undefined ? await find("nft") : undefined;
  return {
    tools: await findRouteTools(find),
    nft: nft ?? (program === undefined ? undefined : createNft(program)),
    hasIptables: (await find("iptables")) !== undefined,
  };
}
