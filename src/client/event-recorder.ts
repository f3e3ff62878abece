import type { ObjectReference } from "../api/core/object-reference.ts";
import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import type { RandomSource } from "../std/random.ts";
import type { Client } from "./client.ts";

export interface EventRecorderOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  /** `source.component`: `svclet`, `default-scheduler`. */
  readonly component: string;
  /** `source.host`: the node's name. */
  readonly host?: string | undefined;
  /** Events a second, on average; 50 when absent, no limit when 0. */
  readonly qps?: number | undefined;
  /** How far a quiet recorder may exceed `qps`; 100 when absent. */
  readonly burst?: number | undefined;
}

export interface EventRecorder extends AsyncDisposable {
  /** Never fails and never waits: sending goes on behind. */
  record(about: ObjectReference, type: "Normal" | "Warning", reason: string, message: string): void;
  /** Resolves when all that was recorded has been sent or given up. */
  flush(): Promise<void>;
}

export declare function createEventRecorder(options: EventRecorderOptions): EventRecorder;
