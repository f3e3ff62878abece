import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import type { Revision } from "../store.ts";
import { compactBefore } from "./compaction.ts";
import { Database } from "./database.ts";
import { keyOf, revisionOf } from "./keys.ts";
import { openLevelStore } from "./level.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-compaction-"));
t.teardown(() => rmSync(directory, { recursive: true }));

t.test("compactBefore() keeps exactly the versions and log entries that are still readable", async (t) => {
  const path = join(directory, "store");
  const store = await openLevelStore({ path, clock: new FakeClock(), log: silentLogger, compactionIntervalMs: 0 });
  const bytes = Buffer.from("x");
  const a1 = await store.create("/a", bytes);
  const a2 = await store.update("/a", bytes, a1);
  const b1 = await store.create("/b", bytes);
  const deleted = await store.delete("/b", b1);
  const b2 = await store.create("/b", bytes);
  const a3 = await store.update("/a", bytes, a2);
  await store.compact(b2);
  await store[Symbol.asyncDispose]();
  const database = await Database.open(path, silentLogger);
  const versions: string[] = [];
  for await (const chunk of database.entries({ gte: Buffer.from("v"), lt: Buffer.from("w") })) {
    for (const [key] of chunk) versions.push(`${keyOf(key)}@${revisionOf(key)}`);
  }
  const log: Revision[] = [];
  for await (const chunk of database.entries({ gte: Buffer.from("l"), lt: Buffer.from("m") })) {
    for (const [key] of chunk) log.push(revisionOf(key));
  }
  await database.close();
  t.same(versions, [`/a@${a2}`, `/a@${a3}`, `/b@${b2}`]);
  t.same(log, [a3]);
  t.ok(deleted < b2);
});

t.test(
  "compactBefore() reads versions only where a key may have been deleted, since values may be large",
  async (t) => {
    const path = join(directory, "large");
    const store = await openLevelStore({ path, clock: new FakeClock(), log: silentLogger, compactionIntervalMs: 0 });
    const bytes = Buffer.alloc(1000);
    const kept = await store.update("/kept", bytes, await store.create("/kept", bytes));
    const gone = await store.delete("/gone", await store.create("/gone", bytes));
    const first = await store.delete("/again", await store.create("/again", bytes));
    const again = await store.create("/again", bytes);
    await store[Symbol.asyncDispose]();
    await using stack = new AsyncDisposableStack();
    const database = await Database.open(path, silentLogger);
    stack.defer(() => database.close());
    const reads: string[] = [];
    const read = database.read.bind(database);
    database.read = (key) => {
      reads.push(`${keyOf(key)}@${revisionOf(key)}`);
      return read(key);
    };
    await compactBefore(database, again);
    t.same(reads, [`/gone@${gone}`, `/again@${first}`]);
    const left: string[] = [];
    for await (const chunk of database.entries({ gte: Buffer.from("v"), lt: Buffer.from("w") })) {
      for (const [key] of chunk) left.push(`${keyOf(key)}@${revisionOf(key)}`);
    }
    t.same(left, [`/again@${again}`, `/kept@${kept}`]);
  },
);
