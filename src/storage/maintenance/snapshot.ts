/** The state of a store at one revision, apart from the engine that holds it. */
import type { Revision } from "../store.ts";

export interface SnapshotItem {
  readonly key: string;
  readonly value: Uint8Array;
  readonly created: Revision;
  readonly modified: Revision;
  /** When the value expires, in milliseconds since 1970; undefined for never. */
  readonly expiresAt?: number | undefined;
}

export interface Snapshot {
  readonly revision: Revision;
  /** All items in parts of about a MiB. May be called again. */
  parts(): AsyncIterable<readonly SnapshotItem[]>;
}

/** What a restore or a migration has written. */
export interface RestoreResult {
  readonly items: number;
  /** The revision of the new store. */
  readonly revision: Revision;
}
