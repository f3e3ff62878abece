import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import t, { type Test } from "tap";
import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import { leaseKind } from "../../api/coordination/lease/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { encodeEnvelope } from "../../schema/protobuf/envelope.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";
import { EtcdTransfer } from "../kvstore3/transfer.ts";
import { Database } from "../level/database.ts";
import { ALL_KEYS } from "../level/keys.ts";
import { rejectIfOpen } from "../level/lock.ts";
import { openStore } from "../open.ts";
import { prefixRange, type Revision, type Store } from "../store.ts";
import { convertNames, createConverter } from "./convert-names.ts";
import { openLevelCopy } from "./level-copy.ts";
import { restoreLevel } from "./level-restore.ts";
import { readLevelSnapshot, verifyRecords } from "./level-snapshot.ts";
import { salvage } from "./salvage.ts";
import type { Snapshot, SnapshotItem } from "./snapshot.ts";
import { openSnapshotFile, writeSnapshotFile } from "./snapshot-file.ts";

const log = silentLogger;
const clock = systemClock;
const all = prefixRange("/registry/");

async function open(...urls: readonly string[]): Promise<Store> {
  return await openStore({ urls, clock, log, compactionIntervalMs: 0 });
}

async function itemsOf({ parts }: Snapshot): Promise<readonly SnapshotItem[]> {
  const items: SnapshotItem[] = [];
  for await (const part of parts()) items.push(...part);
  return items;
}

/** Fails after some items. */
function interrupted(snapshot: Snapshot): Snapshot {
  return {
    revision: snapshot.revision,
    async *parts() {
      for await (const part of snapshot.parts()) yield part.slice(0, 2);
      throw new Error("the source has ended");
    },
  };
}

const sample = (count = 5): Snapshot => ({
  revision: 100 as Revision,
  async *parts() {
    yield Array.from({ length: count }, (_, i): SnapshotItem => {
      const modified = (10 + i) as Revision;
      return { key: `/registry/pods/default/p${i}`, value: Buffer.from(`v${i}`), created: 5 as Revision, modified };
    });
    const expiresAt = clock.now() + 3_600_000;
    const [created, modified] = [50 as Revision, 50 as Revision];
    yield [{ key: "/registry/pods/default/short", value: Buffer.from("v"), created, modified, expiresAt }];
  },
});

t.test("a copy of a store in use is one of its states", async (t) => {
  const path = `${t.testdir()}/store`;
  const store = await open(`level://${path}`);
  let isWriting = true;
  const value = Buffer.alloc(20_000, "x");
  // The counter and its copy are written one after the other: a copy of the files has both, or only the first.
  const writing = (async () => {
    let [first, second] = [await store.create("/registry/a", value), await store.create("/registry/b", value)];
    for (let i = 0; isWriting; i++) {
      value.writeUInt32BE(i);
      first = await store.update("/registry/a", Buffer.from(value), first);
      second = await store.update("/registry/b", Buffer.from(value), second);
      await store.create(`/registry/n${i}`, Buffer.from(value));
    }
  })();
  await clock.sleep(200);
  for (let copies = 0; copies < 5; copies++) {
    await using copy = await openLevelCopy(path, clock, log);
    const { layout } = await verifyRecords(copy.database, path);
    const items = await itemsOf(await readLevelSnapshot(copy.database, path));
    const [a, b] = items.map((item) => Buffer.from(item.value).readUInt32BE());
    t.ok(a === b || a === b! + 1, `${a} and ${b}`);
    t.equal(Math.max(...items.map(({ modified }) => modified)), layout.revision);
    await clock.sleep(100);
  }
  isWriting = false;
  await writing;
  // Of a process that was killed, whose number no process has.
  await mkdir(`${path}/../.store-copy-999999999`);
  await (await openLevelCopy(path, clock, log))[Symbol.asyncDispose]();
  await t.rejects(rejectIfOpen(path), { code: "locked" });
  await store[Symbol.asyncDispose]();
  await rejectIfOpen(path);
  t.same(await readdir(`${path}/..`), ["store"], "no copy is left");
});

t.test("an interrupted restore or snapshot leaves nothing", async (t) => {
  const base = t.testdir();
  const options = { path: `${base}/store`, log, bumpRevision: 0 };
  await t.rejects(restoreLevel(interrupted(sample()), options), { message: "the source has ended" });
  await t.rejects(writeSnapshotFile(`${base}/file`, interrupted(sample())), { message: "the source has ended" });
  const confirm = async (): Promise<void> => {
    throw new Error("the source has changed");
  };
  await t.rejects(restoreLevel(sample(), { ...options, confirm }), { message: "the source has changed" });
  t.same(await readdir(base), []);
});

