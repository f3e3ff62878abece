/** Creates the manager of graceful node shutdown. */
import type { ShutdownManager } from "../node/shutdown/shutdown-manager.ts";
import type { ShutdownNotices } from "../node/shutdown/shutdown-notices.ts";
import { registerShutdownTimes } from "../node/shutdown/shutdown-times.ts";
import type { Foundation } from "./foundation.ts";
import type { NodeComponents } from "./node.ts";
import type { PodComponents } from "./pods.ts";
import type { Reporting } from "./reporting.ts";

interface ShutdownLinks {
  readonly reporting: Reporting;
  readonly node: NodeComponents;
  readonly podComponents: PodComponents;
}

/** How long the last statuses of pods are sent. */
const FLUSH_MS = 2_000;

/** Undefined when the configuration has no grace period for it. */
export async function openShutdownManager(
  { config, shutdownNotices, metrics, clock, log }: Foundation,
  links: () => ShutdownLinks,
): Promise<ShutdownManager | undefined> {
  const { shutdown, rootDir } = config;
  const gauges = shutdown?.recordsTimes === true ? registerShutdownTimes(metrics) : undefined;
  if (shutdown === undefined || shutdown.groups.length === 0) return undefined;
  const { ShutdownManager } = await import("../node/shutdown/shutdown-manager.ts");
  return new ShutdownManager({
    groups: shutdown.groups,
    gauges,
    rootDir,
    notices: shutdownNotices ?? (await openNotices()),
    pods: () => [...links().podComponents.pods.workers].filter(({ stateName }) => stateName !== "terminated"),
    recordNodeEvent: (...event) => links().reporting.recordNodeEvent(...event),
    reportStatus: () => links().node.statusManager?.reportNow(),
    flushStatuses: async () => await links().reporting.status?.flush(FLUSH_MS),
    clock,
    log: log.child("shutdown"),
  });
}

/** logind's, or a signal's on a machine without systemd. */
async function openNotices(): Promise<ShutdownNotices> {
  const { createLogind, hasSystemd } = await import("../node/shutdown/logind.ts");
  if (await hasSystemd()) return createLogind();
  const { createSignalNotices } = await import("../node/shutdown/shutdown-notices.ts");
  return createSignalNotices();
}
