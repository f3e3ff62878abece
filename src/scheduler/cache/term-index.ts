/** The terms of pod affinity that pods on nodes have: equal terms of different pods are kept once, with a count. */
import type { AffinityTerm } from "./affinity-term.ts";
import type { PodInfo } from "./pod-info.ts";

export type TermType = "requiredAffinity" | "requiredAntiAffinity" | "preferredAffinity" | "preferredAntiAffinity";

export interface TermEntry {
  readonly term: AffinityTerm;
  /** How many pods of each node have the term. */
  readonly counts: Map<string, number>;
}

const TYPES: readonly TermType[] = [
  "requiredAffinity",
  "requiredAntiAffinity",
  "preferredAffinity",
  "preferredAntiAffinity",
];

export class TermIndex {
  readonly #entries: Readonly<Record<TermType, Map<string, TermEntry>>> = {
    requiredAffinity: new Map(),
    requiredAntiAffinity: new Map(),
    preferredAffinity: new Map(),
    preferredAntiAffinity: new Map(),
  };

  entries(type: TermType): IterableIterator<TermEntry> {
    return this.#entries[type].values();
  }

  addPod(nodeName: string, pod: PodInfo): void {
    this.#count(nodeName, pod, 1);
  }

  removePod(nodeName: string, pod: PodInfo): void {
    this.#count(nodeName, pod, -1);
  }

  #count(nodeName: string, { terms }: PodInfo, difference: 1 | -1): void {
    for (const type of TYPES) for (const term of terms[type]) this.#countTerm(type, term, nodeName, difference);
  }

  #countTerm(type: TermType, term: AffinityTerm, nodeName: string, difference: 1 | -1): void {
    const entries = this.#entries[type];
    const entry = entries.get(term.key) ?? { term, counts: new Map<string, number>() };
    entries.set(term.key, entry);
    const next = (entry.counts.get(nodeName) ?? 0) + difference;
    if (next > 0) entry.counts.set(nodeName, next);
    else entry.counts.delete(nodeName);
    if (entry.counts.size === 0) entries.delete(term.key);
  }
}
