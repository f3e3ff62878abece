/**
 * A power cut at any moment of `svc kvstore restore`, `compact`, `repair` or `migrate` loses no object. The commands
 * run on a file system that records each write and each sync (FUSE). For random moments and the last ones, images are
 * made of what a cut may leave on a disk, and the store is opened there as by a server.
 *
 *     SVC_MAINTENANCE_CUTS=200 SEED=123 node src/acceptance/server/interrupted-maintenance.test.ts
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import t, { type Test } from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { openLevelStore } from "../../storage/level/level.ts";
import { prefixRange, type Revision } from "../../storage/store.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { CrashModel } from "../../testing/storage/power-cut/crash-image.ts";
import type { DiskOperation } from "../../testing/storage/power-cut/disk-operations.ts";
import { canUseFuse, FuseConnection } from "../../testing/storage/power-cut/fuse-connection.ts";
import { RecordedDisk } from "../../testing/storage/power-cut/recorded-disk.ts";

const CUTS = Number(process.env.SVC_MAINTENANCE_CUTS ?? 2);
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
t.setTimeout(120_000 + CUTS * 4000);

const OBJECTS = 60;
const VALUE_BYTES = 20_000;
const main = new URL("../../main.ts", import.meta.url).pathname;
/** Copies the files of $1 to the mounted disk, syncs them, creates a file before the command, and runs it. */
const PREPARE_AND_RUN = 'cp -r "$1"/. "$0" && find "$0" -exec sync {} + && : > "$0/prepared" && shift && exec "$@"';

interface Maintained {
  /** Arguments of `svc kvstore`, for a directory that has `store` and `snapshot`. */
  readonly command: (directory: string) => readonly string[];
  /** Changes the prepared directory. */
  readonly prepare?: (directory: string) => void;
  /** The directory of the store that has all objects afterwards. */
  readonly result: string;
  /** What a cut before the end may leave instead of a store with all objects. */
  readonly before: "all objects" | "no store" | "damage";
}

const commands: Readonly<Record<string, Maintained>> = {
  compact: {
    command: (directory) => ["compact", `--kvstore-servers=level://${directory}/store`],
    result: "store",
    before: "all objects",
  },
  restore: {
    command: (directory) => ["restore", `${directory}/snapshot`, `--kvstore-servers=level://${directory}/restored`],
    result: "restored",
    before: "no store",
  },
  migrate: {
    command: (directory) => ["migrate", `--from=level://${directory}/store`, `--to=level://${directory}/migrated`],
    result: "migrated",
    before: "no store",
  },
  repair: {
    command: (directory) => ["repair", `--kvstore-servers=level://${directory}/store`],
    // All values can be read without it.
    prepare: (directory) => {
      const store = join(directory, "store");
      for (const name of readdirSync(store)) if (name.startsWith("MANIFEST-")) writeFileSync(join(store, name), "");
    },
    result: "store",
    before: "damage",
  },
};

const openImage = (path: string) =>
  openLevelStore({ path, clock: new FakeClock(), log: silentLogger, compactionIntervalMs: 0 });

async function makeStore(home: string): Promise<string> {
  const directory = join(home, "prepared");
  mkdirSync(directory);
  {
    await using store = await openImage(join(directory, "store"));
    const random = seededRandom(1);
    for (let i = 0; i < OBJECTS; i++) {
      const value = Buffer.from(random.bytes(VALUE_BYTES));
      let revision: Revision = await store.create(`/registry/widgets/${i}`, value);
      for (let update = 0; update < 3; update++)
        revision = await store.update(`/registry/widgets/${i}`, value, revision);
    }
  }
  const flags = [`--kvstore-servers=level://${directory}/store`];
  execFileSync(process.execPath, [main, "kvstore", "snapshot", join(directory, "snapshot"), ...flags]);
  return directory;
}

