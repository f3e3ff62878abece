/** Feeds the node authorizer's graph with pods, volumes and volume attachments. */
import { persistentVolumeKind } from "../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../api/core/persistent-volume/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { betaResourceSliceKind } from "../../api/resource/flat-versions/kinds.ts";
import type { BetaResourceSlice } from "../../api/resource/flat-versions/schemas.ts";
import { volumeAttachmentKind } from "../../api/storage/volume-attachment/kind.ts";
import type { VolumeAttachment } from "../../api/storage/volume-attachment/schema.ts";
import type { NodeGraph } from "../../auth/authz/node/node-graph.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";

const RETRY_MS = 1000;

interface KindHandler<T> {
  put(object: T): void;
  delete(object: T): void;
}

/** Runs until the signal aborts. */
export async function feedNodeGraph(
  registries: Registries,
  graph: NodeGraph,
  clock: Clock,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const follow = <T extends ApiObject>(registry: Registry<T>, feed: KindHandler<T>): Promise<void> =>
    feedKind(registry, feed, clock, log, signal);
  const followSlices = (): Promise<void> =>
    follow<BetaResourceSlice>(registries.of(betaResourceSliceKind), {
      put: ({ metadata, spec }) => graph.putNodeObject("resourceslices", metadata?.name ?? "", spec.nodeName ?? ""),
      delete: ({ metadata }) => graph.deleteNodeObject("resourceslices", metadata?.name ?? ""),
    });
  await Promise.all([
    follow<Pod>(registries.of(podKind), {
      put: (pod) => graph.putPod(pod),
      delete: ({ metadata }) => graph.deletePod(metadata?.namespace ?? "", metadata?.name ?? ""),
    }),
    follow<PersistentVolume>(registries.of(persistentVolumeKind), {
      put: (volume) => graph.putVolume(volume),
      delete: ({ metadata }) => graph.deleteVolume(metadata?.name ?? ""),
    }),
    follow<VolumeAttachment>(registries.of(volumeAttachmentKind), {
      put: ({ metadata, spec }) => graph.putNodeObject("volumeattachments", metadata?.name ?? "", spec?.nodeName ?? ""),
      delete: ({ metadata }) => graph.deleteNodeObject("volumeattachments", metadata?.name ?? ""),
    }),
    registries.features.has("DynamicResourceAllocation") ? followSlices() : undefined,
  ]);
}

async function feedKind<T extends ApiObject>(
  registry: Registry<T>,
  feed: KindHandler<T>,
  clock: Clock,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await registry.cache.ready();
      const prefix = registry.objects.prefix();
      for await (const event of registry.cache.watch({ prefix, signal })) {
        if (event.type === "BOOKMARK") continue;
        if (event.type === "DELETED") feed.delete(event.item.object);
        else feed.put(event.item.object);
      }
    } catch (error) {
      if (signal.aborted) return;
      log.error(`Restarting the watch of ${registry.kind.plural} for the node authorizer`, error);
      await clock.sleep(RETRY_MS, signal).catch(() => {});
    }
  }
}
