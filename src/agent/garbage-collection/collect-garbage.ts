/** Runs the garbage collectors periodically, as kubelet: containers every minute, images every five. */
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { RecordNodeEvent } from "../node/node-events.ts";
import type { ContainerCollector } from "./container-collector.ts";
import type { ImageCollector } from "./image-collector.ts";

const CONTAINERS_MS = 60_000;
const IMAGES_MS = 300_000;
/** Interval of the attempts until the pods are known. */
const READY_MS = 5_000;

export interface GarbageCollectionOptions {
  readonly images: Pick<ImageCollector, "isEnabled" | "collect">;
  readonly containers: Pick<ContainerCollector, "isEnabled" | "collect">;
  /** Whether all pods of the node are known; what they use would be collected before. */
  readonly isReady: () => boolean;
  readonly recordEvent: RecordNodeEvent;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Resolves when the signal aborts. A collector whose limits remove nothing is not run. */
export async function collectGarbage(options: GarbageCollectionOptions): Promise<void> {
  const { isReady, clock, signal } = options;
  if (!options.containers.isEnabled && !options.images.isEnabled) return;
  while (!isReady() && !signal.aborted) await clock.sleep(READY_MS, signal).catch(() => {});
  await Promise.all([
    options.containers.isEnabled ? collectContainers(options) : undefined,
    options.images.isEnabled ? collectImages(options) : undefined,
  ]);
}

async function collectContainers({ containers, recordEvent, clock, log, signal }: GarbageCollectionOptions) {
  while (!signal.aborted) {
    try {
      await containers.collect();
    } catch (error) {
      log.error("Container garbage collection failed", error);
      recordEvent("Warning", "ContainerGCFailed", messageOf(error));
    }
    await clock.sleep(CONTAINERS_MS, signal).catch(() => {});
  }
}

async function collectImages({ images, recordEvent, clock, log, signal }: GarbageCollectionOptions) {
  let hasFailed = false;
  while (!signal.aborted) {
    try {
      await images.collect();
      if (hasFailed) log.info("Image garbage collection succeeded");
      hasFailed = false;
    } catch (error) {
      if (hasFailed) {
        log.error("Image garbage collection failed multiple times in a row", error);
        recordEvent("Warning", "ImageGCFailed", messageOf(error));
      } else {
        log.error("Image garbage collection failed once", error);
      }
      hasFailed = true;
    }
    await clock.sleep(IMAGES_MS, signal).catch(() => {});
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
