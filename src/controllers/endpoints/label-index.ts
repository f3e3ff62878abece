/** Objects of an informer by namespace and label, so that a selector need not be compared with all of a namespace. */
import type { ApiObject } from "../../api/kind.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { countMembers } from "../../schema/value/plain-object.ts";
import { keyOf } from "../workload/object-keys.ts";

type Labels = Readonly<Record<string, string>>;

/** An object with more labels is not indexed by them, which would cost more than it saves: it is always compared. */
const INDEXED_MAX = 64;

/** Must subscribe before the controller that uses it, so that handlers see the change here. */
export class LabelIndex<T extends ApiObject> implements Disposable {
  readonly #labelsOf: (object: T) => Labels;
  readonly #groups = new Map<string, Map<string, T>>();
  readonly #unsubscribe: () => void;

  constructor(informer: Pick<Informer<T>, "subscribe">, labelsOf: (object: T) => Labels) {
    this.#labelsOf = labelsOf;
    this.#unsubscribe = informer.subscribe({
      put: (object, previous) => {
        if (previous !== undefined) this.#delete(previous);
        for (const group of this.#groupsOf(object)) {
          const members = this.#groups.get(group) ?? new Map<string, T>();
          this.#groups.set(group, members.set(keyOf(object), object));
        }
      },
      delete: (object) => this.#delete(object),
    });
  }

  /** The objects with all of the labels; none for no labels. */
  withAll(namespace: string, labels: Labels): readonly T[] {
    const wanted = Object.entries(labels);
    if (wanted.length === 0) return [];
    const candidates = wanted.map((label) => this.#groups.get(groupKey(namespace, label)));
    const fewest = candidates.reduce((a, b) => ((a?.size ?? 0) <= (b?.size ?? 0) ? a : b));
    return [...(fewest?.values() ?? []), ...this.#unindexed(namespace)].filter((object) =>
      includesEntries(this.#labelsOf(object), wanted),
    );
  }

  /** The objects with one of the labels; some may have none of them. */
  withAny(namespace: string, labels: Labels): readonly T[] {
    const indexed = Object.entries(labels).flatMap((label) => [
      ...(this.#groups.get(groupKey(namespace, label))?.values() ?? []),
    ]);
    return [...indexed, ...this.#unindexed(namespace)];
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
  }

  #groupsOf(object: T): readonly string[] {
    const namespace = object.metadata?.namespace ?? "";
    const labels = this.#labelsOf(object);
    if (countMembers(labels) > INDEXED_MAX) return [namespace];
    return Object.entries(labels).map((label) => groupKey(namespace, label));
  }

  #unindexed(namespace: string): Iterable<T> {
    return this.#groups.get(namespace)?.values() ?? [];
  }

  #delete(object: T): void {
    for (const group of this.#groupsOf(object)) {
      const members = this.#groups.get(group);
      members?.delete(keyOf(object));
      if (members?.size === 0) this.#groups.delete(group);
    }
  }
}

function groupKey(namespace: string, [name, value]: readonly [string, string]): string {
  return `${namespace}/${name}=${value}`;
}

export function includesLabels(labels: Labels | undefined, wanted: Labels): boolean {
  return includesEntries(labels, Object.entries(wanted));
}

function includesEntries(labels: Labels | undefined, wanted: readonly (readonly [string, string])[]): boolean {
  return wanted.every(([name, value]) => labels?.[name] === value);
}
