/** Reads what can be read of a damaged embedded store, without LevelDB, which reads damaged blocks unchecked. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { COMPACTED_KEY, headKey, keyOf, keyOfHead, LETTER, REVISION_KEY, revisionOf } from "../level/keys.ts";
import {
  decodeHead,
  decodeLogEntry,
  decodeNumber,
  decodeTtlEntry,
  decodeVersion,
  type TtlEntry,
} from "../level/record.ts";
import { describeKeyRange } from "../level/verify/key-range.ts";
import { readLogFile } from "../level/verify/log-file.ts";
import { readManifest, type TableFile } from "../level/verify/manifest.ts";
import { readRevisionFile } from "../level/verify/revision-file.ts";
import { readTableBlocks } from "../level/verify/table-file.ts";
import { readOperations } from "../level/verify/write-batch.ts";
import type { Revision } from "../store.ts";
import type { Snapshot, SnapshotItem } from "./snapshot.ts";

export interface LostKey {
  readonly key: string;
  /** `older`: an older value is kept; `gone`: no value is left; `unknown`: kept, it may have been deleted. */
  readonly outcome: "older" | "gone" | "unknown";
}

export interface Salvage {
  readonly snapshot: Snapshot;
  /** `000007.ldb: the checksum of the block at offset 0 is wrong` */
  readonly damage: readonly string[];
  readonly lost: readonly LostKey[];
  /** The tables that are missing or cannot be read at all, in which keys that no other record names may have been. */
  readonly tables: readonly LostTable[];
  /** How many revisions since the last compaction no record names: so many writes at least are lost. */
  readonly lostRevisions: number;
  /** The revision up to which writes are found; that of the snapshot is higher when later ones are lost. */
  readonly found: Revision;
}

export interface LostTable {
  readonly file: string;
  readonly bytes: number;
  /** What it had, from the MANIFEST: `values of keys "/registry/a" to "/registry/z"`. */
  readonly content: string;
}

/** An entry of LevelDB. */
interface Entry {
  readonly key: Buffer;
  readonly sequence: number;
  readonly value: Buffer | undefined;
}

interface KeyRange {
  readonly after: Buffer | undefined;
  readonly last: Buffer | undefined;
}

interface Damage {
  readonly texts: string[];
  /** The keys of damaged tables. */
  readonly ranges: KeyRange[];
  /** Those of which nothing can be read. */
  readonly tables: LostTable[];
}

function noDamage(): Damage {
  return { texts: [], ranges: [], tables: [] };
}

/** What the newest entry of a key of LevelDB is. */
interface NewestEntry {
  readonly sequence: number;
  readonly isValue: boolean;
}

/** What is left of a key of the store. */
interface KeyState {
  /** The newest version that is whole. */
  version: { readonly revision: Revision; readonly isValue: boolean } | undefined;
  /** The newest revision that any record names. */
  newest: number;
  hasHead: boolean;
}

