/** Kubernetes' metrics of volumes that are or should be attached. */
import type { VolumeAttachment } from "../../../api/storage/volume-attachment/schema.ts";
import type { CounterFamily, MetricRegistry } from "../../../std/metrics/metrics.ts";
import type { DesiredAttachments } from "./desired-attachments.ts";

/** The plugin of all volumes that this controller attaches. */
const PLUGIN = "kubernetes.io/csi";
const stability = "ALPHA" as const;

/** Registers the counter of volumes that were detached while they were in use. */
export function registerForcedDetaches(registry: MetricRegistry): CounterFamily {
  return registry.counter({
    name: "attach_detach_controller_attachdetach_controller_forced_detaches",
    help: "Number of volumes that were detached while they were in use.",
    stability,
    labels: ["reason"],
  });
}

/** The numbers are computed when they are read. */
export function registerAttachmentCounts(
  registry: MetricRegistry,
  desired: Pick<DesiredAttachments, "all">,
  attachments: () => Iterable<VolumeAttachment>,
): void {
  const inUse = registry.gauge({
    name: "storage_count_attachable_volumes_in_use",
    help: "Number of volumes of pods, by node; a volume counts for each of its pods.",
    stability,
    labels: ["node", "volume_plugin"],
  });
  const total = registry.gauge({
    name: "attachdetach_controller_total_volumes",
    help: "Number of volumes that pods need on their nodes (desired) and that are attached (actual).",
    stability,
    labels: ["plugin_name", "state"],
  });
  registry.onCollect(() => {
    for (const family of [inUse, total]) family.clear();
    for (const { volume, pods } of desired.all()) {
      total.with(PLUGIN, "desired_state_of_world").inc();
      inUse.with(volume.nodeName, PLUGIN).inc(pods.size);
    }
    for (const { status } of attachments())
      if (status?.attached === true) total.with(PLUGIN, "actual_state_of_world").inc();
  });
}
