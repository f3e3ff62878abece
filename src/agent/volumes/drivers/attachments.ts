/**
 * Volumes that must be attached to the node before they are mounted. Either a controller attaches them: the agent
 * reports the volumes in use in the node's status and waits until the status lists them as attached. Or the agent
 * creates the VolumeAttachments itself.
 */
import type { Node } from "../../../api/core/node/schema.ts";
import { ignoreNotFound, StatusError } from "../../../api/status.ts";
import { volumeAttachmentKind } from "../../../api/storage/volume-attachment/kind.ts";
import type { VolumeAttachment } from "../../../api/storage/volume-attachment/schema.ts";
import type { Client } from "../../../client/client.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { OperationError } from "../operation-error.ts";

export interface AttachmentsOptions {
  /** Undefined: there is no API server, and nothing can be attached. */
  readonly client: Client | undefined;
  readonly clock: Clock;
  readonly nodeName: string;
  /** Whether a controller attaches and detaches. */
  readonly byController: boolean;
  readonly node: () => Promise<Node>;
  /** Called when `inUse` has changed. */
  readonly onInUseChange: () => void;
  /** Called when the pod's volumes may be attached now. */
  readonly retryPod: (uid: string) => void;
}

export interface AttachableVolume {
  /** `kubernetes.io/csi/<driver>^<handle>` */
  readonly uniqueName: string;
  /** Name of the VolumeAttachment. */
  readonly attachment: string;
  readonly driver: string;
  readonly handle: string;
  readonly persistentVolume: string;
}

export interface AttachedVolume {
  /** attachmentMetadata, which the attacher passes to the driver's node service. */
  readonly context: Readonly<Record<string, string>>;
  /** The agent attached the volume with this call. */
  readonly isNew: boolean;
}

const POLL_MS = 500;
const ATTACH_TIMEOUT_MS = 120_000;

export class Attachments {
  readonly #options: AttachmentsOptions;
  /** Unique name of a volume → pods; bounded by the volumes of the node's pods. */
  readonly #podsByVolume = new Map<string, Set<string>>();
  readonly #waitingPods = new Set<string>();

  constructor(options: AttachmentsOptions) {
    this.#options = options;
  }

  get byController(): boolean {
    return this.#options.byController;
  }