export async function salvage(path: string): Promise<Salvage> {
  const damage = noDamage();
  const newest = new Map<string, NewestEntry>();
  for await (const { key, sequence, value } of readEntries(path, damage)) {
    if (value !== undefined && !isWhole(key, value)) {
      damage.texts.push(`the record ${JSON.stringify(key.toString("latin1"))} has a wrong checksum`);
      damage.ranges.push({ after: undefined, last: key });
      continue;
    }
    const id = key.toString("latin1");
    const known = newest.get(id);
    if (known === undefined || known.sequence < sequence) newest.set(id, { sequence, isValue: value !== undefined });
  }
  const isCurrent = ({ key, sequence }: Entry): boolean => newest.get(key.toString("latin1"))?.sequence === sequence;
  const keys = new Map<string, KeyState>();
  const ttls = new Map<string, TtlEntry>();
  const logged = new Set<Revision>();
  let [found, compacted] = [1, 0];
  for await (const entry of readEntries(path, noDamage())) {
    if (entry.value === undefined || !isCurrent(entry) || !isWhole(entry.key, entry.value)) continue;
    found = Math.max(found, recordEntry(entry.key, entry.value, keys, ttls));
    if (entry.key[0] === LETTER.log) logged.add(revisionOf(entry.key));
    if (entry.key.equals(COMPACTED_KEY)) compacted = decodeNumber(entry.key, entry.value);
  }
  const lost: LostKey[] = [];
  const kept = new Map<string, Revision>();
  for (const [key, remains] of keys) {
    const { version } = remains;
    const isLost = version === undefined || version.revision < remains.newest;
    const mayBeDeleted = !remains.hasHead;
    // The latest record of the head is its deletion.
    if (mayBeDeleted && newest.has(headKey(key).toString("latin1"))) continue;
    if (version === undefined) lost.push({ key, outcome: "gone" });
    else if (!version.isValue) {
      if (isLost && remains.hasHead) lost.push({ key, outcome: "gone" });
    } else if (!mayBeDeleted) {
      kept.set(key, version.revision);
      if (isLost) lost.push({ key, outcome: "older" });
    } else if (isDamaged(headKey(key), damage.ranges)) {
      kept.set(key, version.revision);
      lost.push({ key, outcome: "unknown" });
    }
  }
  const reached = (await readRevisionFile(path))?.revision ?? 0;
  const snapshot: Snapshot = {
    revision: Math.max(found, reached) as Revision,
    async *parts() {
      for await (const entry of readEntries(path, noDamage())) {
        if (entry.value === undefined || entry.key[0] !== LETTER.version || !isCurrent(entry)) continue;
        if (!isWhole(entry.key, entry.value)) continue;
        const [key, modified] = [keyOf(entry.key), revisionOf(entry.key)];
        const { created, value } = decodeVersion(entry.key, entry.value);
        if (kept.get(key) !== modified || value === undefined) continue;
        const ttl = ttls.get(`${modified} ${key}`);
        const item: SnapshotItem = { key, value, created, modified, ...(ttl !== undefined && { expiresAt: ttl.at }) };
        yield [item];
      }
    },
  };
  const lostRevisions = countMissing(logged, compacted, snapshot.revision);
  return { snapshot, damage: damage.texts, lost, tables: damage.tables, lostRevisions, found: found as Revision };
}

/** The revisions after the last compaction, or after the oldest known one, that the log does not have. */
function countMissing(logged: ReadonlySet<Revision>, compacted: number, last: number): number {
  let oldest = last + 1;
  for (const revision of logged) oldest = Math.min(oldest, revision);
  const start = compacted > 0 ? compacted : oldest - 1;
  let known = 0;
  for (const revision of logged) if (revision > start && revision <= last) known++;
  return Math.max(0, last - start - known);
}

/** Returns the newest revision that the record names. */
function recordEntry(bytes: Buffer, record: Buffer, keys: Map<string, KeyState>, ttls: Map<string, TtlEntry>): number {
  const remainsOf = (key: string): KeyState => {
    const remains = keys.get(key) ?? { version: undefined, newest: 0, hasHead: false };
    keys.set(key, remains);
    return remains;
  };
  switch (bytes[0]) {
    case LETTER.head: {
      const remains = remainsOf(keyOfHead(bytes));
      const { modified } = decodeHead(bytes, record);
      remains.hasHead = true;
      remains.newest = Math.max(remains.newest, modified);
      return modified;
    }
    case LETTER.version: {
      const revision = revisionOf(bytes);
      const remains = remainsOf(keyOf(bytes));
      const isValue = decodeVersion(bytes, record).value !== undefined;
      if ((remains.version?.revision ?? 0) < revision) remains.version = { revision, isValue };
      remains.newest = Math.max(remains.newest, revision);
      return revision;
    }
    case LETTER.log: {
      const { key } = decodeLogEntry(bytes, record);
      const remains = remainsOf(key);
      remains.newest = Math.max(remains.newest, revisionOf(bytes));
      return revisionOf(bytes);
    }
    case LETTER.ttl: {
      const ttl = decodeTtlEntry(bytes, record);
      ttls.set(`${revisionOf(bytes)} ${ttl.key}`, ttl);
      return revisionOf(bytes);
    }
    default:
      return bytes.equals(REVISION_KEY) ? decodeNumber(bytes, record) : 0;
  }
}

