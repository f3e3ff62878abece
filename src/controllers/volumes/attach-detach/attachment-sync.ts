/** Attaches and detaches one volume, and reports the attached volumes of a node. */
import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Node } from "../../../api/core/node/schema.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { ignoreNotFound } from "../../../api/status.ts";
import { volumeAttachmentKind } from "../../../api/storage/volume-attachment/kind.ts";
import type { VolumeAttachment } from "../../../api/storage/volume-attachment/schema.ts";
import type { Client } from "../../../client/client.ts";
import type { EventRecorder } from "../../../client/events/event-recorder.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { CounterFamily } from "../../../std/metrics/metrics.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { KeyTimers } from "../../../std/time/key-timers.ts";
import { statusCodeOf } from "../../api-errors.ts";
import { objectReference } from "../../workload/object-keys.ts";
import { messageOf } from "../../workload/pod-control.ts";
import {
  type AttachableVolume,
  allowsMultiAttach,
  isGeneratedName,
  isManaged,
  isOutOfService,
  isReady,
  uniqueVolumeName,
} from "./attachable-volumes.ts";
import type { DesiredAttachment, DesiredAttachments } from "./desired-attachments.ts";

/** How long the attacher of a driver may take before an event reports it. */
const ATTACH_TIMEOUT_MS = 120_000;
/** How long a volume that no pod needs may be in use on a node that is not ready. */
const UNMOUNT_TIMEOUT_MS = 360_000;

export interface AttachmentSyncDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recorder: EventRecorder;
  readonly timers: KeyTimers;
  readonly desired: DesiredAttachments;
  readonly nodes: Informer<Node>;
  readonly volumes: Informer<PersistentVolume>;
  readonly attachments: Informer<VolumeAttachment>;
  /** Whether volumes are detached from nodes that are not ready after `UNMOUNT_TIMEOUT_MS`. */
  readonly forcesDetach: boolean;
  /** Counts volumes that were detached while they were in use, by reason. */
  readonly forcedDetaches?: CounterFamily | undefined;
  readonly queueAttachment: (name: string) => void;
  readonly queueNode: (name: string) => void;
}

/** The sets and maps are bounded by the number of attachments. */
export class AttachmentSync {
  readonly #deps: AttachmentSyncDeps;
  /** Attachments that have not been attached yet, with the time when the attacher is late. */
  readonly #attaching = new Map<string, number>();
  /** Attachments that are about to be deleted: the node's status must not list their volumes. */
  readonly #detaching = new Set<string>();
  /** When no pod needed the volume any more. */
  readonly #unneededSince = new Map<string, number>();
  /** Attachments for which the conflict with another node has been recorded. */
  readonly #multiAttachReported = new Set<string>();

  constructor(deps: AttachmentSyncDeps) {
    this.#deps = deps;
  }

  attachmentChanged({ metadata, spec }: VolumeAttachment): void {
    const { desired, queueAttachment, queueNode } = this.#deps;
    const { name = "" } = metadata ?? {};
    queueAttachment(name);
    queueNode(spec.nodeName);
    // Other nodes may wait for this one to be detached.
    for (const { volume } of desired.ofPersistentVolume(spec.source.persistentVolumeName ?? "")) {
      if (volume.attachment !== name) queueAttachment(volume.attachment);
    }
  }

  nodeChanged(name: string): void {
    const { attachments, queueAttachment, queueNode } = this.#deps;
    queueNode(name);
    for (const { metadata, spec } of attachments.list())
      if (spec.nodeName === name) queueAttachment(metadata?.name ?? "");
  }

  async syncAttachment(name: string, signal: AbortSignal): Promise<void> {
    const wanted = this.#deps.desired.get(name);
    const found = this.#deps.attachments.get(name);
    if (wanted !== undefined) return await this.#attach(wanted, found, signal);
    if (found === undefined) this.#forget(name);
    else if (isGeneratedName(name) && found.metadata?.deletionTimestamp === undefined)
      await this.#detach(found, signal);
  }

