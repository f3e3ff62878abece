import type { ApiObject } from "../../api/kind.ts";
import { type ReflectorEvent, type ReflectorOptions, reflect } from "./reflector.ts";

export interface InformerHandlers<T> {
  put?(object: T, previous: T | undefined): void;
  /** Gets the last state of the object. */
  delete?(object: T): void;
}

/** A cache of the objects of one kind. It contains all objects that the query selects. */
export interface Informer<T> extends AsyncDisposable {
  /** Resolves after the first list has been delivered; rejects when the informer stops before. */
  readonly synced: Promise<void>;
  readonly isSynced: boolean;
  get(name: string, namespace?: string): T | undefined;
  list(): IterableIterator<T>;
  readonly size: number;
  /** Calls `put` for every object, then handlers for every change. Returns a function to stop. Errors are logged. */
  subscribe(handlers: InformerHandlers<T>): () => void;
}

interface InformerOptions<T extends ApiObject> extends Omit<ReflectorOptions<T>, "onEvent"> {
  /** What the informer keeps of an object; all of it when absent. */
  readonly transform?: ((object: T) => T) | undefined;
}

/** Runs until `signal` aborts or it is disposed. */
export function startInformer<T extends ApiObject>(options: InformerOptions<T>, signal?: AbortSignal): Informer<T> {
  return new ReflectedInformer(options, signal);
}

class ReflectedInformer<T extends ApiObject> implements Informer<T> {
  readonly synced: Promise<void>;
  readonly #options: InformerOptions<T>;
  readonly #objects = new Map<string, T>();
  readonly #subscribers = new Set<InformerHandlers<T>>();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #synced = false;
  #settle: { resolve(): void; reject(error: unknown): void };

  constructor(options: InformerOptions<T>, signal: AbortSignal | undefined) {
    this.#options = options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.synced = promise;
    this.#settle = { resolve, reject };
    // The rejection is handled even if no caller waits.
    promise.catch(() => {});
    const until = signal === undefined ? this.#stop.signal : AbortSignal.any([signal, this.#stop.signal]);
    this.#running = reflect({ ...options, onEvent: (event) => this.#apply(event) }, until).finally(() =>
      this.#settle.reject(new DOMException("The informer stopped before its first list", "AbortError")),
    );
  }

  get isSynced(): boolean {
    return this.#synced;
  }

  get size(): number {
    return this.#objects.size;
  }

  get(name: string, namespace = ""): T | undefined {
    return this.#objects.get(keyOf(namespace, name));
  }

  list(): IterableIterator<T> {
    return this.#objects.values();
  }

  subscribe(handlers: InformerHandlers<T>): () => void {
    this.#subscribers.add(handlers);
    for (const object of [...this.#objects.values()]) this.#guard(() => handlers.put?.(object, undefined));
    return () => void this.#subscribers.delete(handlers);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new DOMException("The informer was closed", "AbortError"));
    await this.#running;
  }

  #apply(event: ReflectorEvent<T>): void {
    switch (event.type) {
      case "put":
        this.#put(event.object);
        return;
      case "delete":
        this.#delete(objectKey(event.object), event.object);
        return;
      case "replace": {
        const kept = new Set(event.items.map(objectKey));
        for (const [key, object] of [...this.#objects]) if (!kept.has(key)) this.#delete(key, object);
        for (const object of event.items) this.#put(object);
        this.#synced = true;
        this.#settle.resolve();
      }
    }
  }

  #put(received: T): void {
    const key = objectKey(received);
    const previous = this.#objects.get(key);
    const revision = received.metadata?.resourceVersion;
    // A new list contains unchanged objects.
    if (previous !== undefined && revision !== undefined && previous.metadata?.resourceVersion === revision) return;
    const object = this.#options.transform?.(received) ?? received;
    this.#objects.set(key, object);
    for (const handlers of this.#subscribers) this.#guard(() => handlers.put?.(object, previous));
  }

  #delete(key: string, object: T): void {
    if (!this.#objects.delete(key)) return;
    for (const handlers of this.#subscribers) this.#guard(() => handlers.delete?.(object));
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#options.log.error("An informer handler failed", error, { resource: this.#options.kind.plural });
    }
  }
}

function objectKey(object: ApiObject): string {
  return keyOf(object.metadata?.namespace ?? "", object.metadata?.name ?? "");
}

function keyOf(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}
