/** Stops everything that runs, without ending the pods: an agent that starts again starts them again. */
import type { Logger } from "../../std/log.ts";
import { annotations, labels } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";

/** Each container gets the grace its pod asked for, at most `graceSeconds`. Problems are logged; never rejects. */
export async function stopAll(runtime: Runtime, graceSeconds: number, log: Logger): Promise<void> {
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
    const { items = [] } = await runtime.listPodSandbox({ filter: { state: { state: "SANDBOX_READY" } } });
    for (const sandbox of items) {
      if (sandbox.labels?.[labels.podUid] !== undefined) await runtime.stopPodSandbox({ podSandboxId: sandbox.id });
    }
  } catch (error) {
    log.error("Cannot stop all pods", error);
  }
}
