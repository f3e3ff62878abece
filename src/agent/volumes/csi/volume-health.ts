/** Reads periodically what CSI drivers report about the condition of volumes (the gate CSIVolumeHealth). */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { PodEventRecorder } from "../../pods/pod-events.ts";
import { podUid } from "../../pods/pod-fields.ts";

export interface VolumeCondition {
  readonly abnormal: boolean;
  readonly message: string;
}

export interface VolumeHealthOptions {
  readonly pods: () => Iterable<{ readonly pod: Pod }>;
  /** Undefined for a volume whose driver reports no conditions. */
  readonly readCondition: (pod: Pod, volume: Volume, signal: AbortSignal) => Promise<VolumeCondition | undefined>;
  readonly events: Pick<PodEventRecorder, "recordPodEvent">;
  readonly periodMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

export class VolumeHealth {
  readonly #options: VolumeHealthOptions;
  /** Of the last round, by the pod's UID and the volume's name. */
  #conditions: ReadonlyMap<string, VolumeCondition> = new Map();

  constructor(options: VolumeHealthOptions) {
    this.#options = options;
  }

  /** Undefined as long as the driver has reported nothing. */
  isAbnormal(pod: Pod, volume: string): boolean | undefined {
    return this.#conditions.get(keyOf(pod, volume))?.abnormal;
  }

  /** Resolves when the signal aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, periodMs } = this.#options;
    while (!signal.aborted) {
      await this.refresh(signal);
      await clock.sleep(periodMs, signal).catch(() => undefined);
    }
  }

  /** Reads all conditions, and records an event for each volume that is abnormal, as kubelet does. */
  async refresh(signal: AbortSignal): Promise<void> {
    const found = new Map<string, VolumeCondition>();
    const read = [...this.#options.pods()].flatMap(({ pod }) =>
      (pod.spec?.volumes ?? []).filter(isOfDriver).map(async (volume) => {
        const condition = await this.#read(pod, volume, signal);
        if (condition === undefined || signal.aborted) return;
        found.set(keyOf(pod, volume.name), condition);
        if (!condition.abnormal) return;
        const text = `Volume ${volume.name}: ${condition.message}`;
        this.#options.events.recordPodEvent(pod, "Warning", "VolumeConditionAbnormal", text);
      }),
    );
    await Promise.all(read);
    this.#conditions = found;
  }

  async #read(pod: Pod, volume: Volume, signal: AbortSignal): Promise<VolumeCondition | undefined> {
    try {
      return await this.#options.readCondition(pod, volume, signal);
    } catch (error) {
      if (!signal.aborted) {
        this.#options.log.warn("Cannot read the condition of a volume", {
          volume: volume.name,
          podUID: podUid(pod),
          error: String(error),
        });
      }
      return undefined;
    }
  }
}

function isOfDriver({ csi, persistentVolumeClaim, ephemeral }: Volume): boolean {
  return csi !== undefined || persistentVolumeClaim !== undefined || ephemeral !== undefined;
}

function keyOf(pod: Pod, volume: string): string {
  return `${podUid(pod)}/${volume}`;
}
