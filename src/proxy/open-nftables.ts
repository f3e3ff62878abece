/** Finds the programs of the proxy, and prepares the kernel. */
import type { Logger } from "../std/log/logger.ts";
import { prepareKernel } from "./kernel-settings.ts";
import { createNft, type Nft } from "./nftables/nft.ts";
import { findProxyProgram } from "./programs.ts";

export const NFT_MISSING = "nft is not installed: on Debian or Ubuntu, apt-get install nftables";

/** Throws a message for the operator if nft is missing. */
export async function openNftables(
  log: Logger,
): Promise<{ readonly nft: Nft; readonly conntrack: string | undefined }> {
  const program = await findProxyProgram("nft");
  if (program === undefined) throw new Error(`Cannot run the service proxy: ${NFT_MISSING}`);
  const conntrack = await findProxyProgram("conntrack");
  if (conntrack === undefined) {
    log.v(1)?.info("conntrack is not installed: UDP flows to endpoints that are gone end only when they are idle");
  }
  await prepareKernel(log);
  return { nft: createNft(program), conntrack };
}
