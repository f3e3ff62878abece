/**
 * Cluster IPs in the bitmaps and in IPAddress objects, as Kubernetes records them until DisableAllocatorDualWrite is
 * on. The bit comes first: Kubernetes' servers over the same store take a free bit, and fail when there is an object
 * for it. A server that has only the bitmaps, because its MultiCIDRServiceAllocator is off, allocates none of them.
 */
import { type IpFamily, parseIp } from "../../std/net/ip.ts";
import type { Scope } from "../scope.ts";
import type { AddressBitmaps } from "./address-bitmaps.ts";
import { AddressUnavailable, type ClusterIpAllocator, type ServiceAddresses, type ServiceName } from "./addresses.ts";

/** Free bits whose addresses have objects; more of them, and only the objects are used. */
const ATTEMPTS = 64;

export class DualWriteAddresses implements ClusterIpAllocator {
  readonly #objects: ServiceAddresses;
  readonly #bitmaps: AddressBitmaps;

  constructor(objects: ServiceAddresses, bitmaps: AddressBitmaps) {
    this.#objects = objects;
    this.#bitmaps = bitmaps;
  }

  async allocate(scope: Scope, service: ServiceName, text: string, dryRun: boolean): Promise<string> {
    if (dryRun || !this.#isInBitmaps(text)) return await this.#objects.allocate(scope, service, text, dryRun);
    await this.#bitmaps.allocate(scope, service, text, false);
    return await this.#allocateObject(scope, service, text);
  }

  async allocateNext(scope: Scope, service: ServiceName, family: IpFamily, dryRun: boolean): Promise<string> {
    for (let attempt = 0; attempt < ATTEMPTS && !dryRun; attempt++) {
      const address = await unlessUnavailable(() => this.#bitmaps.allocateNext(scope, service, family, false));
      if (address === undefined) break;
      const allocated = await unlessUnavailable(() => this.#allocateObject(scope, service, address));
      if (allocated !== undefined) return allocated;
    }
    // No bit is free, or this family has none.
    return await this.#objects.allocateNext(scope, service, family, dryRun);
  }

  async release(scope: Scope, service: ServiceName, text: string): Promise<boolean> {
    const isReleased = await this.#objects.release(scope, service, text);
    // Another service may have the address by now, whose bit stays.
    if (isReleased && this.#isInBitmaps(text)) await this.#bitmaps.release(scope, service, text);
    return isReleased;
  }

  /** The bit stays set for an address that has an object. */
  async #allocateObject(scope: Scope, service: ServiceName, address: string): Promise<string> {
    try {
      return await this.#objects.allocate(scope, service, address, false);
    } catch (error) {
      if (!(await this.#objects.has(address))) await this.#bitmaps.release(scope, service, address);
      throw error;
    }
  }

  /** Addresses of further ServiceCIDRs are in no bitmap. */
  #isInBitmaps(text: string): boolean {
    const ip = parseIp(text);
    return ip !== undefined && this.#bitmaps.ranges.some((range) => range.offsetOf(ip) !== undefined);
  }
}

async function unlessUnavailable(allocate: () => Promise<string>): Promise<string | undefined> {
  try {
    return await allocate();
  } catch (error) {
    if (error instanceof AddressUnavailable) return undefined;
    throw error;
  }
}
