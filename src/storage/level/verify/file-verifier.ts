/**
 * Verifies the files of an open database: the tables of a range before it is read, and all files at an interval.
 * LevelDB does not verify checksums on reads and compactions, and may end the process over a damaged block.
 */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { runInSlices } from "../../../std/async/steps.ts";
import type { Logger } from "../../../std/log/logger.ts";
import type { Clock } from "../../../std/time/clock.ts";
import { StoreError } from "../../store.ts";
import { ALL_KEYS } from "../keys.ts";
import { copyFileAside } from "./keep-copy.ts";
import { readLogFile } from "./log-file.ts";
import { readManifest } from "./manifest.ts";
import { readTables } from "./read-tables.ts";
import { findTableDamageInSteps } from "./table-file.ts";
import { DamageError, describeLoss, verifyDatabase } from "./verify.ts";

/** Time between two verifications of all files. */
const INTERVAL_MS = 3_600_000;
/** Time between two tables, which have about 2 MiB: limits the rate of reads. */
const PAUSE_MS = 1000;
const REPEATS = 4;
/** A table is not verified again for a read within this time. */
const FRESH_MS = 300_000;

export interface FileVerifierOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface KeyRange {
  readonly gte: Buffer;
  readonly lt: Buffer;
}

interface LiveTable {
  readonly name: string;
  readonly size: number;
  readonly smallest: Buffer;
  readonly largest: Buffer;
  /** Monotonic time. */
  verifiedAt: number;
}

interface Damage {
  /** Undefined for a file that LevelDB does not read while it is open. */
  readonly table: LiveTable | undefined;
  readonly error: StoreError;
}

type Finding = Pick<DamageError, "file" | "why" | "lost">;

export class FileVerifier {
  readonly #options: FileVerifierOptions;
  readonly #openedAt: { readonly wall: number; readonly monotonic: number };
  readonly #closing = new AbortController();
  #tables: readonly LiveTable[] = [];
  /** The MANIFEST and its size, from which `#tables` was read. */
  #manifest = "";
  #damage: Damage | undefined;
  #verifying: Promise<void> = Promise.resolve();
  readonly #running: Promise<void>;

  /** Call when all files have been verified. */
  constructor(options: FileVerifierOptions) {
    this.#options = options;
    this.#openedAt = { wall: options.clock.now(), monotonic: options.clock.monotonic() };
    this.#running = this.#run();
  }

  /** The first damage that was found. */
  get damage(): StoreError | undefined {
    return this.#damage?.error;
  }

  /** Throws `corrupt` when a damaged table may have entries of the range. */
  check(range: KeyRange): void {
    const table = this.#damage?.table;
    if (table !== undefined && overlaps(table, range)) throw this.#damage?.error;
  }

