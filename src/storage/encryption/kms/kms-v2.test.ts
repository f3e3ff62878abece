import { createDecipheriv, createHmac } from "node:crypto";
import t, { type Test } from "tap";
import { decodeProtobuf } from "../../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../../schema/protobuf/encode.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { MetricRegistry, SHOW_ALL } from "../../../std/metrics/metrics.ts";
import { formatMetrics } from "../../../std/metrics/text-format.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { until } from "../../../testing/std/until.ts";
import { FakeKms } from "../../../testing/storage/fake-kms.ts";
import { aesGcm } from "../ciphers.ts";
import { EncryptionMetrics } from "../encryption-metrics.ts";
import { KmsV2Provider } from "./kms-v2.ts";
import { encryptedObject } from "./protocol.ts";

const KEY = "/registry/secrets/default/a";
const VALUE = Buffer.from("a secret");

async function start(t: Test, settings: Partial<FakeKms> = {}) {
  const plugin = await FakeKms.start();
  Object.assign(plugin, settings);
  t.teardown(() => plugin[Symbol.asyncDispose]());
  const clock = new FakeClock();
  const registry = new MetricRegistry(SHOW_ALL);
  const metrics = new EncryptionMetrics(registry, clock, "sha256:server");
  const config = { apiVersion: "v2", name: "p", endpoint: plugin.endpoint, timeout: "3s" };
  const open = async (): Promise<KmsV2Provider> => {
    const provider = await KmsV2Provider.open(config, { clock, log: silentLogger, metrics });
    t.teardown(() => provider[Symbol.dispose]());
    return provider;
  };
  return { plugin, clock, registry, open, provider: await open() };
}

const encrypt = (provider: KmsV2Provider, value: Uint8Array = VALUE) =>
  provider.prefixed.transformer.encrypt(value, KEY);
const decrypt = async (provider: KmsV2Provider, value: Uint8Array | Promise<Uint8Array>) =>
  await provider.prefixed.transformer.decrypt(await value, KEY);

t.test("a value is an EncryptedObject whose key HKDF derives from the seed that the plugin encrypted", async (t) => {
  const { plugin, provider } = await start(t);
  t.equal(provider.prefixed.prefix, "k8s:enc:kms:v2:p:");
  const object = decodeProtobuf(encryptedObject, await encrypt(provider));
  t.equal(object.keyID, "key-1");
  t.equal(object.encryptedDEKSourceType, 1);
  t.same(Object.keys(object.annotations ?? {}), ["version.encryption.example.com"]);
  const seed = Buffer.from(object.encryptedDEKSource!)
    .subarray("key-1|".length)
    .map((byte) => byte ^ 0xff);
  const data = Buffer.from(object.encryptedData!);
  // Only the second step of HKDF (RFC 5869, 2.3): the seed is the pseudo-random key.
  const key = createHmac("sha256", seed).update(data.subarray(0, 32)).update(Buffer.of(1)).digest();
  const decipher = createDecipheriv("aes-256-gcm", key, data.subarray(32, 44)).setAAD(Buffer.from(KEY));
  decipher.setAuthTag(data.subarray(-16));
  t.equal(Buffer.concat([decipher.update(data.subarray(44, -16)), decipher.final()]).toString(), "a secret");
  t.same(plugin.calls, ["/v2.KeyManagementService/Status", "/v2.KeyManagementService/Encrypt"]);
});

t.test("values share one seed, which is decrypted once", async (t) => {
  const { plugin, provider, open } = await start(t);
  const values = [await encrypt(provider), await encrypt(provider), await encrypt(provider)];
  for (const value of values) t.match(await decrypt(provider, value), { isStale: false, isPinned: true });
  t.equal(plugin.count("Encrypt"), 1);
  t.equal(plugin.count("Decrypt"), 0, "the seed of the server's own values is in memory");
  const restarted = await open();
  const read = await Promise.all(values.map((value) => decrypt(restarted, value)));
  t.same(
    read.map(({ value }) => Buffer.from(value).toString()),
    ["a secret", "a secret", "a secret"],
  );
  t.equal(plugin.count("Decrypt"), 1);
  t.same(Object.keys(plugin.received ?? {}), ["version.encryption.example.com"], "annotations are sent back");
});

t.test("a new key ID makes a new seed, and older values stale", async (t) => {
  const { plugin, clock, provider } = await start(t);
  const old = await encrypt(provider);
  plugin.keyId = "key-2";
  t.equal((await decrypt(provider, old)).isStale, false, "until the status is polled");
  await clock.advance(60_000);
  await until("the seed is replaced", () => plugin.count("Encrypt") === 2);
  await until("the value is stale", async () => (await decrypt(provider, old)).isStale);
  const renewed = await encrypt(provider);
  t.equal(decodeProtobuf(encryptedObject, renewed).keyID, "key-2");
  t.equal((await decrypt(provider, renewed)).isStale, false);
});

