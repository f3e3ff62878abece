/** When pods must leave the tainted devices of their claims. */
import type { FlatResourceClaim } from "../../api/resource/flat-versions/schemas.ts";
import type { DeviceTaint, ResourceSlice } from "../../api/resource/schemas.ts";
import { deviceId } from "../../scheduler/plugins/dynamic-resources/device-pools.ts";
import { toleratesTaint } from "../../scheduler/plugins/dynamic-resources/device-tolerations.ts";

/** The NoExecute taints of devices that have some, in the newest generation of each pool. */
export function listEvictingTaints(slices: Iterable<ResourceSlice>): ReadonlyMap<string, readonly DeviceTaint[]> {
  const newest = new Map<string, number>();
  const all = [...slices];
  for (const { spec } of all) {
    const pool = `${spec.driver}/${spec.pool.name}`;
    newest.set(pool, Math.max(newest.get(pool) ?? 0, Number(spec.pool.generation)));
  }
  const taints = new Map<string, readonly DeviceTaint[]>();
  for (const { spec } of all) {
    const { driver, pool, devices = [] } = spec;
    if (Number(pool.generation) < (newest.get(`${driver}/${pool.name}`) ?? 0)) continue;
    for (const { name, taints: of = [] } of devices) {
      const evicting = of.filter(({ effect }) => effect === "NoExecute");
      if (evicting.length > 0) taints.set(deviceId({ driver, pool: pool.name, device: name }), evicting);
    }
  }
  return taints;
}

/** In milliseconds since 1970; undefined: the claim tolerates the taints of its devices for ever, or there are none. */
export function evictionTime(
  { status }: FlatResourceClaim,
  taints: ReadonlyMap<string, readonly DeviceTaint[]>,
  now: number,
): number | undefined {
  let earliest: number | undefined;
  for (const result of status?.allocation?.devices?.results ?? []) {
    for (const taint of taints.get(deviceId(result)) ?? []) {
      const tolerations = (result.tolerations ?? []).filter((each) => toleratesTaint(each, taint));
      const addedAt = taint.timeAdded === undefined ? now : Date.parse(taint.timeAdded);
      const seconds = tolerations.map(({ tolerationSeconds }) => Number(tolerationSeconds ?? Number.POSITIVE_INFINITY));
      const at = addedAt + (seconds.length === 0 ? 0 : Math.max(0, Math.min(...seconds)) * 1000);
      if (Number.isFinite(at)) earliest = Math.min(earliest ?? at, at);
    }
  }
  return earliest;
}
