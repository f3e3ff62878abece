/**
 * A server whose disk reports errors (FUSE): reads continue, writes fail until the disk accepts them again, and no
 * write that is acknowledged afterwards depends on a sync that has failed.
 *
 *     SVC_FAILED_SYNC_CUTS=500 SEED=123 node src/acceptance/server/failing-disk.test.ts
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { openLevelStore } from "../../storage/level/level.ts";
import { RESERVE_FILE } from "../../storage/level/space.ts";
import { prefixRange } from "../../storage/store.ts";
import { type ServerProcess, startServerProcess } from "../../testing/apiserver/server-process.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { CrashModel } from "../../testing/storage/power-cut/crash-image.ts";
import { withoutContent } from "../../testing/storage/power-cut/disk-operations.ts";
import { canUseFuse, FuseConnection } from "../../testing/storage/power-cut/fuse-connection.ts";
import { opcodes } from "../../testing/storage/power-cut/fuse-messages.ts";
import { RecordedDisk } from "../../testing/storage/power-cut/recorded-disk.ts";

const { EIO, EROFS } = constants.errno;
const CUTS = Number(process.env.SVC_FAILED_SYNC_CUTS ?? 20);
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
t.setTimeout(180_000 + CUTS * 1000);

const MAPS = "/api/v1/namespaces/default/configmaps";
const EVENTS = "/api/v1/namespaces/default/events";
const KEYS = "/registry/configmaps/default/";
const FILLING = "x".repeat(3000);
const WRITERS = 4;
const ROUNDS = 2;
/** Acknowledged writes before each failure and after the last one. */
const WRITES = 40;

const skip = canUseFuse() ? false : "FUSE needs root and /dev/fuse";
const errors = (errno: number, ...failing: readonly number[]) => new Map(failing.map((opcode) => [opcode, errno]));
const { read, write, fsync, fsyncdir, create, unlink, rename, rename2, mkdir, setattr } = opcodes;
const failures: Readonly<Record<string, ReadonlyMap<number, number>>> = {
  "reports errors for writes": errors(EIO, write),
  "reports errors for syncs": errors(EIO, fsync, fsyncdir),
  "has become read-only": errors(EROFS, write, create, unlink, rename, rename2, mkdir, setattr),
};

interface ServerOnDisk extends AsyncDisposable {
  readonly disk: RecordedDisk;
  readonly server: ServerProcess;
}

async function startOnDisk(
  t: Test,
  isRecorded: boolean,
  disk = new RecordedDisk({ isRecorded }),
): Promise<ServerOnDisk> {
  const home = mkdtempSync(join(tmpdir(), "svc-failing-"));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const mountPoint = join(home, "disk");
  mkdirSync(mountPoint);
  const connection = new FuseConnection(disk);
  const main = new URL("../../main.ts", import.meta.url).pathname;
  const server = await startServerProcess({
    home,
    store: join(mountPoint, "store"),
    program: connection.command(mountPoint, [process.execPath, main]),
    inherited: [connection.fd],
    flags: ["--kvstore-compaction-interval=2s", "--event-ttl=12s"],
  });
  return {
    disk,
    server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      connection[Symbol.dispose]();
    },
  };
}

const post = (server: ServerProcess, name: string) =>
  server.send("POST", MAPS, { metadata: { name }, data: { filling: FILLING } });

for (const [what, failing] of Object.entries(failures)) {
  t.test(`a server whose disk ${what} serves reads, is not ready, and writes again later`, { skip }, async (t) => {
    await using running = await startOnDisk(t, false);
    const { disk, server } = running;
    t.match(await post(server, "before"), { status: 201 });
    disk.failures = failing;
    let count = 0;
    // The store is opened again after five seconds, if the disk accepts writes.
    for (const end = performance.now() + 7000; performance.now() < end; await sleep(500)) {
      const { status } = await post(server, `failing-${count++}`);
      if (status < 500) t.fail(`a write gets ${status}`);
      const { status: live } = await server.send("GET", "/livez");
      const { status: found } = await server.send("GET", `${MAPS}/before`);
      if (live !== 200 || found !== 200) t.fail(`/livez gets ${live}, the object ${found}`);
    }
    t.match(await server.send("GET", "/readyz"), {
      status: 500,
      json: /\n\[-\]kvstore-alarms failed: FAILED: Cannot write the embedded store .* Writes fail until the disk/,
    });
    disk.failures = new Map();
    await until("writes to succeed", async () => (await post(server, `after-${count++}`)).status === 201);
    await until("the server to be ready", async () => (await server.send("GET", "/readyz")).status === 200);
    t.match(await server.send("GET", `${MAPS}/before`), { status: 200 });
  });
}

