/** Admission webhooks that deny, mutate, match by conditions, hang, and are listed and changed. */
import assert from "node:assert/strict";
import {
  caBundle,
  patchResponse,
  type ReceivedReview,
  reviewResponse,
  startTestWebhook,
  type TestWebhook,
} from "../../../testing/admission/webhook-fixture.ts";
import { until } from "../../../testing/std/until.ts";
import type { Json } from "../harness/api.ts";
import {
  type Behaviour,
  type Behaviours,
  containerOf,
  PAUSE,
  podOf,
  type TestNamespace,
} from "../harness/behaviour.ts";
import { answerReviews, SLOW_MS } from "./webhook-program.ts";

const VERSION = "admissionregistration.k8s.io/v1";
type Type = "Validating" | "Mutating";

export const ruleOf = (resource: string, operations: readonly string[] = ["CREATE"], apiGroups = [""]) => ({
  apiGroups,
  apiVersions: ["*"],
  operations,
  resources: [resource],
});

/** A webhook for the objects of the test's namespace. */
function hookOf(at: TestNamespace, type: Type, hook: TestWebhook, rules: readonly object[], more: object = {}) {
  return {
    name: "hook.example.com",
    clientConfig: { url: `${hook.url}/${type === "Mutating" ? "mutate" : "validate"}`, caBundle },
    rules,
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    namespaceSelector: { matchLabels: { conformance: at.name } },
    ...more,
  };
}

export async function register(
  at: TestNamespace,
  type: Type,
  hook: TestWebhook,
  rules: readonly object[],
  { name = at.name, ...more }: { readonly name?: string; readonly [field: string]: unknown } = {},
) {
  const configuration = {
    apiVersion: VERSION,
    kind: `${type}WebhookConfiguration`,
    metadata: { name, labels: { "webhooks-of": at.name } },
    webhooks: [hookOf(at, type, hook, rules, more)],
  };
  await at.create(configuration);
  const path = at.pathOfObject(configuration);
  return { path, [Symbol.asyncDispose]: async () => void (await at.api.send(`DELETE ${path}`)) };
}

const mapOf = (name: string, data: object = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });
const mutated = (map: Json): boolean => map.data["mutation-start"] === "yes";

let count = 0;

/** Whether webhooks mutate or deny a ConfigMap that is created now. */
async function isAffected(at: TestNamespace): Promise<boolean> {
  const response = await at.api.send(`POST ${at.path("configmaps")}`, {
    body: mapOf(`probe-${++count}`, { "mutation-start": "no", "webhook-e2e-test": "webhook-disallow" }),
  });
  if (response.status === 403 || response.status === 400) return true;
  assert.equal(response.status, 201, response.text);
  return mutated(response.json);
}

async function waitForEffect(at: TestNamespace, expected: boolean): Promise<void> {
  await until(`webhooks ${expected ? "that affect" : "without effect on"} ConfigMaps`, async () => {
    return (await isAffected(at)) === expected;
  });
}

/** Ten webhooks are listed by label, have effect, and have none after the deletion of the collection. */
function testListing(type: Type): Behaviour {
  return async (at) => {
    await using hook = await startTestWebhook(answerReviews);
    for (let index = 0; index < 10; index++) {
      await register(at, type, hook, [ruleOf("configmaps")], { name: `${at.name}-${index}` });
    }
    const path = `${at.pathOf(VERSION, `${type}WebhookConfiguration`)}?labelSelector=webhooks-of%3D${at.name}`;
    assert.equal((await at.api.list(path)).length, 10);
    await waitForEffect(at, true);
    await at.api.delete(path);
    assert.deepEqual(await at.api.list(path), []);
    await waitForEffect(at, false);
  };
}

/** An update excludes creations, a patch includes them again. */
function testChanges(type: Type): Behaviour {
  return async (at) => {
    await using hook = await startTestWebhook(answerReviews);
    await using registered = await register(at, type, hook, [ruleOf("configmaps")]);
    await waitForEffect(at, true);
    await at.api.update(registered.path, ({ webhooks }) => {
      webhooks[0].rules[0].operations = ["UPDATE"];
    });
    await waitForEffect(at, false);
    const patch = [{ op: "replace", path: "/webhooks/0/rules/0/operations", value: ["CREATE"] }];
    await at.api.patch(registered.path, patch, "json");
    await waitForEffect(at, true);
  };
}