  #forget(name: string): void {
    this.#attaching.delete(name);
    this.#detaching.delete(name);
    this.#unneededSince.delete(name);
    this.#multiAttachReported.delete(name);
    this.#deps.timers.delete(name);
  }

  async #attach(wanted: DesiredAttachment, found: VolumeAttachment | undefined, signal: AbortSignal): Promise<void> {
    const { queueNode, timers } = this.#deps;
    const { volume } = wanted;
    const name = volume.attachment;
    this.#unneededSince.delete(name);
    if (this.#detaching.delete(name)) queueNode(volume.nodeName);
    if (found === undefined) return await this.#create(wanted, signal);
    // It is created again when it is gone.
    if (found.metadata?.deletionTimestamp !== undefined) return;
    if (found.status?.attached === true) {
      timers.delete(name);
      if (this.#attaching.delete(name)) this.#record(wanted, "Normal", "SuccessfulAttachVolume", succeeded(volume));
      queueNode(volume.nodeName);
      return;
    }
    const problem = found.status?.attachError?.message;
    if (problem === undefined) return this.#waitForAttacher(wanted);
    this.#attaching.set(name, this.#deps.clock.monotonic() + ATTACH_TIMEOUT_MS);
    this.#fail(wanted, problem);
  }

  #fail(wanted: DesiredAttachment, problem: string): never {
    this.#record(wanted, "Warning", "FailedAttachVolume", `${attachFailed(wanted.volume)} : ${problem}`);
    throw new Error(problem);
  }

  #waitForAttacher(wanted: DesiredAttachment): void {
    const { clock, timers } = this.#deps;
    const { attachment: name, driver, handle } = wanted.volume;
    const now = clock.monotonic();
    const deadline = this.#attaching.get(name) ?? now + ATTACH_TIMEOUT_MS;
    if (now < deadline) {
      this.#attaching.set(name, deadline);
      timers.set(name, deadline - now);
      return;
    }
    this.#attaching.set(name, now + ATTACH_TIMEOUT_MS);
    this.#fail(wanted, `timed out waiting for external-attacher of ${driver} CSI driver to attach volume ${handle}`);
  }

  async #create(wanted: DesiredAttachment, signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#deps;
    const { attachment: name, nodeName, driver, persistentVolume } = wanted.volume;
    const others = this.#otherNodes(wanted.volume);
    if (others.length > 0 && !allowsMultiAttach(persistentVolume)) return this.#reportMultiAttach(wanted, others);
    this.#multiAttachReported.delete(name);
    const persistentVolumeName = persistentVolume.metadata?.name;
    const attachment = { metadata: { name }, spec: { attacher: driver, nodeName, source: { persistentVolumeName } } };
    this.#attaching.set(name, clock.monotonic() + ATTACH_TIMEOUT_MS);
    this.#deps.timers.set(name, ATTACH_TIMEOUT_MS);
    try {
      await client.create(volumeAttachmentKind, attachment, signal);
    } catch (error) {
      signal.throwIfAborted();
      // The attachment of the previous sync, which the informer delivers later.
      if (statusCodeOf(error) === 409) return;
      this.#fail(wanted, messageOf(error));
    }
  }

  /** The other nodes that have the volume. */
  #otherNodes({ nodeName, persistentVolume }: AttachableVolume): readonly string[] {
    const name = persistentVolume.metadata?.name;
    return [...this.#deps.attachments.list()]
      .filter(({ spec }) => spec.source.persistentVolumeName === name && spec.nodeName !== nodeName)
      .map(({ spec }) => spec.nodeName);
  }

  #reportMultiAttach({ volume, pods }: DesiredAttachment, others: readonly string[]): void {
    if (this.#multiAttachReported.has(volume.attachment)) return;
    this.#multiAttachReported.add(volume.attachment);
    const users = this.#deps.desired
      .ofPersistentVolume(volume.persistentVolume.metadata?.name ?? "")
      .filter((other) => others.includes(other.volume.nodeName))
      .flatMap((other) => [...other.pods.values()]);
    const prefix = `Multi-Attach error for volume ${quotedName(volume)}`;
    for (const pod of pods.values()) {
      const message = `${prefix} ${explainUse(pod, users)}`;
      this.#deps.recorder.record(objectReference(pod), "Warning", "FailedAttachVolume", message);
    }
  }

  #record({ pods }: DesiredAttachment, type: "Normal" | "Warning", reason: string, message: string): void {
    for (const pod of pods.values()) this.#deps.recorder.record(objectReference(pod), type, reason, message);
  }

  async #detach(found: VolumeAttachment, signal: AbortSignal): Promise<void> {
    const { client, clock, nodes, timers, queueNode } = this.#deps;
    const { metadata, spec } = found;
    const { name = "", uid } = metadata ?? {};
    const cached = nodes.get(spec.nodeName);
    if (cached !== undefined && !isManaged(cached)) return;
    this.#attaching.delete(name);
    const since = this.#unneededSince.get(name) ?? clock.monotonic();
    this.#unneededSince.set(name, since);
    const uniqueName = this.#uniqueNameOf(found);
    const untilForced = since + UNMOUNT_TIMEOUT_MS - clock.monotonic();
    if (cached !== undefined && !this.#mayDetach(cached, uniqueName, untilForced)) {
      // The node's status changes when the volume is unmounted or the node is not ready.
      if (untilForced > 0) timers.set(name, untilForced);
      return;
    }
    if (!this.#detaching.has(name)) {
      this.#detaching.add(name);
      queueNode(spec.nodeName);
    }
    if (cached?.status?.volumesAttached?.some((volume) => volume.name === uniqueName) === true) return;
    const node = cached === undefined ? undefined : await this.#readNode(spec.nodeName, signal);
    if (node !== undefined && !this.#mayDetach(node, uniqueName, untilForced)) return;
    await client
      .delete(volumeAttachmentKind, { name }, { preconditions: { uid } }, signal)
      .catch((error: unknown) => ignoreNotFound(error));
    if (node === undefined || !isInUse(node, uniqueName)) return;
    this.#deps.forcedDetaches?.with(isOutOfService(node) ? "out-of-service" : "timeout").inc();
  }

  /** Whether the node has unmounted the volume, or will not. */
  #mayDetach(node: Node, uniqueName: string | undefined, untilForced: number): boolean {
    if (!isInUse(node, uniqueName) || isOutOfService(node)) return true;
    return this.#deps.forcesDetach && untilForced <= 0 && !isReady(node);
  }

  async #readNode(name: string, signal: AbortSignal): Promise<Node | undefined> {
    return await this.#deps.client.get(nodeKind, { name }, signal).catch(ignoreNotFound);
  }

  /** Undefined if the persistent volume is gone: no node can use it then. */
  #uniqueNameOf({ spec }: VolumeAttachment): string | undefined {
    const volume = this.#deps.volumes.get(spec.source.persistentVolumeName ?? "");
    const handle = volume?.spec?.csi?.volumeHandle;
    return handle === undefined ? undefined : uniqueVolumeName(spec.attacher, handle);
  }

  /** Writes the attached volumes to the status of the node. */
  async reportAttached(nodeName: string, signal: AbortSignal): Promise<void> {
    const { client, nodes, attachments } = this.#deps;
    const node = nodes.get(nodeName);
    if (node === undefined || !isManaged(node)) return;
    const names = [...attachments.list()]
      .filter(({ metadata, spec, status }) => {
        const isGoing = metadata?.deletionTimestamp !== undefined || this.#detaching.has(metadata?.name ?? "");
        return spec.nodeName === nodeName && status?.attached === true && !isGoing;
      })
      .flatMap((attachment) => this.#uniqueNameOf(attachment) ?? []);
    const others = (node.status?.volumesAttached ?? []).filter(({ name }) => !name.startsWith("kubernetes.io/csi/"));
    const volumesAttached = [...others, ...names.sort().map((name) => ({ name, devicePath: "" }))];
    if (deepEqual(volumesAttached, node.status?.volumesAttached ?? [])) return;
    const patch = { status: { volumesAttached: volumesAttached.length === 0 ? null : volumesAttached } };
    await client
      .patch(nodeKind, { name: nodeName }, "merge", patch, { subresource: "status", signal })
      .catch(ignoreNotFound);
  }
}

