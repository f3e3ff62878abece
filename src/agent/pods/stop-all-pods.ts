/** Stops all containers without terminating the pods: the next agent starts them again. */
import type { Logger } from "../../std/log/logger.ts";
import { annotations, labels } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";

/**
 * Each container gets the grace period of its pod, at most `graceSeconds`. Logs errors; never rejects. Resolves with
 * the uids of the pods that the runtime has, and keeps its records of them.
 */
export async function stopAllPods(runtime: Runtime, graceSeconds: number, log: Logger): Promise<ReadonlySet<string>> {
  const uids = new Set<string>();
  try {
    const { containers = [] } = await runtime.listContainers({ filter: { state: { state: "CONTAINER_RUNNING" } } });
    const ours = containers.filter((each) => each.labels?.[labels.podUid] !== undefined);
    await Promise.all(
      ours.map(async (container) => {
        const requested = Number(container.annotations?.[annotations.terminationGracePeriod] ?? graceSeconds);
        const timeout = BigInt(Math.max(0, Math.min(requested, graceSeconds)));
        await runtime.stopContainer({ containerId: container.id, timeout });
      }),
    );
    const { items = [] } = await runtime.listPodSandbox({});
    for (const sandbox of items) {
      const uid = sandbox.labels?.[labels.podUid];
      if (uid === undefined) continue;
      uids.add(uid);
      // Sandboxes that are not ready too: an interrupted stop may have left their network behind.
      await runtime.stopPodSandbox({ podSandboxId: sandbox.id });
    }
  } catch (error) {
    log.error("Failed to stop all pods", error);
  }
  return uids;
}
