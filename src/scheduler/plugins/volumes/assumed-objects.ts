/**
 * Objects as they will be after writes that the scheduler has decided on. They replace those of the informer until the
 * informer delivers a later state.
 */
import type { ApiObject } from "../../../api/kind.ts";
import type { Lister } from "../../framework/handle.ts";

export class AssumedObjects<T extends ApiObject> {
  readonly #lister: Lister<T>;
  /** Bounded by the number of objects: entries are dropped when they are outdated. */
  readonly #assumed = new Map<string, T>();

  constructor(lister: Lister<T>) {
    this.#lister = lister;
  }

  get(name: string, namespace?: string): T | undefined {
    const stored = this.#lister.get(name, namespace);
    const assumed = this.#assumed.get(keyOf(name, namespace));
    if (assumed === undefined) return stored;
    if (stored !== undefined && revisionOf(stored) <= revisionOf(assumed)) return assumed;
    this.#assumed.delete(keyOf(name, namespace));
    return stored;
  }

  *list(): Generator<T> {
    for (const stored of this.#lister.list()) {
      if (this.#assumed.size === 0) yield stored;
      else yield this.get(stored.metadata?.name ?? "", stored.metadata?.namespace) ?? stored;
    }
  }

  assume(object: T): void {
    this.#assumed.set(keyOf(object.metadata?.name ?? "", object.metadata?.namespace), object);
  }

  restore({ metadata }: T): void {
    this.#assumed.delete(keyOf(metadata?.name ?? "", metadata?.namespace));
  }
}

/** Resource versions of one server are numbers that grow. */
export function revisionOf({ metadata }: ApiObject): number {
  return Number(metadata?.resourceVersion ?? 0);
}

function keyOf(name: string, namespace = ""): string {
  return `${namespace}/${name}`;
}
