/** The service proxy of this node. */
import { nodeKind } from "../../api/core/node/kind.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { startInformer } from "../../client/informer/informer.ts";
import type { ServiceProxy } from "../../proxy/service-proxy.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import type { Foundation } from "./foundation.ts";

/** Source component of the proxy's events. */
const COMPONENT = "svc-proxy";

/** Undefined without `--service-proxy`. Throws a message for the operator when it cannot work. */
export async function openProxy({
  config,
  client,
  informers,
  metrics,
  nft,
  clock,
  log,
  signal,
  stack,
}: Foundation): Promise<ServiceProxy | undefined> {
  if (config.proxy === undefined) return undefined;
  if (client === undefined || informers === undefined) {
    throw new Error("Cannot use --service-proxy without --svcconfig or --join");
  }
  const random = systemRandom;
  const proxyLog = log.child("service-proxy");
  const { NFT_MISSING, openNftables } = await import("../../proxy/open-nftables.ts");
  const { startServiceProxy } = await import("../../proxy/service-proxy.ts");
  const { createProxyMetrics } = await import("../../proxy/proxy-metrics.ts");
  const host =
    nft === undefined ? await openNftables(proxyLog) : { nft, listeningPorts: async () => new Set<string>() };
  if (host === undefined) {
    if (!config.proxy.isOptional) throw new Error(NFT_MISSING);
    proxyLog.warn(`${NFT_MISSING}; services have no addresses on this node`);
    return undefined;
  }
  const query = { fieldSelector: `metadata.name=${config.nodeName}` };
  const events = { client, clock, random, log, component: COMPONENT, host: config.nodeName };
  const recorder = stack.use(createEventRecorder(events));
  const proxy = startServiceProxy({
    ...config.proxy,
    ...host,
    nodeName: config.nodeName,
    nodes: stack.use(startInformer({ client, kind: nodeKind, query, clock, random, log: proxyLog }, signal)),
    informers,
    metrics: createProxyMetrics(metrics, clock),
    clock,
    random,
    log: proxyLog,
    onProblem({ metadata }, reason, message) {
      const { name, namespace, uid } = metadata ?? {};
      recorder.record({ apiVersion: "v1", kind: "Service", name, namespace, uid }, "Warning", reason, message);
    },
  });
  stack.defer(() => proxy.close({ removeRules: false }));
  return proxy;
}
