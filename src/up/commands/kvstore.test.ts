import { readdir, readFile, writeFile } from "node:fs/promises";
import t from "tap";
import { invokeCommand } from "../../flags/commands.ts";
import { encodeProtobuf } from "../../schema/protobuf/encode.ts";
import { decodeEnvelope, encodeEnvelope } from "../../schema/protobuf/envelope.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { encryptedObject } from "../../storage/encryption/kms/protocol.ts";
import { openStore } from "../../storage/open.ts";
import { type KeyValue, prefixRange, type Revision, type Store } from "../../storage/store.ts";
import { findEtcdProblem, startEtcd } from "../../testing/storage/etcd-server.ts";
import { runKvstoreCommand } from "./kvstore.ts";
import { kvstoreProgram } from "./kvstore-flags.ts";

async function answer(...argv: readonly string[]): Promise<string> {
  const invocation = await invokeCommand(kvstoreProgram, argv);
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  return await runKvstoreCommand(invocation);
}

const kms = (keyID: string): Buffer =>
  Buffer.concat([
    Buffer.from("k8s:enc:kms:v2:plugin:"),
    encodeProtobuf(encryptedObject, { keyID, encryptedData: Buffer.of(1), encryptedDEKSource: Buffer.of(2) }),
  ]);

t.test("svc kvstore encrypt-status counts values by provider and key", async (t) => {
  const url = `level://${t.testdir()}`;
  const values: Readonly<Record<string, string | Buffer>> = {
    "secrets/default/a": "k8s:enc:aescbc:v1:k1:xxx",
    "secrets/default/b": "k8s:enc:aescbc:v1:k2:xxx",
    "secrets/default/c": "k8s:enc:aescbc:v1:k2:xxx",
    "secrets/default/d": kms("key-1"),
    "secrets/default/e": kms("key-\u001b[2J"),
    "secrets/default/f": "k8s:enc:kms:v1:old:xxx",
    "secrets/default/g": "k8s:enc:kms:v2:plugin:garbage",
    "secrets/default/h": "k8s:enc:rot13:v1:k:xxx",
    "clusterroles/view": "plain",
    "shop.example.com/things/default/t": "k8s:enc:secretbox:v1:k3:xxx",
    "ranges/serviceips": "plain",
  };
  {
    await using store = await openStore({
      urls: [url],
      clock: systemClock,
      log: silentLogger,
      compactionIntervalMs: 0,
    });
    for (const [key, value] of Object.entries(values)) await store.create(`/registry/${key}`, Buffer.from(value));
    await t.rejects(answer("encrypt-status", `--kvstore-servers=${url}`), {
      message: /it is in use: stop the API server/,
    });
  }
  const text = await answer("encrypt-status", `--kvstore-servers=${url}`);
  const lines = text.split("\n").map((line) => line.replace(/ {2,}/g, "|"));
  t.same(lines, [
    "RESOURCE|PROVIDER|KEY|KEY ID|VALUES",
    "(other)|identity|-|-|1",
    "clusterroles.rbac.authorization.k8s.io|identity|-|-|1",
    "secrets|aescbc|k1|-|1",
    "secrets|aescbc|k2|-|2",
    "secrets|kms v1|old|-|1",
    "secrets|kms v2|plugin|-|1",
    "secrets|kms v2|plugin|key-\\u001b[2J|1",
    "secrets|kms v2|plugin|key-1|1",
    "secrets|unknown|-|-|1",
    "things.shop.example.com|secretbox|k3|-|1",
    "",
    "11 values: 9 encrypted, 2 in plain text",
    "",
  ]);
  const json = JSON.parse(await answer("encrypt-status", `--kvstore-servers=${url}`, "--output=json"));
  t.same(json[2], { resource: "secrets", provider: "aescbc", key: "k1", values: 1 });
});

async function openLevel(directory: string): Promise<Store> {
  return await openStore({
    urls: [`level://${directory}`],
    clock: systemClock,
    log: silentLogger,
    compactionIntervalMs: 0,
  });
}

const protobuf = (magic: "svc" | "k8s", apiVersion: string, kind: string): Buffer =>
  encodeEnvelope(magic, { apiVersion, kind }, Buffer.of(10, 0));

