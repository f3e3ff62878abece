/**
 * The resource claims as they will be after writes that the scheduler has decided on, and which devices they have. The
 * devices of a claim are in use from the reservation on, before the claim is written.
 */
import type { FlatResourceClaim } from "../../../api/resource/flat-versions/schemas.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import { AssumedObjects } from "../volumes/assumed-objects.ts";
import { type DeviceId, deviceId } from "./device-pools.ts";

export class ClaimTracker implements Disposable {
  readonly #informer: Informer<FlatResourceClaim>;
  readonly #assumed: AssumedObjects<FlatResourceClaim>;
  /** By claim, or by UID of a claim whose allocation is not written yet. Bounded by the number of claims. */
  readonly #devices = new Map<string, readonly DeviceId[]>();
  readonly #counts = new Map<DeviceId, number>();
  readonly #unsubscribe: () => void;

  constructor(informer: Informer<FlatResourceClaim>) {
    this.#informer = informer;
    this.#assumed = new AssumedObjects(informer);
    this.#unsubscribe = informer.subscribe({
      put: (claim) => this.#update(claim),
      delete: (claim) => this.#update(claim),
    });
  }

  get synced(): Promise<void> {
    return this.#informer.synced;
  }

  get(name: string, namespace: string): FlatResourceClaim | undefined {
    return this.#assumed.get(name, namespace);
  }

  isAllocated(device: DeviceId): boolean {
    return this.#counts.has(device);
  }

  /** Whether another pod allocates the claim at the moment. */
  isPending(uid: string): boolean {
    return this.#devices.has(pendingKey(uid));
  }

  /** The claim gets its allocation when it is written. */
  setPending(uid: string, allocation: Allocation): void {
    this.#set(pendingKey(uid), listDevices(allocation));
  }

  /** Whether it was pending. */
  removePending(uid: string): boolean {
    const wasPending = this.isPending(uid);
    this.#set(pendingKey(uid), []);
    this.#devices.delete(pendingKey(uid));
    return wasPending;
  }

  /** The claim as a write has returned it. */
  assume(claim: FlatResourceClaim): void {
    this.#assumed.assume(claim);
    this.#update(claim);
  }

  restore(claim: FlatResourceClaim): void {
    this.#assumed.restore(claim);
    this.#update(claim);
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
  }

  #update({ metadata }: FlatResourceClaim): void {
    const { name = "", namespace = "" } = metadata ?? {};
    const key = `${namespace}/${name}`;
    const devices = listDevices(this.get(name, namespace)?.status?.allocation);
    this.#set(key, devices);
    if (devices.length === 0) this.#devices.delete(key);
  }

  #set(key: string, devices: readonly DeviceId[]): void {
    for (const device of devices) this.#counts.set(device, (this.#counts.get(device) ?? 0) + 1);
    for (const device of this.#devices.get(key) ?? []) {
      const count = (this.#counts.get(device) ?? 0) - 1;
      if (count <= 0) this.#counts.delete(device);
      else this.#counts.set(device, count);
    }
    this.#devices.set(key, devices);
  }
}

type Allocation = NonNullable<FlatResourceClaim["status"]>["allocation"];

/** Devices with administrative access stay free for others. */
function listDevices(allocation: Allocation): readonly DeviceId[] {
  return (allocation?.devices?.results ?? []).filter(({ adminAccess }) => adminAccess !== true).map(deviceId);
}

function pendingKey(uid: string): string {
  return `pending ${uid}`;
}
