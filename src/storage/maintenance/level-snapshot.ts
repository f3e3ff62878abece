/** Reads an embedded store of which no server uses the files: every record is verified. */
import type { Database } from "../level/database.ts";
import { ALL_KEYS, keyOf, revisionOf } from "../level/keys.ts";
import { type Layout, readLayout, readTtls } from "../level/layout.ts";
import { readHead, readItem, scanAt } from "../level/mvcc.ts";
import { decodeHead, decodeLogEntry, decodeNumber, decodeTtlEntry, decodeVersion } from "../level/record.ts";
import { type Range, type Revision, StoreError } from "../store.ts";
import type { Snapshot, SnapshotItem } from "./snapshot.ts";

/** All keys of the store. */
const EVERYTHING: Range = { from: "\0", to: "\u{10ffff}" };

/** Rejects with a `StoreError` for a store that a server does not open. */
export async function readLevelSnapshot(database: Database, path: string): Promise<Snapshot> {
  const { revision } = await readLayout(database, path);
  const expiry = new Map((await readTtls(database)).map((ttl) => [`${ttl.revision} ${ttl.key}`, ttl.at]));
  return {
    revision,
    async *parts() {
      for await (const { items } of scanAt(database, EVERYTHING, revision)) {
        yield items.map(({ key, value, created, modified }): SnapshotItem => {
          const expiresAt = expiry.get(`${modified} ${key}`);
          return { key, value, created, modified, ...(expiresAt !== undefined && { expiresAt }) };
        });
      }
    },
  };
}

export interface RecordCounts {
  readonly layout: Layout;
  readonly records: number;
  readonly keys: number;
  readonly versions: number;
  readonly expiring: number;
}

/** Verifies the checksum of each record, that each key has its value, and that the history has every revision. */
export async function verifyRecords(database: Database, path: string): Promise<RecordCounts> {
  const layout = await readLayout(database, path);
  const counts = { records: 0, keys: 0, versions: 0, expiring: 0 };
  for await (const chunk of database.entries(ALL_KEYS)) {
    for (const [bytes, record] of chunk) {
      counts.records++;
      const letter = String.fromCharCode(bytes[0]!);
      if (letter === "h") {
        counts.keys++;
        verifyHead(database, bytes, record);
      } else if (letter === "v") {
        counts.versions++;
        verifyVersion(database, bytes, record, layout.revision);
      } else if (letter === "t") {
        counts.expiring++;
        decodeTtlEntry(bytes, record);
      } else if (letter === "l") decodeLogEntry(bytes, record);
      else if (bytes.length === 1 && "frc".includes(letter)) decodeNumber(bytes, record);
      else throw corrupt(`it holds a record "${bytes.toString("latin1")}" of no type`);
    }
  }
  return { layout, ...counts };
}

function verifyHead(database: Database, bytes: Buffer, record: Buffer): void {
  const head = decodeHead(bytes, record);
  const key = bytes.toString("utf8", 1).replaceAll("\0\ufffd", "\0");
  readItem(database, key, head);
}

function verifyVersion(database: Database, bytes: Buffer, record: Buffer, revision: Revision): void {
  decodeVersion(bytes, record);
  const [key, modified] = [keyOf(bytes), revisionOf(bytes)];
  if (modified > revision) throw corrupt(`"${key}" is of revision ${modified}, after the last one, ${revision}`);
  const head = readHead(database, key);
  if (head !== undefined && head.modified < modified) {
    throw corrupt(`"${key}" is of revision ${modified}, after its latest one, ${head.modified}`);
  }
}

function corrupt(why: string): StoreError {
  return new StoreError("corrupt", `The embedded store is damaged: ${why}`);
}
