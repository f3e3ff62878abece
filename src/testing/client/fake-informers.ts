/** Informers whose objects a test puts and deletes, by kind. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { Informer, InformerHandlers } from "../../client/informer/informer.ts";
import type { SharedInformers } from "../../client/informer/shared-informers.ts";

export class FakeInformers implements SharedInformers {
  readonly #informers = new Map<string, FakeInformer>();

  of<T extends ApiObject>(kind: Kind<T>): Informer<T> {
    // The key determines the type.
    return this.#of(kind.plural) as Informer<ApiObject> as Informer<T>;
  }

  put<T extends ApiObject>(kind: Pick<Kind<T>, "plural">, ...objects: readonly T[]): void {
    for (const object of objects) this.#of(kind.plural).put(object);
  }

  delete<T extends ApiObject>(kind: Pick<Kind<T>, "plural">, object: T): void {
    this.#of(kind.plural).delete(object);
  }

  /** Completes the first list of all kinds that were used. */
  sync(): void {
    for (const informer of this.#informers.values()) informer.sync();
  }

  #of(plural: string): FakeInformer {
    const informer = this.#informers.get(plural) ?? new FakeInformer();
    this.#informers.set(plural, informer);
    return informer;
  }
}

class FakeInformer implements Informer<ApiObject> {
  readonly synced: Promise<void>;
  isSynced = false;
  readonly #objects = new Map<string, ApiObject>();
  readonly #subscribers = new Set<InformerHandlers<ApiObject>>();
  readonly #resolve: () => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.synced = promise;
    this.#resolve = resolve;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(name: string, namespace = ""): ApiObject | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  list(): IterableIterator<ApiObject> {
    return this.#objects.values();
  }

  subscribe(handlers: InformerHandlers<ApiObject>): () => void {
    this.#subscribers.add(handlers);
    for (const object of this.#objects.values()) handlers.put?.(object, undefined);
    return () => void this.#subscribers.delete(handlers);
  }

  put(object: ApiObject): void {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const handlers of this.#subscribers) handlers.put?.(object, previous);
  }

  delete(object: ApiObject): void {
    const key = keyOf(object);
    const last = this.#objects.get(key);
    if (last === undefined || !this.#objects.delete(key)) return;
    for (const handlers of this.#subscribers) handlers.delete?.(last);
  }

  sync(): void {
    this.isSynced = true;
    this.#resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

function keyOf({ metadata }: ApiObject): string {
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}
