/**
 * Verifies the files of a database before LevelDB opens it: LevelDB replaces its log when it opens, drops damaged
 * records without a message, deletes tables that its MANIFEST does not name, and does not verify the checksums of
 * blocks.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { StoreError } from "../../store.ts";
import { REVISION_KEY } from "../keys.ts";
import { decodeNumber } from "../record.ts";
import { describeKeyRange } from "./key-range.ts";
import { type LogContent, type LogDamage, readLogFile } from "./log-file.ts";
import { type Manifest, readManifest, type TableFile } from "./manifest.ts";
import { readTables } from "./read-tables.ts";
import { hasFailedWrite, REVISION_FILE, readRevisionFile } from "./revision-file.ts";
import { type Gap, StoreContent } from "./store-content.ts";
import { findTableDamage } from "./table-file.ts";
import { readWriteBatch } from "./write-batch.ts";

export interface VerifyOptions {
  /** Whether to read all tables; else only their existence and size are checked. */
  readonly tables: boolean;
  /** Whether LevelDB has the database open: then the end of its log and the file REVISION change. */
  readonly isOpen?: boolean;
}

/** A file that cannot be trusted. */
export class DamageError extends StoreError {
  readonly file: string;
  /** The beginning of a sentence, and a sentence. */
  readonly why: string;
  readonly lost: string;

  constructor(path: string, { file, why, lost, accept = "" }: DamageDetails) {
    super(
      "corrupt",
      `Cannot open the embedded store in "${path}": it is damaged: ${why}. ${lost}. No file was changed. ` +
        "Keep a copy of the directory, then restore a snapshot, keep what is whole (svc kvstore repair), or remove the " +
        `directory for an empty store${accept}`,
    );
    this.file = file;
    this.why = why;
    this.lost = lost;
  }
}

interface DamageDetails {
  readonly file: string;
  readonly why: string;
  readonly lost: string;
  /** How to start in spite of it. */
  readonly accept?: string | undefined;
}

/** A log whose last record is incomplete, as after a power cut. LevelDB drops that record. */
export interface IncompleteLog {
  readonly name: string;
  readonly offset: number;
  /** The revision before the incomplete record; undefined when that is in the tables. */
  readonly revision: number | undefined;
}

const FIRST_MANIFEST = "MANIFEST-000001";

/**
 * Resolves with the log to keep a copy of, if any. Rejects with a `StoreError` of code `corrupt` for other damage; when
 * all tables are read, also for a store of a newer format, of another program, or whose history lacks revisions.
 */
export async function verifyDatabase(
  path: string,
  { tables, isOpen = false }: VerifyOptions,
): Promise<IncompleteLog | undefined> {
  const names = await readdir(path);
  const manifestName = await readCurrent(path, names);
  if (manifestName === undefined) return undefined;
  const manifest = await verifyManifest(path, names, manifestName, isOpen);
  const files = manifest.tables.map((table) => ({ ...table, name: findTable(path, names, table) }));
  await Promise.all(files.map((file) => verifySize(path, file)));
  const content = tables ? await verifyTables(path, files) : undefined;
  const incomplete = await verifyLogs(path, names, { ...manifest, content, stored: content?.revision }, isOpen);
  const gap = content?.findGap();
  if (gap !== undefined)
    throw damaged(path, "the store", describeGap(gap), "Lost are at most the writes of these revisions");
  return incomplete;
}

/**
 * The files of a database whose creation a power cut has ended: LevelDB does not sync its first MANIFEST, and writes
 * another one before it accepts writes. Empty for every other database.
 */
export async function findUnfinishedCreation(path: string): Promise<readonly string[]> {
  const names = await readdir(path);
  if (names.some((name) => name === REVISION_FILE || /\.(?:ldb|sst)$/.test(name))) return [];
  if (names.includes("CURRENT")) {
    if ((await readFile(join(path, "CURRENT"), "latin1")) !== `${FIRST_MANIFEST}\n`) return [];
    const manifest = names.includes(FIRST_MANIFEST) ? await readFile(join(path, FIRST_MANIFEST)) : Buffer.alloc(0);
    if (readLogFile(manifest).records.length > 0) return [];
  }
  const logs = names.filter((name) => /^\d{6,}\.log$/.test(name));
  const sizes = await Promise.all(logs.map(async (name) => (await stat(join(path, name))).size));
  if (sizes.some((size) => size > 0)) return [];
  // CURRENT last: a second interruption leaves what this function finds.
  const manifests = names.filter((name) => /^MANIFEST-\d{6,}$/.test(name));
  return [...logs, ...manifests, ...names.filter((name) => name === "CURRENT")];
}

