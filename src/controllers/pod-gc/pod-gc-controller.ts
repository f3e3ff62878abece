/**
 * The pod garbage collector: deletes pods that no node agent will delete.
 *
 * - finished pods beyond a number, the oldest first
 * - terminating pods without a node, and on stopped nodes with the taint `out-of-service`
 * - pods of nodes that do not exist
 */

import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { formatTime } from "../../schema/value/time.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { isNotFoundOrConflict, statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { compareCreation } from "../workload/object-keys.ts";

const PERIOD_MS = 20_000;
/** How long a node must be missing: its informer may be behind that of pods. */
const QUARANTINE_MS = 40_000;
const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";
const CYCLE = "cycle";
/** Pods that are deleted at the same time. */
const PARALLEL = 10;

export async function runPodGcController(deps: ControllerDeps): Promise<void> {
  const { client, clock, log, signal, informers, options } = deps;
  const metrics = createMetrics(deps.registry);
  const nodes = informers.of(nodeKind);
  const pods = informers.of(podKind);
  /** Since when nodes of pods have been missing, on the monotonic clock. */
  const missing = new Map<string, number>();
  await using queue = createControllerQueue(deps, {
    name: "orphaned_pods_nodes",
    workers: 1,
    sync: async (_key, stopping) => {
      queue.addAfter(CYCLE, PERIOD_MS);
      await collect(stopping);
    },
    onError: (_key, error) => log.error("Failed to collect pods, will retry", error),
  });

  async function collect(stopping: AbortSignal): Promise<void> {
    const all = [...pods.list()];
    await deleteAll(surplusFinished(all, options.terminatedPodGcThreshold), "terminated", stopping);
    await deleteAll(all.filter(isOutOfService), "out-of-service", stopping);
    const gone = await goneNodes(all, stopping);
    const orphaned = all.filter(({ spec }) => gone.has(spec?.nodeName ?? ""));
    await deleteAll(orphaned, "orphaned", stopping, "PodGC: node no longer exists");
    await deleteAll(all.filter(isUnscheduledTerminating), "unscheduled", stopping);
  }

  function isOutOfService({ metadata, spec }: Pod): boolean {
    if (metadata?.deletionTimestamp === undefined) return false;
    const node = nodes.get(spec?.nodeName ?? "");
    return node !== undefined && !isNodeReady(node) && hasOutOfServiceTaint(node);
  }

  async function goneNodes(all: readonly Pod[], stopping: AbortSignal): Promise<ReadonlySet<string>> {
    const names = new Set(all.map(({ spec }) => spec?.nodeName ?? "").filter((name) => name !== ""));
    const gone = new Set<string>();
    const now = clock.monotonic();
    for (const name of missing.keys()) if (!names.has(name) || nodes.get(name) !== undefined) missing.delete(name);
    for (const name of names) {
      if (nodes.get(name) !== undefined) continue;
      const since = missing.get(name) ?? now;
      missing.set(name, since);
      if (now - since > QUARANTINE_MS && (await isGone(name, stopping))) gone.add(name);
    }
    return gone;
  }

  async function isGone(name: string, stopping: AbortSignal): Promise<boolean> {
    try {
      await client.get(nodeKind, { name }, stopping);
      return false;
    } catch (error) {
      if (statusCodeOf(error) === 404) return true;
      throw error;
    }
  }

  /** Continues with the other pods after an error, which the next cycle retries. */
  async function deleteAll(
    selected: readonly Pod[],
    reason: DeletionReason,
    stopping: AbortSignal,
    message?: string,
  ): Promise<void> {
    const rest = [...selected];
    const work = async (): Promise<void> => {
      for (let pod = rest.shift(); pod !== undefined; pod = rest.shift()) {
        try {
          metrics.deleted.with(pod.metadata?.namespace ?? "", reason).inc();
          await failAndDelete(pod, message, stopping);
        } catch (error) {
          if (stopping.aborted) throw error;
          const { namespace = "", name } = pod.metadata ?? {};
          metrics.failed.with(namespace, reason).inc();
          if (!isNotFoundOrConflict(error)) log.error("Failed to delete pod", error, { pod: `${namespace}/${name}` });
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(PARALLEL, rest.length) }, work));
  }

  /** A pod whose node is gone stays in its phase; controllers count it as failed only when it has failed. */
  async function failAndDelete(pod: Pod, message: string | undefined, stopping: AbortSignal): Promise<void> {
    const { name = "", namespace, uid } = pod.metadata ?? {};
    if (!isFinished(pod)) {
      const condition = {
        type: "DisruptionTarget",
        status: "True",
        reason: "DeletionByPodGC",
        message,
        lastTransitionTime: formatTime(clock.now()),
      };
      const status = { phase: "Failed", ...(message === undefined ? {} : { conditions: [condition] }) };
      const patch = { metadata: { uid }, status };
      await client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status", signal: stopping });
    }
    await client.delete(podKind, { name, namespace }, { gracePeriodSeconds: 0, preconditions: { uid } }, stopping);
    log.v(2)?.info("Deleted pod", { pod: `${namespace}/${name}` });
  }

  await waitForCacheSync([nodes, pods], signal);
  queue.addAfter(CYCLE, PERIOD_MS);
  await waitForAbort(signal);
}

type DeletionReason = "terminated" | "out-of-service" | "orphaned" | "unscheduled";

/** Kubernetes' metrics. */
function createMetrics(registry = new MetricRegistry()) {
  const counter = (name: string, help: string) =>
    registry.counter({
      name: `pod_gc_collector_${name}`,
      help,
      stability: "ALPHA",
      labels: ["namespace", "reason"],
    });
  return {
    deleted: counter("force_delete_pods_total", "Pods that the pod garbage collector deleted by force."),
    failed: counter("force_delete_pod_errors_total", "Failed deletions of the pod garbage collector."),
  };
}

function isFinished({ status }: Pod): boolean {
  return status?.phase === "Succeeded" || status?.phase === "Failed";
}

function isUnscheduledTerminating({ metadata, spec }: Pod): boolean {
  return metadata?.deletionTimestamp !== undefined && (spec?.nodeName ?? "") === "";
}

function isNodeReady({ status }: Node): boolean {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
}

function hasOutOfServiceTaint({ spec }: Node): boolean {
  return (spec?.taints ?? []).some(({ key }) => key === OUT_OF_SERVICE);
}

/** The finished pods to delete so that only as many as the threshold stay: evicted ones first, then by age. */
export function surplusFinished(pods: readonly Pod[], threshold: number): readonly Pod[] {
  if (threshold <= 0) return [];
  const finished = pods.filter(isFinished);
  if (finished.length <= threshold) return [];
  const isEvicted = ({ status }: Pod): boolean => status?.reason === "Evicted";
  return finished
    .sort((a, b) => Number(isEvicted(b)) - Number(isEvicted(a)) || compareCreation(a, b))
    .slice(0, finished.length - threshold);
}
