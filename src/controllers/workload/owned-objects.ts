/** Objects of an informer by their controller, and those of each namespace that have none. */
import type { ApiObject } from "../../api/kind.ts";
import type { Informer } from "../../client/informer/informer.ts";
import { controllerOf, keyOf } from "./object-keys.ts";

/** Must subscribe before the controller that uses it, so that handlers see the change here. */
export class OwnedObjects<T extends ApiObject> implements Disposable {
  readonly #groups = new Map<string, Map<string, T>>();
  readonly #unsubscribe: () => void;

  constructor(informer: Informer<T>) {
    this.#unsubscribe = informer.subscribe({
      put: (object, previous) => {
        if (previous !== undefined) this.#delete(previous);
        const group = groupOf(object);
        const members = this.#groups.get(group) ?? new Map<string, T>();
        this.#groups.set(group, members.set(keyOf(object), object));
      },
      delete: (object) => {
        this.#delete(object);
      },
    });
  }

  /** Objects that the owner controls, and those in its namespace that it may adopt. */
  ownedOrOrphaned(owner: ApiObject): readonly T[] {
    const { uid = "", namespace = "" } = owner.metadata ?? {};
    return [...this.owned(uid), ...(this.#groups.get(`${namespace}/`)?.values() ?? [])];
  }

  owned(uid: string): readonly T[] {
    return [...(this.#groups.get(uid)?.values() ?? [])];
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
  }

  #delete(object: T): void {
    const group = groupOf(object);
    const members = this.#groups.get(group);
    members?.delete(keyOf(object));
    if (members?.size === 0) this.#groups.delete(group);
  }
}

function groupOf(object: ApiObject): string {
  return controllerOf(object)?.uid ?? `${object.metadata?.namespace ?? ""}/`;
}
