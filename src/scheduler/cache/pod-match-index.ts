/**
 * Counts of the pods on each node that a selector matches. A selector is counted from its first use on: after that a
 * pod that comes or goes costs one match per selector, and no scheduling cycle scans all pods.
 */
import type { Selector } from "./label-match.ts";
import type { PodInfo } from "./pod-info.ts";

export interface PodMatcher {
  /** Equal for equal matchers. */
  readonly key: string;
  matches(pod: PodInfo): boolean;
}

/** Pods of the namespace that the selector matches and that do not terminate. */
export function spreadMatcher(namespace: string, selector: Selector): PodMatcher {
  return {
    key: `spread ${namespace} ${selector.key}`,
    matches: ({ namespace: other, labels, pod }) =>
      other === namespace && pod.metadata?.deletionTimestamp === undefined && selector.matches(labels),
  };
}

interface Entry {
  readonly matcher: PodMatcher;
  readonly counts: Map<string, number>;
}

/** The maximum number of selectors; the least recently used is dropped. */
const ENTRIES_MAX = 2000;

export class PodMatchIndex {
  readonly #entries = new Map<string, Entry>();
  readonly #allPods: () => Iterable<readonly [nodeName: string, pod: PodInfo]>;

  constructor(allPods: () => Iterable<readonly [nodeName: string, pod: PodInfo]>) {
    this.#allPods = allPods;
  }

  /** The number of pods by node; nodes without such a pod are absent. The map changes with the pods. */
  counts(matcher: PodMatcher): ReadonlyMap<string, number> {
    const existing = this.#entries.get(matcher.key);
    const entry = existing ?? this.#create(matcher);
    // The most recently used entry is the last one.
    if (existing !== undefined) this.#entries.delete(matcher.key);
    this.#entries.set(matcher.key, entry);
    return entry.counts;
  }

  addPod(nodeName: string, pod: PodInfo): void {
    for (const entry of this.#entries.values()) count(entry, nodeName, pod, 1);
  }

  removePod(nodeName: string, pod: PodInfo): void {
    for (const entry of this.#entries.values()) count(entry, nodeName, pod, -1);
  }

  #create(matcher: PodMatcher): Entry {
    const entry: Entry = { matcher, counts: new Map() };
    for (const [nodeName, pod] of this.#allPods()) count(entry, nodeName, pod, 1);
    if (this.#entries.size >= ENTRIES_MAX) {
      const oldest = this.#entries.keys().next();
      if (oldest.done !== true) this.#entries.delete(oldest.value);
    }
    return entry;
  }
}

function count({ matcher, counts }: Entry, nodeName: string, pod: PodInfo, difference: 1 | -1): void {
  if (!matcher.matches(pod)) return;
  const next = (counts.get(nodeName) ?? 0) + difference;
  if (next === 0) counts.delete(nodeName);
  else counts.set(nodeName, next);
}
