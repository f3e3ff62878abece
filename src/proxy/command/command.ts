/** `svc proxy`, also invoked as `kube-proxy`: runs the service proxy of a node until SIGINT or SIGTERM. */
import { hostname } from "node:os";
import { nodeKind } from "../../api/core/node/kind.ts";
import { createClient } from "../../client/api-client.ts";
import { createEventRecorder } from "../../client/events/event-recorder.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { createSharedInformers } from "../../client/informer/shared-informers.ts";
import { openConnection } from "../../component/connection.ts";
import type { ParsedFlags } from "../../flags/flag.ts";
import { logOptions } from "../../flags/log-options.ts";
import { invoke } from "../../flags/program.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { createLogger, type Logger } from "../../std/log/logger.ts";
import { collectGarbageWhenIdle } from "../../std/memory/collect-when-idle.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { createNotifier } from "../../std/process/sd-notify.ts";
import { systemClock } from "../../std/time/clock.ts";
import { GIT_VERSION } from "../../std/version.ts";
import { NFT_MISSING, openNftables } from "../open-nftables.ts";
import { createHealthMetrics, createProxyMetrics } from "../proxy-metrics.ts";
import { type ProxyHost, removeProxyRules, startServiceProxy } from "../service-proxy.ts";
import { parseSocketAddress, type proxyFlags, proxyProgram } from "./flags.ts";
import { healthPages, metricsPages, type Pages, servePages } from "./pages.ts";

type Flags = ParsedFlags<typeof proxyFlags>;

const TABLE = "svc-proxy";
const COMPONENT = "svc-proxy";

/** Resolves with the exit code. */
export async function run(argv: readonly string[]): Promise<number> {
  const invocation = invoke(proxyProgram, argv, { version: GIT_VERSION });
  if (invocation.kind === "exit") {
    process.stdout.write(invocation.stdout);
    process.stderr.write(invocation.stderr);
    return invocation.code;
  }
  const { flags } = invocation;
  using log = createLogger(logOptions(flags));
  for (const warning of invocation.warnings) log.warn(warning);
  using _memory = collectGarbageWhenIdle({ clock: systemClock });
  await using notifier = createNotifier({ env: process.env, clock: systemClock, log });
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => {
    log.info("Shutting down", { signal });
    stop.abort(new Error(signal));
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  try {
    if (flags.cleanup) {
      const { nft } = await openHost(log);
      for (const commands of removeProxyRules(TABLE)) await nft.apply(commands);
      return 0;
    }
    await runProxy(flags, log, stop.signal, () => notifier.ready());
    return 0;
  } catch (error) {
    if (stop.signal.aborted) return 0;
    log.error("Cannot run the service proxy", error);
    return 1;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
  }
}

async function openHost(log: Logger): Promise<ProxyHost> {
  const host = await openNftables(log);
  if (host === undefined) throw new Error(NFT_MISSING);
  return host;
}

async function runProxy(flags: Flags, log: Logger, signal: AbortSignal, onReady: () => Promise<void>): Promise<void> {
  const clock = systemClock;
  const random = systemRandom;
  const metrics = new MetricRegistry();
  const host = await openHost(log);
  const nodeName = (flags["hostname-override"] || hostname()).trim().toLowerCase();
  const access = { kubeconfig: flags.kubeconfig, server: flags.master, userAgent: COMPONENT };
  const limits = { qps: flags["kube-api-qps"], burst: flags["kube-api-burst"] };
  const deps = { clock, metrics, env: process.env };
  await using stack = new AsyncDisposableStack();
  const closing = new AbortController();
  stack.defer(() => closing.abort(new Error("the program has stopped")));
  const { transport } = stack.use(await openConnection({ ...access, ...limits }, deps, closing.signal));
  const client = createClient({ transport, contentType: flags["kube-api-content-type"] });
  const common = { client, clock, random, log };
  const informers = stack.use(createSharedInformers(common, closing.signal));
  const query = { fieldSelector: `metadata.name=${nodeName}` };
  const recorder = stack.use(createEventRecorder({ ...common, component: COMPONENT, host: nodeName }));
  const proxy = startServiceProxy({
    nodeName,
    table: TABLE,
    clusterCidrs: flags["cluster-cidr"],
    serviceCidrs: [],
    nodes: stack.use(startInformer({ ...common, kind: nodeKind, query }, closing.signal)),
    informers,
    ...host,
    metrics: createProxyMetrics(metrics, clock),
    clock,
    random,
    log,
    onProblem({ metadata }, reason, message) {
      const { name, namespace, uid } = metadata ?? {};
      recorder.record({ apiVersion: "v1", kind: "Service", name, namespace, uid }, "Warning", reason, message);
    },
  });
  stack.defer(() => proxy.close({ removeRules: !flags["keep-rules"] }));
  const serve = async (flag: "healthz-bind-address" | "metrics-bind-address", pages: Pages): Promise<void> => {
    const address = parseSocketAddress(flags[flag]);
    if (address !== undefined) stack.use(await servePages(`--${flag}`, address, pages));
  };
  await serve("healthz-bind-address", healthPages(proxy, clock, createHealthMetrics(metrics)));
  await serve("metrics-bind-address", metricsPages(metrics));
  await Promise.race([proxy.ready, waitForAbort(signal)]);
  if (signal.aborted) return;
  log.info("The rules of all services are installed", { node: nodeName });
  await onReady();
  await waitForAbort(signal);
}