/** A store of a few objects, one of them with a time to live, with history. */
async function fill(directory: string): Promise<void> {
  await using store = await openLevel(directory);
  for (let i = 0; i < 200; i++) {
    await store.create(`/registry/configmaps/default/c${i}`, protobuf("svc", "v1", "ConfigMap"));
  }
  await store.create("/registry/clusterroles/view", protobuf("svc", "rbac.authorization.svc.io/v1", "ClusterRole"));
  await store.create("/registry/events/default/e", protobuf("svc", "v1", "Event"), { ttlSeconds: 3600 });
  await store.create("/registry/secrets/default/s", Buffer.from("k8s:enc:aescbc:v1:k1:xxx"));
  const gone = await store.create("/registry/configmaps/default/gone", Buffer.from("{}"));
  await store.delete("/registry/configmaps/default/gone", gone);
}

const items = async (store: Store): Promise<readonly KeyValue[]> =>
  (await store.list(prefixRange("/registry/"))).items.map(({ isPinned: _, ...item }) => item);

t.test("svc kvstore checks, copies and restores a store while a server uses it", async (t) => {
  const base = t.testdir();
  const directory = `${base}/kvstore`;
  await fill(directory);
  {
    await using store = await openLevel(directory);
    t.match(await answer("check", `--kvstore-servers=level://${directory}`), /^No damage: .* revisions 1 to 206\n$/);
    await answer("snapshot", `${base}/one`, `--kvstore-servers=level://${directory}`);
    await store.create("/registry/configmaps/default/later", Buffer.from("{}"));
    for (const verb of ["compact", "repair"]) {
      await t.rejects(answer(verb, `--kvstore-servers=level://${directory}`), {
        message: /in use: stop the API server/,
      });
    }
  }
  const restored = JSON.parse(
    await answer("restore", `${base}/one`, `--kvstore-servers=level://${base}/new`, "--output=json"),
  );
  t.match(restored, { keys: 203, revision: 1_000_206 });
  t.same((await readdir(base)).sort(), ["kvstore", "new", "one"]);
  await using source = await openLevel(directory);
  await using store = await openLevel(`${base}/new`);
  t.same(
    await items(store),
    (await items(source)).filter(({ key }) => !key.endsWith("/later")),
    "values and their revisions",
  );
  t.equal(store.current(), 1_000_206);
  await t.rejects(store.list(prefixRange("/registry/"), { revision: 206 as Revision }), { code: "compacted" });
  t.equal(await store.create("/registry/configmaps/default/next", Buffer.from("{}")), 1_000_207);
  await t.rejects(answer("restore", `${base}/one`, `--kvstore-servers=level://${base}/new`), { message: /not empty/ });
  await t.rejects(answer("snapshot", `${base}/one`, `--kvstore-servers=level://${directory}`), { message: /exists/ });
});

t.test("svc kvstore restore refuses a snapshot that is cut off, changed or none", async (t) => {
  const base = t.testdir();
  await fill(`${base}/kvstore`);
  await answer("snapshot", `${base}/whole`, `--kvstore-servers=level://${base}/kvstore`);
  const bytes = await readFile(`${base}/whole`);
  const restore = async (content: Buffer): Promise<string> => {
    await writeFile(`${base}/snapshot`, content);
    return await answer("restore", `${base}/snapshot`, `--kvstore-servers=level://${base}/new`);
  };
  for (let end = 0; end < bytes.length; end += 997) {
    await t.rejects(restore(bytes.subarray(0, end)), { message: /incomplete|not a snapshot/ });
  }
  for (let at = 0; at < bytes.length; at += 1009) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 1;
    await t.rejects(restore(changed), { message: /^Cannot use / });
  }
  await t.rejects(restore(Buffer.concat([bytes, bytes.subarray(23)])), { message: /data follow its end/ });
  t.same((await readdir(base)).sort(), ["kvstore", "snapshot", "whole"]);
});

t.test("svc kvstore compact deletes the history of a stopped store", async (t) => {
  const directory = `${t.testdir()}/kvstore`;
  await fill(directory);
  const { revision, bytes } = JSON.parse(
    await answer("compact", `--kvstore-servers=level://${directory}`, "--output=json"),
  );
  t.equal(revision, 206);
  t.ok(bytes > 0);
  await using store = await openLevel(directory);
  t.equal((await items(store)).length, 203);
  await t.rejects(store.list(prefixRange("/registry/"), { revision: 205 as Revision }), { code: "compacted" });
});

