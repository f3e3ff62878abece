import t, { type Test } from "tap";
import { silentLogger } from "../../../std/log/logger.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { FakeKms } from "../../../testing/storage/fake-kms.ts";
import { aesCbc } from "../ciphers.ts";
import { KmsV1Provider } from "./kms-v1.ts";

const KEY = "/registry/secrets/default/a";
const VALUE = Buffer.from("a secret");

async function start(t: Test, options: { readonly cachesize?: number } = {}) {
  const plugin = await FakeKms.start();
  t.teardown(() => plugin[Symbol.asyncDispose]());
  const clock = new FakeClock();
  const config = { apiVersion: "v1", name: "p", endpoint: plugin.endpoint, ...options };
  const provider = new KmsV1Provider(config, { clock, log: silentLogger, metrics: undefined });
  t.teardown(() => provider[Symbol.dispose]());
  const { transformer } = provider.prefixed;
  const decrypt = async (value: Uint8Array) => await transformer.decrypt(value, KEY);
  return { plugin, clock, provider, decrypt, encrypt: async () => Buffer.from(await transformer.encrypt(VALUE, KEY)) };
}

t.test("each value has its own key, which the plugin encrypts; the version is checked once", async (t) => {
  const { plugin, provider, encrypt, decrypt } = await start(t);
  t.equal(provider.prefixed.prefix, "k8s:enc:kms:v1:p:");
  const [one, two] = [await encrypt(), await encrypt()];
  t.equal(one.readUInt16BE(), "key-1|".length + 32);
  t.equal(one.subarray(2, 8).toString(), "key-1|");
  t.notSame(one.subarray(8, 40), two.subarray(8, 40));
  t.match(await decrypt(one), { isStale: false, isPinned: true });
  t.equal(Buffer.from((await decrypt(two)).value).toString(), "a secret");
  t.equal(plugin.count("Version"), 1);
  t.equal(plugin.count("Encrypt"), 2);
  t.equal(plugin.count("Decrypt"), 0, "keys of the server's own values are cached");
});

t.test("cachesize bounds the cached keys; a negative one turns the cache off", async (t) => {
  for (const [cachesize, calls] of [
    [1, 1],
    [-1, 2],
    [2, 0],
  ] as const) {
    const { plugin, encrypt, decrypt } = await start(t, { cachesize });
    const values = [await encrypt(), await encrypt()];
    for (const value of values.reverse()) await decrypt(value);
    t.equal(plugin.count("Decrypt"), calls, `cachesize ${cachesize}`);
  }
});

t.test("values that earlier releases wrote with AES-CBC are read and stale", async (t) => {
  const { decrypt } = await start(t);
  const dataKey = Buffer.alloc(32, 5);
  const encryptedKey = Buffer.concat([Buffer.from("key-1|"), dataKey.map((byte) => byte ^ 0xff)]);
  const old = Buffer.concat([Buffer.of(0, encryptedKey.length), encryptedKey, aesCbc(dataKey).encrypt(VALUE, KEY)]);
  const { value, isStale } = await decrypt(old);
  t.same([Buffer.from(value).toString(), isStale], ["a secret", true]);
});

t.test("shortened values and a plugin of another version are refused", async (t) => {
  const { plugin, decrypt, encrypt, provider } = await start(t);
  const why = "invalid data encountered by envelope transformer: failed to read uint16 length prefixed data";
  for (const bytes of [Buffer.of(), Buffer.of(1), Buffer.of(0, 5, 1)])
    await t.rejects(decrypt(bytes), { message: why });
  plugin.versionOfV1 = "v1";
  await t.rejects(encrypt(), {
    message: "KMS provider api version v1 is not supported, only v1beta1 is supported now",
  });
  await t.rejects(provider.check(), {
    message:
      /^failed to perform encrypt section of the healthz check for KMS Provider p, error: KMS provider api version/,
  });
  plugin.versionOfV1 = "v1beta1";
  t.ok(await encrypt());
});

t.test("the health check encrypts and decrypts, and fails after the timeout", async (t) => {
  const { plugin, provider, clock } = await start(t);
  await provider.check();
  t.same([plugin.count("Encrypt"), plugin.count("Decrypt")], [1, 1]);
  await clock.advance(20_000);
  plugin.before = (path) => (path.endsWith("Decrypt") ? Promise.reject(new Error("locked")) : Promise.resolve());
  await t.rejects(provider.check(), {
    message:
      "failed to perform decrypt section of the healthz check for KMS Provider p, error: " +
      "rpc error: code = Internal desc = locked",
  });
});