t.test("values are written for three minutes after the last healthy status, and read for ever", async (t) => {
  const { plugin, clock, provider } = await start(t);
  const value = await encrypt(provider);
  plugin.healthz = "broken";
  await clock.advance(180_000);
  await until("the status is unhealthy", () =>
    provider.check().then(
      () => false,
      () => true,
    ),
  );
  t.ok(await encrypt(provider));
  await clock.advance(1);
  t.throws(() => encrypt(provider), {
    message:
      /^encryptedDEKSource with keyID hash "sha256:\w{64}" expired at 2026-01-01T00:03:00Z \(current time is \S+\)$/,
  });
  t.equal(Buffer.from((await decrypt(provider, value)).value).toString(), "a secret");
  plugin.healthz = "ok";
  await clock.advance(10_000);
  await until("values are written again", async () => {
    await clock.advance(1_000);
    try {
      return (await encrypt(provider)).length > 0;
    } catch {
      return false;
    }
  });
  t.equal(plugin.count("Encrypt"), 1, "with the same seed, since the key ID is the same");
});

t.test("a plugin that starts later is found; until then nothing is read or written", async (t) => {
  const { plugin, provider, clock } = await start(t);
  const value = await encrypt(provider);
  await plugin.stop();
  const config = { apiVersion: "v2", name: "p", endpoint: plugin.endpoint, timeout: "3s" };
  const opening = KmsV2Provider.open(config, { clock, log: silentLogger, metrics: undefined });
  await until("the call waits", async () => {
    await clock.advance(1_000);
    return Promise.race([opening.then(() => true), new Promise<boolean>((done) => setImmediate(done, false))]);
  });
  const late = await opening;
  t.teardown(() => late[Symbol.dispose]());
  t.throws(() => encrypt(late), { message: "got unexpected nil transformer" });
  await t.rejects(decrypt(late, value), { message: "got unexpected nil transformer" });
  await t.rejects(late.check(), {
    message:
      /^failed to perform status section .* code = DeadlineExceeded desc = .* connect: no such file or directory"$/,
  });
  await plugin.start();
  await until("the plugin is found", async () => {
    await clock.advance(1_000);
    return await decrypt(late, value).then(
      () => true,
      () => false,
    );
  });
  t.ok(await encrypt(late));
});

t.test("a slow plugin fails reads of unknown seeds after the timeout", async (t) => {
  const { plugin, provider, clock, open } = await start(t);
  const value = await encrypt(provider);
  const restarted = await open();
  const blocked = Promise.withResolvers<void>();
  plugin.before = (path) => (path.endsWith("Decrypt") ? blocked.promise : Promise.resolve());
  const reading = decrypt(restarted, value).catch((error: Error) => error.message);
  await until("the call arrived", () => plugin.count("Decrypt") === 1);
  await clock.advance(3_000);
  t.equal(
    await reading,
    "failed to decrypt DEK, error: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
  );
  blocked.resolve();
  t.equal(Buffer.from((await decrypt(restarted, value)).value).toString(), "a secret");
});

t.test("the health check reports what is wrong with the status", async (t) => {
  const rows: readonly (readonly [Partial<FakeKms>, RegExp])[] = [
    [{ healthz: "sick" }, /^kmsv2 Provider p is not healthy, error: got unexpected healthz status: sick$/],
    [{ version: "v1" }, /error: expected KMSv2 API version v2, got v1$/],
    [{ keyId: "" }, /error: got invalid KMSv2 KeyID hash "": keyID is empty$/],
    [
      { keyId: "x".repeat(1025) },
      /error: got invalid KMSv2 KeyID hash "sha256:\w+": keyID is 1025 bytes, which exceeds the max size of 1024$/,
    ],
    [
      { encryptKeyId: "other" },
      new RegExp(
        'error: failed to rotate DEK uid="[\\w-]+", useSeed=true, errState=got unexpected nil transformer, ' +
          'errGen=<nil>, statusKeyIDHash="sha256:\\w+", encryptKeyIDHash="sha256:\\w+", stateKeyIDHash="", ' +
          "expirationTimestamp=0001-01-01T00:00:00Z$",
      ),
    ],
    [
      { annotations: { plain: Buffer.of(1) } },
      /=failed to validate annotations: annotations: Invalid value: "plain": should be a domain with at least two segm/,
    ],
    [
      { annotations: { "a.example.com": Buffer.alloc(32 * 1024) } },
      /annotations: total size of annotations is 32781, which exceeds the max size of 32768, /,
    ],
    [
      { healthz: "sick", version: "v3" },
      /error: \[got unexpected healthz status: sick, expected KMSv2 API version v2, got v3\]$/,
    ],
  ];
  for (const [settings, message] of rows) {
    const { provider } = await start(t, settings);
    await t.rejects(provider.check(), { message }, JSON.stringify(settings).slice(0, 60));
  }
});

