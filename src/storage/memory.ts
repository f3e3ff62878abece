import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import type { Store } from "./store.ts";

export interface MemoryStoreOptions {
  readonly clock: Clock;
  readonly log?: Logger | undefined;
}

export declare function createMemoryStore(options: MemoryStoreOptions): Store;