function isWhole(key: Buffer, record: Buffer): boolean {
  try {
    if (key[0] === LETTER.head) decodeHead(key, record);
    else if (key[0] === LETTER.version) decodeVersion(key, record);
    else if (key[0] === LETTER.log) decodeLogEntry(key, record);
    else if (key[0] === LETTER.ttl) decodeTtlEntry(key, record);
    else decodeNumber(key, record);
    return true;
  } catch {
    return false;
  }
}

function isDamaged(key: Buffer, ranges: readonly KeyRange[]): boolean {
  return ranges.some(
    ({ after, last }) =>
      (after === undefined || after.compare(key) < 0) && (last === undefined || key.compare(last) <= 0),
  );
}

async function* readEntries(path: string, damage: Damage): AsyncIterable<Entry> {
  const names = (await readdir(path)).sort();
  const listed = await readListedTables(path, names);
  const tables = names.filter((name) => /^\d+\.(?:ldb|sst)$/.test(name));
  const isListed = (name: string): boolean => listed === undefined || listed.has(Number.parseInt(name, 10));
  if (listed === undefined) damage.texts.push("the MANIFEST cannot be read: all tables are used");
  for (const [number, table] of listed ?? []) {
    if (tables.some((name) => Number.parseInt(name, 10) === number)) continue;
    addLostTable(damage, `${String(number).padStart(6, "0")}.ldb`, "it is missing", table);
  }
  for (const name of tables.filter(isListed)) {
    yield* readTable(path, name, damage, listed?.get(Number.parseInt(name, 10)));
  }
  for (const name of names.filter((each) => /^\d+\.log$/.test(each))) yield* readLog(path, name, damage);
}

function addLostTable(damage: Damage, file: string, why: string, table: TableFile | undefined): void {
  damage.texts.push(`${file}: ${why}`);
  damage.ranges.push({ after: undefined, last: table?.largest });
  if (table === undefined) return;
  damage.tables.push({ file, bytes: table.size, content: describeKeyRange(table.smallest, table.largest) });
}

/** The tables by their numbers; undefined when the MANIFEST is lost. */
async function readListedTables(
  path: string,
  names: readonly string[],
): Promise<ReadonlyMap<number, TableFile> | undefined> {
  const named = (await readFile(join(path, "CURRENT"), "latin1").catch(() => "")).trimEnd();
  const newest = names.filter((name) => /^MANIFEST-\d+$/.test(name)).at(-1);
  const name = names.includes(named) ? named : newest;
  if (name === undefined) return undefined;
  try {
    const { records, damage } = readLogFile(await readFile(join(path, name)));
    if (records.length === 0 || (damage !== undefined && !damage.atEnd)) return undefined;
    const { tables } = readManifest(records);
    return new Map(tables.map((table) => [table.number, table]));
  } catch {
    return undefined;
  }
}

async function* readTable(
  path: string,
  name: string,
  damage: Damage,
  listed: TableFile | undefined,
): AsyncIterable<Entry> {
  try {
    for (const block of readTableBlocks(await readFile(join(path, name)))) {
      if (block.damage !== undefined) {
        damage.texts.push(`${name}: ${block.damage}`);
        damage.ranges.push({ after: block.after, last: block.last });
      }
      for (const { key, sequence, isDeletion, value } of block.entries) {
        yield { key, sequence, value: isDeletion ? undefined : value };
      }
    }
  } catch (error) {
    addLostTable(damage, name, error instanceof Error ? error.message : String(error), listed);
  }
}

async function* readLog(path: string, name: string, damage: Damage): AsyncIterable<Entry> {
  try {
    const { records, damage: found } = readLogFile(await readFile(join(path, name)));
    for (const record of records) yield* readOperations(record);
    if (found === undefined) return;
    const why = found.why === "checksum" ? "has a wrong checksum" : "is incomplete";
    damage.texts.push(`${name}: the record at offset ${found.offset} ${why}; it and those after it are lost`);
  } catch (error) {
    damage.texts.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
