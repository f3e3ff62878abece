/** The generations of slices that a controller wrote, to find out whether its informer has seen them. */
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { keyOf } from "../workload/object-keys.ts";

export const SERVICE_NAME = "kubernetes.io/service-name";

type Expectation = number | "deletion";

export class SliceTracker {
  /** By service and UID. The controller deletes the entry with the service. */
  readonly #services = new Map<string, Map<string, Expectation>>();

  /** The states of a changed slice whose services have to be synced. `isManaged`: whether it is the controller's. */
  affectedBy(
    slice: EndpointSlice,
    before: EndpointSlice | undefined,
    isManaged: (slice: EndpointSlice) => boolean,
  ): readonly EndpointSlice[] {
    if (before !== undefined && serviceNameOf(before) !== serviceNameOf(slice)) return [slice, before];
    const hasNewManager = before !== undefined && isManaged(before) !== isManaged(slice);
    return hasNewManager || (isManaged(slice) && this.#isUnexpected(slice)) ? [slice] : [];
  }

  /** Whether the informer lacks one of the controller's writes. */
  isStale(key: string, slices: readonly EndpointSlice[]): boolean {
    const expected = this.#services.get(key);
    if (expected === undefined) return false;
    const generations = new Map(slices.map(({ metadata }) => [metadata?.uid ?? "", metadata?.generation ?? 0]));
    for (const [uid, wanted] of expected) {
      const found = generations.get(uid);
      if (wanted === "deletion" ? found !== undefined : found === undefined || found < wanted) return true;
    }
    return false;
  }

  written(slice: EndpointSlice): void {
    this.#expect(slice, slice.metadata?.generation ?? 0);
  }

  trackUnchanged(slice: EndpointSlice): void {
    if (this.#expected(slice) === undefined) this.written(slice);
  }

  expectDeletion(slice: EndpointSlice): void {
    this.#expect(slice, "deletion");
  }

  /** Whether the controller wrote the slice and did not delete it. */
  deleted(slice: EndpointSlice): boolean {
    const expected = this.#expected(slice);
    this.#services.get(keyOfService(slice))?.delete(slice.metadata?.uid ?? "");
    return expected !== undefined && expected !== "deletion";
  }

  deleteService(key: string): void {
    this.#services.delete(key);
  }

  /** Whether the slice is not as the controller wrote it. */
  #isUnexpected(slice: EndpointSlice): boolean {
    const expected = this.#expected(slice);
    if (expected === undefined) return true;
    return expected === "deletion" || (slice.metadata?.generation ?? 0) > expected;
  }

  #expected(slice: EndpointSlice): Expectation | undefined {
    return this.#services.get(keyOfService(slice))?.get(slice.metadata?.uid ?? "");
  }

  #expect(slice: EndpointSlice, expectation: Expectation): void {
    const key = keyOfService(slice);
    const slices = this.#services.get(key) ?? new Map<string, Expectation>();
    this.#services.set(key, slices.set(slice.metadata?.uid ?? "", expectation));
  }
}

/** The key of the service or Endpoints that the slice's label names. */
export function keyOfService({ metadata }: EndpointSlice): string {
  return keyOf({ metadata: { namespace: metadata?.namespace, name: metadata?.labels?.[SERVICE_NAME] ?? "" } });
}

/** Empty for a slice of no service. */
export function serviceNameOf({ metadata }: EndpointSlice): string {
  return metadata?.labels?.[SERVICE_NAME] ?? "";
}