/**
 * The MANIFEST that CURRENT should name, of a database whose opening a power cut has ended. LevelDB writes its log to
 * tables, syncs a new MANIFEST, renames CURRENT and deletes the log; a file system may keep the deletion and lose the
 * renaming. Undefined for every other database, also when a file of the new MANIFEST is missing.
 */
export async function findUnfinishedOpening(path: string): Promise<string | undefined> {
  const names = await readdir(path);
  const newest = names
    .filter((name) => name.startsWith("MANIFEST-"))
    .sort(byNumber)
    .at(-1);
  if (newest === undefined || !names.includes("CURRENT")) return undefined;
  try {
    const current = await readCurrent(path, names);
    if (current === undefined || fileNumber(newest) <= fileNumber(current)) return undefined;
    if (names.includes(current) && hasLog(names, await verifyManifest(path, names, current))) return undefined;
    const manifest = await verifyManifest(path, names, newest);
    await Promise.all(
      manifest.tables.map((table) => verifySize(path, { ...table, name: findTable(path, names, table) })),
    );
    const isWhole = readLogFile(await readFile(join(path, newest))).damage === undefined;
    return isWhole && hasLog(names, manifest) ? newest : undefined;
  } catch (error) {
    if (error instanceof DamageError) return undefined;
    throw error;
  }
}

export interface TornRecord {
  readonly name: string;
  readonly offset: number;
}

/** The last record of the MANIFEST when its checksum is wrong: LevelDB drops an incomplete one, but not this. */
export async function findTornManifest(path: string): Promise<TornRecord | undefined> {
  const name = await readCurrent(path, await readdir(path));
  if (name === undefined) return undefined;
  const { damage } = readLogFile(await readFile(join(path, name)));
  if (damage === undefined || damage.why !== "checksum" || !damage.atEnd) return undefined;
  return { name, offset: damage.offset };
}

function hasLog(names: readonly string[], { logNumber }: Manifest): boolean {
  return names.includes(logName(logNumber));
}

function logName(number: number): string {
  return `${String(number).padStart(6, "0")}.log`;
}

/** The name of the MANIFEST; undefined for a new database. */
async function readCurrent(path: string, names: readonly string[]): Promise<string | undefined> {
  const manifests = names.filter((name) => name.startsWith("MANIFEST-")).sort(byNumber);
  const newest = manifests.at(-1);
  const advice =
    newest === undefined
      ? "The MANIFEST is missing too, so that it is unknown which tables are valid: all data may be lost"
      : `If ${newest} is whole, nothing is lost: write the line "${newest}" to the file CURRENT`;
  if (!names.includes("CURRENT")) {
    // LevelDB creates the first MANIFEST before CURRENT, and tables and logs after it.
    const isNew = !names.some(isDataFile) && manifests.every((name) => fileNumber(name) === 1);
    if (isNew) return undefined;
    throw damaged(path, "CURRENT", "the file CURRENT is missing", advice);
  }
  const current = await readFile(join(path, "CURRENT"), "latin1");
  if (!/^MANIFEST-\d{1,15}\n$/.test(current)) {
    throw damaged(path, "CURRENT", "the file CURRENT does not contain the name of a MANIFEST", advice);
  }
  return current.trimEnd();
}

