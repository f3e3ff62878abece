/** The objects of an informer with this controller's own writes, which the informer delivers later. */
import type { ApiObject } from "../../../api/kind.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import { keyOf } from "../../workload/object-keys.ts";

export class AssumedObjects<T extends ApiObject> implements Disposable {
  readonly #informer: Informer<T>;
  /** Written objects that the informer does not have yet; bounded by the writes in one round trip. */
  readonly #assumed = new Map<string, T>();
  readonly #unsubscribe: () => void;

  constructor(informer: Informer<T>) {
    this.#informer = informer;
    this.#unsubscribe = informer.subscribe({
      put: (object) => {
        const assumed = this.#assumed.get(keyOf(object));
        if (assumed !== undefined && !isNewer(assumed, object)) this.#assumed.delete(keyOf(object));
      },
      delete: (object) => this.#assumed.delete(keyOf(object)),
    });
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
  }

  get(name: string, namespace = ""): T | undefined {
    const found = this.#informer.get(name, namespace);
    return found === undefined ? undefined : (this.#assumed.get(keyOf(found)) ?? found);
  }

  *list(): IterableIterator<T> {
    for (const object of this.#informer.list()) yield this.#assumed.get(keyOf(object)) ?? object;
  }

  /** Call with the response of an update. */
  assume(object: T): void {
    const { name = "", namespace, uid } = object.metadata ?? {};
    const known = this.#informer.get(name, namespace);
    // A deleted object must not come back.
    if (known?.metadata?.uid === uid && isNewer(object, known)) this.#assumed.set(keyOf(object), object);
  }
}

/** Kubernetes' own controllers compare resource versions of one object as numbers too. */
function isNewer(a: ApiObject, b: ApiObject | undefined): boolean {
  return BigInt(a.metadata?.resourceVersion ?? "0") > BigInt(b?.metadata?.resourceVersion ?? "0");
}
