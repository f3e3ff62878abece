/**
 * Removes unused images: the least recently used ones when the file system of images is full, and those that were not
 * used for long. As kubelet's image garbage collection.
 */
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { formatGoDuration } from "../../std/time/go-duration.ts";
import type { RecordNodeEvent } from "../node/node-events.ts";
import type { Image } from "../runtime/cri/image.ts";
import type { ImageService } from "../runtime/runtime.ts";
import type { FileSystem } from "../stats/file-systems.ts";

export interface ImageLimits {
  /** Percent of the file system; 100 turns the collection by space off. */
  readonly highPercent: number;
  /** Images are removed until the usage is below it. */
  readonly lowPercent: number;
  /** Images that were found later than this are kept. */
  readonly minAgeMs: number;
  /** Images that were not used for longer are removed whatever the space; 0 turns that off. */
  readonly maxAgeMs: number;
}

/** Ids or names of images, as the runtime or a pod has them. */
export type ImageNames = ReadonlySet<string>;

export interface ImageCollectorOptions extends ImageLimits {
  readonly images: Pick<ImageService, "listImages" | "removeImage" | "imageFsInfo">;
  /** The images of the node's containers and pods. */
  readonly inUse: () => ImageNames | Promise<ImageNames>;
  /** Names of images that are never removed, such as those that were imported from files. */
  readonly kept: ImageNames;
  readonly readFileSystem: (path: string) => Promise<FileSystem | undefined>;
  readonly recordEvent: RecordNodeEvent;
  readonly onCollected: (reason: "space" | "age") => void;
  /** Called after each collection that succeeds, with the ids of the images that are present. */
  readonly onEnded?: ((present: ReadonlySet<string>, startedAt: number) => Promise<void>) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface RemovableImage {
  readonly id: string;
  readonly names: readonly string[];
  readonly sizeBytes: number;
  /** The time until the image is old enough. */
  readonly inSeconds: number;
}

/** What a collection would remove, in order. */
export interface ImageForecast {
  /** 100: images are not collected for space. */
  readonly highPercent: number;
  readonly lowPercent: number;
  readonly usedPercent: number;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  /** The bytes that can be written until images are collected; undefined when they are not collected for space. */
  readonly bytesLeft: number | undefined;
  /** The images that are removed for space, down to the low threshold. */
  readonly next: readonly RemovableImage[];
  /** The images that are removed for their age. */
  readonly aged: readonly RemovableImage[];
}

interface FoundImage {
  readonly image: Image;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly firstFound: number;
  /** 0 when it was never seen in use. */
  lastUsed: number;
}

/** The bytes to free in the error when all images shall be removed, as in Kubernetes. */
const MAX_INT64 = 2n ** 63n - 1n;

export class ImageCollector {
  readonly #options: ImageCollectorOptions;
  /** By id; bounded by the images of the runtime. */
  readonly #found = new Map<string, FoundImage>();
  readonly #startedAt: number;

  constructor(options: ImageCollectorOptions) {
    this.#options = options;
    this.#startedAt = options.clock.now();
  }

  /** Whether the limits allow any collection. */
  get isEnabled(): boolean {
    return this.#options.highPercent < 100 || this.#options.maxAgeMs > 0;
  }

  /** Rejects when the runtime does, or when too little could be removed. */
  async collect(): Promise<void> {
    const { highPercent, maxAgeMs } = this.#options;
    const now = this.#options.clock.now();
    if (maxAgeMs > 0) await this.#removeOld(now);
    if (highPercent < 100) await this.#freeAboveThreshold(now);
    await this.#end(now);
  }

