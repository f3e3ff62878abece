/** Stops all containers without terminating the pods: the next agent starts them again. */
import type { Logger } from "../../std/log/logger.ts";
import { annotations, labels } from "../runtime/observation.ts";
import type { Runtime } from "../runtime/runtime.ts";

/**
 * Each container gets the grace period of its pod, at most `graceSeconds`. What cannot be stopped is logged, and does
 * not keep the others from being stopped; never rejects. Resolves with the uids of the pods that the runtime has, and
 * keeps its records of them.
 */
export async function stopAllPods(runtime: Runtime, graceSeconds: number, log: Logger): Promise<ReadonlySet<string>> {
  const attempt = async <T>(
    what: string,
    action: () => Promise<T>,
    details?: Readonly<Record<string, unknown>>,
  ): Promise<T | undefined> => {
    try {
      return await action();
    } catch (error) {
      log.error(what, error, details);
      return undefined;
    }
  };
  const running = { filter: { state: { state: "CONTAINER_RUNNING" as const } } };
  const listed = await attempt("Failed to list containers", () => runtime.listContainers(running));
  const containers = (listed?.containers ?? []).filter((each) => each.labels?.[labels.podUid] !== undefined);
  await Promise.all(
    containers.map((container) => {
      const requested = Number(container.annotations?.[annotations.terminationGracePeriod] ?? graceSeconds);
      const timeout = BigInt(Math.max(0, Math.min(requested, graceSeconds)));
      const stop = () => runtime.stopContainer({ containerId: container.id, timeout });
      return attempt("Failed to stop container", stop, { container: container.id });
    }),
  );
  const sandboxes = await attempt("Failed to list pod sandboxes", () => runtime.listPodSandbox({}));
  const uids = new Set<string>();
  for (const sandbox of sandboxes?.items ?? []) {
    const uid = sandbox.labels?.[labels.podUid];
    if (uid === undefined) continue;
    uids.add(uid);
    // Sandboxes that are not ready too: an interrupted stop may have left their network behind.
    const stop = () => runtime.stopPodSandbox({ podSandboxId: sandbox.id });
    await attempt("Failed to stop pod sandbox", stop, { sandbox: sandbox.id });
  }
  return uids;
}
