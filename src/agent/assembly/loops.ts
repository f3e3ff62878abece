/** The loops that run as long as the agent. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import type { EvictionManager } from "../eviction/eviction-manager.ts";
import type { EvictionRecords } from "../eviction/eviction-records.ts";
import { collectGarbage } from "../garbage-collection/collect-garbage.ts";
import { rotateLogs } from "../logs/log-rotation.ts";
import { readMachineFacts } from "../node/machine/machine-check.ts";
import { watchOom } from "../node/machine/oom-watch.ts";
import { maintainIptablesChains } from "../node/network/iptables-chains.ts";
import { recordMachineEvents } from "../node/node-events.ts";
import type { ResourceManagers } from "../resource-managers/resource-managers.ts";
import { watchContainerEvents } from "../runtime/container-events.ts";
import { enforceSizeLimits, measureDiskUsage } from "../volumes/local/size-limits.ts";
import { findStorageExcess } from "../volumes/local/storage-limits.ts";
import type { Foundation } from "./foundation.ts";
import type { GarbageCollectors } from "./garbage-collectors.ts";
import type { NodeComponents } from "./node.ts";
import type { PodComponents } from "./pods.ts";
import type { Reporting } from "./reporting.ts";

export interface LoopComponents {
  readonly reporting: Reporting;
  readonly node: NodeComponents;
  readonly podComponents: PodComponents;
  readonly garbage: GarbageCollectors;
  readonly eviction: EvictionManager;
  readonly evictionRecords: EvictionRecords;
}

/** Resolves when the signal aborted and every loop has ended. */
export async function runLoops(
  foundation: Foundation,
  { reporting, node, podComponents, garbage, eviction, evictionRecords }: LoopComponents,
  resourceManagers: ResourceManagers,
): Promise<void> {
  const { config, machine, signal } = foundation;
  const { recordNodeEvent, client: reportingClient } = reporting;
  recordNodeEvent("Normal", "Starting", "Starting svclet.");
  await recordMachineEvents(await readMachineFacts(config, machine), recordNodeEvent);
  await podComponents.readRuntimeName().catch(() => undefined);
  await Promise.all([
    podComponents.relister.run(),
    runLogRotation(foundation, podComponents),
    collectGarbage({
      ...garbage,
      isReady: () => podComponents.sources.isReady,
      recordEvent: reporting.recordNodeEvent,
      clock: foundation.clock,
      log: foundation.log.child("garbage-collection"),
      signal,
    }),
    eviction.run(),
    node.cgroups.run(),
    resourceManagers.run(signal),
    node.network.run(signal),
    config.node.iptablesChains
      ? maintainIptablesChains({
          iptables: foundation.iptables,
          clock: foundation.clock,
          log: foundation.log.child("iptables"),
          signal,
        })
      : undefined,
    podComponents.volumes.run(signal),
    podComponents.volumeHealth?.run(signal),
    node.statusManager?.run(),
    watchRuntimeEvents(foundation, podComponents),
    reportingClient &&
      watchOom({ recordEvent: recordNodeEvent, clock: foundation.clock, log: foundation.log.child("oom"), signal }),
    podComponents.sources.run(),
    config.pods.localStorageIsolation
      ? enforceStorageLimits(foundation, podComponents, eviction, evictionRecords)
      : undefined,
  ]);
}

function runLogRotation({ config, cri, clock, log, signal }: Foundation, ofPods: PodComponents): Promise<void> {
  const { logMaxFiles: maxFiles, logMaxBytes: maxBytes, logMonitorMs: periodMs, logWorkers: workers } = config.pods;
  const { runtime } = cri;
  const { pods, removedLogs: removed } = ofPods;
  const limits = { maxFiles, maxBytes, workers, periodMs };
  return rotateLogs({ runtime, clock, log: log.child("logs"), pods, ...limits, removed, signal });
}

function watchRuntimeEvents(
  { cri, clock, log, signal }: Foundation,
  { relister, metrics }: PodComponents,
): Promise<void> | undefined {
  const { events } = cri;
  const onEvent = (): void => relister.requestRelist();
  const onStream = (isOpen: boolean): void => relister.setEventStream(isOpen);
  const options = { clock, random: systemRandom, log, onEvent, onStream, metrics: metrics.eventStream, signal };
  return events && watchContainerEvents({ events, ...options });
}

function enforceStorageLimits(
  { config, cri, clock, log, quotas, signal }: Foundation,
  parts: PodComponents,
  eviction: EvictionManager,
  records: EvictionRecords,
): Promise<void> {
  const { volumes, events } = parts.services;
  const measureUsage = async (directory: string): Promise<number> =>
    (await quotas?.readUsage(directory))?.usedBytes ?? (await measureDiskUsage(directory));
  const hasImageFs = () => eviction.hasImageFs();
  const storage = { runtime: cri.runtime, volumes, directories: config, measureUsage, hasImageFs };
  const findExcess = (pod: Pod) => findStorageExcess(storage, pod);
  const onEvicted = (limit: string): void => parts.metrics.onEvicted(limit);
  const pods = () => parts.pods.workers;
  const reporting = { records, events, onEvicted, clock, log };
  return enforceSizeLimits({ ...reporting, findExcess, pods, volumes, measureUsage, signal });
}
