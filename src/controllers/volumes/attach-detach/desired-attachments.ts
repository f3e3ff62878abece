/** The volumes that pods need, by the name of their VolumeAttachment. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import { keyOf } from "../../workload/object-keys.ts";
import type { AttachableVolume } from "./attachable-volumes.ts";

export interface DesiredAttachment {
  readonly volume: AttachableVolume;
  /** By key; never empty. */
  readonly pods: ReadonlyMap<string, Pod>;
}

interface Entry {
  volume: AttachableVolume;
  readonly pods: Map<string, Pod>;
}

/** Bounded by the volumes of all pods. */
export class DesiredAttachments {
  readonly #entries = new Map<string, Entry>();
  readonly #attachmentsOfPod = new Map<string, readonly string[]>();

  all(): Iterable<DesiredAttachment> {
    return this.#entries.values();
  }

  get(attachment: string): DesiredAttachment | undefined {
    return this.#entries.get(attachment);
  }

  /** The volumes of a persistent volume on all nodes. */
  ofPersistentVolume(name: string): readonly DesiredAttachment[] {
    return [...this.#entries.values()].filter(({ volume }) => volume.persistentVolume.metadata?.name === name);
  }

  /** Sets what the pod needs. Returns the attachments that it needs now or needed before. */
  set(pod: Pod, volumes: readonly AttachableVolume[]): readonly string[] {
    const key = keyOf(pod);
    const before = this.#attachmentsOfPod.get(key) ?? [];
    for (const attachment of before) this.#remove(attachment, key);
    for (const volume of volumes) {
      const entry = this.#entries.get(volume.attachment) ?? { volume, pods: new Map<string, Pod>() };
      entry.volume = volume;
      entry.pods.set(key, pod);
      this.#entries.set(volume.attachment, entry);
    }
    const after = volumes.map(({ attachment }) => attachment);
    if (after.length > 0) this.#attachmentsOfPod.set(key, after);
    else this.#attachmentsOfPod.delete(key);
    return [...new Set([...before, ...after])];
  }

  #remove(attachment: string, key: string): void {
    const entry = this.#entries.get(attachment);
    entry?.pods.delete(key);
    if (entry?.pods.size === 0) this.#entries.delete(attachment);
  }
}