const excludeLeases = { name: "exclude-leases", expression: "request.resource.resource != 'leases'" };
const excludeNodes = { name: "exclude-nodes", expression: "request.resource.resource != 'nodes'" };

/** Two webhooks, of which the second sees what the first has added. */
async function mutateTwice(at: TestNamespace): Promise<void> {
  const add = (key: string, when: string) => (received: ReceivedReview) =>
    received.review.request.object.data?.[when] === "yes"
      ? patchResponse(received, [{ op: "add", path: `/data/${key}`, value: "yes" }])
      : reviewResponse(received, {});
  await using first = await startTestWebhook(add("mutation-stage-1", "mutation-start"));
  await using second = await startTestWebhook(add("mutation-stage-2", "mutation-stage-1"));
  await using _ = await register(at, "Mutating", first, [ruleOf("configmaps")], { name: `${at.name}-1` });
  await using __ = await register(at, "Mutating", second, [ruleOf("configmaps")], { name: `${at.name}-2` });
  const { data } = await until("a ConfigMap that both webhooks have changed", async () => {
    const map = await at.create(mapOf(`map-${++count}`, { "mutation-start": "yes" }));
    return map.data["mutation-stage-2"] === "yes" ? map : undefined;
  });
  assert.deepEqual(data, { "mutation-start": "yes", "mutation-stage-1": "yes", "mutation-stage-2": "yes" });
}

/** Webhooks for webhook configurations have no effect on those. */
async function spareConfigurations(at: TestNamespace): Promise<void> {
  const seen: string[] = [];
  await using hook = await startTestWebhook((received) => {
    seen.push(received.review.request.name);
    return reviewResponse(received, { allowed: false });
  });
  const rules = ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"].map((resource) =>
    ruleOf(resource, ["CREATE", "DELETE"], ["admissionregistration.k8s.io"]),
  );
  const everywhere = { namespaceSelector: {}, failurePolicy: "Fail" };
  await using _ = await register(at, "Validating", hook, rules, { name: `${at.name}-deny`, ...everywhere });
  await using __ = await register(at, "Mutating", hook, rules, { name: `${at.name}-mutate`, ...everywhere });
  for (const type of ["Validating", "Mutating"] as const) {
    for (let round = 0; round < 10; round++) {
      const { path } = await register(at, type, hook, [ruleOf("configmaps")], { name: `${at.name}-probe` });
      const { metadata, webhooks } = await at.api.get(path);
      assert.deepEqual([Object.keys(metadata.labels), webhooks.length], [["webhooks-of"], 1]);
      await at.api.delete(path);
      await at.api.waitGone(path);
    }
  }
  assert.deepEqual(seen, []);
}

async function failClosed(at: TestNamespace): Promise<void> {
  // Without the CA the certificate is of an unknown authority.
  await using hook = await startTestWebhook(answerReviews);
  const clientConfig = { url: hook.url };
  await using _ = await register(at, "Validating", hook, [ruleOf("configmaps")], {
    clientConfig,
    failurePolicy: "Fail",
  });
  await until("a refused ConfigMap", async () => {
    return (await at.api.send(`POST ${at.path("configmaps")}?dryRun=All`, { body: mapOf("probe") })).status === 500;
  });
  await at.refused(500, at.create(mapOf("foo")), /failed calling webhook|failed to call webhook/);
  assert.deepEqual(hook.received, []);
}

async function rejectValidatingCondition(at: TestNamespace): Promise<void> {
  await using hook = await startTestWebhook(answerReviews);
  const matchConditions = [{ name: "invalid", expression: "!= request.resource" }];
  await at.refused(
    422,
    register(at, "Validating", hook, [ruleOf("configmaps")], { matchConditions }),
    /compilation failed/,
  );
}

function testMatchConditions(type: Type): Behaviour {
  return async (at) => {
    await using hook = await startTestWebhook(answerReviews);
    const more = { matchConditions: [excludeLeases] };
    await using registered = await register(at, type, hook, [ruleOf("configmaps")], more);
    const conditions = async () => (await at.api.get(registered.path)).webhooks[0].matchConditions;
    assert.deepEqual(await conditions(), [excludeLeases]);
    await at.api.update(registered.path, ({ webhooks }) => {
      webhooks[0].matchConditions = [excludeNodes, excludeLeases];
    });
    assert.deepEqual(await conditions(), [excludeNodes, excludeLeases]);
  };
}