function isInUse({ status }: Node, uniqueName: string | undefined): boolean {
  return uniqueName !== undefined && status?.volumesInUse?.includes(uniqueName) === true;
}

function quotedName({ persistentVolume }: AttachableVolume): string {
  return JSON.stringify(persistentVolume.metadata?.name);
}

function attachFailed(volume: AttachableVolume): string {
  return `AttachVolume.Attach failed for volume ${quotedName(volume)}`;
}

/** Kubernetes' message ends with a space. */
function succeeded(volume: AttachableVolume): string {
  return `AttachVolume.Attach succeeded for volume ${quotedName(volume)} `;
}

/** Which pods use the volume elsewhere, without the names of pods in other namespaces. */
function explainUse({ metadata }: Pod, users: readonly Pod[]): string {
  if (users.length === 0) return "Volume is already exclusively attached to one node and can't be attached to another";
  const local = users.filter((user) => user.metadata?.namespace === metadata?.namespace);
  const foreign = `${users.length - local.length} pod(s) in different namespaces`;
  if (local.length === 0) return `Volume is already used by ${foreign}`;
  const names = local.map((user) => user.metadata?.name).join(", ");
  return `Volume is already used by pod(s) ${names}${local.length === users.length ? "" : ` and ${foreign}`}`;
}