  async #freeAboveThreshold(now: number): Promise<void> {
    const { highPercent, lowPercent, log } = this.#options;
    const { availableBytes, capacityBytes } = await this.#readUsage();
    const usedPercent = toUsedPercent(availableBytes, capacityBytes);
    if (usedPercent < highPercent) return;
    const wanted = Math.floor((capacityBytes * (100 - lowPercent)) / 100) - availableBytes;
    log.info(
      "Disk usage on image filesystem is over the high threshold, trying to free bytes down to the low threshold",
      {
        usage: usedPercent,
        highThreshold: highPercent,
        amountToFree: wanted,
        lowThreshold: lowPercent,
      },
    );
    const freed = await this.#free(wanted, now);
    if (freed >= wanted) return;
    const message = `Failed to garbage collect required amount of images. Attempted to free ${wanted} bytes, but only found ${freed} bytes eligible to free.`;
    this.#options.recordEvent("Warning", "FreeDiskSpaceFailed", message);
    throw new Error(message);
  }

  /** Removes all unused images that are old enough. Resolves with the freed bytes. */
  async removeUnused(): Promise<number> {
    this.#options.log.info("Attempting to delete unused images");
    const now = this.#options.clock.now();
    const freed = await this.#free(Number.POSITIVE_INFINITY, now);
    await this.#end(now);
    return freed;
  }

  async #end(startedAt: number): Promise<void> {
    const { onEnded } = this.#options;
    if (onEnded === undefined) return;
    await this.observe();
    await onEnded(new Set(this.#found.keys()), startedAt);
  }

  /** What would be removed next, and for its age when. */
  async forecast(): Promise<ImageForecast> {
    const { highPercent, lowPercent, minAgeMs, maxAgeMs, clock } = this.#options;
    const now = clock.now();
    const { availableBytes, capacityBytes } = await this.#readUsage();
    // Percents are rounded in favour of a collection.
    const limit = (capacityBytes * (101 - highPercent)) / 100;
    const wanted = (capacityBytes * (100 - lowPercent)) / 100 - Math.min(availableBytes, limit);
    const unused = await this.#listUnused(now);
    const toRemovable = (each: FoundImage, sinceMs: number): RemovableImage => ({
      id: each.image.id ?? "",
      names: each.image.repoTags ?? [],
      sizeBytes: each.sizeBytes,
      inSeconds: Math.max(0, Math.round((sinceMs - now) / 1000)),
    });
    const next: RemovableImage[] = [];
    for (let freed = 0, index = 0; highPercent < 100 && freed < wanted && index < unused.length; index++) {
      const each = unused[index];
      if (each === undefined) break;
      next.push(toRemovable(each, each.firstFound + minAgeMs));
      freed += each.sizeBytes;
    }
    const aged = maxAgeMs > 0 ? unused.map((each) => toRemovable(each, this.#unusedSince(each) + maxAgeMs)) : [];
    return {
      highPercent,
      lowPercent,
      usedPercent: toUsedPercent(availableBytes, capacityBytes),
      capacityBytes,
      availableBytes,
      bytesLeft: highPercent < 100 ? Math.max(0, Math.ceil(availableBytes - limit)) : undefined,
      next,
      aged: aged.sort((a, b) => a.inSeconds - b.inSeconds),
    };
  }

  async #readUsage(): Promise<FileSystem> {
    const { imageFilesystems = [] } = await this.#options.images.imageFsInfo({});
    const path = imageFilesystems[0]?.fsId?.mountpoint ?? "";
    const usage = path === "" ? undefined : await this.#options.readFileSystem(path);
    if (usage === undefined) throw new Error(`invalid capacity: the file system of images cannot be read at "${path}"`);
    if (usage.capacityBytes > 0) return usage;
    const message = `invalid capacity ${usage.capacityBytes} on image filesystem`;
    this.#options.recordEvent("Warning", "InvalidDiskCapacity", message);
    throw new Error(message);
  }

  /** An image that cannot be removed keeps no other. */
  async #removeOld(now: number): Promise<void> {
    const { maxAgeMs, log } = this.#options;
    const failures: string[] = [];
    for (const each of await this.#listUnused(now)) {
      const since = this.#unusedSince(each);
      if (now - since <= maxAgeMs) continue;
      log.info("Image is older than the maximum age", { imageID: each.image.id, age: now - since });
      try {
        await this.#remove(each, "age");
      } catch (error) {
        failures.push(describeError(error));
      }
    }
    if (failures.length === 0) return;
    const age = formatGoDuration(maxAgeMs);
    const what = `wanted to free images older than ${age}, encountered errors in image deletion`;
    throw new Error(`${what}: ${joinErrors(failures)}`);
  }

  /** The age of images that were never used counts from their discovery, and not from before this start. */
  #unusedSince({ lastUsed, firstFound }: FoundImage): number {
    return Math.max(lastUsed, lastUsed === 0 ? firstFound : 0, this.#startedAt);
  }

  async #free(wanted: number, now: number): Promise<number> {
    let freed = 0;
    const failures: string[] = [];
    for (const each of await this.#listUnused(now)) {
      if (freed >= wanted) break;
      const { image, firstFound } = each;
      if (now - firstFound < this.#options.minAgeMs) {
        this.#options.log.v(5)?.info("Image is too young to be removed", { imageID: image.id, age: now - firstFound });
        continue;
      }
      try {
        await this.#remove(each, "space");
        freed += each.sizeBytes;
      } catch (error) {
        failures.push(describeError(error));
      }
    }
    if (failures.length === 0) return freed;
    const bytes = Number.isFinite(wanted) ? wanted : MAX_INT64;
    const what = `wanted to free ${bytes} bytes, but freed ${freed} bytes space with errors in image deletion`;
    throw new Error(`${what}: ${joinErrors(failures)}`);
  }