  /** For the node's status. */
  get inUse(): readonly string[] {
    return [...this.#podsByVolume.keys()].sort();
  }

  markInUse(uniqueName: string, uid: string): void {
    const users = this.#podsByVolume.get(uniqueName);
    if (users !== undefined) {
      users.add(uid);
      return;
    }
    this.#podsByVolume.set(uniqueName, new Set([uid]));
    this.#options.onInUseChange();
  }

  /** Call when the volume is unmounted for the pod. */
  unmarkInUse(uniqueName: string, uid: string): void {
    const users = this.#podsByVolume.get(uniqueName);
    if (users?.delete(uid) !== true || users.size > 0) return;
    this.#podsByVolume.delete(uniqueName);
    this.#options.onInUseChange();
  }

  /** Call when the pod is torn down. */
  removePod(uid: string): void {
    for (const uniqueName of [...this.#podsByVolume.keys()]) this.unmarkInUse(uniqueName, uid);
    this.#waitingPods.delete(uid);
  }

  /** Call when the Node object changed: waiting pods check it again. */
  nodeChanged(): void {
    const waiting = [...this.#waitingPods];
    this.#waitingPods.clear();
    for (const uid of waiting) this.#options.retryPod(uid);
  }

  /** Resolves when the volume is attached. Rejects with an `OperationError`, without an event while it waits. */
  async ensureAttached(volume: AttachableVolume, uid: string, signal?: AbortSignal): Promise<AttachedVolume> {
    this.markInUse(volume.uniqueName, uid);
    if (!this.#options.byController) return await this.#attach(volume, signal);
    await this.#verify(volume, uid);
    try {
      const found = await this.#get(volume, signal);
      return { context: getAttachContext(volume, found), isNew: false };
    } catch (error) {
      signal?.throwIfAborted();
      throw new OperationError("MountVolume.WaitForAttach", volume.persistentVolume, "FailedMount", error);
    }
  }

  /** The devicePath that the controller reports. Rejects with an `OperationError` while the volume is not attached. */
  async waitForDevice(uniqueName: string, volume: string, uid: string): Promise<string> {
    this.markInUse(uniqueName, uid);
    return await this.#verify({ uniqueName, persistentVolume: volume }, uid);
  }

  /** Deletes a VolumeAttachment that the agent created; never the controller's. */
  async detach(name: string): Promise<void> {
    const { client, byController } = this.#options;
    if (byController || client === undefined || name === "") return;
    await client.delete(volumeAttachmentKind, { name }).catch(ignoreNotFound);
  }

  async #verify(
    { uniqueName, persistentVolume }: Pick<AttachableVolume, "uniqueName" | "persistentVolume">,
    uid: string,
  ): Promise<string> {
    const wait = (reason: string): OperationError =>
      new OperationError("VerifyControllerAttachedVolume", persistentVolume, undefined, reason);
    // Before the read, so that no change is missed.
    this.#waitingPods.add(uid);
    const { status } = await this.#options.node();
    if (status?.volumesInUse?.includes(uniqueName) !== true) {
      throw wait("Volume has not been added to the list of VolumesInUse in the node's volume status");
    }
    const attached = status.volumesAttached?.find(({ name }) => name === uniqueName);
    if (attached === undefined) throw wait("Volume not attached according to node status");
    this.#waitingPods.delete(uid);
    return attached.devicePath;
  }

  async #attach(volume: AttachableVolume, signal: AbortSignal | undefined): Promise<AttachedVolume> {
    const { client, clock } = this.#options;
    const deadline = clock.monotonic() + ATTACH_TIMEOUT_MS;
    let isNew = false;
    try {
      if (client === undefined) throw new Error("the agent has no API server");
      let found = await this.#get(volume, signal);
      if (found === undefined) {
        isNew = true;
        found = await client.create(volumeAttachmentKind, this.#object(volume), signal).catch(ignoreConflict);
      }
      while (!isAttached(found)) {
        if (clock.monotonic() > deadline) {
          const { driver, handle } = volume;
          throw new Error(`timed out waiting for external-attacher of ${driver} CSI driver to attach volume ${handle}`);
        }
        await clock.sleep(POLL_MS, signal);
        found = await this.#get(volume, signal);
        isNew = true;
      }
      return { context: found?.status?.attachmentMetadata ?? {}, isNew };
    } catch (error) {
      signal?.throwIfAborted();
      throw new OperationError("AttachVolume.Attach", volume.persistentVolume, "FailedAttachVolume", error);
    }
  }

  #object({ attachment: name, driver: attacher, persistentVolume }: AttachableVolume): VolumeAttachment {
    const { nodeName } = this.#options;
    return {
      kind: "VolumeAttachment",
      apiVersion: "storage.svc.io/v1",
      metadata: { name },
      spec: { attacher, nodeName, source: { persistentVolumeName: persistentVolume } },
    };
  }

  async #get({ attachment, handle }: AttachableVolume, signal?: AbortSignal): Promise<VolumeAttachment | undefined> {
    const { client } = this.#options;
    if (client === undefined) throw new Error("the agent has no API server");
    try {
      return await client.get(volumeAttachmentKind, { name: attachment }, signal).catch(ignoreNotFound);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`volume ${handle} has GET error for volume attachment ${attachment}: ${message}`, {
        cause: error,
      });
    }
  }
}

/** Throws the attacher's error. */
function isAttached(found: VolumeAttachment | undefined): boolean {
  if (found?.metadata?.deletionTimestamp !== undefined) throw new Error("volume attachment is being deleted");
  if (found?.status?.attached === true) return true;
  const problem = found?.status?.attachError?.message;
  if (problem !== undefined) throw new Error(problem);
  return false;
}

function getAttachContext(
  volume: AttachableVolume,
  found: VolumeAttachment | undefined,
): Readonly<Record<string, string>> {
  if (found === undefined)
    throw new Error(`volume attachment ${volume.attachment} of volume ${volume.handle} not found`);
  if (!isAttached(found)) throw new Error(`volume ${volume.handle} is not attached yet (${volume.attachment})`);
  return found.status?.attachmentMetadata ?? {};
}

function ignoreConflict(error: unknown): undefined {
  if (error instanceof StatusError && error.status.code === 409) return undefined;
  throw error;
}
