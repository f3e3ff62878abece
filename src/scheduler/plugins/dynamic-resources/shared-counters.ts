/** Counters that the devices of a slice share: a device can be used while enough of each is left. */
import { quantityNanos } from "../../../api/meta/quantity.ts";
import { type Candidate, deviceId } from "./device-pools.ts";

export function hasCountersLeft({ device, slice }: Candidate, isInUse: (id: string) => boolean): boolean {
  const consumed = device.consumesCounters ?? [];
  if (consumed.length === 0) return true;
  const { driver, pool, sharedCounters = [], devices = [] } = slice.spec;
  const sets = new Set(consumed.map(({ counterSet }) => counterSet));
  const left = new Map<string, bigint>();
  for (const { name, counters } of sharedCounters) {
    if (!sets.has(name)) continue;
    for (const [counter, { value }] of Object.entries(counters ?? {}))
      left.set(`${name}\n${counter}`, quantityNanos(value));
  }
  for (const other of devices) {
    if (!isInUse(deviceId({ driver, pool: pool.name, device: other.name }))) continue;
    for (const [key, nanos] of listConsumed(other)) {
      const before = left.get(key);
      if (before !== undefined) left.set(key, before - nanos);
    }
  }
  return listConsumed(device).every(([key, nanos]) => (left.get(key) ?? -1n) >= nanos);
}

function listConsumed({ consumesCounters = [] }: Candidate["device"]): readonly (readonly [string, bigint])[] {
  return consumesCounters.flatMap(({ counterSet, counters }) =>
    Object.entries(counters ?? {}).map(
      ([counter, { value }]) => [`${counterSet}\n${counter}`, quantityNanos(value)] as const,
    ),
  );
}