t.test("svc kvstore repair keeps what is whole and the damaged files", async (t) => {
  const base = t.testdir();
  const directory = `${base}/kvstore`;
  await fill(directory);
  const url = `--kvstore-servers=level://${directory}`;
  t.match(await answer("repair", url), /^Nothing to repair/);
  await answer("compact", url);
  const table = (await readdir(directory))
    .filter((name) => name.endsWith(".ldb"))
    .sort()
    .at(-1)!;
  const bytes = await readFile(`${directory}/${table}`);
  bytes[Math.floor(bytes.length / 3)]! ^= 0xff;
  await writeFile(`${directory}/${table}`, bytes);
  await t.rejects(answer("check", url), {
    message: /kvstore\/?": it is damaged: the table .* is damaged: the checksum of the block/,
  });
  const { keys, lost, copy, revision } = JSON.parse(await answer("repair", url, "--output=json"));
  t.ok(keys > 50, `${keys} keys`);
  t.ok(lost.length > 0, `${lost.length} lost`);
  t.equal(keys + lost.filter(({ outcome }: { outcome: string }) => outcome === "gone").length, 203);
  t.equal(revision, 1_000_206);
  t.same(await readFile(`${copy}/${table}`), bytes);
  t.match(await answer("check", url), /^No damage/);
  await using store = await openLevel(directory);
  t.equal((await items(store)).length, keys);
});

t.test("svc kvstore migrates to etcd and back", { skip: findEtcdProblem() ?? false }, async (t) => {
  await using etcd = await startEtcd();
  const base = t.testdir();
  const url = etcd.urls[0]!;
  await fill(`${base}/kvstore`);
  const there = JSON.parse(
    await answer("migrate", `--from=level://${base}/kvstore`, `--to=${url}`, "--bump-revision=5000", "--output=json"),
  );
  t.match(there, { keys: 203, sourceRevision: 206, converted: 202, encrypted: 1 });
  const remote = await openStore({ urls: [url], clock: systemClock, log: silentLogger, compactionIntervalMs: 0 });
  {
    await using store = remote;
    const found = await items(store);
    t.equal(found.length, 203);
    t.ok(found.every(({ modified }) => modified > 5206));
    const role = await store.get("/registry/clusterroles/view");
    t.same(decodeEnvelope(role!.value), {
      ...decodeEnvelope(protobuf("k8s", "rbac.authorization.k8s.io/v1", "ClusterRole")),
    });
    await t.rejects(store.list(prefixRange("/registry/"), { revision: 206 as Revision }), { code: "compacted" });
  }
  await t.rejects(answer("migrate", `--from=level://${base}/kvstore`, `--to=${url}`), {
    message: /there are 203 keys/,
  });
  await answer("check", `--kvstore-servers=${url}`);
  await answer("snapshot", `${base}/etcd`, `--kvstore-servers=${url}`);
  const back = JSON.parse(await answer("migrate", `--from=${url}`, `--to=level://${base}/back`, "--output=json"));
  t.equal(back.keys, 203);
  t.ok(back.revision > 5206);
  await using source = await openLevel(`${base}/kvstore`);
  await using store = await openLevel(`${base}/back`);
  const values = async (of: Store): Promise<unknown> => (await items(of)).map(({ key, value }) => [key, value]);
  t.same(await values(store), await values(source));
  t.match(await answer("compact", `--kvstore-servers=${url}`), /^Deleted the history/);
});

t.test("svc kvstore explains what is wrong", async (t) => {
  const nowhere = `level://${t.testdir()}/none`;
  await t.rejects(answer("encrypt-status", `--kvstore-servers=${nowhere}`), { message: /there is no such directory/ });
  await t.rejects(answer("encrypt-status", "--kvstore-servers=memory://"), { message: /expected level:\/\/\/PATH/ });
  for (const verb of ["check", "snapshot x", "compact", "repair"]) {
    await t.rejects(answer(...verb.split(" "), `--kvstore-servers=${nowhere}`), {
      message: /there is no such directory/,
    });
    await t.rejects(answer(...verb.split(" "), `--kvstore-servers=level://${t.testdirName}`), {
      message: /no store in it/,
    });
    await t.rejects(answer(...verb.split(" "), "--kvstore-servers=memory://"), { message: /expected level:/ });
  }
  await t.rejects(answer("restore", "/nowhere", `--kvstore-servers=${nowhere}`), { message: /ENOENT/ });
  await t.rejects(answer("migrate", `--from=${nowhere}`), { message: /needs --from and --to/ });
  await t.rejects(answer("migrate", `--from=${nowhere}`, `--to=${nowhere}2`), {
    message: /there is no such directory/,
  });
  await t.rejects(answer("check", `--from=${nowhere}`), { message: /are flags of migrate/ });
  await t.rejects(answer("repair", "--kvstore-servers=http://127.0.0.1:1"), { message: /restore a snapshot/ });
  await t.rejects(answer("encrypt-state"), { message: /did you mean encrypt-status/ });
});
