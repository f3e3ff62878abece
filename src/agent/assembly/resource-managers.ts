/** Opens the managers of CPUs, memory and devices. */
import { addQuantities, formatQuantity, parseQuantity } from "../../api/meta/quantity.ts";
import { computeThreshold } from "../node/status/capacity.ts";
import type { PodWorker } from "../pods/worker/pod-worker.ts";
import { ResourceManagers } from "../resource-managers/resource-managers.ts";
import type { Foundation } from "./foundation.ts";

export interface ResourceManagerLinks {
  /** Undefined until all sources of pods have been read. */
  readonly workers: () => readonly PodWorker[] | undefined;
}

/** Rejects with a message for the operator when the configuration does not fit the machine. */
export function openResourceManagers(
  foundation: Foundation,
  { workers }: ResourceManagerLinks,
): Promise<ResourceManagers> {
  const { config, topology, metrics, clock, log } = foundation;
  return ResourceManagers.open(
    {
      config: config.resources,
      rootDir: config.rootDir,
      machine: topology,
      reservation: computeReservation(foundation),
      runtime: foundation.cri.runtime,
      activePods: () => workers()?.filter(({ stateName }) => stateName !== "terminated"),
      registry: metrics,
      clock,
      log: log.child("resources"),
    },
    [],
  );
}

/** What the node's allocatable does not include of its capacity. */
function computeReservation({ config, machine }: Foundation): Readonly<Record<string, string>> {
  const { reserved, evictionHard } = config.node;
  const threshold = computeThreshold(evictionHard["memory.available"], machine.memoryBytes);
  const memory = parseQuantity(reserved.memory ?? "0");
  const evicted = parseQuantity(String(threshold));
  if (memory === undefined || evicted === undefined) throw new Error("the reserved memory is no quantity");
  return { ...reserved, memory: formatQuantity(addQuantities(memory, evicted)) };
}
