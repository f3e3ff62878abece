/** An extension server in a pod, reached through the API server. */
import assert from "node:assert/strict";
import { createCa, issueCertificate } from "../../../auth/pki/certificate-authority.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { until } from "../../../testing/std/until.ts";
import { root } from "../../cluster/cluster.ts";
import type { Json } from "../harness/api.ts";
import { type Behaviours, conditionOf, type TestNamespace } from "../harness/behaviour.ts";
import { nodeContainer, nodeVolumes } from "../harness/node-program.ts";

const GROUP = "wardle.example.com";
const NAME = `v1alpha1.${GROUP}`;
const API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";
const API_SERVICE = `${API_SERVICES}/${NAME}`;
const [PORT, SERVICE_PORT] = [8443, 7443];
const LABELS = { apiserver: "true", app: "sample-apiserver" };
const REPOSITORY = "/repository";

async function issue(at: TestNamespace) {
  const now = systemClock.now();
  const ca = await createCa("sample-ca", 30, now);
  const alternativeNames = [`sample-api.${at.name}.svc`];
  const request = { commonName: "sample", usages: ["server"] as const, days: 30, alternativeNames };
  return { ca, pair: await issueCertificate(ca, request, now) };
}

/** Gives the pod's account the rights of an extension server. */
async function allowServer(at: TestNamespace): Promise<void> {
  const account = { kind: "ServiceAccount", name: "sample", namespace: at.name };
  await at.create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "sample" } });
  await at.api.post("/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings", {
    metadata: { name: at.name },
    roleRef: {
      apiGroup: "rbac.authorization.k8s.io",
      kind: "Role",
      name: "extension-apiserver-authentication-reader",
    },
    subjects: [account],
  });
}

async function runServer(at: TestNamespace): Promise<string> {
  const { ca, pair } = await issue(at);
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  await at.create({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "certificates" },
    type: "kubernetes.io/tls",
    data: { "tls.crt": encode(pair.cert), "tls.key": encode(pair.key) },
  } as never);
  await allowServer(at);
  const container = nodeContainer("", [], {});
  const program = `${REPOSITORY}/src/acceptance/conformance/api-machinery/sample-server.ts`;
  const mounts = [
    { name: "repository", mountPath: REPOSITORY, readOnly: true },
    { name: "certificates", mountPath: "/certificates", readOnly: true },
  ];
  const spec = {
    serviceAccountName: "sample",
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        ...container,
        command: ["/bin/node", program, "/certificates", String(PORT)],
        volumeMounts: [...container.volumeMounts, ...mounts],
        readinessProbe: {
          httpGet: { scheme: "HTTPS", port: PORT, path: "/readyz" },
          periodSeconds: 1,
          failureThreshold: 60,
        },
      },
    ],
    volumes: [
      ...nodeVolumes,
      { name: "repository", hostPath: { path: root } },
      { name: "certificates", secret: { secretName: "certificates" } },
    ],
  };
  await at.create({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "sample-apiserver-deployment" },
    spec: { replicas: 1, selector: { matchLabels: LABELS }, template: { metadata: { labels: LABELS }, spec } },
  });
  const ready = ({ status }: Json): boolean => status?.readyReplicas === 1;
  const path = at.pathOf("apps/v1", "Deployment", "sample-apiserver-deployment");
  await at.wait(path, "a ready extension server", ready, 180_000);
  await at.create({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "sample-api" },
    spec: { selector: LABELS, ports: [{ protocol: "TCP", port: SERVICE_PORT, targetPort: PORT }] },
  });
  return encode(ca.cert);
}

function apiServiceOf(at: TestNamespace, caBundle: string) {
  const service = { namespace: at.name, name: "sample-api", port: SERVICE_PORT };
  const priorities = { groupPriorityMinimum: 2000, versionPriority: 200 };
  return {
    apiVersion: "apiregistration.k8s.io/v1",
    kind: "APIService",
    metadata: { name: NAME, labels: { "sample-of": at.name } },
    spec: { service, group: GROUP, version: "v1alpha1", caBundle, ...priorities },
  };
}

async function register(at: TestNamespace, caBundle: string): Promise<void> {
  await at.create(apiServiceOf(at, caBundle));
  await at.wait(API_SERVICE, "an available API service", ({ status }) => {
    return conditionOf(status, "Available")?.status === "True";
  });
}

