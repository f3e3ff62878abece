/** ValidatingAdmissionPolicies, namespaces, watches, versions, and lists in chunks. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../../testing/std/until.ts";
import type { Json, Watch } from "../harness/api.ts";
import { type Behaviours, PAUSE, type TestNamespace, templateOf } from "../harness/behaviour.ts";

const REGISTRATION = "admissionregistration.k8s.io/v1";

const deploymentOf = (name: string, replicas: number) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name },
  spec: { replicas, selector: { matchLabels: { app: name } }, template: templateOf({ app: name }, PAUSE) },
});

/** A policy for the Deployments of the test's namespace, with its binding. */
async function bindPolicy(at: TestNamespace, spec: object) {
  const policy = {
    apiVersion: REGISTRATION,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name: at.name },
    spec: {
      failurePolicy: "Fail",
      matchConstraints: {
        namespaceSelector: { matchLabels: { conformance: at.name } },
        resourceRules: [
          { apiGroups: ["apps"], apiVersions: ["v1"], operations: ["CREATE"], resources: ["deployments"] },
        ],
      },
      ...spec,
    },
  };
  const binding = {
    apiVersion: REGISTRATION,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name: at.name },
    spec: { policyName: at.name, validationActions: ["Deny"] },
  };
  await at.create(policy);
  await at.create(binding);
  return {
    [Symbol.asyncDispose]: async () => {
      for (const object of [binding, policy]) await at.api.send(`DELETE ${at.pathOfObject(object)}`);
    },
  };
}

async function untilDenied(at: TestNamespace, deployment: object): Promise<string> {
  const line = `POST ${at.pathOf("apps/v1", "Deployment")}?dryRun=All`;
  let last = "";
  return await until(
    () => `a denied Deployment; the last answer: ${last}`,
    async () => {
      const { status, text, json } = await at.api.send(line, { body: deployment });
      last = text;
      return status === 422 ? (json.message as string) : undefined;
    },
  );
}

async function validateDeployment(at: TestNamespace): Promise<void> {
  const validations = [
    {
      expression: "object.spec.replicas > 1",
      messageExpression: "'wants replicas > 1, got ' + string(object.spec.replicas)",
    },
    { expression: "namespaceObject.metadata.name == object.metadata.namespace", message: "of its namespace" },
  ];
  await using _ = await bindPolicy(at, { validations });
  const text = await untilDenied(at, deploymentOf("single", 1));
  assert.match(text, /ValidatingAdmissionPolicy .* denied request: wants replicas > 1, got 1/);
  await at.create(deploymentOf("double", 2));
}

async function referToVariables(at: TestNamespace): Promise<void> {
  const variables = [
    { name: "replicas", expression: "object.spec.replicas" },
    { name: "oddReplicas", expression: "variables.replicas % 2 == 1" },
  ];
  const validations = [{ expression: "variables.replicas > 1" }, { expression: "variables.oddReplicas" }];
  await using _ = await bindPolicy(at, { variables, validations });
  await untilDenied(at, deploymentOf("single", 1));
  await at.refused(422, at.create(deploymentOf("even", 2)), /failed expression: variables\.oddReplicas/);
  await at.create(deploymentOf("odd", 3));
}

async function addFinalizer(at: TestNamespace): Promise<void> {
  const name = `${at.name}-finalized`;
  const FINALIZER = "e2e.example.com/fakeFinalizer";
  const path = `/api/v1/namespaces/${name}`;
  await at.api.post("/api/v1/namespaces", { metadata: { name } });
  const set = async (finalizers: readonly string[]): Promise<void> => {
    const found = await at.api.get(path);
    await at.api.put(`${path}/finalize`, { ...found, spec: { ...found.spec, finalizers } });
  };
  await set(["kubernetes", FINALIZER]);
  assert.ok((await at.api.get(path)).spec.finalizers.includes(FINALIZER));
  await set(["kubernetes"]);
  assert.deepEqual((await at.api.get(path)).spec.finalizers, ["kubernetes"]);
  await at.api.delete(path);
  await at.api.waitGone(path);
}

async function updateNamespace(at: TestNamespace): Promise<void> {
  const path = `/api/v1/namespaces/${at.name}`;
  await at.api.update(path, ({ metadata }) => {
    metadata.labels.updated = at.name;
  });
  assert.equal((await at.api.get(path)).metadata.labels.updated, at.name);
}

async function changeNamespaceStatus(at: TestNamespace): Promise<void> {
  const path = `/api/v1/namespaces/${at.name}/status`;
  assert.equal((await at.api.get(path)).status.phase, "Active");
  const condition = (type: string) => ({ type, status: "True", reason: "E2E", message: `Set by ${type}` });
  const has = async (type: string): Promise<void> => {
    const { conditions } = (await at.api.get(path)).status;
    assert.partialDeepStrictEqual(
      conditions.find((each: Json) => each.type === type),
      condition(type),
    );
  };
  await at.api.patch(path, { status: { conditions: [condition("StatusPatch")] } });
  await has("StatusPatch");
  await at.api.update(path, ({ status }) => status.conditions.push(condition("StatusUpdate")));
  await has("StatusUpdate");
}

async function removeServices(at: TestNamespace): Promise<void> {
  const name = `${at.name}-removed`;
  const path = `/api/v1/namespaces/${name}`;
  await at.api.post("/api/v1/namespaces", { metadata: { name } });
  const service = { metadata: { name: "test-service" }, spec: { selector: { foo: "bar" }, ports: [{ port: 80 }] } };
  await at.api.post(`${path}/services`, service);
  await at.api.delete(path);
  await at.api.waitGone(path);
  await at.api.post("/api/v1/namespaces", { metadata: { name } });
  assert.deepEqual(await at.api.list(`${path}/services`), []);
  await at.api.delete(path);
}

