/** The status of a StorageVersion, from what its API servers report. */
import type { ServerStorageVersion, StorageVersion } from "./schema.ts";

const CONDITION = "AllEncodingVersionsEqual";

export function hasEncodingCondition({ status }: StorageVersion): boolean {
  return (status?.conditions ?? []).some(({ type }) => type === CONDITION);
}

/** Sets the versions of the servers, of which there is at least one, with the common one and its condition. */
export function withServerVersions(
  current: StorageVersion,
  servers: readonly ServerStorageVersion[],
  now: string,
): StorageVersion {
  const { conditions = [] } = current.status ?? {};
  const encodings = new Set(servers.map(({ encodingVersion }) => encodingVersion));
  const common = encodings.size === 1 ? servers[0]?.encodingVersion : undefined;
  const [status, reason, message] =
    common === undefined
      ? (["False", "CommonEncodingVersionUnset", "Common encoding version unset"] as const)
      : (["True", "CommonEncodingVersionSet", "Common encoding version set"] as const);
  const previous = conditions.find(({ type }) => type === CONDITION);
  const lastTransitionTime = previous?.status === status ? previous.lastTransitionTime : now;
  const condition = { type: CONDITION, status, lastTransitionTime, reason, message };
  return {
    ...current,
    status: {
      storageVersions: servers,
      ...(common === undefined ? {} : { commonEncodingVersion: common }),
      conditions: [...conditions.filter(({ type }) => type !== CONDITION), condition],
    },
  };
}
