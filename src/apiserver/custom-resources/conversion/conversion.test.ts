/** Custom resources whose versions a webhook converts, with a whole server and TLS. */
import t from "tap";
import { createMemoryStore } from "../../../storage/memory.ts";
import { prefixRange } from "../../../storage/store.ts";
import {
  ROUTES,
  route,
  routes,
  startConversionWebhook,
  type Version,
} from "../../../testing/apiserver/conversion-fixture.ts";
import { CRDS, createDefinition, waitForResponse } from "../../../testing/apiserver/extensions-fixture.ts";
import { readLines, startTestServer, type TestServer } from "../../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";

const CRD = `${CRDS}/routes.stable.example.com`;
const MERGE = { "content-type": "application/merge-patch+json" };
const APPLY = { "content-type": "application/apply-patch+yaml" };

function at(version: Version, rest = ""): string {
  return `${ROUTES}/${version}/namespaces/default/routes${rest}`;
}

/** Changes the definition, and waits until the server serves it. */
async function redefine(f: TestServer, definition: ReturnType<typeof routes>, isServed: () => Promise<boolean>) {
  const { json: before } = await f.send(`GET ${CRD}`);
  const { status, text } = await f.send(`PUT ${CRD}`, { body: { ...before, spec: definition.spec } });
  if (status !== 200) throw new Error(text);
  await waitForResponse(f, `GET ${CRD}`, () => true);
  for (let i = 0; i < 200; i++) if (await isServed()) return;
  throw new Error("the changed definition is not served");
}

t.test("each version reads and writes the same objects through the conversion webhook", async (t) => {
  const { hook } = await startConversionWebhook();
  await using _ = hook;
  await using f = await startTestServer();
  await createDefinition(f, routes(hook));

  const one = await f.send(`POST ${at("v1")}`, { body: route("one", { hostPort: "a:1" }) });
  t.match([one.status, one.json.spec], [201, { hostPort: "a:1" }]);
  t.equal(hook.received.length, 0, "objects of the storage version are not converted");
  t.match((await f.send(`GET ${at("v2", "/one")}`)).json, {
    apiVersion: "stable.example.com/v2",
    spec: { host: "a", port: "1" },
  });
  t.equal(hook.received[0]?.path, "/hook?timeout=30s");
  t.match(hook.received[0]?.review, {
    kind: "ConversionReview",
    apiVersion: "apiextensions.k8s.io/v1",
    request: {
      desiredAPIVersion: "stable.example.com/v2",
      objects: [{ apiVersion: "stable.example.com/v1", kind: "Route", metadata: { name: "one" } }],
    },
  });
  const calls = hook.received.length;
  t.equal((await f.send(`GET ${at("v2", "/one")}`)).status, 200);
  t.equal(hook.received.length, calls, "converted objects are cached");

  const two = await f.send(`POST ${at("v2")}`, { body: route("two", { host: "b", port: "2" }) });
  t.match([two.status, two.json.spec], [201, { host: "b", port: "2", tls: "off" }]);
  t.match((await f.send(`GET ${at("v1", "/two")}`)).json.spec, { hostPort: "b:2", tls: "off" });
  const { items } = (await f.send(`GET ${at("v2")}`)).json;
  t.match(items, [{ spec: { host: "a" } }, { spec: { host: "b" } }]);
  t.equal((await f.send(`GET ${at("v2")}?fieldSelector=spec.host%3Db`)).json.items.length, 1);
  t.equal((await f.send(`GET ${at("v1")}?fieldSelector=spec.hostPort%3Db:2`)).json.items.length, 1);
  const dry = await f.send(`POST ${at("v2")}?dryRun=All`, { body: route("dry", { host: "d", port: "4" }) });
  t.match([dry.status, dry.json.spec], [201, { host: "d", port: "4" }]);

  const patched = await f.send(`PATCH ${at("v2", "/one")}`, { body: { spec: { port: "9" } }, headers: MERGE });
  t.match(patched.json.spec, { host: "a", port: "9" });
  t.match((await f.send(`GET ${at("v1", "/one")}`)).json, { metadata: { generation: 2 }, spec: { hostPort: "a:9" } });
  const reported = await f.send(`PATCH ${at("v2", "/one/status")}`, { body: { status: { ready: 3 } }, headers: MERGE });
  t.match(reported.json, { status: { ready: 3 }, metadata: { generation: 2 } });
  const scaled = await f.send(`PATCH ${at("v2", "/one/scale")}`, { body: { spec: { replicas: 4 } }, headers: MERGE });
  t.match(scaled.json, { kind: "Scale", spec: { replicas: 4 }, status: { replicas: 3 } });
  const { json: read } = await f.send(`GET ${at("v1", "/one")}`);
  t.match(read, { spec: { hostPort: "a:9", replicas: 4 }, status: { ready: 3 } });
  const again = await f.send(`PUT ${at("v2", "/one")}`, { body: (await f.send(`GET ${at("v2", "/one")}`)).json });
  t.equal(
    again.json.metadata.resourceVersion,
    read.metadata.resourceVersion,
    "an update without changes is not written",
  );
  t.equal((await f.send(`DELETE ${at("v2", "/one")}`)).status, 200);
  t.equal((await f.send(`GET ${at("v1", "/one")}`)).status, 404);
  t.equal((await f.send(`DELETE ${at("v2")}`)).status, 200);
  t.same((await f.send(`GET ${at("v1")}`)).json.items, []);
});