async function rejectCondition(at: TestNamespace): Promise<void> {
  await using hook = await startTestWebhook(answerReviews);
  const matchConditions = [{ name: "invalid", expression: "!= request.resource" }];
  const request = register(at, "Mutating", hook, [ruleOf("configmaps")], { matchConditions });
  await at.refused(422, request, /compilation failed/);
}

/** Denied requests do not say which of two causes they have; the message does. */
const denied = (at: TestNamespace, request: Promise<unknown>, why: RegExp) => at.refused(400, request, why);
const DENIED = /admission webhook "hook\.example\.com" denied the request: .*unwanted/;

async function denyAttaching(at: TestNamespace): Promise<void> {
  await using hook = await startTestWebhook(answerReviews);
  await using _ = await register(at, "Validating", hook, [ruleOf("pods/attach", ["CONNECT"])]);
  await at.runPod(podOf("attached", PAUSE));
  await until("a denied attachment", async () => {
    const { code, stderr } = await at.kubectl(["attach", "attached", "--pod-running-timeout=30s"]);
    return code !== 0 && /denied the request: attaching is unwanted/.test(stderr);
  });
}

async function denyPodsAndMaps(at: TestNamespace): Promise<void> {
  await using hook = await startTestWebhook(answerReviews);
  const rules = [ruleOf("pods"), ruleOf("configmaps", ["CREATE", "UPDATE"])];
  const allowed = { matchExpressions: [{ key: "skip-webhooks", operator: "DoesNotExist" }] };
  const namespaceSelector = { matchLabels: { conformance: at.name }, ...allowed };
  await using _ = await register(at, "Validating", hook, rules, { namespaceSelector, timeoutSeconds: 2 });
  await waitForEffect(at, true);
  await denied(
    at,
    at.create(podOf("disallowed", PAUSE, { labels: { "webhook-e2e-test": "webhook-disallow" } })),
    DENIED,
  );
  await at.refused(500, at.create(podOf("to-be-hung", PAUSE)), /failed to call webhook: .*(deadline|timeout)/i);
  const bad = { "webhook-e2e-test": "webhook-disallow" };
  await denied(at, at.create(mapOf("bad", bad)), DENIED);
  const good = mapOf("good", { "admission-status": "ok" });
  const path = at.pathOfObject(good);
  await at.create(good);
  await denied(
    at,
    at.api.update(path, (map) => Object.assign(map.data, bad)),
    DENIED,
  );
  await denied(at, at.api.patch(path, { data: bad }), DENIED);
  await at.api.patch(`/api/v1/namespaces/${at.name}`, { metadata: { labels: { "skip-webhooks": "yes" } } });
  await until("a ConfigMap in the exempted namespace", async () => {
    return (await at.api.send(`POST ${at.path("configmaps")}`, { body: mapOf("bad", bad) })).status === 201;
  });
}

async function denyDefinitions(at: TestNamespace): Promise<void> {
  await using hook = await startTestWebhook(answerReviews);
  const group = `${at.name}.example.com`;
  const more = {
    namespaceSelector: {},
    matchConditions: [{ name: "of-this-test", expression: `object.spec.group == '${group}'` }],
  };
  const rules = [ruleOf("customresourcedefinitions", ["CREATE"], ["apiextensions.k8s.io"])];
  await using _ = await register(at, "Validating", hook, rules, more);
  const definition = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `widgets.${group}`, labels: { "webhook-e2e-test": "webhook-disallow" } },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "widgets", kind: "Widget" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }],
    },
  };
  await until("a denied definition", async () => {
    const dryRun = `${at.pathOf("apiextensions.k8s.io/v1", "CustomResourceDefinition")}?dryRun=All`;
    return (await at.api.send(`POST ${dryRun}`, { body: definition })).status === 400;
  });
  await denied(at, at.create(definition), DENIED);
}

