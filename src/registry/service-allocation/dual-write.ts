/**
 * Cluster IPs in IPAddress objects and in the bitmaps, as Kubernetes records them until DisableAllocatorDualWrite is
 * on: a server that has only the bitmaps, because its MultiCIDRServiceAllocator is off, allocates none of them again.
 */
import { type IpFamily, parseIp } from "../../std/net/ip.ts";
import type { Scope } from "../scope.ts";
import type { AddressBitmaps } from "./address-bitmaps.ts";
import { AddressUnavailable, type ClusterIpAllocator, type ServiceAddresses, type ServiceName } from "./addresses.ts";

/** Free addresses that only a server without IPAddress objects has allocated; one more is a range without free ones. */
const ATTEMPTS = 64;

export class DualWriteAddresses implements ClusterIpAllocator {
  readonly #objects: ServiceAddresses;
  readonly #bitmaps: AddressBitmaps;

  constructor(objects: ServiceAddresses, bitmaps: AddressBitmaps) {
    this.#objects = objects;
    this.#bitmaps = bitmaps;
  }

  async allocate(scope: Scope, service: ServiceName, text: string, dryRun: boolean): Promise<string> {
    const address = await this.#objects.allocate(scope, service, text, dryRun);
    if (!dryRun) await this.#record(scope, service, address);
    return address;
  }

  async allocateNext(scope: Scope, service: ServiceName, family: IpFamily, dryRun: boolean): Promise<string> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const address = await this.#objects.allocateNext(scope, service, family, dryRun);
      if (dryRun) return address;
      try {
        await this.#record(scope, service, address);
        return address;
      } catch (error) {
        if (!(error instanceof AddressUnavailable)) throw error;
      }
    }
    throw new AddressUnavailable("range is full");
  }

  async release(scope: Scope, service: ServiceName, text: string): Promise<boolean> {
    const isReleased = await this.#objects.release(scope, service, text);
    // Another service may have the address by now, whose bit stays.
    if (isReleased && this.#isInBitmaps(text)) await this.#bitmaps.release(scope, service, text);
    return isReleased;
  }

  /** Releases the address when it cannot be recorded. */
  async #record(scope: Scope, service: ServiceName, address: string): Promise<void> {
    if (!this.#isInBitmaps(address)) return;
    try {
      await this.#bitmaps.allocate(scope, service, address, false);
    } catch (error) {
      await this.#objects.release(scope, service, address);
      throw error;
    }
  }

  /** Addresses of further ServiceCIDRs are in no bitmap. */
  #isInBitmaps(text: string): boolean {
    const ip = parseIp(text);
    return ip !== undefined && this.#bitmaps.ranges.some((range) => range.offsetOf(ip) !== undefined);
  }
}
