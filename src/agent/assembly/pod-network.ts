/** The pod network of this node. */
import { access } from "node:fs/promises";
import { join } from "node:path";
import { nodeKind } from "../../api/core/node/kind.ts";
import { startInformer } from "../../client/informer/informer.ts";
import type { PodNetwork } from "../../pod-network/pod-network.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { parseSettings } from "../doctor/runtime-facts.ts";
import type { Foundation } from "./foundation.ts";
import type { Reporting } from "./reporting.ts";

/** Where runtimes look for the CNI configuration if they do not report it. */
const CNI_CONF_DIR = "/etc/cni/net.d";

/** Undefined if the agent configures no network. Throws a message for the operator when it cannot. */
export async function openPodNetwork(
  foundation: Foundation,
  { recordNodeEvent }: Reporting,
): Promise<PodNetwork | undefined> {
  const { config, client, clock, signal, stack } = foundation;
  const { mode, names, clusterCidrs, hairpin, isOptional, leaseDir } = config.podNetwork;
  const log = foundation.log.child("pod-network");
  const nodeFile = join(config.rootDir, "pod-network");
  // What an earlier start with another mode has made is removed.
  const isLeft = mode === "none" && (await hasFile(nodeFile));
  if (mode === "none" && !isLeft) return undefined;
  const { startPodNetwork, keepNetworkNode, removePodNetwork } = await import("../../pod-network/pod-network.ts");
  const { openNetworkHost } = await import("../../pod-network/network-host.ts");
  const host = foundation.network ?? (await openNetworkHost(foundation.nft));
  const confDir = config.podNetwork.confDir ?? (await readConfDir(foundation)) ?? CNI_CONF_DIR;
  if (mode === "none") {
    await removePodNetwork({ ...host, names, nodeFile, log }, confDir);
    return undefined;
  }
  if (client === undefined) throw new Error("Cannot use --pod-network without --svcconfig or --join");
  const { IP_MISSING } = await import("../../pod-network/programs.ts");
  if (host.tools === undefined && !isOptional) throw new Error(IP_MISSING);
  const { createPodNetworkMetrics } = await import("../../pod-network/pod-network-metrics.ts");
  const random = systemRandom;
  const informer = { client, kind: nodeKind, clock, random, log, transform: keepNetworkNode };
  const network = startPodNetwork({
    ...host,
    mode,
    names,
    hairpin,
    nodeName: config.nodeName,
    clusterCidrs,
    cni: { confDir, leaseDir },
    nodes: stack.use(startInformer(informer, signal)),
    nodeFile,
    metrics: createPodNetworkMetrics(foundation.metrics),
    clock,
    random,
    log,
    onProblem: (text) => recordNodeEvent("Warning", "PodNetworkFailed", text),
  });
  stack.defer(() => network.close({ removeRoutes: false, removeConfig: false }));
  return network;
}

async function hasFile(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** The directory from which the runtime reads the CNI configuration; undefined if it does not report that. */
async function readConfDir({ cri, signal }: Foundation): Promise<string | undefined> {
  const status = await cri.runtime.status({ verbose: true }, signal).catch(() => undefined);
  return parseSettings(status?.info?.config).cniConfDir;
}
