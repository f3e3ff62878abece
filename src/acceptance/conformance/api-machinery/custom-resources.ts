/** Custom resource definitions and their objects: discovery, defaults, status, webhooks, conversion, selectors. */
import assert from "node:assert/strict";
import { caBundle, startTestWebhook } from "../../../testing/admission/webhook-fixture.ts";
import { conversionResponse } from "../../../testing/apiserver/conversion-fixture.ts";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviours, conditionOf, type TestNamespace } from "../harness/behaviour.ts";
import { CRD_PATH, type DefinitionOptions, define, definitionOf, groupOf } from "./definitions.ts";
import { answerReviews } from "./webhook-program.ts";
import { register, ruleOf } from "./webhooks.ts";

const strings = (...names: readonly string[]) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
});
const dataOf = (...names: readonly string[]) => ({ type: "object", properties: { data: strings(...names) } });

async function denyObjects(at: TestNamespace): Promise<void> {
  await using definition = await define(at);
  await using hook = await startTestWebhook(answerReviews);
  const bad = { "webhook-e2e-test": "webhook-disallow" };
  const kept = await definition.create("kept", { data: bad });
  const rules = [ruleOf("widgets", ["CREATE", "UPDATE", "DELETE"], [groupOf(at)])];
  await using _ = await register(at, "Validating", hook, rules);
  await until("a denied object", async () => {
    const body = definition.object("probe", { data: bad });
    return (await at.api.send(`POST ${definition.objects}?dryRun=All`, { body })).status === 400;
  });
  const denied = /denied the request: the object is unwanted/;
  await at.refused(400, definition.create("other", { data: bad }), denied);
  const path = `${definition.objects}/kept`;
  await at.refused(400, at.api.put(path, { ...kept, data: { ...bad, more: "text" } }), denied);
  await at.refused(400, at.api.delete(path), denied);
  assert.ok(await at.api.get(path));
}

async function mutateStored(at: TestNamespace): Promise<void> {
  await using definition = await define(at, { versions: { v1: {}, v2: {} } });
  await using hook = await startTestWebhook(answerReviews);
  await using _ = await register(at, "Mutating", hook, [ruleOf("widgets", ["CREATE", "UPDATE"], [groupOf(at)])]);
  let count = 0;
  const created = await until("a mutated object", async () => {
    const object = await definition.create(`widget-${++count}`, { data: { "mutation-start": "no" } });
    return object.data["mutation-stage-1"] === "yes" ? object : undefined;
  });
  const swap = [0, 1].map((index) => ({ op: "replace", path: `/spec/versions/${index}/storage`, value: index === 1 }));
  await at.api.patch(definition.path, swap, "json");
  const path = `${definition.objects}/${created.metadata.name}`;
  const patched = await at.api.patch(path, { data: { "mutation-start": "no", "other-key": "value" } });
  assert.deepEqual(patched.data, {
    "mutation-start": "yes",
    "mutation-stage-1": "yes",
    "mutation-stage-2": "yes",
    "other-key": "value",
  });
}

async function mutateObjects(at: TestNamespace): Promise<void> {
  await using definition = await define(at);
  await using hook = await startTestWebhook(answerReviews);
  await using _ = await register(at, "Mutating", hook, [ruleOf("widgets", ["CREATE"], [groupOf(at)])]);
  let count = 0;
  const { data } = await until("a mutated object", async () => {
    const object = await definition.create(`widget-${++count}`, { data: { "mutation-start": "no" } });
    return object.data["mutation-start"] === "yes" ? object : undefined;
  });
  assert.deepEqual(data, { "mutation-start": "yes", "mutation-stage-1": "yes", "mutation-stage-2": "yes" });
}

async function readConverted(at: TestNamespace): Promise<void> {
  await using hook = await startConverter();
  await using definition = await define(at, converted(hook.url));
  await definition.create("one", { hostPort: "a:1" });
  const { apiVersion, host, port } = await at.api.get(`${definition.objectsOf("v2")}/one`);
  assert.deepEqual([apiVersion, host, port], [`${groupOf(at)}/v2`, "a", "1"]);
}

