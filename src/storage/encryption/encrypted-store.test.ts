import t from "tap";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { createMemoryStore } from "../memory.ts";
import { prefixRange, type Revision, type StoreError } from "../store.ts";
import { parseEncryptionConfiguration } from "./configuration.ts";
import { createTransformers } from "./encrypted-resources.ts";
import { EncryptedStore } from "./encrypted-store.ts";

const KEY = "/registry/secrets/default/a";
const SECRET = Buffer.alloc(32, 7).toString("base64");
const OTHER = Buffer.alloc(32, 8).toString("base64");

const provider = (type: string, ...secrets: readonly (readonly [name: string, secret: string])[]): object => ({
  [type]: { keys: secrets.map(([name, secret]) => ({ name, secret })) },
});
const plain = { identity: {} };

async function transformersOf(...providers: readonly object[]) {
  const resources = [{ resources: ["secrets"], providers }];
  const text = JSON.stringify({ apiVersion: "apiserver.svc.io/v1", kind: "EncryptionConfiguration", resources });
  const deps = { kmsV1: false, clock: new FakeClock(), log: silentLogger };
  return await createTransformers(parseEncryptionConfiguration("file", text), deps);
}

function start() {
  const inner = createMemoryStore({ clock: new FakeClock(), log: silentLogger });
  const open = async (...providers: readonly object[]): Promise<EncryptedStore> => {
    const transformer = (await transformersOf(...providers)).find({ group: "", resource: "secrets" });
    return new EncryptedStore(inner, () => transformer);
  };
  return { inner, open };
}

async function textOf(store: EncryptedStore): Promise<string | undefined> {
  const item = await store.get(KEY);
  return item && Buffer.from(item.value).toString();
}

for (const type of ["aesgcm", "aescbc", "secretbox"]) {
  t.test(`${type} round trips, and rotates keys by rewriting`, async (t) => {
    const { inner, open } = start();
    const first = await open(provider(type, ["k1", SECRET]), plain);
    const created = await first.create(KEY, Buffer.from("a secret"));
    const stored = Buffer.from((await inner.get(KEY))!.value).toString("latin1");
    t.ok(stored.startsWith(`k8s:enc:${type}:v1:k1:`));
    t.notOk(stored.includes("secret:v1:a secret"));
    t.equal(await textOf(first), "a secret");
    t.equal((await first.get(KEY))?.isStale, undefined);
    const rotated = await open(provider(type, ["k2", OTHER], ["k1", SECRET]), plain);
    t.equal(await textOf(rotated), "a secret");
    t.equal((await rotated.get(KEY))?.isStale, true);
    await rotated.update(KEY, Buffer.from("a secret"), created);
    t.equal((await rotated.get(KEY))?.isStale, undefined);
    await t.rejects(first.get(KEY), { code: "undecryptable" });
  });

  t.test(`${type} detects changed bytes`, async (t) => {
    const { inner, open } = start();
    const store = await open(provider(type, ["k1", SECRET]));
    let revision: Revision = await store.create(KEY, Buffer.from("a secret"));
    const { value } = (await inner.get(KEY))!;
    for (let at = value.length - 16; at < value.length; at++) {
      const changed = Buffer.from(value);
      changed[at]! ^= 0x40;
      revision = await inner.update(KEY, changed, revision);
      const read = await store.get(KEY).catch((error: StoreError) => error.code);
      // AES-CBC authenticates nothing, as in Kubernetes.
      if (type !== "aescbc") t.equal(read, "undecryptable", String(at));
    }
  });
}

t.test("aesgcm refuses a value whose tag is cut off", async (t) => {
  const { inner, open } = start();
  const store = await open(provider("aesgcm", ["k1", SECRET]));
  let revision: Revision = await store.create(KEY, Buffer.of());
  const { value } = (await inner.get(KEY))!;
  for (let length = value.length - 1; length >= value.length - 16; length--) {
    revision = await inner.update(KEY, value.subarray(0, length), revision);
    await t.rejects(store.get(KEY), { code: "undecryptable" }, `${length} bytes`);
  }
});

t.test("a value moves from plain text to encryption and back", async (t) => {
  const { inner, open } = start();
  let revision = await (await open(plain)).create(KEY, Buffer.from("a secret"));
  const encrypting = await open(provider("secretbox", ["k1", SECRET]), plain);
  t.same([await textOf(encrypting), (await encrypting.get(KEY))?.isStale], ["a secret", true]);
  revision = await encrypting.update(KEY, Buffer.from("a secret"), revision);
  const decrypting = await open(plain, provider("secretbox", ["k1", SECRET]));
  t.same([await textOf(decrypting), (await decrypting.get(KEY))?.isStale], ["a secret", true]);
  await decrypting.update(KEY, Buffer.from("a secret"), revision);
  t.equal(Buffer.from((await inner.get(KEY))!.value).toString(), "a secret");
});

t.test("a watch goes on after a value that cannot be decrypted", async (t) => {
  const { inner, open } = start();
  const store = await open(provider("aesgcm", ["k1", SECRET]));
  const stop = new AbortController();
  const seen: (string | undefined)[] = [];
  const from = inner.current();
  await inner.create(`${KEY}1`, Buffer.from("k8s:enc:aesgcm:v1:k1:nothing"));
  await store.create(`${KEY}2`, Buffer.from("fine"));
  for await (const { events } of store.watch(prefixRange("/registry/"), from, stop.signal)) {
    for (const event of events) {
      if (event.type === "put") seen.push(event.item.failure?.code ?? Buffer.from(event.item.value).toString());
    }
    if (seen.length === 2) stop.abort();
  }
  t.same(seen, ["undecryptable", "fine"]);
});

t.test("the error of a conflict has the decrypted value", async (t) => {
  const { open } = start();
  const store = await open(provider("aescbc", ["k1", SECRET]));
  const revision = await store.create(KEY, Buffer.from("one"));
  await store.update(KEY, Buffer.from("two"), revision);
  const error = await store.update(KEY, Buffer.from("three"), revision).catch((failure: StoreError) => failure);
  t.equal(Buffer.from((error as StoreError).current!.value).toString(), "two");
});
