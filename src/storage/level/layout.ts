/** Checks the format of a database when it is opened. */
import { type Revision, StoreError } from "../store.ts";
import type { Database } from "./database.ts";
import { ALL_KEYS, COMPACTED_KEY, FORMAT_KEY, LOG_RANGE, logKey, REVISION_KEY, revisionOf, TTL_RANGE } from "./keys.ts";
import { decodeNumber, decodeTtlEntry, encodeNumber } from "./record.ts";

/** Incremented when the format in `keys.ts` or `record.ts` changes; older formats are then converted here. */
const FORMAT = 1;

/** As in etcd: clients use 0 for "any revision". */
const FIRST_REVISION = 1 as Revision;

export interface Layout {
  readonly revision: Revision;
  readonly oldest: Revision;
}

export async function readLayout(database: Database, path: string): Promise<Layout> {
  const format = readNumber(database, FORMAT_KEY);
  if (format === undefined) return await initialize(database, path);
  if (format > FORMAT) {
    throw new StoreError(
      "newer-format",
      `Cannot open the embedded store in "${path}": it is of format ${format}, ` +
        `this program supports ${FORMAT}; use a newer one`,
    );
  }
  const revision = (readNumber(database, REVISION_KEY) ?? FIRST_REVISION) as Revision;
  const oldest = (readNumber(database, COMPACTED_KEY) ?? FIRST_REVISION) as Revision;
  await checkLog(database, path, oldest, revision);
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
    throw new StoreError("corrupt", `Cannot open the embedded store in "${path}": it holds data of another program`);
  }
  await database.write([{ type: "put", key: FORMAT_KEY, value: encodeNumber(FORMAT_KEY, FORMAT) }]);
  return { revision: FIRST_REVISION, oldest: FIRST_REVISION };
}

function readNumber(database: Database, key: Buffer): number | undefined {
  const record = database.get(key);
  return record && decodeNumber(key, record);
}

/**
 * Checks that the log has every revision since the last compaction. When LevelDB finds a damaged record in its log, it
 * silently drops the rest of the block, which leaves a gap.
 */
async function checkLog(database: Database, path: string, oldest: Revision, revision: Revision): Promise<void> {
  let expected = oldest + 1;
  const bounds = { gte: logKey(expected as Revision), lt: LOG_RANGE.lt };
  for await (const chunk of database.entries(bounds)) {
    for (const [bytes] of chunk) {
      const found = revisionOf(bytes);
      if (found !== expected) throw lostWrites(path, expected, found - 1);
      expected = found + 1;
    }
  }
  if (expected !== revision + 1)
    throw lostWrites(path, Math.min(expected, revision + 1), Math.max(expected - 1, revision));
}

function lostWrites(path: string, first: number, last: number): StoreError {
  return new StoreError(
    "corrupt",
    `Cannot open the embedded store in "${path}": the disk has lost writes of revisions ${first} to ${last}; ` +
      "restore a backup or remove it",
  );
}
