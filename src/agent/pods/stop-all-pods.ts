/** Stops everything that runs, without ending the pods: an agent that starts again starts them again. */
import type { Logger } from "../../std/log/logger.ts";
import { annotations, labels } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";

/**
 * Each container gets the grace its pod asked for, at most `graceSeconds`. Problems are logged; never rejects. Resolves
 * with the uids of the pods that the runtime knows, whose records it keeps.
 */
export async function stopAllPods(runtime: Runtime, graceSeconds: number, log: Logger): Promise<ReadonlySet<string>> {
  const uids = new Set<string>();
  try {
    const { containers = [] } = await runtime.listContainers({ filter: { state: { state: "CONTAINER_RUNNING" } } });
    const ours = containers.filter((each) => each.labels?.[labels.podUid] !== undefined);
    await Promise.all(
      ours.map(async (container) => {
        const asked = Number(container.annotations?.[annotations.terminationGracePeriod] ?? graceSeconds);
        const timeout = BigInt(Math.max(0, Math.min(asked, graceSeconds)));
        await runtime.stopContainer({ containerId: container.id, timeout });
      }),
    );
    const { items = [] } = await runtime.listPodSandbox({});
    for (const sandbox of items) {
      const uid = sandbox.labels?.[labels.podUid];
      if (uid === undefined) continue;
      uids.add(uid);
      // Also of sandboxes that are not ready: a stop that was cut short may have left their network.
      await runtime.stopPodSandbox({ podSandboxId: sandbox.id });
    }
  } catch (error) {
    log.error("Cannot stop all pods", error);
  }
  return uids;
}
