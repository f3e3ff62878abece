/** Merges the group versions of API services with those that this server serves, by their priorities. */
import { compareVersions } from "../../api/version-order.ts";
import type { ExternalVersion } from "./external-discovery.ts";

/** A group version that this server serves. */
export interface LocalVersion {
  readonly group: string;
  readonly version: string;
}

export interface VersionPriority {
  readonly group: number;
  readonly version: number;
}

/**
 * Local groups keep their order; a group of API services stands before the first local group that has a lower
 * priority. The versions of a group that both have are sorted.
 */
export function mergeVersions<L extends LocalVersion>(
  local: readonly L[],
  external: readonly ExternalVersion[],
  priorityOf: (version: L) => VersionPriority,
): readonly (L | ExternalVersion)[] {
  if (external.length === 0) return local;
  const replaced = new Set(external.map(({ group, version }) => `${group}/${version}`));
  const groups = new Map<string, RankedVersion<L>[]>();
  const add = (ranked: RankedVersion<L>): void => {
    const versions = groups.get(ranked.entry.group);
    if (versions === undefined) groups.set(ranked.entry.group, [ranked]);
    else versions.push(ranked);
  };
  for (const entry of local) {
    const isReplaced = replaced.has(`${entry.group}/${entry.version}`);
    if (!isReplaced || !groups.has(entry.group)) add({ entry, isReplaced, ...priorityOf(entry), isLocal: true });
  }
  for (const entry of external) {
    add({ entry, isReplaced: false, group: entry.groupPriority, version: entry.versionPriority, isLocal: false });
  }
  const ordered: RankedVersion<L>[][] = [];
  for (const versions of groups.values()) {
    const isLocal = versions.some((each) => each.isLocal);
    const kept = versions.filter(({ isReplaced }) => !isReplaced);
    if (kept.some((each) => !each.isLocal)) kept.sort(compareRank);
    const own = priorityOfGroup(versions);
    const place = isLocal ? -1 : ordered.findIndex((others) => isBefore(own, kept, others));
    ordered.splice(place === -1 ? ordered.length : place, 0, kept);
  }
  return ordered.flat().map(({ entry }) => entry);
}

interface RankedVersion<L> {
  readonly entry: L | ExternalVersion;
  readonly isLocal: boolean;
  /** A local version that an extension server serves instead. */
  readonly isReplaced: boolean;
  readonly group: number;
  readonly version: number;
}

function compareRank<L extends LocalVersion>(a: RankedVersion<L>, b: RankedVersion<L>): number {
  return b.version - a.version || compareVersions(a.entry.version, b.entry.version);
}

function priorityOfGroup<L>(versions: readonly RankedVersion<L>[]): number {
  return Math.max(...versions.map(({ group }) => group));
}

function isBefore<L extends LocalVersion>(
  own: number,
  versions: readonly RankedVersion<L>[],
  others: readonly RankedVersion<L>[],
): boolean {
  const [first, other] = [versions[0]?.entry.group ?? "", others[0]?.entry.group ?? ""];
  if (other === "") return false;
  const theirs = priorityOfGroup(others);
  return own > theirs || (own === theirs && first < other);
}