t.test("a snapshot file keeps values, revisions and times to live", async (t) => {
  const base = t.testdir();
  await writeSnapshotFile(`${base}/file`, sample(3));
  const read = await openSnapshotFile(`${base}/file`);
  t.equal(read.revision, 100);
  const { path, ...options } = { path: `${base}/store`, log, bumpRevision: 7 };
  t.same(await restoreLevel(read, { path, ...options }), { items: 4, revision: 107 });
  await using copy = await openLevelCopy(path, clock, log);
  const restored = await readLevelSnapshot(copy.database, path);
  t.equal(restored.revision, 107);
  t.match(
    await itemsOf(restored),
    (await itemsOf(read)).map(({ value, ...item }) => item),
  );
});

t.test("names are converted in values of built-in kinds, both ways", async (t) => {
  const kinds = [podKind, deploymentKind, leaseKind];
  const [toKubernetes, toProject] = [createConverter("k8s", kinds), createConverter("svc", kinds)];
  const lease = (magic: "k8s" | "svc"): Buffer =>
    encodeEnvelope(magic, { apiVersion: `coordination.${magic}.io/v1`, kind: "Lease" }, Buffer.of(10, 0));
  const json = (apiVersion: string): Buffer =>
    Buffer.from(JSON.stringify({ apiVersion, kind: "Lease", metadata: { name: "a" } }));
  const yaml = (apiVersion: string): Buffer => Buffer.from(`apiVersion: ${apiVersion}\nkind: Lease\n`);
  for (const encode of [json, yaml]) {
    t.same(toKubernetes(encode("coordination.svc.io/v1")), encode("coordination.k8s.io/v1"));
    t.same(toProject(encode("coordination.k8s.io/v1")), encode("coordination.svc.io/v1"));
    t.equal(toProject(encode("coordination.svc.io/v1")), "same");
  }
  t.same(toKubernetes(lease("svc")), lease("k8s"));
  t.same(toProject(lease("k8s")), lease("svc"));
  t.equal(toKubernetes(lease("k8s")), "same");
  const custom = Buffer.from('{"apiVersion":"gateway.networking.k8s.io/v1","kind":"Gateway"}');
  t.equal(toProject(custom), "same");
  t.equal(toProject(Buffer.from("k8s:enc:aescbc:v1:k:x")), "encrypted");
  for (const other of ["", "{", "text", "kind: X"]) t.equal(toProject(Buffer.from(other)), "same");
  const counts = { converted: 0, encrypted: 0 };
  await itemsOf(convertNames(sample(), "k8s", kinds, counts));
  t.same(counts, { converted: 0, encrypted: 0 });
});

const damages: Readonly<Record<string, (path: string, names: readonly string[]) => Promise<unknown>>> = {
  "CURRENT is missing": async (path) => await writeFile(`${path}/CURRENT`, ""),
  "MANIFEST is damaged": async (path, names) =>
    await writeFile(`${path}/${names.find((name) => name.startsWith("MANIFEST"))}`, "damaged"),
  "the end of a log is missing": async (path, names) => {
    const file = `${path}/${names.find((name) => name.endsWith(".log"))}`;
    const bytes = await readFile(file);
    await writeFile(file, bytes.subarray(0, bytes.length - 300));
  },
};

async function testSalvage(t: Test, damage: (path: string, names: readonly string[]) => Promise<unknown>) {
  const path = `${t.testdir()}/store`;
  {
    await using store = await open(`level://${path}`);
    for (let i = 0; i < 20; i++) await store.create(`/registry/k${i}`, Buffer.from(`v${i}`));
    const gone = await store.create("/registry/gone", Buffer.from("v"));
    await store.delete("/registry/gone", gone);
  }
  await damage(path, await readdir(path));
  const { snapshot, lost } = await salvage(path);
  t.same(lost, []);
  const items = await itemsOf(snapshot);
  t.ok(items.length >= 19 && items.length <= 21, `${items.length} items`);
  t.ok(snapshot.revision >= 23 || items.length < 21);
}

for (const [name, damage] of Object.entries(damages)) {
  t.test(`objects are read from a store of which ${name}`, async (t) => await testSalvage(t, damage));
}

t.test("what a missing table had is named, and how many writes are lost at least", async (t) => {
  const path = `${t.testdir()}/store`;
  for (const letter of ["a", "b"]) {
    await using store = await open(`level://${path}`);
    for (let i = 0; i < 10; i++) await store.create(`/registry/${letter}${i}`, Buffer.from(`v${i}`));
  }
  // The next start writes the log of the second one to a table.
  await (await open(`level://${path}`))[Symbol.asyncDispose]();
  const tables = (await readdir(path)).filter((name) => name.endsWith(".ldb")).sort();
  t.equal(tables.length, 2);
  const [first = "", second = ""] = tables;
  for (const [file, kept, expected] of [
    [first, "b", "current revisions of keys the first to the last, the log of revisions the oldest to the latest"],
    [second, "a", 'current revisions of keys "/registry/b0" to the last'],
  ] as const) {
    const copy = `${path}-${kept}`;
    await cp(path, copy, { recursive: true });
    await rm(`${copy}/${file}`);
    await t.rejects(open(`level://${copy}`), { message: new RegExp(`${file} is missing.*"/registry/[ab]9"`) });
    const { snapshot, tables: lost, lostRevisions, damage } = await salvage(copy);
    t.ok((await itemsOf(snapshot)).every(({ key }) => key.startsWith(`/registry/${kept}`)));
    t.match(lost, [{ file, content: new RegExp(expected) }]);
    t.match(lost[0]?.content, /values of keys .* to "\/registry\/[ab]9"$/);
    t.same(damage, [`${file}: it is missing`]);
    // Without the other table, nothing shows that there were earlier revisions.
    t.equal(lostRevisions, file === second ? 10 : 0);
  }
});