async function createAndDelete(at: TestNamespace): Promise<void> {
  const definition = await define(at);
  await definition.create("one");
  await at.api.delete(definition.path);
  await at.api.waitGone(definition.path);
  await until("the end of the resource", async () => (await at.api.send(`GET ${definition.objects}`)).status === 404);
}

async function mutatePruned(at: TestNamespace): Promise<void> {
  const schema = dataOf("mutation-start", "mutation-stage-1");
  await using definition = await define(at, { versions: { v1: { schema } } });
  await using hook = await startTestWebhook(answerReviews);
  await using _ = await register(at, "Mutating", hook, [ruleOf("widgets", ["CREATE"], [groupOf(at)])]);
  let count = 0;
  const created = await until("a mutated object", async () => {
    const object = await definition.create(`widget-${++count}`, { data: { "mutation-start": "no" } });
    return object.data["mutation-start"] === "yes" ? object : undefined;
  });
  assert.deepEqual(created.data, { "mutation-start": "yes", "mutation-stage-1": "yes" });
}

/** `hostPort` of v1 is `host` and `port` of v2. */
function convert({ hostPort, host, port, ...object }: Json, apiVersion: string): object {
  if (object.apiVersion === apiVersion) return { ...object, hostPort, host, port };
  if (apiVersion.endsWith("/v2")) {
    const [name, number] = hostPort.split(":");
    return { ...object, apiVersion, host: name, port: number };
  }
  return { ...object, apiVersion, hostPort: `${host}:${port}` };
}

async function startConverter() {
  return await startTestWebhook((received) => {
    const { objects, desiredAPIVersion } = received.review.request;
    return conversionResponse(
      received,
      objects.map((object: Json) => convert(object, desiredAPIVersion)),
    );
  });
}

const converted = (url: string): DefinitionOptions => ({
  versions: {
    v1: { schema: strings("hostPort"), selectableFields: [{ jsonPath: ".hostPort" }] },
    v2: { schema: strings("host", "port"), selectableFields: [{ jsonPath: ".host" }] },
  },
  conversion: {
    strategy: "Webhook",
    webhook: { conversionReviewVersions: ["v1"], clientConfig: { url, caBundle } },
  },
});

async function listMixed(at: TestNamespace): Promise<void> {
  await using hook = await startConverter();
  await using definition = await define(at, converted(hook.url));
  await definition.create("one", { hostPort: "a:1" });
  const swap = [0, 1].map((index) => ({ op: "replace", path: `/spec/versions/${index}/storage`, value: index === 1 }));
  await at.api.patch(definition.path, swap, "json");
  const second = definition.objectsOf("v2");
  await until("an object that is stored as v2", async () => {
    await at.api.send(`DELETE ${second}/two`);
    const before = hook.received.length;
    await at.api.post(second, definition.object("two", { host: "b", port: "2" }, "v2"));
    return hook.received.length === before;
  });
  const found = await at.api.list(second);
  assert.deepEqual(
    found.map(({ apiVersion, metadata, host, port }) => [apiVersion, metadata.name, host, port]),
    [
      [`${groupOf(at)}/v2`, "one", "a", "1"],
      [`${groupOf(at)}/v2`, "two", "b", "2"],
    ],
  );
  const first = await at.api.list(definition.objects);
  assert.deepEqual(
    first.map(({ hostPort }) => hostPort),
    ["a:1", "b:2"],
  );
}

