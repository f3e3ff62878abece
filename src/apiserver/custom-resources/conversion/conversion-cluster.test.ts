/** Conversion webhooks with restarts, uncached storage, services, admission webhooks and controllers. */
import { join } from "node:path";
import t from "tap";
import { createCustomKind } from "../../../api/apiextensions/custom-resource/kind.ts";
import { customResourceDefinitionKind } from "../../../api/apiextensions/custom-resource-definition/kind.ts";
import type { CustomResourceDefinition } from "../../../api/apiextensions/custom-resource-definition/schema.ts";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import type { ApiObject } from "../../../api/kind.ts";
import { createCa, issueCertificate } from "../../../auth/pki/certificate-authority.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { caBundle, startTestWebhook } from "../../../testing/admission/webhook-fixture.ts";
import {
  convertRoutes,
  ROUTES,
  route,
  routes,
  startConversionWebhook,
  type Version,
} from "../../../testing/apiserver/conversion-fixture.ts";
import { createDefinition, isEstablished, persistentStore } from "../../../testing/apiserver/extensions-fixture.ts";
import { startInMemoryCluster, waitForObject } from "../../../testing/apiserver/in-memory-cluster.ts";
import { readLines, startTestServer } from "../../../testing/apiserver/server-fixture.ts";
import { defaultConfig } from "../../config/default-config.ts";

const MERGE = { "content-type": "application/merge-patch+json" };
const isGone = (object: ApiObject | undefined): boolean => object === undefined;

function at(version: Version, rest = ""): string {
  return `${ROUTES}/${version}/namespaces/default/routes${rest}`;
}

t.test("conversion webhooks are called again after a restart", async (t) => {
  const { hook } = await startConversionWebhook();
  await using _ = hook;
  const lasting = persistentStore();
  {
    await using f = await startTestServer({}, { store: lasting });
    await createDefinition(f, routes(hook));
    await f.send(`POST ${at("v2")}`, { body: route("one", { host: "a", port: "1" }) });
  }
  await using f = await startTestServer({}, { store: lasting });
  t.match((await f.send(`GET ${at("v2", "/one")}`)).json.spec, { host: "a", port: "1" });
  t.match((await f.send(`GET ${at("v1", "/one")}`)).json.spec, { hostPort: "a:1" });
});

t.test("conversion webhooks receive the group name of the definition", async (t) => {
  const { hook } = await startConversionWebhook();
  await using _ = hook;
  await using f = await startTestServer();
  const definition = JSON.parse(JSON.stringify(routes(hook)).replaceAll("stable.example.com", "stable.k8s.io"));
  definition.metadata.annotations = { "api-approved.kubernetes.io": "unapproved, a test" };
  // The storage version is not served.
  definition.spec.versions[0].served = false;
  await createDefinition(f, definition);
  const path = (group: string): string => `/apis/${group}/v2/namespaces/default/routes`;
  const body = { ...route("one", { host: "a", port: "1" }), apiVersion: "stable.svc.io/v2" };
  t.equal((await f.send(`POST ${path("stable.svc.io")}`, { body })).status, 201);
  const { json } = await f.send(`GET ${path("stable.k8s.io")}/one`);
  t.match(json, { apiVersion: "stable.k8s.io/v2", spec: { host: "a" } });
  t.equal((await f.send(`GET ${path("stable.k8s.io").replace("v2", "v1")}`)).status, 404);
  const versions = hook.received.map(({ review: { request } }) => [
    request.objects[0].apiVersion,
    request.desiredAPIVersion,
  ]);
  const [v1, v2] = ["stable.k8s.io/v1", "stable.k8s.io/v2"];
  t.same(versions, [
    [v2, v1],
    [v1, v2],
  ]);
});

t.test("conversion webhooks convert uncached reads and objects that are stored in YAML", async (t) => {
  const { hook } = await startConversionWebhook();
  await using _ = hook;
  const storage = { ...defaultConfig.storage, uncached: "all", mediaType: "application/yaml" } as const;
  await using f = await startTestServer({ storage });
  await createDefinition(f, routes(hook));
  const watch = readLines(await f.open(`GET ${at("v2")}?watch=true`), 3);
  await f.send(`POST ${at("v1")}`, { body: route("one", { hostPort: "a:1" }) });
  await f.send(`PATCH ${at("v2", "/one")}`, { body: { spec: { port: "2" } }, headers: MERGE });
  t.match((await f.send(`GET ${at("v1")}`)).json.items, [{ spec: { hostPort: "a:2" } }]);
  t.match((await f.send(`GET ${at("v2")}`)).json.items, [{ spec: { host: "a", port: "2" } }]);
  await f.send(`DELETE ${at("v1", "/one")}`);
  const spec = { host: "a", port: "2" };
  t.match(await watch, [
    { type: "ADDED", object: { spec: { host: "a", port: "1" } } },
    { type: "MODIFIED", object: { spec } },
    { type: "DELETED", object: { spec } },
  ]);
});