t.test("a changed byte of a table costs at most the values of its block, and no other value changes", async (t) => {
  const path = `${t.testdir()}/store`;
  const written = new Map<string, string>();
  {
    await using store = await open(`level://${path}`);
    for (let i = 0; i < 60; i++) {
      const key = `/registry/k${String(i).padStart(2, "0")}`;
      const value = Array.from({ length: 300 }, (_, j) => String.fromCharCode(32 + ((i * 7 + j * j * 31) % 90))).join(
        "",
      );
      const first = await store.create(key, Buffer.from("first"));
      written.set(`${key} ${first}`, "first");
      const second = await store.update(key, Buffer.from(value), first);
      written.set(`${key} ${second}`, value);
    }
  }
  const database = await Database.open(path, log);
  await database.compactRange(ALL_KEYS);
  await database.close();
  const table = `${path}/${(await readdir(path)).filter((name) => name.endsWith(".ldb")).at(-1)}`;
  const bytes = await readFile(table);
  for (let at = 0; at < bytes.length; at += 211) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 0x55;
    await writeFile(table, changed);
    const { snapshot, damage, lost } = await salvage(path);
    const items = await itemsOf(snapshot);
    const isWritten = ({ key, modified, value }: SnapshotItem): boolean =>
      written.get(`${key} ${modified}`) === Buffer.from(value).toString();
    t.ok(items.every(isWritten));
    t.equal(new Set(items.map(({ key }) => key)).size, items.length, "each key once");
    const gone = lost.filter(({ outcome }) => outcome === "gone").length;
    if (damage.length === 0) t.equal(items.length, 60);
    else t.ok(items.length + gone <= 60, `${items.length} kept, ${gone} gone`);
  }
});

t.test(
  "an interrupted restore to etcd is shown, and can be repeated",
  { skip: findEtcdProblem() ?? false },
  async (t) => {
    await using etcd = await startEtcd();
    using transfer = new EtcdTransfer({ urls: etcd.urls, tls: {}, prefix: "/registry/", clock });
    await t.rejects(transfer.restore(interrupted(sample()), { bumpRevision: 0 }), { message: "the source has ended" });
    await t.rejects(open(...etcd.urls), { message: /svc kvstore is writing it, or was interrupted/ });
    await t.rejects(transfer.snapshot(), { message: /was interrupted: run that again/ });
    const { items, revision } = await transfer.restore(sample(3), { bumpRevision: 50 });
    t.equal(items, 4);
    t.ok(revision > 150);
    await using store = await open(...etcd.urls);
    const { items: stored } = await store.list(all);
    t.same(
      stored.map(({ key, value }) => `${key} ${Buffer.from(value)}`),
      (await itemsOf(sample(3))).map(({ key, value }) => `${key} ${Buffer.from(value)}`),
    );
    t.ok(stored.every(({ modified }) => modified > 150));
    const expiring = (await itemsOf(await transfer.snapshot())).filter(({ expiresAt }) => expiresAt !== undefined);
    t.equal(expiring.length, 1);
    t.ok(Math.abs(expiring[0]!.expiresAt! - clock.now() - 3_600_000) < 20_000);
    await t.rejects(transfer.restore(sample(), { bumpRevision: 0 }), {
      message: /there are 4 keys below \/registry\//,
    });
    await transfer.rejectIfChanged(await transfer.revision());
    await t.rejects(transfer.rejectIfChanged(1 as Revision), { message: /4 objects changed meanwhile/ });
    await t.rejects(
      new EtcdTransfer({ urls: etcd.urls, tls: {}, prefix: "/other/", clock }).restore(sample(), { bumpRevision: 1e9 }),
      { message: /its revision must rise by/ },
    );
    t.ok((await transfer.compact()) > 150);
  },
);

t.test("records are verified", async (t) => {
  const path = `${t.testdir()}/store`;
  await restoreLevel(sample(), { path, log, bumpRevision: 0 });
  const database = await Database.open(path, log);
  const key = Buffer.from("h/registry/pods/default/p0");
  const record = Buffer.from(database.get(key)!);
  record[5]! ^= 1;
  await database.write([{ type: "put", key, value: record }]);
  await t.rejects(verifyRecords(database, path), { code: "corrupt", message: /its checksum is wrong/ });
  await database.write([
    { type: "put", key: Buffer.from("x"), value: record },
    { type: "del", key },
  ]);
  await t.rejects(verifyRecords(database, path), { code: "corrupt", message: /a record "x" of no type/ });
  await database.close();
  const { lost } = await salvage(path);
  t.same(lost, []);
});