/** The operations of a disk, and the number of those before the command. */
async function record(home: string, prepared: string, { command }: Maintained) {
  const mountPoint = join(home, "disk");
  mkdirSync(mountPoint, { recursive: true });
  const disk = new RecordedDisk();
  using connection = new FuseConnection(disk);
  const run = ["sh", "-c", PREPARE_AND_RUN, mountPoint, prepared, process.execPath, main, "kvstore"];
  const [file = "", ...words] = connection.command(mountPoint, [...run, ...command(mountPoint)]);
  const child = spawn(file, words, { stdio: ["ignore", "ignore", "pipe", connection.fd] });
  let errors = "";
  child.stderr?.on("data", (data) => {
    errors += String(data);
  });
  const [code] = await once(child, "exit");
  if (code !== 0) throw new Error(`The command ends with ${code}: ${errors}`);
  const start = disk.operations.findIndex(
    ({ type, ...each }) => type === "create" && "at" in each && each.at.name === "prepared",
  );
  return { operations: disk.operations, start };
}

function writeImage(files: ReadonlyMap<string, Buffer>, directory: string): void {
  for (const [path, content] of files) {
    const file = join(directory, path);
    mkdirSync(path.endsWith("/") ? file : dirname(file), { recursive: true, mode: 0o700 });
    if (!path.endsWith("/")) writeFileSync(file, content, { mode: 0o600 });
  }
}

/** What a server finds: "all objects", "no store", "damage", or what is wrong. */
async function examine(path: string): Promise<string> {
  const isMissing = !existsSync(path);
  try {
    await using store = await openImage(path);
    const { items } = await store.list(prefixRange("/registry/"));
    const whole = items.filter(({ value }) => value.length === VALUE_BYTES).length;
    if (whole === OBJECTS && items.length === OBJECTS) return "all objects";
    return isMissing && items.length === 0 ? "no store" : `${whole} whole objects of ${items.length}`;
  } catch (error) {
    return (error as { readonly code?: string }).code === "corrupt" ? "damage" : String(error);
  }
}

async function cutPower(t: Test, maintained: Maintained, operations: readonly DiskOperation[], start: number) {
  const random = seededRandom(seed);
  const found: Record<string, number> = {};
  const points = Array.from(
    { length: CUTS },
    () => start + Math.floor(random.fraction() * (operations.length - start + 1)),
  );
  // The renames at the end are the moments that matter most.
  for (let last = 0; last < Math.min(2 + CUTS, 12, operations.length - start); last++)
    points.push(operations.length - last);
  for (const names of ["journal", "independent"] as const) {
    const model = new CrashModel(names);
    let applied = 0;
    for (const point of points.toSorted((a, b) => a - b)) {
      while (applied < point) model.apply(operations[applied++]!);
      const directory = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "svc-maintenance-"));
      try {
        writeImage(model.image(random), directory);
        const finding = await examine(join(directory, maintained.result));
        found[finding] = (found[finding] ?? 0) + 1;
        const isAllowed = finding === "all objects" || (finding === maintained.before && point < operations.length);
        t.ok(
          isAllowed,
          `a cut after ${point - start} of ${operations.length - start} operations, names ${names}: ${finding}`,
        );
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    }
  }
  t.comment(JSON.stringify({ SEED: seed, operations: operations.length - start, found }));
}

for (const [name, maintained] of Object.entries(commands)) {
  t.test(
    `a power cut during svc kvstore ${name} loses no object`,
    { skip: canUseFuse() ? false : "FUSE needs root and /dev/fuse" },
    async (t) => {
      const home = mkdtempSync(join(tmpdir(), "svc-maintenance-"));
      t.teardown(() => rmSync(home, { recursive: true, force: true }));
      const prepared = await makeStore(home);
      maintained.prepare?.(prepared);
      const { operations, start } = await record(home, prepared, maintained);
      t.ok(start > 0 && operations.length > start);
      await cutPower(t, maintained, operations, start);
    },
  );
}
