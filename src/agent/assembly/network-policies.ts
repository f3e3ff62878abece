/** Enforces the network policies of this node's pods. */
import { access, rm } from "node:fs/promises";
import { join } from "node:path";
import { createSharedInformers } from "../../client/informer/shared-informers.ts";
import type { NetworkPolicies } from "../../network-policy/network-policies.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import type { Nft } from "../../std/nftables/nft.ts";
import type { Foundation } from "./foundation.ts";

const NFT_MISSING =
  "Cannot enforce network policies: nft is not installed. On Debian or Ubuntu, apt-get install nftables";

/** Undefined without `--network-policy`. Throws a message for the operator when it cannot work. */
export async function openNetworkPolicies(
  foundation: Foundation,
  onProblem: (text: string) => void,
): Promise<NetworkPolicies | undefined> {
  const { config, client, informers, metrics, clock, stack, signal } = foundation;
  const file = join(config.rootDir, "network-policies");
  const log = foundation.log.child("network-policy");
  const { isEnabled, isOptional, table } = config.networkPolicy;
  if (!isEnabled) {
    await removeEarlierRules(foundation, file);
    return undefined;
  }
  if (client === undefined || informers === undefined) {
    throw new Error("Cannot use --network-policy without --svcconfig or --join");
  }
  const nft = foundation.nft ?? (await findNft());
  if (nft === undefined) {
    if (!isOptional) throw new Error(NFT_MISSING);
    log.warn(NFT_MISSING);
    return undefined;
  }
  const { startNetworkPolicies } = await import("../../network-policy/network-policies.ts");
  const { keepPolicyFields } = await import("../../network-policy/policy-pod.ts");
  const { createPolicyMetrics } = await import("../../network-policy/policy-metrics.ts");
  const { findFamilies, prepareBridges } = await import("../../network-policy/host.ts");
  const random = systemRandom;
  const policies = startNetworkPolicies({
    nodeName: config.nodeName,
    table,
    families: await findFamilies(),
    bridges: [config.podNetwork.names.bridge],
    dnsAddresses: config.dns === undefined ? [] : config.pods.clusterDns,
    nft,
    prepareHost: async () => (foundation.nft === undefined ? await prepareBridges(log) : undefined),
    informers,
    openInformers: () => createSharedInformers({ client, clock, random, log, transform: keepPolicyFields }, signal),
    file,
    metrics: createPolicyMetrics(metrics, clock),
    clock,
    random,
    log,
    onProblem,
  });
  stack.defer(() => policies.close({ removeRules: false }));
  return policies;
}

async function findNft(): Promise<Nft | undefined> {
  const { findSystemProgram } = await import("../../std/process/system-programs.ts");
  const { createNft } = await import("../../std/nftables/nft.ts");
  const program = await findSystemProgram("nft");
  return program === undefined ? undefined : createNft(program);
}

/** Removes what an earlier start with `--network-policy` has left for pods that kept running. */
async function removeEarlierRules({ config, nft, log }: Foundation, file: string): Promise<void> {
  const isLeft = await access(file).then(
    () => true,
    () => false,
  );
  if (!isLeft) return;
  const { findFamilies } = await import("../../network-policy/host.ts");
  const { removePolicyRules } = await import("../../network-policy/policy-rules.ts");
  const commands = removePolicyRules(config.networkPolicy.table, await findFamilies());
  const removed = (nft ?? (await findNft()))?.apply(commands);
  await removed?.catch((error: unknown) => log.warn("Cannot remove network policies", { error: String(error) }));
  await rm(file, { force: true });
}
