/** Makes the bitmaps of cluster IPs and of node ports equal to what the stored services have. */
import type { Service } from "../../api/core/service/schema.ts";
import { isHeadless, specOf } from "../../api/core/service/types.ts";
import type { Logger } from "../../std/log/logger.ts";
import { formatIp, parseIp } from "../../std/net/ip.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import type { AddressBitmap } from "./address-bitmaps.ts";
import type { Bits } from "./range-bitmap.ts";
import type { RepairResult } from "./repair.ts";

/** Repairs that find a bit without service before it is cleared: its service may be about to be written. */
const REPAIRS_BEFORE_RELEASE = 3;

/** Bits without a service, with the repairs that have found them. Of one range, between its repairs. */
export type LeakedBits = Map<number, number>;

export interface UsedBits {
  readonly used: Bits;
  /** How many of them were not set. */
  readonly allocated: number;
}

/** What is repaired; each method may be called again. */
export interface RepairedRange {
  replace(rebuild: (stored: Bits) => Promise<Bits>): Promise<void>;
  /** The bits of the stored services. */
  usedBits(stored: Bits): Promise<UsedBits>;
}

export async function repairBits(range: RepairedRange, leaked: LeakedBits): Promise<RepairResult> {
  let result: RepairResult = { released: 0, allocated: 0 };
  let found: [bit: number, times: number][] = [];
  await range.replace(async (stored) => {
    // Read after the bits: what is allocated and stored in between is in a later value, which is a conflict.
    const { used, allocated } = await range.usedBits(stored);
    let released = 0;
    found = [];
    const kept: number[] = [];
    for (const bit of stored) {
      if (used.has(bit)) continue;
      const times = (leaked.get(bit) ?? 0) + 1;
      if (times >= REPAIRS_BEFORE_RELEASE) {
        released++;
        continue;
      }
      found.push([bit, times]);
      kept.push(bit);
    }
    for (const bit of kept) used.add(bit);
    result = { released, allocated };
    return used;
  });
  // Only now: an attempt that lost a race is no repair.
  leaked.clear();
  for (const [bit, times] of found) leaked.set(bit, times);
  return result;
}

export function repairBitmap(
  services: Registry<Service>,
  range: AddressBitmap,
  leaked: LeakedBits,
  scope: Scope,
  log: Logger,
): Promise<RepairResult> {
  const usedBits = (stored: Bits) => usedAddresses(services, range, stored, scope, log);
  return repairBits({ replace: (rebuild) => range.replace(rebuild), usedBits }, leaked);
}

async function usedAddresses(
  services: Registry<Service>,
  range: AddressBitmap,
  stored: Bits,
  scope: Scope,
  log: Logger,
): Promise<UsedBits> {
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
