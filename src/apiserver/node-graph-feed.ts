/** Keeps the node authorizer's view of who refers to what as new as the pods. */
import type { Pod } from "../api/core/pod.ts";
import type { NodeGraph } from "../auth/authz/node-graph.ts";
import type { Registry } from "../registry/registry.ts";
import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";

const RETRY_MS = 1000;

/** Runs until the signal aborts. */
export async function feedNodeGraph(
  pods: Registry<Pod>,
  graph: NodeGraph,
  clock: Clock,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await pods.cache.ready();
      const prefix = pods.objects.prefix();
      for await (const event of pods.cache.watch({ prefix, signal })) {
        if (event.type === "BOOKMARK") continue;
        const { namespace = "", name = "" } = event.item.object.metadata ?? {};
        if (event.type === "DELETED") graph.deletePod(namespace, name);
        else graph.putPod(event.item.object);
      }
    } catch (error) {
      if (signal.aborted) return;
      log.error("Watching pods for the node authorizer again", error);
      await clock.sleep(RETRY_MS, signal).catch(() => {});
    }
  }
}
