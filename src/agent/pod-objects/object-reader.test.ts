import t from "tap";
import type { Pod } from "../../api/core/pod/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import { createClient } from "../../client/api-client.ts";
import { startInformer } from "../../client/informer/informer.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { ObjectReader } from "./object-reader.ts";

const path = (kind: "configmaps" | "secrets" | "services", name: string) =>
  `/api/v1/namespaces/default/${kind}/${name}`;

function podOf(uid: string, configMap: string): Pod {
  return {
    metadata: { name: uid, namespace: "default", uid },
    spec: { containers: [{ name: "c" }], volumes: [{ name: "v", configMap: { name: configMap } }] },
  };
}

async function reading(prepare: (api: FakeApi) => void = () => undefined, goodForMs?: () => Promise<number>) {
  const api = new FakeApi();
  prepare(api);
  const clock = new FakeClock();
  const changed: string[] = [];
  let requests = 0;
  let away = false;
  const client = createClient({
    transport: async (request) => {
      requests += 1;
      if (away) throw new Error("away");
      return await api.transport(request);
    },
  });
  const services = startInformer({ client, kind: serviceKind, clock, random: seededRandom(1), log: silentLogger });
  t.teardown(async () => await services[Symbol.asyncDispose]());
  const reader = new ObjectReader({
    client,
    services,
    clock,
    random: seededRandom(1),
    log: silentLogger,
    onChange: (uid) => void changed.push(uid),
    cacheTtlMs: goodForMs,
  });
  t.teardown(async () => await reader[Symbol.asyncDispose]());
  /** Watches use streams, which need turns of the event loop. */
  const wait = async (): Promise<void> => {
    await new Promise(setImmediate);
    await clock.advance(0);
  };
  return {
    api,
    clock,
    reader,
    changed,
    until: (holds: () => boolean) => until("the condition holds", holds, { timeoutMs: 10_000, wait }),
    get requests() {
      return requests;
    },
    leave() {
      away = true;
    },
  };
}

function text(bytes: Readonly<Record<string, Uint8Array>> | undefined): Readonly<Record<string, string>> | undefined {
  return bytes && Object.fromEntries(Object.entries(bytes).map(([key, value]) => [key, Buffer.from(value).toString()]));
}

t.test("ObjectReader.setPods() watches what pods refer to, and calls onChange for those pods", async (t) => {
  const at = await reading();
  at.api.put(path("configmaps", "a"), { metadata: { name: "a", namespace: "default" }, spec: undefined });
  at.reader.setPods([podOf("one", "a"), podOf("two", "a"), podOf("three", "late")]);
  await at.until(() => at.changed.length >= 2);
  t.same(at.changed.splice(0).sort(), ["one", "two"]);
  at.api.put(path("configmaps", "late"), { metadata: { name: "late", namespace: "default" } });
  await at.until(() => at.changed.includes("three"));
  at.changed.length = 0;
  at.api.delete(path("configmaps", "a"));
  await at.until(() => at.changed.length >= 2);
  t.equal(await at.reader.configMap("default", "a"), undefined);
});

t.test(
  "ObjectReader.configMap() reads watched objects without a request, also while the server is not reachable",
  async (t) => {
    const at = await reading();
    const stored = { metadata: { name: "a", namespace: "default" }, data: { k: "v" }, binaryData: { b: "Ynl0ZXM=" } };
    at.api.put(path("configmaps", "a"), stored);
    t.same(text(await at.reader.configMap("default", "a")), { k: "v", b: "bytes" }, "read before the watch");
    at.reader.setPods([podOf("one", "a")]);
    await at.until(() => at.changed.length > 0);
    const before = at.requests;
    at.leave();
    t.same(text(await at.reader.configMap("default", "a")), { k: "v", b: "bytes" });
    t.same(await at.reader.text.configMap("default", "a"), { k: "v" }, "environments see text only");
    t.equal(at.requests, before);
    await t.rejects(at.reader.configMap("default", "other"), /away/);
  },
);

t.test("ObjectReader.configMap() reads each time, or after the cache TTL, when objects are not watched", async (t) => {
  const put = (api: FakeApi, value: string): unknown =>
    api.put(path("configmaps", "a"), { metadata: { name: "a", namespace: "default" }, data: { value } } as never);
  const value = async ({ reader }: Awaited<ReturnType<typeof reading>>) =>
    text(await reader.configMap("default", "a"))?.value;

  const always = await reading(undefined, async () => 0);
  put(always.api, "one");
  always.reader.setPods([podOf("p", "a")]);
  t.equal(await value(always), "one");
  put(always.api, "two");
  t.equal(await value(always), "two");
  t.same(always.changed, [], "nothing is watched");
  always.leave();
  t.equal(await value(always), "two", "the cached object");

  const sometimes = await reading(undefined, async () => 60_000);
  put(sometimes.api, "one");
  sometimes.reader.setPods([podOf("p", "a")]);
  t.equal(await value(sometimes), "one");
  put(sometimes.api, "two");
  await sometimes.clock.advance(59_999);
  sometimes.reader.setPods([podOf("p", "a")]);
  t.equal(await value(sometimes), "one");
  await sometimes.clock.advance(1);
  t.equal(await value(sometimes), "two");
  put(sometimes.api, "three");
  sometimes.reader.setPods([podOf("p", "a"), podOf("new", "a")]);
  t.equal(await value(sometimes), "three", "a new pod gets the current object");
});

t.test("ObjectReader.setPods() drops what no pod refers to any more", async (t) => {
  const at = await reading();
  at.api.put(path("configmaps", "a"), { metadata: { name: "a", namespace: "default" } });
  at.reader.setPods([podOf("one", "a")]);
  await at.until(() => at.changed.length > 0);
  at.reader.setPods([]);
  at.changed.length = 0;
  const before = at.requests;
  at.api.put(path("configmaps", "a"), { metadata: { name: "a", namespace: "default" } });
  await at.reader.configMap("default", "a");
  t.equal(at.requests, before + 1, "read again");
  t.same(at.changed, []);
});

t.test("ObjectReader.text.services() waits for the first list, up to a timeout", async (t) => {
  const at = await reading((api) => {
    api.put(path("services", "db"), { metadata: { name: "db", namespace: "default" }, spec: {} });
  });
  const services = [...(await at.reader.text.services())];
  t.same(
    services.map(({ metadata }) => metadata?.name),
    ["db"],
  );
  const alone = await reading();
  alone.leave();
  let known: unknown;
  void alone.reader.text.services().then((each) => {
    known = [...each];
  });
  await alone.clock.advance(10_000);
  await alone.until(() => known !== undefined);
  t.same(known, []);
});

t.test("ObjectReader without an API server rejects reads", async (t) => {
  const options = {
    client: undefined,
    services: undefined,
    clock: new FakeClock(),
    random: seededRandom(1),
    log: silentLogger,
  };
  await using reader = new ObjectReader({ ...options, onChange: () => undefined });
  await t.rejects(reader.configMap("default", "a"), /the agent has no API server/);
  await t.rejects(reader.requestToken("default", "a", { spec: { audiences: [] } }), /no API server/);
  await t.rejects(reader.claim("default", "a"), /no API server/);
  t.same([...(await reader.text.services())], []);
});