t.test("the version must not change", async (t) => {
  const { plugin, provider, clock } = await start(t, { version: "v2beta1" });
  await provider.check();
  plugin.version = "v2";
  await clock.advance(60_000);
  await t.rejects(provider.check(), {
    message: /KMSv2 API version should not change after the initial status response version v2beta1, got v2$/,
  });
});

t.test("results of checks are used for 20 seconds, and those of failures for three", async (t) => {
  const { plugin, provider, clock } = await start(t);
  await clock.advance(19_999);
  await provider.check();
  t.equal(plugin.count("Status"), 1);
  await clock.advance(1);
  plugin.healthz = "sick";
  await Promise.all([t.rejects(provider.check()), t.rejects(provider.check())]);
  t.equal(plugin.count("Status"), 2, "checks at the same time share a call");
  plugin.healthz = "ok";
  await t.rejects(provider.check());
  await clock.advance(3_000);
  await provider.check();
});

t.test("changed and hostile values are refused", async (t) => {
  const { provider } = await start(t);
  const valid = decodeProtobuf(encryptedObject, await encrypt(provider));
  const reading = (change: object) => decrypt(provider, encodeProtobuf(encryptedObject, { ...valid, ...change }));
  const rows: readonly (readonly [object, RegExp])[] = [
    [{ encryptedDEKSourceType: 2 }, /^unknown encryptedDEKSourceType: 2$/],
    [{ encryptedData: Buffer.of() }, /^encrypted data is empty$/],
    [{ encryptedDEKSource: Buffer.of() }, /^failed to validate encrypted DEK source: encrypted DEK source is empty$/],
    [
      { encryptedDEKSource: Buffer.alloc(1025) },
      /encrypted DEK source is 1025 bytes, which exceeds the max size of 1024$/,
    ],
    [{ keyID: "" }, /^failed to validate key id: keyID is empty$/],
    [{ encryptedData: Buffer.alloc(31) }, /^the stored data was shorter than the required size$/],
    [{ encryptedData: Buffer.alloc(70) }, /^cipher: message authentication failed$/],
    [{ encryptedDEKSource: Buffer.from("key-1|short") }, /^invalid seed length 5 used for key generation$/],
    [
      { encryptedDEKSource: Buffer.from("nonsense") },
      /^failed to decrypt DEK, error: rpc error: code = Internal desc = /,
    ],
  ];
  for (const [change, message] of rows) await t.rejects(reading(change), { message }, String(message));
  await t.rejects(decrypt(provider, Buffer.from("no message")));
  await t.rejects(async () => provider.prefixed.transformer.decrypt(await encrypt(provider), "/other"), {
    message: "cipher: message authentication failed",
  });
});

t.test("values of earlier releases, whose key the plugin encrypted itself, are read and stale", async (t) => {
  const { provider } = await start(t);
  const dataKey = Buffer.alloc(32, 3);
  const old = encodeProtobuf(encryptedObject, {
    encryptedData: aesGcm(dataKey).encrypt(VALUE, KEY),
    keyID: "key-1",
    encryptedDEKSource: Buffer.concat([Buffer.from("key-1|"), dataKey.map((byte) => byte ^ 0xff)]),
    encryptedDEKSourceType: 0,
  });
  const { value, isStale } = await decrypt(provider, old);
  t.same([Buffer.from(value).toString(), isStale], ["a secret", true]);
});

t.test("metrics name the plugin and hashes of key IDs", async (t) => {
  const { provider, registry, plugin, open } = await start(t);
  await decrypt(provider, encrypt(provider));
  await decrypt(await open(), encrypt(provider));
  const text = formatMetrics([registry], "prometheus");
  const used = "apiserver_envelope_encryption_key_id_hash_total";
  const rows: readonly (readonly [name: string, labels: readonly string[], value: string])[] = [
    [used, ['transformation_type="from_storage"', 'provider_name="p"', 'apiserver_id_hash="sha256:server"'], "2"],
    [used, ['transformation_type="to_storage"', 'key_id_hash="sha256:'], "2"],
    ["apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds", [], "1.7672256e+09"],
    ["apiserver_envelope_encryption_dek_source_cache_size", ['provider_name="p"'], "1"],
    [
      "apiserver_envelope_encryption_kms_operations_latency_seconds_count",
      ['method_name="/v2.KeyManagementService/Decrypt"', 'grpc_status_code="OK"'],
      "1",
    ],
    ["apiserver_storage_envelope_transformation_cache_misses_total", [], "1"],
    ["apiserver_storage_data_key_generation_duration_seconds_count", [], "2"],
  ];
  for (const [name, labels, value] of rows) {
    const line = text
      .split("\n")
      .find((each) => each.startsWith(name) && labels.every((label) => each.includes(label)));
    t.equal(line?.split(" ").at(-1), value, `${name} ${labels.join(",")}`);
  }
  t.notMatch(text, "key-1");
  t.equal(plugin.count("Decrypt"), 1);
});