/** Watches that begin at the versions of each other's events have the same events in the same order. */
async function watchInOrder(at: TestNamespace): Promise<void> {
  const path = at.path("configmaps");
  const WRITES = 100;
  const { metadata } = await at.api.get(path);
  const watches: Watch[] = [await at.api.watch(`${path}?resourceVersion=${metadata.resourceVersion}`)];
  try {
    const writing = (async () => {
      const names: string[] = [];
      for (let index = 0; index < WRITES; index++) {
        const name = names[index % 7];
        if (name === undefined) {
          names.push(`map-${index}`);
          await at.api.post(path, { metadata: { name: `map-${index}` } });
        } else if (index % 5 === 4) {
          await at.api.delete(`${path}/${name}`);
          await at.api.post(path, { metadata: { name } });
        } else await at.api.patch(`${path}/${name}`, { data: { index: String(index) } });
      }
    })();
    const first = watches[0]!;
    for (let seen = 0; seen < WRITES; seen += 10) {
      await until("more events", () => first.events.length > seen);
      const { resourceVersion } = first.events[seen]!.object.metadata;
      watches.push(await at.api.watch(`${path}?resourceVersion=${resourceVersion}`));
    }
    await writing;
    const { resourceVersion: last } = (await at.api.post(path, { metadata: { name: "last" } })).metadata;
    const versionsOf = ({ events }: Watch): string[] => events.map(({ object }) => object.metadata.resourceVersion);
    for (const watch of watches) {
      await until("the last event", () => versionsOf(watch).at(-1) === last);
      const versions = versionsOf(watch);
      assert.deepEqual(versions, versionsOf(first).slice(-versions.length));
    }
    assert.ok(versionsOf(first).length > WRITES);
    assert.equal(versionsOf(watches.at(-1)!).length, versionsOf(first).length - 91);
  } finally {
    for (const watch of watches) watch[Symbol.dispose]();
  }
}

async function findVersion(at: TestNamespace): Promise<void> {
  const { major, minor } = await at.api.get("/version");
  assert.match(major, /^\d+$/);
  assert.match(minor, /^\d+$/);
}

async function preferVersions(at: TestNamespace): Promise<void> {
  const { groups } = await at.api.get("/apis");
  assert.ok(groups.length > 10);
  for (const { name, preferredVersion, versions } of groups) {
    if (name.endsWith(".example.com")) continue;
    const found = versions.map(({ groupVersion }: Json) => groupVersion);
    assert.ok(found.includes(preferredVersion.groupVersion), `${name}: ${preferredVersion.groupVersion}`);
    // The group may be removed between the two requests.
    const { preferredVersion: again } = await at.api.get(`/apis/${name}`);
    assert.deepEqual(again, preferredVersion);
  }
}

const TEMPLATES = 40;
const LIMIT = 8;
const COMPACTION_MS_MAX = 15 * 60_000;

async function continueList(at: TestNamespace): Promise<void> {
  const path = at.path("podtemplates");
  const template = { spec: { containers: [{ name: "c", image: "image:1" }] } };
  for (let index = 0; index < TEMPLATES; index++) {
    await at.api.post(path, { metadata: { name: `template-${String(index).padStart(4, "0")}` }, template });
  }
  const first = await at.api.get(`${path}?limit=${LIMIT}`);
  assert.equal(first.items.length, LIMIT);
  assert.equal(first.metadata.remainingItemCount, TEMPLATES - LIMIT);
  const next = `${path}?limit=${LIMIT}&continue=${encodeURIComponent(first.metadata.continue)}`;
  const expired = await until(
    "the expiry of the continuation token",
    async () => {
      const response = await at.api.send(`GET ${next}`);
      if (response.status === 410) return response.json;
      assert.equal(response.status, 200);
      await sleep(5000);
      return undefined;
    },
    { timeoutMs: COMPACTION_MS_MAX },
  );
  assert.equal(expired.reason, "Expired");
  let token = expired.metadata.continue;
  let version: string | undefined;
  for (let found = LIMIT; found < TEMPLATES; found += LIMIT) {
    const page = await at.api.get(`${path}?limit=${LIMIT}&continue=${encodeURIComponent(token)}`);
    assert.equal(page.items.length, LIMIT);
    version ??= page.metadata.resourceVersion;
    assert.equal(page.metadata.resourceVersion, version);
    assert.equal(page.metadata.remainingItemCount ?? 0, TEMPLATES - found - LIMIT);
    assert.equal(page.items[0].metadata.name, `template-${String(found).padStart(4, "0")}`);
    token = page.metadata.continue;
  }
  assert.notEqual(version, first.metadata.resourceVersion);
  assert.equal(token ?? "", "");
}

/** Shown apart from the others, since it lasts until the server has compacted its history. */
export const compactedList: Behaviours = {
  "Servers with support for API chunking should support continue listing from the last key if the original version has been compacted away, though the list is inconsistent":
    continueList,
};

export const policies: Behaviours = {
  "ValidatingAdmissionPolicy should validate against a Deployment": validateDeployment,
  "ValidatingAdmissionPolicy should allow expressions to refer variables.": referToVariables,
  "Namespaces should apply a finalizer to a Namespace": addFinalizer,
  "Namespaces should apply an update to a Namespace": updateNamespace,
  "Namespaces should apply changes to a namespace status": changeNamespaceStatus,
  "Namespaces should ensure that all services are removed when a namespace is deleted": removeServices,
  "Watchers should receive events on concurrent watches in same order": watchInOrder,
  "server version should find the server version": findVersion,
  "Discovery should validate PreferredVersion for each APIGroup": preferVersions,
};
