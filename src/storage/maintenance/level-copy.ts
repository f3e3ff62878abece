/**
 * A copy of an embedded store's files at one moment, also while a server writes them. Tables never change, so they are
 * linked. The MANIFEST is copied before the tables that it names and the logs, which only grow: what a copied log has
 * beyond the MANIFEST are later writes, in order.
 */
import { copyFile, link, mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { Database } from "../level/database.ts";
import { readLogFile } from "../level/verify/log-file.ts";
import { readManifest } from "../level/verify/manifest.ts";
import { REVISION_FILE } from "../level/verify/revision-file.ts";
import { type IncompleteLog, verifyDatabase } from "../level/verify/verify.ts";
import { StoreError } from "../store.ts";

const ATTEMPTS = 5;
const PAUSE_MS = 200;

export interface LevelCopy extends AsyncDisposable {
  readonly database: Database;
  /** The last record of the log, when it is incomplete: as after a power cut, or during a write. */
  readonly incomplete: IncompleteLog | undefined;
}

/** Verifies all files as the start of a server does. Rejects with a `StoreError`, of code `corrupt` for damage. */
export async function openLevelCopy(path: string, clock: Clock, log: Logger): Promise<LevelCopy> {
  await removeOldCopies(path);
  const target = join(dirname(path), `${copyPrefix(path)}${process.pid}`);
  try {
    const incomplete = await makeVerifiedCopy(path, target, clock);
    // Verified a moment ago.
    const database = await Database.open(target, log, { tables: false });
    return {
      database,
      incomplete,
      [Symbol.asyncDispose]: async () => {
        await database.close();
        await rm(target, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(target, { recursive: true, force: true });
    throw error;
  }
}

/** A server may replace files during the copy: real damage remains. */
async function makeVerifiedCopy(path: string, target: string, clock: Clock): Promise<IncompleteLog | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      await rm(target, { recursive: true, force: true });
      await mkdir(target, { mode: 0o700 });
      await copyFiles(path, target);
      return await verifyDatabase(target, { tables: true });
    } catch (error) {
      if (attempt >= ATTEMPTS) throw await explain(path, target, error);
      await clock.sleep(PAUSE_MS);
    }
  }
}

/** The verification of the store itself says what a missing file means, and names the store. */
async function explain(path: string, target: string, error: unknown): Promise<unknown> {
  try {
    await verifyDatabase(path, { tables: true });
  } catch (damage) {
    if (damage instanceof StoreError) return damage;
  }
  if (!(error instanceof StoreError)) return error;
  return new StoreError(error.code, error.message.replaceAll(target, path), { cause: error });
}

async function copyFiles(path: string, target: string): Promise<void> {
  const copy = (name: string): Promise<void> => copyFile(join(path, name), join(target, name));
  // A revision that the logs, which are copied later, have.
  await copy(REVISION_FILE).catch(ignoreMissing);
  await copy("CURRENT").catch(ignoreMissing);
  const manifest = (await readFile(join(target, "CURRENT"), "latin1").catch(() => "")).trimEnd();
  if (/^MANIFEST-\d+$/.test(manifest)) await copy(manifest).catch(ignoreMissing);
  const bytes = await readFile(join(target, manifest)).catch(() => undefined);
  const numbers = bytes === undefined ? [] : readTables(bytes);
  const names = await readdir(path);
  const digits = (name: string): number => Number.parseInt(name, 10);
  for (const name of names) {
    if (!/^\d+\.(?:ldb|sst)$/.test(name)) continue;
    if (numbers.length > 0 && !numbers.includes(digits(name))) continue;
    await linkOrCopy(join(path, name), join(target, name));
  }
  for (const name of names.filter((each) => /^\d+\.log$/.test(each)).sort()) await copy(name).catch(ignoreMissing);
}

function readTables(manifest: Buffer): readonly number[] {
  try {
    return readManifest(readLogFile(manifest).records).tables.map(({ number }) => number);
  } catch {
    // Found by the verification.
    return [];
  }
}

export async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    await copyFile(from, to);
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}

function copyPrefix(path: string): string {
  return `.${basename(path)}-copy-`;
}

/** Those of processes that were killed. */
async function removeOldCopies(path: string): Promise<void> {
  const parent = dirname(path);
  for (const name of await readdir(parent)) {
    if (!name.startsWith(copyPrefix(path))) continue;
    const process = await stat(`/proc/${name.slice(copyPrefix(path).length)}`).catch(() => undefined);
    if (process === undefined) await rm(join(parent, name), { recursive: true, force: true });
  }
}