/** Creates, lists and deletes objects of the extension server. */
async function useObjects(at: TestNamespace): Promise<void> {
  const flunders = `/apis/${GROUP}/v1alpha1/namespaces/${at.name}/flunders`;
  const names = async (): Promise<readonly string[]> =>
    (await at.api.list(flunders)).map(({ metadata }) => metadata.name);
  assert.deepEqual(await names(), []);
  for (const name of ["one", "two"]) {
    const flunder = { apiVersion: `${GROUP}/v1alpha1`, kind: "Flunder", metadata: { name, labels: { name } } };
    const created = await at.api.post(flunders, flunder);
    assert.equal(created.kind, "Flunder");
  }
  assert.deepEqual(await names(), ["one", "two"]);
  assert.equal((await at.api.get(`${flunders}/one`)).metadata.namespace, at.name);
  await at.api.delete(`${flunders}/one`);
  assert.deepEqual(await names(), ["two"]);
  await at.api.delete(`${flunders}?labelSelector=name%3Dtwo`);
  assert.deepEqual(await names(), []);
}

async function useDiscovery(at: TestNamespace): Promise<void> {
  const { groups } = await at.api.get("/apis");
  assert.ok(groups.some(({ name }: Json) => name === GROUP));
  const { resources } = await at.api.get(`/apis/${GROUP}/v1alpha1`);
  assert.ok(resources.some(({ name }: Json) => name === "flunders"));
  await until("the extension server's resources in kubectl", async () => {
    return (await at.run(`api-resources --api-group=${GROUP}`)).includes("flunders");
  });
  await until("the extension server's schema in kubectl", async () => {
    return /KIND: +Flunder/.test((await at.kubectl(["explain", "flunders"])).stdout);
  });
}

/** Reads, patches, labels and replaces the API service, and its status. */
async function changeApiService(at: TestNamespace): Promise<void> {
  const status = await at.api.get(`${API_SERVICE}/status`);
  assert.equal(conditionOf(status.status, "Available").reason, "Passed");
  const patched = await at.api.patch(API_SERVICE, { spec: { versionPriority: 400 } });
  assert.equal(patched.spec.versionPriority, 400);
  const listed: readonly Json[] = await at.api.list(`${API_SERVICES}?labelSelector=sample-of%3D${at.name}`);
  assert.deepEqual(
    listed.map(({ metadata }) => metadata.name),
    [NAME],
  );
  const condition = { type: "StatusUpdated", status: "True", reason: "E2E", message: "Set from e2e test" };
  await at.api.update(`${API_SERVICE}/status`, ({ status: current }) => {
    current.conditions = [...current.conditions, condition];
  });
  const updated = await at.api.get(API_SERVICE);
  assert.equal(conditionOf(updated.status, "StatusUpdated")?.reason, "E2E");
  assert.equal(conditionOf(updated.status, "Available")?.status, "True");
  const replaced = await at.api.patch(API_SERVICE, { metadata: { labels: { replaced: "yes" } } });
  assert.equal(replaced.metadata.labels.replaced, "yes");
}

const showExtensionServer = async (at: TestNamespace): Promise<void> => {
  try {
    const caBundle = await runServer(at);
    await register(at, caBundle);
    await useObjects(at);
    await useDiscovery(at);
    await changeApiService(at);
    await useObjects(at);
    await at.api.delete(API_SERVICE);
    await at.refused(404, at.api.get(API_SERVICE));
    await register(at, caBundle);
    await useObjects(at);
    await at.api.delete(`${API_SERVICES}?labelSelector=sample-of%3D${at.name}`);
    await at.refused(404, at.api.get(API_SERVICE));
    await until("no group of the extension server", async () => {
      const { groups } = await at.api.get("/apis");
      return !groups.some(({ name }: Json) => name === GROUP);
    });
  } finally {
    const bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings";
    await at.api.delete(API_SERVICE).catch(() => {});
    await at.api.delete(`${bindings}/${at.name}`).catch(() => {});
  }
};

export const aggregation: Behaviours = {
  "Aggregator Should be able to support the 1.17 Sample API Server using the current Aggregator": showExtensionServer,
};