async function selectFields(at: TestNamespace): Promise<void> {
  await using hook = await startConverter();
  await using definition = await define(at, converted(hook.url));
  const [first, second] = [definition.objects, definition.objectsOf("v2")];
  using watch1 = await at.api.watch(`${first}?fieldSelector=hostPort%3Dhost1:80`);
  using watch2 = await at.api.watch(`${second}?fieldSelector=host%3Dhost1`);
  const create = async (name: string, hostPort: string) => definition.create(name, { hostPort });
  await create("one", "host1:80");
  await create("two", "host1:8080");
  await create("three", "host2:80");
  const names = async (path: string): Promise<readonly string[]> =>
    (await at.api.list(path)).map(({ metadata }) => metadata.name);
  assert.deepEqual(await names(`${first}?fieldSelector=hostPort%3Dhost1:80`), ["one"]);
  assert.deepEqual(await names(`${second}?fieldSelector=host%3Dhost1`), ["one", "two"]);
  assert.deepEqual(await names(`${second}?fieldSelector=host!%3Dhost1`), ["three"]);
  await watch1.wait("ADDED", ({ metadata }) => metadata.name === "one");
  await watch2.wait("ADDED", ({ metadata }) => metadata.name === "two");
  await at.api.patch(`${first}/one`, { hostPort: "host3:80" });
  await watch1.wait("DELETED", ({ metadata }) => metadata.name === "one");
  await watch2.wait("DELETED", ({ metadata }) => metadata.name === "one");
  await at.api.patch(`${first}/three`, { hostPort: "host1:80" });
  await watch1.wait("ADDED", ({ metadata }) => metadata.name === "three");
  await watch2.wait("ADDED", ({ metadata }) => metadata.name === "three");
  await at.api.delete(`${second}?fieldSelector=host%3Dhost1`);
  await watch2.wait("DELETED", ({ metadata }) => metadata.name === "two");
  await watch1.wait("DELETED", ({ metadata }) => metadata.name === "three");
  assert.deepEqual(await names(first), ["one"]);
  for (const { object } of [...watch1.events]) assert.notEqual(object.metadata.name, "two");
}

async function watchDefinitions(at: TestNamespace): Promise<void> {
  const selector = `labelSelector=of%3D${at.name}`;
  using watch = await at.api.watch(`${CRD_PATH}?${selector}`);
  const body = definitionOf(at, { labels: { of: at.name } });
  await at.create(body);
  await watch.wait("ADDED");
  await watch.wait("MODIFIED", ({ status }) => conditionOf(status, "Established")?.status === "True");
  await at.api.patch(at.pathOfObject(body), { metadata: { annotations: { changed: "true" } } });
  await watch.wait("MODIFIED", ({ metadata }) => metadata.annotations?.changed === "true");
  await at.api.delete(at.pathOfObject(body));
  await watch.wait("DELETED");
}

async function changeStatus(at: TestNamespace): Promise<void> {
  await using definition = await define(at);
  const path = `${definition.path}/status`;
  const condition = (type: string) => ({ type, status: "True", reason: "E2E", message: `Set by ${type}` });
  const { status } = await at.api.get(path);
  assert.ok(conditionOf(status, "Established"));
  await at.api.update(path, (object) => object.status.conditions.push(condition("StatusUpdate")));
  assert.partialDeepStrictEqual(
    conditionOf((await at.api.get(path)).status, "StatusUpdate"),
    condition("StatusUpdate"),
  );
  const conditions = [...(await at.api.get(path)).status.conditions, condition("StatusPatched")];
  await at.api.patch(path, { status: { conditions } });
  assert.partialDeepStrictEqual(
    conditionOf((await at.api.get(definition.path)).status, "StatusPatched"),
    condition("StatusPatched"),
  );
}

async function listDefinitions(at: TestNamespace): Promise<void> {
  const plurals = Array.from({ length: 10 }, (_, index) => `widget${index}s`);
  for (const [index, plural] of plurals.entries()) {
    await at.create(definitionOf(at, { plural, kind: `Widget${index}`, labels: { of: at.name } }));
  }
  await using other = await define(at, { plural: "others", kind: "Other" });
  const selected = `${CRD_PATH}?labelSelector=of%3D${at.name}`;
  assert.deepEqual(
    (await at.api.list(selected)).map(({ spec }) => spec.names.plural),
    plurals,
  );
  await at.api.delete(selected);
  await until("the end of the selected definitions", async () => (await at.api.list(selected)).length === 0);
  assert.equal((await at.api.get(other.path)).metadata.deletionTimestamp, undefined);
}

