import { TimeSlice } from "../../std/async/time-slice.ts";
import type { Revision } from "../store.ts";
import type { Database, Operation } from "./database.ts";
import { COMPACTED_KEY, LOG_RANGE, logKey, revisionOf, versionKey } from "./keys.ts";
import { readHead } from "./mvcc.ts";
import { decodeLogEntry, decodeVersion, encodeNumber } from "./record.ts";

/** Deletions per batch. */
const CHUNK_OPERATIONS = 2000;

/**
 * Deletes the versions that are not readable once `before` is the oldest readable revision. Reads only the log up to
 * `before`, so the work depends on the writes since the last compaction, not on the number of keys: each log entry has
 * the revision of the version it replaced, which is no longer readable. Worked example, compacting to 4:
 *
 *     log 2: /a, before 0      version /a 2 → deleted by the entry of log 3, which replaced it
 *     log 3: /a, before 2      version /a 3 → deleted by the entry of log 4
 *     log 4: /a, before 3      version /a 4 → kept if it is a value, deleted if it is a deletion
 *
 * The new oldest revision is on disk before versions are deleted; the next compaction deletes what a crash leaves.
 */
export async function compactBefore(database: Database, before: Revision): Promise<void> {
  await database.write([{ type: "put", key: COMPACTED_KEY, value: encodeNumber(COMPACTED_KEY, before) }]);
  let operations: Operation[] = [];
  const slice = new TimeSlice();
  const bounds = { gte: LOG_RANGE.gte, lt: logKey((before + 1) as Revision) };
  for await (const chunk of database.entries(bounds)) {
    const entries = chunk.map(([bytes, record]) => ({
      bytes,
      revision: revisionOf(bytes),
      ...decodeLogEntry(bytes, record),
    }));
    const replaced = new Set(entries.map(({ previous }) => previous));
    for (const { bytes, revision, key, previous } of entries) {
      operations.push({ type: "del", key: bytes });
      if (previous !== 0) operations.push({ type: "del", key: versionKey(key, previous) });
      // A version that another one replaced is a value, and is deleted with the entry of that one.
      const version = versionKey(key, revision);
      if (!replaced.has(revision) && mayBeDeletion(database, key, revision) && (await isDeletion(database, version))) {
        operations.push({ type: "del", key: version });
      }
      const turn = slice.yield();
      if (turn !== undefined) await turn;
      if (operations.length < CHUNK_OPERATIONS) continue;
      await database.write(operations);
      operations = [];
    }
  }
  await database.write(operations);
}

/** False if the key has had a value ever since, as its head says, which is small: the version has the whole value. */
function mayBeDeletion(database: Database, key: string, revision: Revision): boolean {
  const head = readHead(database, key);
  return head === undefined || head.created > revision;
}

async function isDeletion(database: Database, version: Buffer): Promise<boolean> {
  const stored = await database.read(version);
  return stored !== undefined && decodeVersion(version, stored).value === undefined;
}
