import type { ApiObject } from "../api/kind.ts";
import type { ReflectorOptions } from "./reflector.ts";

export interface InformerHandlers<T> {
  put?(object: T, previous: T | undefined): void;
  delete?(object: T): void;
}

/** The objects of one kind as the server last told, by `namespace/name` (`name` for cluster-wide kinds). */
export interface Informer<T> extends AsyncDisposable {
  /** Resolves after the first list has been delivered; rejects when the informer stops before. */
  readonly synced: Promise<void>;
  readonly isSynced: boolean;
  get(name: string, namespace?: string): T | undefined;
  list(): IterableIterator<T>;
  readonly size: number;
  /** Told of all there is now (`put`), then of every change. Returns how to stop. Handlers that throw are logged. */
  subscribe(handlers: InformerHandlers<T>): () => void;
}

export declare function startInformer<T extends ApiObject>(
  options: Omit<ReflectorOptions<T>, "onEvent">,
  signal?: AbortSignal,
): Informer<T>;
