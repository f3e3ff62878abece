/** The writes of the binder: each changes one object, and does nothing where the object is as wanted. */
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type {
  PersistentVolumeClaim,
  PersistentVolumeClaimStatus,
} from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Client } from "../../../client/client.ts";
import type { EventRecorder } from "../../../client/events/event-recorder.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { objectReference } from "../../workload/object-keys.ts";
import { BIND_COMPLETED, BOUND_BY_CONTROLLER, PRE_RESIZE_CAPACITY } from "../volume-annotations.ts";
import type { AssumedObjects } from "./assumed-objects.ts";
import { isBoundToClaim, storageOf } from "./volume-matching.ts";

export interface BindingDeps {
  readonly client: Client;
  readonly recorder: EventRecorder;
  readonly volumes: AssumedObjects<PersistentVolume>;
  readonly claims: AssumedObjects<PersistentVolumeClaim>;
}

/** An event that is recorded with a change of the phase. */
export interface PhaseEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

type VolumePhase = "Available" | "Bound" | "Released" | "Failed";

export class Bindings {
  readonly #deps: BindingDeps;

  constructor(deps: BindingDeps) {
    this.#deps = deps;
  }

  /** Binds both, in four writes, of which an interrupted binding has made the first ones. */
  async bind(volume: PersistentVolume, claim: PersistentVolumeClaim, signal: AbortSignal): Promise<void> {
    const bound = await this.#bindVolume(volume, claim, signal);
    const ready = await this.setVolumePhase(bound, "Bound", signal);
    const completed = await this.#bindClaim(claim, ready, signal);
    await this.setClaimPhase(completed, "Bound", { volume: ready }, signal);
  }

  async #bindVolume(
    volume: PersistentVolume,
    claim: PersistentVolumeClaim,
    signal: AbortSignal,
  ): Promise<PersistentVolume> {
    const { name, namespace, uid } = claim.metadata ?? {};
    const { claimRef } = volume.spec ?? {};
    if (claimRef !== undefined && claimRef.name === name && claimRef.namespace === namespace && claimRef.uid === uid) {
      return volume;
    }
    // A volume that the user has reserved for the claim stays reserved when the claim goes.
    const mark = isBoundToClaim(volume, claim) ? {} : { [BOUND_BY_CONTROLLER]: "yes" };
    return await this.updateVolume(
      {
        ...volume,
        metadata: { ...volume.metadata, annotations: { ...volume.metadata?.annotations, ...mark } },
        spec: { ...volume.spec, claimRef: claimReference(claim) },
      },
      signal,
    );
  }

  async #bindClaim(
    claim: PersistentVolumeClaim,
    volume: PersistentVolume,
    signal: AbortSignal,
  ): Promise<PersistentVolumeClaim> {
    const { annotations } = claim.metadata ?? {};
    const volumeName = volume.metadata?.name;
    const isNamed = claim.spec?.volumeName === volumeName;
    if (isNamed && annotations?.[BIND_COMPLETED] !== undefined) return claim;
    const mark = isNamed ? {} : { [BOUND_BY_CONTROLLER]: "yes" };
    return await this.updateClaim(
      {
        ...claim,
        metadata: { ...claim.metadata, annotations: { ...annotations, ...mark, [BIND_COMPLETED]: "yes" } },
        spec: { ...claim.spec, volumeName },
      },
      signal,
    );
  }

  /** Makes the volume available. A volume that a user reserved stays reserved, by the claim's name. */
  async unbind(volume: PersistentVolume, signal: AbortSignal): Promise<void> {
    const { [BOUND_BY_CONTROLLER]: byController, ...annotations } = volume.metadata?.annotations ?? {};
    const { claimRef, ...spec } = volume.spec ?? {};
    const { uid: _uid, ...reserved } = claimRef ?? {};
    const unbound =
      byController === undefined
        ? { ...volume, spec: { ...spec, claimRef: reserved } }
        : { ...volume, metadata: { ...volume.metadata, annotations }, spec };
    await this.setVolumePhase(await this.updateVolume(unbound, signal), "Available", signal);
  }

  async updateVolume(volume: PersistentVolume, signal: AbortSignal): Promise<PersistentVolume> {
    const updated = await this.#deps.client.update(persistentVolumeKind, volume, signal);
    this.#deps.volumes.assume(updated);
    return updated;
  }

  async updateClaim(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    const updated = await this.#deps.client.update(persistentVolumeClaimKind, claim, signal);
    this.#deps.claims.assume(updated);
    return updated;
  }

  async setVolumePhase(
    volume: PersistentVolume,
    phase: VolumePhase,
    signal: AbortSignal,
    event?: PhaseEvent,
  ): Promise<PersistentVolume> {
    if (volume.status?.phase === phase) return volume;
    const { message: _message, ...status } = volume.status ?? {};
    const message = event === undefined ? {} : { message: event.message };
    const updated = await this.#deps.client.updateStatus(
      persistentVolumeKind,
      { ...volume, status: { ...status, phase, ...message } },
      signal,
    );
    this.#deps.volumes.assume(updated);
    if (event !== undefined) this.#record(updated, event);
    return updated;
  }

  async setClaimPhase(
    claim: PersistentVolumeClaim,
    phase: "Pending" | "Bound" | "Lost",
    { volume, event }: { readonly volume?: PersistentVolume; readonly event?: PhaseEvent },
    signal: AbortSignal,
  ): Promise<void> {
    const status = claimStatus(claim, phase, volume);
    if (deepEqual(status, claim.status ?? {})) return;
    const updated = await this.#deps.client.updateStatus(persistentVolumeClaimKind, { ...claim, status }, signal);
    this.#deps.claims.assume(updated);
    if (event !== undefined && claim.status?.phase !== phase) this.#record(updated, event);
  }

  #record(object: PersistentVolume | PersistentVolumeClaim, { type, reason, message }: PhaseEvent): void {
    this.#deps.recorder.record(objectReference(object), type, reason, message);
  }
}

function claimReference({ metadata }: PersistentVolumeClaim) {
  const { name, namespace, uid, resourceVersion } = metadata ?? {};
  return { apiVersion: "v1", kind: "PersistentVolumeClaim", name, namespace, uid, resourceVersion };
}

function claimStatus(
  { status = {} }: PersistentVolumeClaim,
  phase: "Pending" | "Bound" | "Lost",
  volume: PersistentVolume | undefined,
): PersistentVolumeClaimStatus {
  const { accessModes: _modes, capacity: _capacity, currentVolumeAttributesClassName, ...rest } = status;
  if (volume === undefined) return { ...rest, phase };
  const { accessModes, capacity, volumeAttributesClassName } = volume.spec ?? {};
  const isNewlyBound = status.phase === "Pending" && phase === "Bound";
  const attributesClass = isNewlyBound ? volumeAttributesClassName : currentVolumeAttributesClassName;
  const next = { ...status, phase, accessModes, currentVolumeAttributesClassName: attributesClass };
  // While the claim is bound, a smaller capacity means that the file system has not been expanded yet.
  if (status.phase === phase) return next;
  const before = volume.metadata?.annotations?.[PRE_RESIZE_CAPACITY];
  const storage = before === undefined ? capacity : { ...capacity, storage: before };
  return storageOf(storage) === storageOf(status.capacity) ? next : { ...next, capacity: storage };
}
