import type { ApiObject, Kind } from "../api/kind.ts";
import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import type { RandomSource } from "../std/random.ts";
import type { Client, ListQuery } from "./client.ts";

export type ReflectorEvent<T> =
  | { readonly type: "replace"; readonly items: readonly T[]; readonly resourceVersion: string }
  | { readonly type: "put" | "delete"; readonly object: T };

export interface ReflectorOptions<T extends ApiObject> {
  readonly client: Client;
  readonly kind: Kind<T>;
  readonly query?: Pick<ListQuery, "namespace" | "labelSelector" | "fieldSelector"> | undefined;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** Called in order, one at a time; must not throw. */
  readonly onEvent: (event: ReflectorEvent<T>) => void;
}

/** Keeps a view of one kind true: list, then watch, and again with back-off whatever breaks. Resolves when `signal` aborts. */
export declare function reflect<T extends ApiObject>(options: ReflectorOptions<T>, signal: AbortSignal): Promise<void>;
