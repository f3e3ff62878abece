/** Plugins as a whole server uses them: health checks, reload, values rewritten, and a plugin that is away. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createMemoryStore } from "../../storage/memory.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { FakeKms } from "../../testing/storage/fake-kms.ts";
import { keepOpen } from "../../testing/storage/keep-open.ts";
import { defaultConfig } from "../config/default-config.ts";

const SECRETS = "/api/v1/namespaces/default/secrets";
const KEY = "/registry/secrets/default/a";
const secret = { metadata: { name: "a" }, stringData: { password: "sesame" } };

interface Provider {
  readonly version?: "v1" | "v2";
  readonly name?: string;
  readonly plugin: FakeKms;
}

function setUp(t: Test) {
  const folder = mkdtempSync(join(tmpdir(), "svc-kms-server-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "encryption.json");
  const store = createMemoryStore({ clock: new FakeClock() });
  const shared = keepOpen(store);
  return {
    write(...providers: readonly Provider[]): void {
      const kms = providers.map(({ version = "v2", name = "p", plugin }) => ({
        kms: { apiVersion: version, name, endpoint: plugin.endpoint, timeout: "1s" },
      }));
      const resources = [{ resources: ["secrets"], providers: kms }];
      writeFileSync(
        file,
        JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "EncryptionConfiguration", resources }),
      );
    },
    start: (reload = false): Promise<TestServer> =>
      startTestServer(
        { storage: { ...defaultConfig.storage, encryption: { file, reload, kmsV1: true } } },
        { store: shared },
      ),
    startPlain: (): Promise<TestServer> => startTestServer({}, { store: shared }),
    stored: async (): Promise<string> => Buffer.from((await store.get(KEY))?.value ?? []).toString("latin1"),
  };
}

const kmsChecks = (text: string) => text.split("\n").filter((line) => line.includes("kms-provider"));

t.test("health checks are one for each plugin, or one for all of v2", async (t) => {
  await using one = await FakeKms.start();
  await using two = await FakeKms.start();
  const rows: readonly (readonly [readonly Provider[], boolean, readonly string[]])[] = [
    [[{ plugin: one }], false, ["kms-providers"]],
    [[{ plugin: one }, { name: "q", plugin: two }], false, ["kms-providers"]],
    [[{ plugin: one }, { version: "v1", name: "q", plugin: two }], false, ["kms-provider-0", "kms-provider-1"]],
    [[{ version: "v1", plugin: one }], true, ["kms-providers"]],
  ];
  for (const [providers, reload, expected] of rows) {
    const { write, start } = setUp(t);
    write(...providers);
    await using server = await start(reload);
    for (const endpoint of ["healthz", "livez", "readyz"]) {
      const { text } = await server.send(`GET /${endpoint}?verbose`);
      t.same(
        kmsChecks(text),
        expected.map((name) => `[+]${name} ok`),
        endpoint,
      );
    }
    t.equal((await server.send(`GET /healthz/${expected[0]}`)).text, "ok");
  }
});

t.test("an unhealthy plugin fails the check", async (t) => {
  await using plugin = await FakeKms.start();
  const { write, start } = setUp(t);
  write({ plugin });
  await using server = await start();
  plugin.healthz = "sick";
  await server.clock.advance(20_000);
  const { status, text } = await server.send("GET /livez?verbose");
  t.equal(status, 500);
  t.same(kmsChecks(text), ["[-]kms-providers failed: reason withheld"]);
});

t.test("an update without a change rewrites a value of a former key ID", async (t) => {
  await using plugin = await FakeKms.start();
  const { write, start, stored } = setUp(t);
  write({ plugin });
  await using server = await start();
  t.equal((await server.send(`POST ${SECRETS}`, { body: secret })).status, 201);
  const first = await stored();
  t.ok(first.startsWith("k8s:enc:kms:v2:p:"));
  t.notOk(first.includes("sesame"));
  const put = async (): Promise<number> => {
    const { json } = await server.send(`GET ${SECRETS}/a`);
    return (await server.send(`PUT ${SECRETS}/a`, { body: json })).status;
  };
  t.equal(await put(), 200);
  t.equal(await stored(), first, "nothing is written with the same key");
  plugin.keyId = "key-2";
  await server.clock.advance(60_000);
  await until("the value is rewritten", async () => (await put()) === 200 && (await stored()).includes("key-2"));
  t.notOk((await stored()).includes("key-1"));
});

t.test("a server whose plugin is away serves all but the encrypted resources, and recovers", async (t) => {
  await using plugin = await FakeKms.start();
  const { write, start } = setUp(t);
  write({ plugin });
  {
    await using server = await start();
    await server.send(`POST ${SECRETS}`, { body: secret });
  }
  plugin.before = (path) => (path.endsWith("Decrypt") ? Promise.reject(new Error("locked")) : Promise.resolve());
  await using server = await start();
  const { status, json } = await server.send(`GET ${SECRETS}/a`);
  t.equal(status, 500);
  t.equal(
    json.message,
    "Internal error occurred: failed to decrypt DEK, error: rpc error: code = Internal desc = locked",
  );
  t.equal((await server.send("GET /api/v1/namespaces/default/configmaps")).status, 200);
  plugin.before = async () => {};
  await until("secrets are read again", async () => {
    await server.clock.advance(1_000);
    return (await server.send(`GET ${SECRETS}/a`)).status === 200;
  });
});

t.test("a reloaded file is used when its plugins are healthy, and not before", async (t) => {
  await using one = await FakeKms.start();
  await using two = await FakeKms.start();
  const { write, start, stored } = setUp(t);
  write({ plugin: one });
  await using server = await start(true);
  await server.send(`POST ${SECRETS}`, { body: secret });
  two.healthz = "sick";
  write({ name: "q", plugin: two }, { plugin: one });
  await server.clock.advance(60_000);
  await until("the new plugin is checked", () => two.count("Status") > 0);
  const renew = async (): Promise<string> => {
    const { json } = await server.send(`GET ${SECRETS}/a`);
    await server.send(`PUT ${SECRETS}/a`, { body: json });
    return await stored();
  };
  t.ok((await renew()).startsWith("k8s:enc:kms:v2:p:"));
  two.healthz = "ok";
  await until("the value is rewritten", async () => {
    await server.clock.advance(5_000);
    return (await renew()).startsWith("k8s:enc:kms:v2:q:");
  });
  const metrics = (await server.send("GET /metrics")).text;
  const lines = metrics.split("\n");
  const has = (name: string, ...labels: readonly string[]): boolean =>
    lines.some((line) => line.startsWith(`${name}{`) && labels.every((label) => line.includes(label)));
  t.ok(has("apiserver_encryption_config_controller_automatic_reloads_total", 'status="success"', "} 1"));
  const labels = ['resource="secrets"', 'transformation_type="to_storage"', "k8s:enc:kms:v2:q:", 'status="OK"'];
  t.ok(has("apiserver_storage_transformation_operations_total", ...labels));
});

t.test("without the configuration encrypted objects fail to be read instead of seeming deleted", async (t) => {
  await using plugin = await FakeKms.start();
  const { write, start, startPlain } = setUp(t);
  write({ plugin });
  {
    await using server = await start();
    await server.send(`POST ${SECRETS}`, { body: secret });
  }
  await using server = await startPlain();
  const { status, json } = await server.send(`GET ${SECRETS}/a`);
  t.same([status, json.message], [500, "Internal error occurred: identity transformer tried to read encrypted data"]);
  const list = await server.send(`GET ${SECRETS}`);
  t.same(
    [list.status, list.json.message],
    [
      429,
      "storage is (re)initializing: failed to list *core.Secret: " +
        'unable to transform key "/registry/secrets/default/a": identity transformer tried to read encrypted data',
    ],
  );
  t.equal((await server.send("GET /api/v1/namespaces/default/configmaps")).status, 200);
  const created = await server.send(`POST ${SECRETS}`, { body: secret });
  t.same([created.status, created.json.reason], [409, "AlreadyExists"]);
  const other = { ...secret, metadata: { name: "b" } };
  t.equal((await server.send(`POST ${SECRETS}`, { body: other })).status, 201);
});
