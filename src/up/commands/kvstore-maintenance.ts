/** The commands of `svc kvstore` that check, copy, shrink and repair stores. */
import { existsSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { builtinKinds } from "../../api/builtin.ts";
import type { CommandInvocation } from "../../flags/commands.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { normalizePrefix } from "../../storage/keys.ts";
import { EtcdTransfer } from "../../storage/kvstore3/transfer.ts";
import { compactBefore } from "../../storage/level/compaction.ts";
import { Database } from "../../storage/level/database.ts";
import { ALL_KEYS } from "../../storage/level/keys.ts";
import { readLayout } from "../../storage/level/layout.ts";
import { rejectIfOpen } from "../../storage/level/lock.ts";
import { finishReplacement, replacementNames } from "../../storage/level/replacement.ts";
import { type ConversionCounts, convertNames } from "../../storage/maintenance/convert-names.ts";
import { openLevelCopy } from "../../storage/maintenance/level-copy.ts";
import { rejectIfUsed, restoreLevel } from "../../storage/maintenance/level-restore.ts";
import { readLevelSnapshot, verifyRecords } from "../../storage/maintenance/level-snapshot.ts";
import { type Salvage, salvage } from "../../storage/maintenance/salvage.ts";
import type { RestoreResult, Snapshot } from "../../storage/maintenance/snapshot.ts";
import { openSnapshotFile, writeSnapshotFile } from "../../storage/maintenance/snapshot-file.ts";
import { StoreError } from "../../storage/store.ts";
import type { kvstoreFlags } from "./kvstore-flags.ts";

type Flags = CommandInvocation<typeof kvstoreFlags>["flags"];

/** A result as text and as JSON. */
interface Result {
  readonly text: string;
  readonly json: unknown;
}

/** Where a store is: a directory of this machine, or servers. */
type StoreLocation = { readonly directory: string } | { readonly urls: readonly string[] };

/** For what clients may have seen since a snapshot: 10 writes a second for a day. */
const BUMP_REVISION = 1_000_000;

export async function maintainStore(
  verb: string,
  args: Readonly<Record<string, string>>,
  flags: Flags,
): Promise<string> {
  const { text, json } = await runVerb(verb, args, flags);
  return flags.output === "json" ? `${JSON.stringify(json, null, 2)}\n` : `${text}\n`;
}

async function runVerb(verb: string, { file = "" }: Readonly<Record<string, string>>, flags: Flags): Promise<Result> {
  if (verb !== "migrate" && (flags.from.length > 0 || flags.to.length > 0)) {
    throw new Error(`--from and --to are flags of migrate; ${verb} uses --kvstore-servers or --data-dir`);
  }
  switch (verb) {
    case "check":
      return await check(locationOf(flags), flags);
    case "snapshot":
      return await snapshot(locationOf(flags), resolve(file), flags);
    case "restore":
      return await restore(locationOf(flags), resolve(file), flags);
    case "compact":
      return await compact(locationOf(flags), flags);
    case "repair":
      return await repair(locationOf(flags), flags);
    case "migrate":
      return await migrate(flags);
    default:
      throw new Error(`unknown command ${verb}`);
  }
}

function locationOf(flags: Flags): StoreLocation {
  const given = flags["kvstore-servers"];
  return parseLocation(given.length > 0 ? given : [`level://${resolve(flags["data-dir"])}/kvstore`]);
}

function parseLocation(urls: readonly string[]): StoreLocation {
  if (urls.length > 0 && urls.every((url) => /^https?:/.test(url))) return { urls };
  const path = /^level:\/\/(\/.+)$/.exec(urls[0] ?? "")?.[1];
  if (path === undefined || urls.length !== 1) {
    throw new Error(`Cannot open ${urls.join(",")}: expected level:///PATH or https://HOST:PORT`);
  }
  return { directory: resolve(decodeURIComponent(path)) };
}

function nameOf(location: StoreLocation): string {
  return "directory" in location ? location.directory : location.urls.join(",");
}

async function existing(directory: string): Promise<string> {
  await finishReplacement(directory);
  if (!existsSync(directory)) throw new Error(`Cannot open ${directory}: there is no such directory`);
  if (!existsSync(join(directory, "CURRENT"))) throw new Error(`Cannot open ${directory}: there is no store in it`);
  return directory;
}

function openEtcd(urls: readonly string[], flags: Flags): EtcdTransfer {
  const tls = {
    caFile: flags["kvstore-cafile"],
    certFile: flags["kvstore-certfile"],
    keyFile: flags["kvstore-keyfile"],
  };
  return new EtcdTransfer({ urls, tls, prefix: normalizePrefix(flags["kvstore-prefix"]), clock: systemClock });
}

async function check(location: StoreLocation, flags: Flags): Promise<Result> {
  if ("urls" in location) {
    using etcd = openEtcd(location.urls, flags);
    const { revision, parts } = await etcd.snapshot();
    let keys = 0;
    for await (const part of parts()) keys += part.length;
    const text = `No damage: ${keys} keys below ${flags["kvstore-prefix"]} can be read at revision ${revision}`;
    return { text: `${text}. etcd verifies its own files`, json: { keys, revision } };
  }
  const directory = await damagedStore(location.directory);
  await using copy = await openLevelCopy(directory, systemClock, silentLogger);
  const { layout, ...counts } = await verifyRecords(copy.database, directory);
  const { records, keys, versions } = counts;
  const lines = [
    `No damage: ${records} records, ${keys} keys, ${versions} versions, revisions ${layout.oldest} to ${layout.revision}`,
  ];
  const { incomplete } = copy;
  if (incomplete !== undefined) {
    lines.push(
      `The last record of ${incomplete.name}, at offset ${incomplete.offset}, is incomplete: a write in progress, or ` +
        "one that a power cut ended, which was not acknowledged",
    );
  }
  return { text: lines.join("\n"), json: { ...layout, ...counts, ...(incomplete && { incomplete }) } };
}

/** A directory with files of a store, also without the file CURRENT. */
async function damagedStore(directory: string): Promise<string> {
  await finishReplacement(directory);
  if (!existsSync(directory)) throw new Error(`Cannot open ${directory}: there is no such directory`);
  const names = await readdir(directory);
  const hasStore = names.some((name) => name === "CURRENT" || /^MANIFEST-|\.(?:ldb|sst|log)$/.test(name));
  if (!hasStore) throw new Error(`Cannot open ${directory}: there is no store in it`);
  return directory;
}

async function snapshot(location: StoreLocation, file: string, flags: Flags): Promise<Result> {
  const write = async (read: Snapshot): Promise<Result> => {
    const items = await writeSnapshotFile(file, read);
    const { size } = await stat(file);
    return {
      text: `Wrote ${items} keys at revision ${read.revision} to ${file} (${size} bytes)`,
      json: { file, keys: items, revision: read.revision, bytes: size },
    };
  };
  if ("urls" in location) {
    using etcd = openEtcd(location.urls, flags);
    return await write(await etcd.snapshot());
  }
  await using copy = await openLevelCopy(await existing(location.directory), systemClock, silentLogger);
  return await write(await readLevelSnapshot(copy.database, location.directory));
}

async function restore(location: StoreLocation, file: string, flags: Flags): Promise<Result> {
  const { items, revision, counts } = await write(location, await openSnapshotFile(file), flags, BUMP_REVISION);
  const text = `Restored ${items} keys to ${nameOf(location)}; its revision is ${revision}${noteOf(counts)}`;
  return { text, json: { store: nameOf(location), keys: items, revision, ...counts } };
}

/** Writes a snapshot to an empty store, with the names of its engine. */
async function write(
  location: StoreLocation,
  read: Snapshot,
  flags: Flags,
  bump: number,
  confirm?: () => Promise<void>,
): Promise<RestoreResult & { readonly counts: ConversionCounts }> {
  const given = flags["bump-revision"];
  const bumpRevision = given < 0 ? bump : given;
  const counts: ConversionCounts = { converted: 0, encrypted: 0 };
  if ("urls" in location) {
    using etcd = openEtcd(location.urls, flags);
    const converted = convertNames(read, "k8s", builtinKinds, counts);
    return { ...(await etcd.restore(converted, { bumpRevision, confirm, onProgress: printProgress })), counts };
  }
  const converted = convertNames(read, "svc", builtinKinds, counts);
  const options = { path: location.directory, log: silentLogger, bumpRevision, confirm };
  return { ...(await restoreLevel(converted, options)), counts };
}

/** Raising the revision may take minutes. */
function printProgress(revision: number, target: number): void {
  if (process.stderr.isTTY) process.stderr.write(`etcd is at revision ${revision} of ${target}\n`);
}

function noteOf({ encrypted }: ConversionCounts): string {
  if (encrypted === 0) return "";
  return (
    `\n${encrypted} values are encrypted: they are copied as they are, with the names inside them, and need the same ` +
    "--encryption-provider-config"
  );
}

async function compact(location: StoreLocation, flags: Flags): Promise<Result> {
  if ("urls" in location) {
    using etcd = openEtcd(location.urls, flags);
    const revision = await etcd.compact();
    const text = `Deleted the history before revision ${revision}. Defragment etcd (etcdctl defrag) to give back the space`;
    return { text, json: { revision } };
  }
  const directory = await existing(location.directory);
  const before = await sizeOf(directory);
  const database = await openStopped(directory);
  try {
    const { revision } = await readLayout(database, directory);
    await compactBefore(database, revision);
    await database.compactRange(ALL_KEYS);
    const after = await sizeOf(directory);
    const text = `Deleted the history before revision ${revision}: ${before} bytes before, ${after} bytes now`;
    return { text, json: { revision, bytesBefore: before, bytes: after } };
  } finally {
    await database.close();
  }
}

async function openStopped(directory: string): Promise<Database> {
  try {
    return await Database.open(directory, silentLogger);
  } catch (error) {
    throw explainLocked(directory, error);
  }
}

function explainLocked(directory: string, error: unknown): unknown {
  if (!(error instanceof StoreError) || error.code !== "locked") return error;
  return new Error(`Cannot open ${directory}: it is in use: stop the API server`, { cause: error });
}

async function sizeOf(directory: string): Promise<number> {
  const names = (await readdir(directory)).filter((name) => /\.(?:ldb|sst|log)$/.test(name));
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(directory, name))).size));
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function repair(location: StoreLocation, flags: Flags): Promise<Result> {
  if ("urls" in location) throw new Error("repair is for a store on this machine; for etcd restore a snapshot");
  const directory = await damagedStore(location.directory);
  await rejectIfOpen(directory).catch((error: unknown) => {
    throw explainLocked(directory, error);
  });
  const damage = await findDamage(directory);
  if (damage === undefined) {
    return { text: `Nothing to repair: ${directory} has no damage. Nothing was changed`, json: { damage: [] } };
  }
  const saved = await salvage(directory);
  const time = new Date(systemClock.now()).toISOString().replace(/[:.]/g, "-");
  const replacement = replacementNames(directory, time);
  const copy = replacement.damaged;
  const given = flags["bump-revision"];
  const result = await restoreLevel(saved.snapshot, {
    path: directory,
    log: silentLogger,
    bumpRevision: given < 0 ? BUMP_REVISION : given,
    replacement,
  });
  await rm(join(copy, "RESERVE"), { force: true });
  const found = [damage, ...saved.damage];
  const lines = [
    ...found.map((text) => `Damage: ${text}`),
    `Kept ${result.items} keys; the revision is ${result.revision}, the last write that was found is of ${saved.found}`,
    ...saved.lost.map(({ key, outcome }) => `Lost: ${JSON.stringify(key)}: ${outcomes[outcome]}`),
    ...saved.tables.map(({ file, bytes, content }) => `Lost: the ${bytes} bytes of ${file}: ${content}`),
    ...(saved.lostRevisions === 0 ? [] : [`Lost: the records of at least ${saved.lostRevisions} writes`]),
    ...(saved.lost.length === 0 ? [`${nothingKnown(saved)}; later writes may be`] : []),
    `The damaged files are in ${copy}: remove it when it is not needed any more`,
  ];
  const { items: keys, revision } = result;
  return {
    text: lines.join("\n"),
    json: {
      ...{ damage: found, keys, revision, found: saved.found, lost: saved.lost },
      ...{ lostTables: saved.tables, lostRevisions: saved.lostRevisions, copy },
    },
  };
}