t.test("a server whose disk cannot be read does not start, and says so", { skip }, async (t) => {
  const disk = new RecordedDisk({ isRecorded: false });
  {
    await using running = await startOnDisk(t, false, disk);
    t.match(await post(running.server, "before"), { status: 201 });
  }
  disk.failures = errors(EIO, read);
  const began = performance.now();
  await t.rejects(startOnDisk(t, false, disk), /Cannot open the embedded store .* EIO: i\/o error, read/);
  t.comment(`the start failed after ${Math.round(performance.now() - began)} ms`);
  disk.failures = new Map();
  await using running = await startOnDisk(t, false, disk);
  t.match(await running.server.send("GET", `${MAPS}/before`), { status: 200 });
});

interface AcknowledgedWrite {
  readonly name: string;
  /** The length of the record of the disk at the response. */
  readonly at: number;
}

/** Creates objects from several clients, until so many more are acknowledged or one fails. */
async function createObjects({ disk, server }: ServerOnDisk, prefix: string, acknowledged: AcknowledgedWrite[]) {
  const target = acknowledged.length + WRITES;
  let hasFailed = false;
  const writer = async (_: unknown, index: number): Promise<void> => {
    for (let count = 0; acknowledged.length < target && !hasFailed; count++) {
      const name = `${prefix}-${index}-${count}`;
      const { status } = await post(server, name);
      if (status === 201) acknowledged.push({ name, at: disk.operations.length });
      else hasFailed = true;
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
  return hasFailed;
}

t.test("a value whose write failed and is on disk expires", { skip }, async (t) => {
  await using running = await startOnDisk(t, false);
  const { disk, server } = running;
  disk.failures = failures["reports errors for syncs"]!;
  const event = { metadata: { name: "failed" }, involvedObject: { namespace: "default" } };
  const { status } = await server.send("POST", EVENTS, event);
  t.ok(status >= 500);
  disk.failures = new Map();
  let count = 0;
  await until("writes to succeed", async () => (await post(server, `after-${count++}`)).status === 201);
  t.match(await server.send("GET", `${EVENTS}/failed`), { status: 200 }, "the write is there");
  await until("the event to expire", async () => (await server.send("GET", `${EVENTS}/failed`)).status === 404);
});

t.test("a power cut after syncs have failed loses no write that was acknowledged", { skip }, async (t) => {
  await using running = await startOnDisk(t, true);
  const { disk, server } = running;
  const acknowledged: AcknowledgedWrite[] = [];
  let first = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    await createObjects(running, `round-${round}`, acknowledged);
    first = Math.min(first, disk.operations.length);
    disk.failures = errors(EIO, fsync, fsyncdir);
    t.ok(await createObjects(running, `failing-${round}`, acknowledged), "a write fails");
    disk.failures = new Map();
    let count = 0;
    await until("writes to succeed", async () => (await post(server, `after-${round}-${count++}`)).status === 201);
  }
  await createObjects(running, "last", acknowledged);
  // The content of the reserve has no meaning, and would be most of each image.
  const operations = withoutContent(disk.operations, RESERVE_FILE);
  t.ok(operations.some(({ type }) => type === "failed sync"));
  const random = seededRandom(seed);
  const points = Array.from({ length: CUTS }, () => first + random.fraction() * (operations.length - first));
  for (const names of ["journal", "independent"] as const) {
    const model = new CrashModel(names);
    let applied = 0;
    for (const point of points.map(Math.floor).toSorted((a, b) => a - b)) {
      while (applied < point) model.apply(operations[applied++]!);
      const image = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "svc-failing-"));
      try {
        for (const [path, content] of model.image(random)) {
          const file = join(image, path);
          mkdirSync(path.endsWith("/") ? file : dirname(file), { recursive: true, mode: 0o700 });
          if (!path.endsWith("/")) writeFileSync(file, content, { mode: 0o600 });
        }
        const expected = acknowledged.filter(({ at }) => at <= point).map(({ name }) => name);
        t.same(await findLost(join(image, "store"), expected), [], `a cut after ${point} operations, names ${names}`);
      } finally {
        rmSync(image, { recursive: true, force: true });
      }
    }
  }
  t.comment(JSON.stringify({ SEED: seed, operations: operations.length, acknowledged: acknowledged.length }));
});

/** The names that the store does not have. */
async function findLost(path: string, names: readonly string[]): Promise<readonly string[]> {
  try {
    await using store = await openLevelStore({
      path,
      clock: new FakeClock(),
      log: silentLogger,
      compactionIntervalMs: 0,
    });
    const { items } = await store.list(prefixRange(KEYS));
    const found = new Set(items.map(({ key }) => key.slice(KEYS.length)));
    return names.filter((name) => !found.has(name));
  } catch (error) {
    return [String(error)];
  }
}