async function verifyManifest(path: string, names: readonly string[], name: string, isOpen = false): Promise<Manifest> {
  const lost = "It lists the tables, so that it is unknown which of them are valid: all data may be lost";
  if (!names.includes(name)) throw damaged(path, name, `the file ${name}, which CURRENT names, is missing`, lost);
  const { records, damage } = readLogFile(await readFile(join(path, name)));
  // A power cut may tear the last record. LevelDB deletes no file of the version before until that is synced: if the
  // record is damaged later, one of them is missing. LevelDB writes whole records, so one of an open MANIFEST is.
  if (damage !== undefined && !(damage.atEnd && !(isOpen && damage.why === "checksum"))) {
    throw damaged(path, name, describe(name, damage), lost);
  }
  if (records.length === 0) throw damaged(path, name, `the file ${name} has no records`, lost);
  let manifest: Manifest;
  try {
    manifest = readManifest(records);
  } catch (error) {
    throw damaged(path, name, `the file ${name} cannot be read: ${messageOf(error)}`, lost);
  }
  // CURRENT names a MANIFEST when its second record, the first one with a log, is synced.
  if (damage !== undefined && manifest.logNumber === 0) throw damaged(path, name, describe(name, damage), lost);
  return manifest;
}

/** A sentence without its stop: what a table has. */
export function describeLoss(table: Pick<TableFile, "smallest" | "largest">): string {
  return `Lost at most is what this file has: ${describeKeyRange(table.smallest, table.largest)}`;
}

interface NamedTable extends TableFile {
  readonly name: string;
}

/** The name of a table. Throws when it does not exist. */
function findTable(path: string, names: readonly string[], table: TableFile): string {
  const [ldb, sst] = [tableName(table.number, "ldb"), tableName(table.number, "sst")];
  const name = names.includes(sst) && !names.includes(ldb) ? sst : ldb;
  if (!names.includes(name)) throw damaged(path, name, `the table ${name} is missing`, describeLoss(table));
  return name;
}

async function verifySize(path: string, table: NamedTable): Promise<void> {
  const { name, size: expected } = table;
  const { size } = await stat(join(path, name));
  if (size !== expected) {
    throw damaged(path, name, `the table ${name} has ${size} bytes instead of ${expected}`, describeLoss(table));
  }
}

async function verifyTables(path: string, tables: readonly NamedTable[]): Promise<StoreContent> {
  const content = new StoreContent();
  for await (const { table, bytes } of readTables(path, tables)) {
    const why = findTableDamage(bytes);
    if (why !== undefined)
      throw damaged(path, table.name, `the table ${table.name} is damaged: ${why}`, describeLoss(table));
    content.addTable(bytes, table);
  }
  content.checkFormat(path);
  return content;
}

function describeGap({ first, last }: Gap): string {
  return first === last ? `its history lacks revision ${first}` : `its history lacks revisions ${first} to ${last}`;
}

interface VerifiedTables extends Manifest {
  /** That of the tables, to which the logs are added; undefined when the tables are not read. */
  readonly content: StoreContent | undefined;
  /** The revision of the store in its tables; undefined when that is not known. */
  readonly stored: number | undefined;
}

async function verifyLogs(
  path: string,
  names: readonly string[],
  manifest: VerifiedTables,
  isOpen: boolean,
): Promise<IncompleteLog | undefined> {
  const { logNumber, previousLogNumber } = manifest;
  const isLive = (name: string): boolean => {
    const number = fileNumber(name);
    return name.endsWith(".log") && (number >= logNumber || (number === previousLogNumber && number > 0));
  };
  const logs = names.filter(isLive).sort(byNumber);
  if (logNumber > 0 && !logs.some((name) => fileNumber(name) === logNumber)) {
    const name = logName(logNumber);
    throw damaged(
      path,
      name,
      `the write-ahead log ${name} is missing`,
      "Lost are the latest writes, those not in tables yet",
    );
  }
  const state: Progress = { next: undefined, revision: undefined };
  let incomplete: IncompleteLog | undefined;
  const contents = await Promise.all(logs.map(async (name) => readLogFile(await readFile(join(path, name)))));
  // LevelDB creates a log when it opens, and writes to it when MANIFEST does not name the logs before it any more.
  const lastWritten = logs[contents.findLastIndex(({ records, damage }) => records.length > 0 || damage !== undefined)];
  for (const [index, name] of logs.entries()) {
    const content = contents[index]!;
    readBatches(path, name, content, manifest, state);
    const { damage } = content;
    if (damage === undefined) continue;
    // LevelDB writes whole records, so one of an open log can be incomplete but not wrong.
    const isLastWrite = damage.atEnd && name === lastWritten && !(isOpen && damage.why === "checksum");
    if (!isLastWrite) throw damaged(path, name, describe(name, damage), lostAfter(state.revision));
    incomplete = { name, offset: damage.offset, revision: state.revision };
  }
  if (!isOpen) await checkEnd(path, logs, manifest, state);
  return incomplete;
}

