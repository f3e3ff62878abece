/** Reads at the latest and at older revisions: heads, versions and the log in the format of `keys.ts`. */

import type { KeyValue, ListOptions, Page, Range, Revision, ScanPart, WatchEvent } from "../store.ts";
import { StoreError } from "../store.ts";
import { inRange } from "../store-errors.ts";
import type { Database, Entry } from "./database.ts";
import { headKey, keyOf, logKey, revisionOf, sameKey, versionBound, versionKey } from "./keys.ts";
import { decodeHead, decodeLogEntry, decodeVersion, type Head } from "./record.ts";

export function readHead(database: Database, key: string): Head | undefined {
  const bytes = headKey(key);
  const record = database.get(bytes);
  return record && decodeHead(bytes, record);
}

/** The value of `head`. */
export function readItem(database: Database, key: string, head: Head): KeyValue {
  const bytes = versionKey(key, head.modified);
  const record = database.get(bytes);
  const value = record && decodeVersion(bytes, record).value;
  if (value === undefined) throw missing(key, head.modified);
  return { key, value, modified: head.modified, created: head.created };
}

/** The value of the key at `revision`. */
export async function readAt(database: Database, key: string, revision: Revision): Promise<KeyValue | undefined> {
  const bounds = { gte: versionKey(key, 0 as Revision), lt: versionKey(key, (revision + 1) as Revision) };
  for await (const [entry] of database.entries(bounds, { reverse: true, limit: 1 })) {
    return entry && toItem(...entry);
  }
  return undefined;
}

/** The versions of a key are adjacent, oldest first: the last one up to `revision` is its value. */
export async function listAt(
  database: Database,
  range: Range,
  revision: Revision,
  { limit = Number.POSITIVE_INFINITY }: Pick<ListOptions, "limit">,
): Promise<Page> {
  const items: KeyValue[] = [];
  let remaining = 0;
  const take = (entry: readonly [Buffer, Buffer] | undefined): void => {
    const item = entry && toItem(...entry);
    if (item === undefined) return;
    if (items.length < limit) items.push(item);
    else remaining++;
  };
  let shown: readonly [Buffer, Buffer] | undefined;
  if (range.from >= range.to) return { items, revision, remaining };
  for await (const chunk of database.entries({ gte: versionBound(range.from), lt: versionBound(range.to) })) {
    for (const entry of chunk) {
      if (shown !== undefined && !sameKey(shown[0], entry[0])) {
        take(shown);
        shown = undefined;
      }
      if (revisionOf(entry[0]) <= revision) shown = entry;
    }
  }
  take(shown);
  return { items, revision, remaining };
}

/** The latest state of the range up to `revision`, a chunk of entries at a time. */
export async function* scanAt(database: Database, range: Range, revision: Revision): AsyncIterable<ScanPart> {
  let shown: Entry | undefined;
  if (range.from < range.to) {
    for await (const chunk of database.entries({ gte: versionBound(range.from), lt: versionBound(range.to) })) {
      const items: KeyValue[] = [];
      for (const entry of chunk) {
        if (shown !== undefined && !sameKey(shown[0], entry[0])) {
          const item = toItem(...shown);
          if (item !== undefined) items.push(item);
          shown = undefined;
        }
        if (revisionOf(entry[0]) <= revision) shown = entry;
      }
      if (items.length > 0) yield { items, revision };
    }
  }
  const last = shown && toItem(...shown);
  yield { items: last === undefined ? [] : [last], revision };
}

function toItem(bytes: Buffer, record: Buffer): KeyValue | undefined {
  const { created, value } = decodeVersion(bytes, record);
  return value && { key: keyOf(bytes), value, modified: revisionOf(bytes), created };
}

export interface PastEvents {
  readonly events: readonly WatchEvent[];
  /** `events` has all changes of the range up to this revision. */
  readonly revision: Revision;
}

/** Changes of the range after `from`, at most those of `revisionsMax` revisions, up to `to`. */
export async function readEvents(
  database: Database,
  range: Range,
  from: Revision,
  to: Revision,
  revisionsMax: number,
): Promise<PastEvents> {
  const last = Math.min(to, from + revisionsMax) as Revision;
  const events: WatchEvent[] = [];
  const bounds = { gte: logKey((from + 1) as Revision), lt: logKey((last + 1) as Revision) };
  for await (const chunk of database.entries(bounds)) {
    for (const [bytes, record] of chunk) {
      const { key, previous } = decodeLogEntry(bytes, record);
      if (inRange(key, range)) events.push(readEvent(database, key, revisionOf(bytes), previous));
    }
  }
  return { events, revision: last };
}

function readEvent(database: Database, key: string, revision: Revision, before: Revision): WatchEvent {
  const previous = before === 0 ? undefined : readVersion(database, key, before);
  const item = readVersion(database, key, revision);
  if (item !== undefined) return { type: "put", item, previous };
  if (previous === undefined) throw missing(key, before);
  return { type: "delete", key, revision, previous };
}

/** The value that was written at `modified`; undefined when it has been compacted. */
export function readValue(database: Database, key: string, modified: Revision): Buffer | undefined {
  const bytes = versionKey(key, modified);
  const record = database.get(bytes);
  return record && decodeVersion(bytes, record).value;
}

/** Undefined when the key was deleted at `revision`. */
function readVersion(database: Database, key: string, revision: Revision): KeyValue | undefined {
  const bytes = versionKey(key, revision);
  const record = database.get(bytes);
  if (record === undefined) throw missing(key, revision);
  return toItem(bytes, record);
}

function missing(key: string, revision: Revision): StoreError {
  return new StoreError("corrupt", `Cannot read "${key}" of revision ${revision}: the embedded store has lost it`);
}