t.test("conversion webhooks are called through their service, with the proxy client certificate", async (t) => {
  await using hook = await startTestWebhook(convertRoutes, ["hooks.default.svc"]);
  const now = systemClock.now();
  const issued = { commonName: "front", usages: ["client"], days: 1 } as const;
  const { cert, key } = await issueCertificate(await createCa("clients", 1, now), issued, now);
  const directory = t.testdir({ "front.crt": cert, "front.key": key });
  const proxyClientCertificate = { certFile: join(directory, "front.crt"), keyFile: join(directory, "front.key") };
  await using f = await startTestServer({ proxyClientCertificate });
  await f.send("POST /api/v1/namespaces/default/services", {
    body: { metadata: { name: "hooks" }, spec: { type: "ExternalName", externalName: "127.0.0.1" } },
  });
  const service = { namespace: "default", name: "hooks", path: "/convert", port: hook.port };
  await createDefinition(f, routes(hook, "v1", { clientConfig: { service, caBundle } }));
  await f.send(`POST ${at("v1")}`, { body: route("one", { hostPort: "a:1" }) });
  t.match((await f.send(`GET ${at("v2", "/one")}`)).json.spec, { host: "a" });
  t.equal(hook.received[0]?.path, "/convert?timeout=30s");
  t.equal(hook.received[0]?.headers.host, `hooks.default.svc:${hook.port}`);
  t.equal(hook.received[0]?.client, "front");
});

t.test("admission webhooks receive custom resources in the version of their rules", async (t) => {
  const { hook } = await startConversionWebhook();
  await using _ = hook;
  await using guard = await startTestWebhook(({ review }) => {
    const { uid, object } = review.request;
    const patch = Buffer.from(JSON.stringify([{ op: "replace", path: "/spec/host", value: `${object.spec.host}x` }]));
    const response = { uid, allowed: true, patchType: "JSONPatch", patch: patch.toString("base64") };
    return { ...review, request: undefined, response };
  });
  await using f = await startTestServer();
  await createDefinition(f, routes(hook));
  const rules = [
    { apiGroups: ["stable.example.com"], apiVersions: ["v2"], operations: ["CREATE"], resources: ["routes"] },
  ];
  const more = { sideEffects: "None", admissionReviewVersions: ["v1"], clientConfig: { url: guard.url, caBundle } };
  const body = { metadata: { name: "guard" }, webhooks: [{ name: "a.example.com", rules, ...more }] };
  await f.send("POST /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", { body });
  const { json } = await f.send(`POST ${at("v1")}`, { body: route("one", { hostPort: "a:1" }) });
  t.match(json.spec, { hostPort: "ax:1" });
  t.match(guard.received[0]?.review.request, {
    kind: { version: "v2" },
    requestKind: { version: "v1" },
    object: { apiVersion: "stable.example.com/v2", spec: { host: "a", port: "1" } },
  });
});

t.test("garbage and namespaces are collected through conversion webhooks", async (t) => {
  const { hook } = await startConversionWebhook();
  t.teardown(async () => await hook[Symbol.asyncDispose]());
  const client = await startInMemoryCluster(t, { embeddedControllers: ["garbage-collector", "namespace"] });
  const serve = async (storage: Version): Promise<CustomResourceDefinition> => {
    const wanted = routes(hook, storage) as unknown as CustomResourceDefinition;
    const name = "routes.stable.example.com";
    const known = await client.get(customResourceDefinitionKind, { name }).catch(() => undefined);
    if (known === undefined) await client.create(customResourceDefinitionKind, wanted);
    else await client.update(customResourceDefinitionKind, { ...known, spec: wanted.spec });
    const isServed = (one: CustomResourceDefinition | undefined): boolean =>
      isEstablished(one) && one?.status?.storedVersions?.includes(storage) === true;
    await waitForObject(client, customResourceDefinitionKind, name, undefined, isServed);
    return wanted;
  };
  const first = createCustomKind(await serve("v1"), "v1");
  await client.create(namespaceKind, { metadata: { name: "shop" } });
  const owner = await client.create(configMapKind, { metadata: { name: "owner", namespace: "shop" } });
  const reference = { apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: owner.metadata?.uid ?? "" };
  const make = async (name: string, ownerReferences: readonly (typeof reference)[]): Promise<void> => {
    const { metadata, spec } = route(name, { hostPort: "a:1" });
    const object = { metadata: { ...metadata, namespace: "shop", ownerReferences }, spec };
    await client.create(first, object as ApiObject);
  };
  await make("owned", [reference]);
  await make("free", []);
  const later = createCustomKind(await serve("v2"), "v2");
  await client.delete(configMapKind, { name: "owner", namespace: "shop" });
  t.ok(
    isGone(await waitForObject(client, later, "owned", "shop", isGone)),
    "a dependent that is stored as v1 is deleted",
  );
  await client.delete(namespaceKind, { name: "shop" });
  t.ok(isGone(await waitForObject(client, namespaceKind, "shop", undefined, isGone)));
  t.same((await client.list(later, { namespace: "shop" })).items, []);
});