function nothingKnown({ tables }: Salvage): string {
  return tables.length === 0
    ? "No key is known to be lost"
    : "No other record names a key that is lost with them: compare with a snapshot";
}

const outcomes = {
  older: "its latest value is lost, an older one is kept",
  gone: "its value is lost",
  unknown: "it is kept, but may have been deleted",
} as const;

/** What a start or `check` reports; undefined for a store without damage. */
async function findDamage(directory: string): Promise<string | undefined> {
  try {
    await using copy = await openLevelCopy(directory, systemClock, silentLogger);
    await verifyRecords(copy.database, directory);
    return undefined;
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== "corrupt") throw error;
    const { why } = error as { readonly why?: string };
    return why ?? error.message;
  }
}

async function migrate(flags: Flags): Promise<Result> {
  if (flags.from.length === 0 || flags.to.length === 0) throw new Error("migrate needs --from and --to");
  const [from, to] = [parseLocation(flags.from), parseLocation(flags.to)];
  if ("directory" in to) await rejectIfUsed(to.directory);
  const { items, revision, counts, source } = await copyAll(from, to, flags);
  const text =
    `Copied ${items} keys at revision ${source} from ${nameOf(from)} to ${nameOf(to)}, whose revision is ${revision}; ` +
    `${counts.converted} values have other names now${noteOf(counts)}`;
  return { text, json: { keys: items, sourceRevision: source, revision, ...counts } };
}

async function copyAll(
  from: StoreLocation,
  to: StoreLocation,
  flags: Flags,
): Promise<RestoreResult & { readonly counts: ConversionCounts; readonly source: number }> {
  if ("urls" in from) {
    using etcd = openEtcd(from.urls, flags);
    const read = await etcd.snapshot();
    const confirm = (): Promise<void> => etcd.rejectIfChanged(read.revision);
    return { ...(await write(to, read, flags, 0, confirm)), source: read.revision };
  }
  // Keeps it open, so that no server starts meanwhile.
  const database = await openStopped(await existing(from.directory));
  try {
    const read = await readLevelSnapshot(database, from.directory);
    return { ...(await write(to, read, flags, 0)), source: read.revision };
  } finally {
    await database.close();
  }
}