interface Progress {
  /** The sequence number of the next batch; undefined before the first one. */
  next: number | undefined;
  /** The revision after the last batch; undefined when the tables have it. */
  revision: number | undefined;
}

function readBatches(
  path: string,
  name: string,
  { records }: LogContent,
  { lastSequence, content }: VerifiedTables,
  state: Progress,
): void {
  const read = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw damaged(path, name, `the file ${name} cannot be read: ${messageOf(error)}`, lostAfter(state.revision));
    }
  };
  for (const record of records) {
    const batch = read(() => readWriteBatch(record, (operation) => content?.addOperation(operation)));
    content?.checkFormat(path);
    const { sequence, operations } = batch;
    const number = batch.revision;
    const revision = number && read(() => decodeNumber(REVISION_KEY, number));
    const missing = state.next === undefined ? sequence > lastSequence + 1 : sequence !== state.next;
    if (missing) {
      throw damaged(
        path,
        name,
        `writes before operation ${sequence} are missing in ${name}`,
        lostAfter(state.revision),
      );
    }
    state.next = sequence + operations;
    state.revision = revision ?? state.revision;
  }
}

/** Whether the logs reach what the MANIFEST and the file REVISION say was written. */
async function checkEnd(
  path: string,
  logs: readonly string[],
  { lastSequence, stored }: VerifiedTables,
  { next, revision }: Progress,
): Promise<void> {
  const last = logs.at(-1) ?? "the write-ahead log";
  const reached = await readRevisionFile(path);
  // Operations of a failed write, which LevelDB counts.
  const hasFailed = reached !== undefined && hasFailedWrite(reached) && (revision ?? 0) >= reached.revision;
  if (next !== undefined && next <= lastSequence && !hasFailed) {
    throw damaged(path, last, `the end of ${last} is missing`, lostAfter(revision));
  }
  if (reached === undefined) return;
  if (revision === undefined) {
    if (reached.log === 0 || !logs.some((name) => fileNumber(name) === reached.log)) {
      // Tables or an empty log have replaced newer ones.
      if (stored === undefined || stored >= reached.revision) return;
      throw lostRevisions(path, "the store", stored, reached.revision);
    }
    const lost = `Lost are the latest writes, those not in tables yet, up to revision ${reached.revision}`;
    throw damaged(path, last, `${last} has lost its writes`, lost, ACCEPT);
  }
  if (revision < reached.revision) throw lostRevisions(path, last, revision, reached.revision);
}

const ACCEPT = "; to start without them, remove the file REVISION";

/** The error for a store that is older than its file REVISION. */
export function lostRevisions(path: string, name: string, revision: number, reached: number): StoreError {
  const lost = `Lost are the writes of revisions ${revision + 1} to ${reached} and the few after them`;
  return damaged(
    path,
    name,
    `the end of ${name} is missing: it ends at revision ${revision} of ${reached}`,
    lost,
    ACCEPT,
  );
}

function damaged(path: string, file: string, why: string, lost: string, accept?: string): DamageError {
  return new DamageError(path, { file, why, lost, accept });
}

function describe(name: string, { offset, why }: LogDamage): string {
  const what = why === "checksum" ? "has a wrong checksum" : "is incomplete";
  return `the record at offset ${offset} of ${name} ${what}`;
}

function lostAfter(revision: number | undefined): string {
  if (revision === undefined) return "Lost at most are the latest writes, those not in tables yet";
  return `Lost at most are the writes after revision ${revision}`;
}

function isDataFile(name: string): boolean {
  return /^\d+\.(?:ldb|sst|log)$/.test(name);
}

function tableName(number: number, extension: string): string {
  return `${String(number).padStart(6, "0")}.${extension}`;
}

/** Of `000012.log` and `MANIFEST-000012`. */
function fileNumber(name: string): number {
  return Number(/\d+/.exec(name)?.[0]);
}

function byNumber(a: string, b: string): number {
  return fileNumber(a) - fileNumber(b);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