async function setDefaults(at: TestNamespace): Promise<void> {
  const schemaWith = (a: object, b: object) => ({
    type: "object",
    properties: { a: { type: "string", ...a }, b: { type: "string", ...b } },
  });
  await using definition = await define(at, { versions: { v1: { schema: schemaWith({}, {}) } } });
  const setSchema = (a: object, b: object): Promise<Json> =>
    at.api.patch(
      definition.path,
      [{ op: "replace", path: "/spec/versions/0/schema/openAPIV3Schema", value: schemaWith(a, b) }],
      "json",
    );
  const path = (name: string): string => `${definition.objects}/${name}`;
  await definition.create("old");
  assert.equal((await at.api.get(path("old"))).a, undefined);
  await setSchema({ default: "A" }, {});
  await at.wait(path("old"), "the default of a", ({ a }) => a === "A");
  assert.equal((await definition.create("new")).a, "A");
  await setSchema({}, { default: "B" });
  await at.wait(path("new"), "the default of b", ({ b }) => b === "B");
  assert.equal((await at.api.get(path("new"))).a, "A", "the old default was stored");
  assert.equal((await at.api.get(path("old"))).a, undefined, "it was not stored at a read");
}

async function discoverDefinitions(at: TestNamespace): Promise<void> {
  const group = "apiextensions.k8s.io";
  const { groups } = await at.api.get("/apis");
  const has = ({ versions }: Json): boolean => versions.some(({ version }: Json) => version === "v1");
  assert.ok(has(groups.find(({ name }: Json) => name === group)));
  assert.ok(has(await at.api.get(`/apis/${group}`)));
  const { resources } = await at.api.get(`/apis/${group}/v1`);
  assert.ok(resources.some(({ name }: Json) => name === "customresourcedefinitions"));
}

async function discoverAggregated(at: TestNamespace): Promise<void> {
  await using _ = await define(at);
  const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  await until("the definition in aggregated discovery", async () => {
    const { status, headers, json } = await at.api.send("GET /apis", { headers: { accept } });
    assert.equal(status, 200);
    assert.match(headers["content-type"] ?? "", /as=APIGroupDiscoveryList/);
    const group = json.items.find(({ metadata }: Json) => metadata.name === groupOf(at));
    return group?.versions[0].resources.some(({ resource }: Json) => resource === "widgets");
  });
}

export const customResources: Behaviours = {
  "AdmissionWebhook should be able to deny custom resource creation, update and deletion": denyObjects,
  "AdmissionWebhook should mutate custom resource with different stored version": mutateStored,
  "AdmissionWebhook should mutate custom resource": mutateObjects,
  "CustomResourceConversionWebhook should be able to convert from CR v1 to CR v2": readConverted,
  "CustomResourceDefinition resources Simple CustomResourceDefinition creating/deleting custom resource definition objects works":
    createAndDelete,
  "AdmissionWebhook should mutate custom resource with pruning": mutatePruned,
  "AggregatedDiscovery should support raw aggregated discovery request for CRDs": discoverAggregated,
  "CustomResourceConversionWebhook should be able to convert a non homogeneous list of CRs": listMixed,
  "CustomResourceDefinition Watch CustomResourceDefinition Watch watch on custom resource definition objects":
    watchDefinitions,
  "CustomResourceDefinition resources Simple CustomResourceDefinition getting/updating/patching custom resource definition status sub-resource works":
    changeStatus,
  "CustomResourceDefinition resources Simple CustomResourceDefinition listing custom resource definition objects works":
    listDefinitions,
  "CustomResourceDefinition resources custom resource defaulting for requests and from storage works": setDefaults,
  "CustomResourceDefinition resources should include custom resource definition resources in discovery documents":
    discoverDefinitions,
  "CustomResourceFieldSelectors CustomResourceFieldSelectors MUST list and watch custom resources matching the field selector":
    selectFields,
};