  async #remove({ image, sizeBytes }: FoundImage, reason: "space" | "age"): Promise<void> {
    const { images, log, onCollected } = this.#options;
    const id = image.id ?? "";
    log.info("Removing image to free bytes", { imageID: id, names: image.repoTags ?? [], size: sizeBytes, reason });
    const { runtimeHandler } = image.spec ?? {};
    await images.removeImage({ image: { image: id, ...(runtimeHandler ? { runtimeHandler } : {}) } });
    this.#found.delete(id);
    onCollected(reason);
  }

  /** Least recently used first, then the oldest. */
  async #listUnused(now: number): Promise<readonly FoundImage[]> {
    await this.observe(now);
    const isKept = (image: Image): boolean => image.pinned === true || this.#matches(image, this.#options.kept);
    return [...this.#found.values()]
      .filter(({ lastUsed, image }) => lastUsed < now && !isKept(image))
      .sort((a, b) => a.lastUsed - b.lastUsed || a.firstFound - b.firstFound);
  }

  /** Records which images there are, and which are in use. */
  async observe(now = this.#options.clock.now()): Promise<void> {
    const { images = [] } = await this.#options.images.listImages({});
    const inUse = await this.#options.inUse();
    const present = new Set<string>();
    for (const image of images) {
      const id = image.id ?? "";
      present.add(id);
      const before = this.#found.get(id);
      const lastUsed = this.#matches(image, inUse) ? now : (before?.lastUsed ?? 0);
      const firstFound = before?.firstFound ?? now;
      this.#found.set(id, { image, sizeBytes: Number(image.size ?? 0n), firstFound, lastUsed });
    }
    for (const id of this.#found.keys()) if (!present.has(id)) this.#found.delete(id);
  }

  #matches({ id = "", repoTags = [], repoDigests = [] }: Image, names: ImageNames): boolean {
    return names.has(id) || repoTags.some((name) => names.has(name)) || repoDigests.some((name) => names.has(name));
  }
}

function toUsedPercent(availableBytes: number, capacityBytes: number): number {
  return 100 - Math.floor((availableBytes * 100) / capacityBytes);
}

function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** As Kubernetes prints several errors. */
function joinErrors(messages: readonly string[]): string {
  const distinct = [...new Set(messages)];
  return distinct.length === 1 ? `${distinct[0]}` : `[${distinct.join(", ")}]`;
}
