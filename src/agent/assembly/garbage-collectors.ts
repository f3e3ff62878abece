/** Creates the collectors of unused images and dead containers. */
import { ContainerCollector } from "../garbage-collection/container-collector.ts";
import { ImageCollector } from "../garbage-collection/image-collector.ts";
import { listImagesInUse } from "../garbage-collection/images-in-use.ts";
import { FileSystems } from "../stats/file-systems.ts";
import type { Foundation } from "./foundation.ts";
import type { PodComponents } from "./pods.ts";
import type { Reporting } from "./reporting.ts";

export interface GarbageCollectors {
  readonly images: ImageCollector;
  readonly containers: ContainerCollector;
}

export function createGarbageCollectors(
  { config, cri, images, clock, log, importedImages, pullRecords }: Foundation,
  { pods, metrics }: PodComponents,
  { recordNodeEvent: recordEvent }: Reporting,
): GarbageCollectors {
  const fileSystems = new FileSystems(clock);
  const workers = () => pods.workers;
  const common = { clock, log: log.child("garbage-collection") };
  return {
    images: new ImageCollector({
      ...common,
      ...config.garbage.images,
      images: images.images,
      inUse: async () => listImagesInUse(workers(), (await cri.runtime.listContainers({})).containers ?? []),
      kept: new Set([...importedImages, config.garbage.sandboxImage]),
      readFileSystem: (path) => fileSystems.read(path),
      recordEvent,
      onCollected: (reason) => metrics.onImageCollected(reason),
      onEnded: pullRecords && ((...ended) => pullRecords.prune(...ended)),
    }),
    containers: new ContainerCollector({
      ...common,
      runtime: cri.runtime,
      pods: workers,
      deadMax: config.garbage.deadContainersMax,
      minAgeMs: config.pods.deadRunMinAgeMs,
    }),
  };
}