t.test("conversion webhooks convert watch events", async (t) => {
  const { hook } = await startConversionWebhook();
  await using _ = hook;
  await using f = await startTestServer();
  await createDefinition(f, routes(hook));
  const watches = (["v1", "v2"] as const).map(async (version) => {
    return await readLines(await f.open(`GET ${at(version)}?watch=true`), 3);
  });
  await f.send(`POST ${at("v1")}`, { body: route("one", { hostPort: "a:1" }) });
  await f.send(`PATCH ${at("v2", "/one")}`, { body: { spec: { port: "2" } }, headers: MERGE });
  await f.send(`DELETE ${at("v1", "/one")}`);
  const [old, recent] = await Promise.all(watches);
  const types = [{ type: "ADDED" }, { type: "MODIFIED" }, { type: "DELETED" }];
  t.match(old, types);
  t.match(recent, types);
  t.match(old, [{ object: { spec: { hostPort: "a:1" } } }, { object: { spec: { hostPort: "a:2" } } }]);
  t.match(recent, [{ object: { spec: { host: "a", port: "1" } } }, { object: { spec: { host: "a", port: "2" } } }]);
  t.match(recent?.[2], { object: { apiVersion: "stable.example.com/v2", spec: { host: "a", port: "2" } } });
});

t.test("conversion webhooks convert the objects of a list in batches", async (t) => {
  const { hook } = await startConversionWebhook();
  await using _ = hook;
  await using f = await startTestServer();
  await createDefinition(f, routes(hook));
  const names = Array.from({ length: 1001 }, (_, i) => `r${i}`);
  for (const name of names) await f.send(`POST ${at("v1")}`, { body: route(name, { hostPort: `${name}:1` }) });
  t.equal((await f.send(`GET ${at("v2")}`)).json.items.length, 1001);
  const counts = hook.received.map(({ review }) => review.request.objects.length);
  t.same(counts, [500, 500, 1]);
  t.equal((await f.send(`GET ${at("v2")}?limit=2`)).json.items[1].spec.host, "r1");
});

t.test("appliers manage fields in different versions of a converted resource", async (t) => {
  const { hook } = await startConversionWebhook();
  await using _ = hook;
  await using f = await startTestServer();
  await createDefinition(f, routes(hook));
  const applied = async (who: string, version: Version, spec: object, query = "") =>
    await f.send(`PATCH ${at(version, "/one")}?fieldManager=${who}${query}`, {
      body: route("one", spec, version),
      headers: APPLY,
    });
  t.equal((await applied("old", "v1", { hostPort: "a:1" })).status, 201);
  t.match((await applied("new", "v2", { host: "a", port: "1", tls: "on" }, "&force=true")).json, {
    spec: { host: "a", port: "1", tls: "on" },
    metadata: {
      managedFields: [
        { manager: "new", operation: "Apply", apiVersion: "stable.example.com/v2" },
        { manager: "old", operation: "Apply", apiVersion: "stable.example.com/v1" },
      ],
    },
  });
  const conflict = await applied("new", "v2", { host: "b", port: "1" });
  t.match([conflict.status, conflict.json.details], [409, { causes: [{ field: ".spec.hostPort" }] }]);
  const forced = await applied("new", "v2", { host: "b", port: "1" }, "&force=true");
  t.match(forced.json, { spec: { host: "b", port: "1" }, metadata: { managedFields: [{ manager: "new" }] } });
  t.match((await f.send(`GET ${at("v1", "/one")}`)).json.spec, { hostPort: "b:1" });
});

t.test("objects are converted after the storage version changes", async (t) => {
  const { hook } = await startConversionWebhook();
  await using _ = hook;
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  await using f = await startTestServer({}, { store });
  await createDefinition(f, routes(hook));
  await f.send(`POST ${at("v1")}`, { body: route("one", { hostPort: "a:1" }) });
  const stored = async () => {
    const { items } = await store.list(prefixRange("/registry/stable.example.com/routes/"));
    return items.map(({ value }) => JSON.parse(Buffer.from(value).toString()));
  };
  t.match(await stored(), [{ apiVersion: "stable.example.com/v1" }]);
  const opened = await f.open(`GET ${at("v2")}?watch=true`);
  const watch = readLines(opened, 100);
  await redefine(f, routes(hook, "v2"), async () => {
    const { json } = await f.send(`GET ${CRD}`);
    return json.status.storedVersions.length === 2;
  });
  t.match(
    await watch,
    [{ type: "ADDED", object: { spec: { host: "a" } } }],
    "the watch ends, and its client reconnects",
  );
  const { json: read } = await f.send(`GET ${at("v2", "/one")}`);
  t.match(read.spec, { host: "a", port: "1" });
  t.match(await stored(), [{ apiVersion: "stable.example.com/v1" }], "a read does not migrate the object");
  const { json: written } = await f.send(`PUT ${at("v2", "/one")}`, { body: read });
  t.match(await stored(), [{ apiVersion: "stable.example.com/v2", spec: { host: "a", port: "1" } }]);
  t.not(written.metadata.resourceVersion, read.metadata.resourceVersion, "an update without changes does");
  const { json: again } = await f.send(`PUT ${at("v2", "/one")}`, { body: written });
  t.equal(again.metadata.resourceVersion, written.metadata.resourceVersion, "only once");
});
