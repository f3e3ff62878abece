/** Checks the format of a database when it is opened. */
import { type Revision, StoreError } from "../store.ts";
import type { Database } from "./database.ts";
import {
  ALL_KEYS,
  COMPACTED_KEY,
  FORMAT,
  FORMAT_KEY,
  LOG_RANGE,
  logKey,
  REVISION_KEY,
  revisionOf,
  TTL_RANGE,
} from "./keys.ts";
import { decodeNumber, decodeTtlEntry, encodeNumber } from "./record.ts";
import { checkFormat, FIRST_REVISION, foreignData, type Gap, gapAtEnd } from "./verify/store-content.ts";

export interface Layout {
  readonly revision: Revision;
  readonly oldest: Revision;
}

export async function readLayout(database: Database, path: string): Promise<Layout> {
  const format = readNumber(database, FORMAT_KEY);
  if (format === undefined) return await initialize(database, path);
  checkFormat(path, format);
  const revision = (readNumber(database, REVISION_KEY) ?? FIRST_REVISION) as Revision;
  const oldest = (readNumber(database, COMPACTED_KEY) ?? FIRST_REVISION) as Revision;
  if (!database.isVerified) await checkLog(database, path, oldest, revision);
  return { revision, oldest };
}

export interface Ttl {
  readonly key: string;
  readonly revision: Revision;
  readonly at: number;
}

export async function readTtls(database: Database): Promise<Ttl[]> {
  const ttls: Ttl[] = [];
  for await (const chunk of database.entries(TTL_RANGE)) {
    for (const [bytes, record] of chunk) ttls.push({ ...decodeTtlEntry(bytes, record), revision: revisionOf(bytes) });
  }
  return ttls;
}

async function initialize(database: Database, path: string): Promise<Layout> {
  for await (const _ of database.entries(ALL_KEYS, { limit: 1 })) {
    throw foreignData(path);
  }
  await database.write([{ type: "put", key: FORMAT_KEY, value: encodeNumber(FORMAT_KEY, FORMAT) }]);
  return { revision: FIRST_REVISION, oldest: FIRST_REVISION };
}

function readNumber(database: Database, key: Buffer): number | undefined {
  const record = database.get(key);
  return record && decodeNumber(key, record);
}

/** Checks that the log has every revision since the last compaction, in a database whose tables were not verified. */
async function checkLog(database: Database, path: string, oldest: Revision, revision: Revision): Promise<void> {
  let expected = oldest + 1;
  const bounds = { gte: logKey(expected as Revision), lt: LOG_RANGE.lt };
  for await (const chunk of database.entries(bounds)) {
    for (const [bytes] of chunk) {
      const found = revisionOf(bytes);
      if (found !== expected) throw lostWrites(path, { first: expected, last: found - 1 });
      expected = found + 1;
    }
  }
  const gap = gapAtEnd(expected, revision);
  if (gap !== undefined) throw lostWrites(path, gap);
}

function lostWrites(path: string, { first, last }: Gap): StoreError {
  return new StoreError(
    "corrupt",
    `Cannot open the embedded store in "${path}": the disk has lost writes of revisions ${first} to ${last}; ` +
      "restore a backup or remove it",
  );
}