  /** Verifies the tables of the range that were not verified lately. Rejects with `corrupt`. */
  async verifyRange(range: KeyRange): Promise<void> {
    this.check(range);
    if (this.#damage !== undefined) return;
    const verify = async (): Promise<void> => {
      await this.#refresh();
      const since = this.#options.clock.monotonic() - FRESH_MS;
      await this.#verifyTables(this.#tables.filter((table) => overlaps(table, range) && table.verifiedAt < since));
    };
    this.#verifying = this.#verifying.then(verify);
    await this.#verifying;
    this.check(range);
  }

  /** Divides all keys into ranges of about this number of tables. */
  async ranges(tables: number): Promise<readonly KeyRange[]> {
    await this.#refresh();
    const sorted = this.#tables.map(({ smallest }) => smallest).sort(Buffer.compare);
    const limits = [ALL_KEYS.gte, ...sorted.filter((_, i) => i > 0 && i % tables === 0), ALL_KEYS.lt];
    return limits.slice(1).map((lt, i) => ({ gte: limits[i]!, lt }));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    await this.#verifying;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    try {
      while (this.#damage === undefined) {
        await clock.sleep(INTERVAL_MS, signal);
        await this.#verifyOtherFiles();
        const passed = clock.monotonic();
        for (;;) {
          await this.#refresh();
          const table = this.#tables.find(({ verifiedAt }) => verifiedAt < passed);
          if (table === undefined || this.#damage !== undefined) break;
          await this.#verifyTables([table]);
          await clock.sleep(PAUSE_MS, signal);
        }
      }
    } catch {
      // Only the signal ends the loop.
    }
  }

  /** Reads the list of tables again when LevelDB has changed it. */
  async #refresh(): Promise<void> {
    const { path } = this.#options;
    try {
      const name = (await readFile(join(path, "CURRENT"), "latin1")).trimEnd();
      const { size } = await stat(join(path, name));
      const manifest = `${name} ${size}`;
      if (manifest === this.#manifest) return;
      const { tables } = readManifest(readLogFile(await readFile(join(path, name))).records);
      const known = new Map(this.#tables.map((table) => [table.name, table]));
      this.#tables = await Promise.all(
        tables.map(async ({ number, ...table }) => {
          const file = `${String(number).padStart(6, "0")}.ldb`;
          return known.get(file) ?? { ...table, name: file, verifiedAt: await this.#verifiedAt(file) };
        }),
      );
      this.#manifest = manifest;
    } catch {
      // Found by the verification of these files.
    }
  }

  /** Tables that are older than the verifier were verified before. */
  async #verifiedAt(name: string): Promise<number> {
    const { wall, monotonic } = this.#openedAt;
    const file = await stat(join(this.#options.path, name)).catch(() => undefined);
    return file !== undefined && file.mtimeMs < wall ? monotonic : Number.NEGATIVE_INFINITY;
  }

  async #verifyTables(tables: readonly LiveTable[]): Promise<void> {
    for (const table of tables) {
      if (this.#damage !== undefined) return;
      const why = (await this.#findTableDamage(table)) && (await this.#findTableDamage(table));
      if (why === undefined) table.verifiedAt = this.#options.clock.monotonic();
      else {
        const finding = {
          file: table.name,
          why: `the table ${table.name} is damaged: ${why}`,
          lost: describeLoss(table),
        };
        await this.#report(finding, table);
      }
    }
  }

  /** Undefined for a table that LevelDB has deleted. */
  async #findTableDamage(table: LiveTable): Promise<string | undefined> {
    const { path } = this.#options;
    let why: string | undefined;
    try {
      const { size } = await stat(join(path, table.name));
      if (size !== table.size) why = `it has ${size} bytes instead of ${table.size}`;
      else
        for await (const { bytes } of readTables(path, [table])) why = await runInSlices(findTableDamageInSteps(bytes));
    } catch (error) {
      why = error instanceof Error ? error.message : String(error);
    }
    if (why === undefined) return undefined;
    await this.#refresh();
    return this.#tables.includes(table) ? why : undefined;
  }

  /** CURRENT, the MANIFEST and the logs. */
  async #verifyOtherFiles(): Promise<void> {
    const { path, clock } = this.#options;
    // LevelDB may change the files meanwhile: real damage remains.
    let finding = await findFileDamage(path);
    for (let repeated = 0; finding !== undefined && repeated < REPEATS; repeated++) {
      await clock.sleep(PAUSE_MS, this.#closing.signal);
      finding = await findFileDamage(path);
    }
    if (finding !== undefined) await this.#report(finding);
  }

  async #report({ file, why, lost }: Finding, table?: LiveTable): Promise<void> {
    const { path, log } = this.#options;
    if (this.#damage !== undefined) return;
    const message =
      `the embedded store is damaged: ${why}. ${lost}. Writes are refused${table === undefined ? "" : ", and reads of this file"}; ` +
      "cached objects are served. Stop the server, keep a copy of the store's directory, then restore a snapshot, " +
      "keep what is whole (svc kvstore repair), or remove the directory for an empty store";
    this.#damage = { table, error: new StoreError("corrupt", message) };
    // A file that is missing cannot be copied.
    const copy = await copyFileAside(path, file).catch(() => undefined);
    log.error("The store is damaged", new Error(message), { path, file, ...(copy !== undefined && { copy }) });
  }
}

async function findFileDamage(path: string): Promise<Finding | undefined> {
  try {
    await verifyDatabase(path, { tables: false, isOpen: true });
    return undefined;
  } catch (error) {
    return error instanceof DamageError ? error : undefined;
  }
}

function overlaps({ smallest, largest }: LiveTable, { gte, lt }: KeyRange): boolean {
  return smallest.compare(lt) < 0 && largest.compare(gte) >= 0;
}
