/** What goes on for as long as the agent runs. */
import type { Pod } from "../../api/core/pod/schema.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { machineFacts } from "../node/machine/machine-check.ts";
import { keepIptablesChains } from "../node/network/iptables-chains.ts";
import { storageExcess } from "../volumes/local/storage-limits.ts";
import { tellOfMachine } from "../node/node-events.ts";
import { watchOom } from "../node/machine/oom-watch.ts";
import { rotateLogs } from "../pods/containers/log-rotation.ts";
import { watchContainerEvents } from "../runtime/container-events.ts";
import { diskUsage, enforceSizeLimits } from "../volumes/local/size-limits.ts";
import type { Foundation } from "./foundation.ts";
import type { NodeParts } from "./node.ts";
import type { PodParts } from "./pods.ts";
import type { Reporting } from "./reporting.ts";

/** Resolves when the signal aborted and every loop has ended. */
export async function runLoops(
  at: Foundation,
  { tellOfNode, teller }: Reporting,
  node: NodeParts,
  parts: PodParts,
): Promise<void> {
  const { config, machine, signal } = at;
  tellOfNode("Normal", "Starting", "Starting svclet.");
  await tellOfMachine(await machineFacts(config, machine), tellOfNode);
  await parts.noteRuntime().catch(() => undefined);
  await Promise.all([
    parts.relister.run(),
    rotate(at, parts),
    node.cgroups.run(),
    node.network.run(signal),
    config.node.iptablesChains
      ? keepIptablesChains({ iptables: at.iptables, clock: at.clock, log: at.log.child("iptables"), signal })
      : undefined,
    parts.volumes.run(signal),
    node.keeper?.run(),
    listen(at, parts),
    teller && watchOom({ event: tellOfNode, clock: at.clock, log: at.log.child("oom"), signal }),
    parts.sources.run(),
    config.pods.localStorageIsolation ? limitStorage(at, parts) : undefined,
  ]);
}

function rotate({ config, cri, clock, log, signal }: Foundation, { pods }: PodParts): Promise<void> {
  const { logMaxFiles: maxFiles, logMaxBytes: maxBytes, logMonitorMs: periodMs, logWorkers: workers } = config.pods;
  const { runtime } = cri;
  return rotateLogs({ runtime, clock, log: log.child("logs"), pods, maxFiles, maxBytes, workers, periodMs, signal });
}

function listen({ cri, clock, log, signal }: Foundation, { relister }: PodParts): Promise<void> | undefined {
  const { events } = cri;
  const onEvent = (): void => relister.requestRelist();
  return events && watchContainerEvents({ events, clock, random: systemRandom, log, onEvent, signal });
}

function limitStorage({ config, cri, clock, log, signal }: Foundation, parts: PodParts): Promise<void> {
  const { volumes, events } = parts.services;
  const usage = diskUsage;
  const storage = { runtime: cri.runtime, volumes, directories: config, usage };
  const excess = (pod: Pod): Promise<string | undefined> => storageExcess(storage, pod);
  return enforceSizeLimits({ excess, pods: () => parts.pods.workers, volumes, events, clock, log, usage, signal });
}
