/** Makes the bitmaps of cluster IPs equal to the addresses of the stored services. */
import type { Service } from "../../api/core/service/schema.ts";
import { isHeadless, specOf } from "../../api/core/service/types.ts";
import type { Logger } from "../../std/log/logger.ts";
import { formatIp, parseIp } from "../../std/net/ip.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import type { AddressBitmap, Bits } from "./address-bitmaps.ts";
import type { RepairResult } from "./repair.ts";

/** Repairs that find an address without service before it is released: its service may be about to be written. */
const REPAIRS_BEFORE_RELEASE = 3;

/** Addresses without a service, with the repairs that have found them. Of one range, between its repairs. */
export type LeakedAddresses = Map<string, number>;

export async function repairBitmap(
  services: Registry<Service>,
  range: AddressBitmap,
  leaked: LeakedAddresses,
  scope: Scope,
  log: Logger,
): Promise<RepairResult> {
  let result: RepairResult = { released: 0, allocated: 0 };
  let found: [address: string, times: number][] = [];
  await range.replace(async (stored) => {
    // Read after the bits: an address that is allocated and stored in between is in a later value, which is a conflict.
    const { used, allocated } = await usedBits(services, range, stored, scope, log);
    let released = 0;
    found = [];
    const kept: number[] = [];
    for (const offset of stored) {
      if (used.has(offset)) continue;
      const address = range.addressAt(offset);
      const times = (leaked.get(address) ?? 0) + 1;
      if (times >= REPAIRS_BEFORE_RELEASE) {
        released++;
        continue;
      }
      found.push([address, times]);
      kept.push(offset);
    }
    for (const offset of kept) used.add(offset);
    result = { released, allocated };
    return used;
  });
  // Only now: an attempt that lost a race is no repair.
  leaked.clear();
  for (const [address, times] of found) leaked.set(address, times);
  return result;
}

async function usedBits(
  services: Registry<Service>,
  range: AddressBitmap,
  stored: Bits,
  scope: Scope,
  log: Logger,
): Promise<{ readonly used: Bits; readonly allocated: number }> {
  const used = range.empty();
  let allocated = 0;
  const cache = await services.freshCache(scope);
  for (const { object } of cache.list(services.objects.prefix()).items) {
    const spec = specOf(object);
    if (isHeadless(spec)) continue;
    const { name: service = "", namespace = "" } = object.metadata ?? {};
    for (const text of spec.clusterIPs ?? []) {
      const ip = parseIp(text);
      if (ip?.family !== range.cidr.family) continue;
      const offset = range.offsetOf(ip);
      const fields = { address: formatIp(ip), service, namespace };
      if (offset === undefined) {
        log.warn("The cluster IP is not within the service CIDR, please recreate the service", fields);
      } else if (used.has(offset)) {
        log.warn("The cluster IP was assigned to multiple services, please recreate the service", fields);
      } else {
        used.add(offset);
        if (!stored.has(offset)) allocated++;
      }
    }
  }
  return { used, allocated };
}
