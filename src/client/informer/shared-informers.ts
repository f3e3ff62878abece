/** One informer per kind for all controllers of a process, with the controller manager's permission to watch. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Client } from "../client.ts";
import { type Informer, startInformer } from "./informer.ts";

export interface SharedInformers {
  /** Starts the informer with the first call for the kind. It runs until the controllers have stopped. */
  of<T extends ApiObject>(kind: Kind<T>): Informer<T>;
}

export interface SharedInformersDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** What the informers keep of an object (`dropManagedFields` for readers that never write); all of it when absent. */
  readonly transform?: (<T extends ApiObject>(object: T) => T) | undefined;
}

export function createSharedInformers(
  deps: SharedInformersDeps,
  signal: AbortSignal,
): SharedInformers & AsyncDisposable {
  // Bounded by the number of kinds.
  const informers = new Map<string, Informer<ApiObject>>();
  return {
    of<T extends ApiObject>(kind: Kind<T>): Informer<T> {
      const key = `${kind.plural}.${kind.group}`;
      // The key determines the type.
      const existing = informers.get(key) as Informer<T> | undefined;
      if (existing !== undefined) return existing;
      const started = startInformer<T>({ ...deps, kind }, signal);
      informers.set(key, started as Informer<ApiObject>);
      return started;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([...informers.values()].map((informer) => informer[Symbol.asyncDispose]()));
    },
  };
}

/** Resolves when all informers have their first list, or when the signal aborts. */
export async function waitForCacheSync(
  informers: readonly { readonly synced: Promise<void> }[],
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(informers.map(({ synced }) => synced)).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