async function honorTimeout(at: TestNamespace): Promise<void> {
  await using hook = await startTestWebhook(answerReviews);
  const create = async (name: string, more: { readonly failurePolicy: string; readonly timeoutSeconds?: number }) => {
    await using _ = await register(at, "Validating", hook, [ruleOf("configmaps")], more);
    await until("a call of the webhook", async () => {
      const before = hook.received.length;
      await at.api.send(`POST ${at.path("configmaps")}?dryRun=All`, { body: mapOf(`probe-${++count}`) });
      return hook.received.length > before;
    });
    await at.create(mapOf(name, { slow: "yes" }));
  };
  const late = /failed to call webhook: .*(deadline|timeout)/i;
  await at.refused(500, create("a", { timeoutSeconds: 1, failurePolicy: "Fail" }), late);
  await create("b", { timeoutSeconds: 1, failurePolicy: "Ignore" });
  const began = performance.now();
  await create("c", { timeoutSeconds: 10, failurePolicy: "Fail" });
  assert.ok(performance.now() - began >= SLOW_MS, "the server waits for the webhook");
  await create("d", { failurePolicy: "Fail" });
}

async function discoverWebhooks(at: TestNamespace): Promise<void> {
  const { groups } = await at.api.get("/apis");
  const group = groups.find(({ name }: Json) => name === "admissionregistration.k8s.io");
  assert.ok(group.versions.some(({ groupVersion }: Json) => groupVersion === VERSION));
  const found = await at.api.get("/apis/admissionregistration.k8s.io");
  assert.ok(found.versions.some(({ groupVersion }: Json) => groupVersion === VERSION));
  const { resources } = await at.api.get(`/apis/${VERSION}`);
  const names = resources.map(({ name }: Json) => name);
  assert.ok(names.includes("mutatingwebhookconfigurations"));
  assert.ok(names.includes("validatingwebhookconfigurations"));
}

async function mutateExcept(at: TestNamespace): Promise<void> {
  await using hook = await startTestWebhook(answerReviews);
  const matchConditions = [{ name: "skip-me", expression: "object.metadata.name != 'skip-me'" }];
  await using _ = await register(at, "Mutating", hook, [ruleOf("configmaps")], { matchConditions });
  await waitForEffect(at, true);
  assert.equal(mutated(await at.create(mapOf("skip-me", { "mutation-start": "no" }))), false);
  assert.equal(mutated(await at.create(mapOf("other", { "mutation-start": "no" }))), true);
}

async function mutatePod(at: TestNamespace): Promise<void> {
  await using hook = await startTestWebhook(answerReviews);
  await using _ = await register(at, "Mutating", hook, [ruleOf("pods")]);
  const pod = await until("a mutated pod", async () => {
    const made = await at.create(podOf(`pod-${++count}`, PAUSE));
    return made.spec.initContainers === undefined ? undefined : made;
  });
  const [first] = pod.spec.initContainers;
  assert.equal(first.name, "webhook-added-init-container");
  assert.equal(first.terminationMessagePolicy, "File");
  assert.equal(first.image, containerOf("").image);
}

export const webhooks: Behaviours = {
  "AdmissionWebhook listing mutating webhooks should work": testListing("Mutating"),
  "AdmissionWebhook listing validating webhooks should work": testListing("Validating"),
  "AdmissionWebhook patching/updating a mutating webhook should work": testChanges("Mutating"),
  "AdmissionWebhook patching/updating a validating webhook should work": testChanges("Validating"),
  "AdmissionWebhook should be able to create and update mutating webhook configurations with match conditions":
    testMatchConditions("Mutating"),
  "AdmissionWebhook should be able to create and update validating webhook configurations with match conditions":
    testMatchConditions("Validating"),
  "AdmissionWebhook should reject mutating webhook configurations with invalid match conditions": rejectCondition,
  "AdmissionWebhook should mutate configmap": mutateTwice,
  "AdmissionWebhook should not be able to mutate or prevent deletion of webhook configuration objects":
    spareConfigurations,
  "AdmissionWebhook should reject validating webhook configurations with invalid match conditions":
    rejectValidatingCondition,
  "AdmissionWebhook should unconditionally reject operations on fail closed webhook": failClosed,
  "AdmissionWebhook should be able to deny attaching pod": denyAttaching,
  "AdmissionWebhook should be able to deny pod and configmap creation": denyPodsAndMaps,
  "AdmissionWebhook should deny crd creation": denyDefinitions,
  "AdmissionWebhook should honor timeout": honorTimeout,
  "AdmissionWebhook should include webhook resources in discovery documents": discoverWebhooks,
  "AdmissionWebhook should mutate everything except 'skip-me' configmaps": mutateExcept,
  "AdmissionWebhook should mutate pod and apply defaults after mutation": mutatePod,
};
