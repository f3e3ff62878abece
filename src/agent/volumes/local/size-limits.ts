/** Evicts pods that exceed the `sizeLimit` of an emptyDir, or their limits of ephemeral storage. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { formatQuantity, parseQuantity, type Quantity, quantityValue } from "../../../api/meta/quantity.ts";
import type { Logger } from "../../../std/log/logger.ts";
import { beginEviction, type EvictionParts, HARD_GRACE_SECONDS } from "../../eviction/begin-eviction.ts";
import { isCritical, isTerminal, podFullName } from "../../pods/pod-fields.ts";
import type { Termination } from "../../pods/worker/pod-termination.ts";
import type { VolumeManager } from "../volume-manager.ts";
import type { StorageExcess } from "./storage-limits.ts";

export interface LimitedPod {
  readonly pod: Pod;
  terminate(termination: Termination): void;
}

export interface SizeLimitOptions extends EvictionParts {
  readonly pods: () => Iterable<LimitedPod>;
  readonly volumes: Pick<VolumeManager, "path">;
  readonly log: Logger;
  /** Bytes on disk below a directory. */
  readonly measureUsage: (directory: string) => Promise<number>;
  /** Whether a pod exceeds its limits of ephemeral storage. */
  readonly findExcess: (pod: Pod) => Promise<StorageExcess | undefined>;
  readonly onEvicted?: ((signal: StorageExcess["signal"]) => void) | undefined;
}

const PERIOD_MS = 10_000;
/** The largest share of the time that measuring takes. */
const SHARE = 0.1;

/** Resolves when the signal aborts. */
export async function enforceSizeLimits(options: SizeLimitOptions): Promise<void> {
  const { clock, signal } = options;
  const evicted = new WeakSet<LimitedPod>();
  while (!signal.aborted) {
    const began = clock.monotonic();
    for (const each of options.pods()) {
      if (evicted.has(each) || isTerminal(each.pod) || isCritical(each.pod)) continue;
      const excess = (await findVolumeExcess(options, each.pod)) ?? (await findPodExcess(options, each.pod));
      if (excess === undefined) continue;
      const { message } = excess;
      evicted.add(each);
      options.onEvicted?.(excess.signal);
      await beginEviction(each, { message, graceSeconds: HARD_GRACE_SECONDS, isDisruption: false }, options);
    }
    const tookMs = clock.monotonic() - began;
    await clock.sleep(Math.max(PERIOD_MS, tookMs / SHARE), signal).catch(() => undefined);
  }
}

async function findVolumeExcess(
  { volumes, measureUsage: usage, log }: SizeLimitOptions,
  pod: Pod,
): Promise<StorageExcess | undefined> {
  for (const volume of pod.spec?.volumes ?? []) {
    const limit = diskLimit(volume);
    if (limit === undefined) continue;
    try {
      if ((await usage(volumes.path(pod, volume))) > quantityValue(limit)) {
        const text = formatQuantity(limit);
        const message = `Usage of EmptyDir volume "${volume.name}" exceeds the limit "${text}". `;
        return { signal: "emptydirfs.limit", message };
      }
    } catch (error) {
      // The directory does not exist yet or any more.
      log.v(2)?.info("Cannot measure volume", { pod: podFullName(pod), volume: volume.name, error: String(error) });
    }
  }
  return undefined;
}

async function findPodExcess(
  { findExcess: excess, log }: SizeLimitOptions,
  pod: Pod,
): Promise<StorageExcess | undefined> {
  try {
    return await excess(pod);
  } catch (error) {
    log.v(2)?.info("Cannot measure pod", { pod: podFullName(pod), error: String(error) });
    return undefined;
  }
}

/** For emptyDirs in memory the kernel enforces the limit. A limit of 0 is none. */
function diskLimit({ emptyDir }: Volume): Quantity | undefined {
  if (emptyDir === undefined || emptyDir.medium) return undefined;
  const limit = parseQuantity(emptyDir.sizeLimit ?? "0");
  return limit !== undefined && limit.nanos > 0n ? limit : undefined;
}

const execFileAsync = promisify(execFile);

/** The result of `du`: counts hard links once, and neither holes nor other file systems. */
export async function measureDiskUsage(directory: string): Promise<number> {
  try {
    const { stdout } = await execFileAsync("du", ["-skx", directory]);
    return Number.parseInt(stdout, 10) * 1024;
  } catch (error) {
    // du fails for files that were removed meanwhile; its result is valid all the same.
    const { stdout } = error as { readonly stdout?: string };
    if (stdout === undefined || !/^\d+\t/.test(stdout)) throw error;
    return Number.parseInt(stdout, 10) * 1024;
  }
}
