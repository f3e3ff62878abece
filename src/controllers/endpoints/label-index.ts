/** Objects of an informer by namespace and label, so that a selector need not be compared with all of a namespace. */
import type { ApiObject } from "../../api/kind.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { keyOf } from "../workload/object-keys.ts";

type Labels = Readonly<Record<string, string>>;

/** Must subscribe before the controller that uses it, so that handlers see the change here. */
export class LabelIndex<T extends ApiObject> implements Disposable {
  readonly #labelsOf: (object: T) => Labels;
  readonly #groups = new Map<string, Map<string, T>>();
  readonly #unsubscribe: () => void;

  constructor(informer: Informer<T>, labelsOf: (object: T) => Labels) {
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
    const candidates = Object.entries(labels).map((label) => this.#groups.get(groupKey(namespace, label)));
    const fewest = candidates.reduce((a, b) => ((a?.size ?? 0) <= (b?.size ?? 0) ? a : b), candidates[0]);
    const wanted = Object.entries(labels);
    return [...(fewest?.values() ?? [])].filter((object) => includesEntries(this.#labelsOf(object), wanted));
  }

  /** The objects that are indexed by one of the labels. */
  withAny(namespace: string, labels: Labels): readonly T[] {
    return Object.entries(labels).flatMap((label) => [
      ...(this.#groups.get(groupKey(namespace, label))?.values() ?? []),
    ]);
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
  }

  #groupsOf(object: T): readonly string[] {
    const namespace = object.metadata?.namespace ?? "";
    return Object.entries(this.#labelsOf(object)).map((label) => groupKey(namespace, label));
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
