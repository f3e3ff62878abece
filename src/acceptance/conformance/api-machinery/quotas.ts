/** ResourceQuotas count what a namespace has, and refuse what exceeds them. */
import assert from "node:assert/strict";
import {
  type Behaviour,
  type Behaviours,
  type KubeObject,
  PAUSE,
  podOf,
  type TestNamespace,
  templateOf,
} from "../harness/behaviour.ts";

const quotaOf = (name: string, hard: object, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ResourceQuota",
  metadata: { name },
  spec: { hard, ...more },
});

type Amounts = Readonly<Record<string, string>>;

/** Resolves when the quota's status has these amounts of use. */
async function waitForUse(at: TestNamespace, name: string, amounts: Amounts): Promise<void> {
  const accepts = ({ status }: { status: { used?: Amounts } }): boolean =>
    Object.entries(amounts).every(([resource, amount]) => status.used?.[resource] === amount);
  await at.wait(at.path(`resourcequotas/${name}`), `use of ${JSON.stringify(amounts)}`, accepts);
}

/** The quota counts itself and the object until that is deleted. */
function countObject(resource: string, object: KubeObject, more: Amounts = {}): Behaviour {
  return async (at) => {
    const unused = Object.fromEntries(Object.keys(more).map((name) => [name, "0"]));
    // A namespace has the ConfigMap with the root certificates.
    const counted = resource === "secrets" || resource === "configmaps";
    const base = counted ? (await at.api.list(at.path(resource))).length : 0;
    await at.create(quotaOf("test-quota", { resourcequotas: "1", [resource]: "10", ...hardOf(more) }));
    await waitForUse(at, "test-quota", { resourcequotas: "1", [resource]: String(base), ...unused });
    const { status } = await at.api.get(at.path("resourcequotas/test-quota"));
    assert.deepEqual(status.hard, { resourcequotas: "1", [resource]: "10", ...hardOf(more) });
    await at.create(object);
    await waitForUse(at, "test-quota", { [resource]: String(base + 1), ...more });
    await at.api.delete(at.pathOfObject(object));
    await waitForUse(at, "test-quota", { [resource]: String(base), ...unused });
  };
}

const hardOf = (amounts: Amounts): Amounts => Object.fromEntries(Object.keys(amounts).map((name) => [name, "5"]));

const labels = { app: "counted" };
const replicated = { replicas: 0, template: templateOf(labels, PAUSE) };
const metadata = { name: "counted" };
const replicaSet = {
  apiVersion: "apps/v1",
  kind: "ReplicaSet",
  metadata,
  spec: { selector: { matchLabels: labels }, ...replicated },
};
const controller = {
  apiVersion: "v1",
  kind: "ReplicationController",
  metadata,
  spec: { selector: labels, ...replicated },
};
const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { key: "value" } };
const secret = { apiVersion: "v1", kind: "Secret", metadata, stringData: { key: "value" } };
const service = {
  apiVersion: "v1",
  kind: "Service",
  metadata,
  spec: { type: "NodePort", ports: [{ port: 80 }], selector: labels },
};

/** No node has it: the pods that request it count although they stay pending. */
const EXTENDED = "example.com/dongle";

const requestsOf = (cpu: string, memory: string, storage: string, dongles: string) => ({
  requests: { cpu, memory, "ephemeral-storage": storage, [EXTENDED]: dongles },
  limits: { [EXTENDED]: dongles },
});

async function countPods(at: TestNamespace): Promise<void> {
  const hard = {
    pods: "5",
    cpu: "1",
    memory: "500Mi",
    "ephemeral-storage": "50Gi",
    [`requests.${EXTENDED}`]: "3",
  };
  await at.create(quotaOf("test-quota", hard));
  const none = { pods: "0", cpu: "0", memory: "0", "ephemeral-storage": "0", [`requests.${EXTENDED}`]: "0" };
  await waitForUse(at, "test-quota", none);
  const pod = podOf("counted", PAUSE, { container: { resources: requestsOf("500m", "252Mi", "30Gi", "2") } });
  await at.create(pod);
  const one = {
    pods: "1",
    cpu: "500m",
    memory: "252Mi",
    "ephemeral-storage": "30Gi",
    [`requests.${EXTENDED}`]: "2",
  };
  await waitForUse(at, "test-quota", one);
  const greedy = (resources: object) => podOf("greedy", PAUSE, { container: { resources } });
  await at.refused(403, at.create(greedy(requestsOf("600m", "100Mi", "1Gi", "1"))), /exceeded quota: test-quota.*cpu/);
  await at.refused(403, at.create(greedy(requestsOf("100m", "100Mi", "1Gi", "2"))), /exceeded quota: test-quota/);
  const resources = { requests: { cpu: "100m", memory: "100Mi" } };
  const change = at.api.patch(at.pathOfObject(pod), { spec: { containers: [{ name: "c", resources }] } }, "strategic");
  await at.refused(422, change, /pod updates may not change fields|Forbidden/);
  await waitForUse(at, "test-quota", one);
  await at.api.delete(at.pathOfObject(pod));
  await waitForUse(at, "test-quota", none);
}

const resources = { requests: { cpu: "500m", memory: "200Mi" }, limits: { cpu: "1", memory: "400Mi" } };
const amounts = {
  pods: "1",
  "requests.cpu": "500m",
  "requests.memory": "200Mi",
  "limits.cpu": "1",
  "limits.memory": "400Mi",
};
const unused = { pods: "0", "requests.cpu": "0", "requests.memory": "0", "limits.cpu": "0", "limits.memory": "0" };
const hard = {
  pods: "5",
  "requests.cpu": "1",
  "requests.memory": "500Mi",
  "limits.cpu": "2",
  "limits.memory": "1Gi",
};

async function scopeTerminating(at: TestNamespace): Promise<void> {
  await at.create(quotaOf("terminating", hard, { scopes: ["Terminating"] }));
  await at.create(quotaOf("not-terminating", hard, { scopes: ["NotTerminating"] }));
  for (const name of ["terminating", "not-terminating"]) await waitForUse(at, name, unused);
  const show = async (name: string, spec: object, counting: string, other: string): Promise<void> => {
    const pod = podOf(name, PAUSE, { container: { resources }, spec });
    await at.create(pod);
    await waitForUse(at, counting, amounts);
    await waitForUse(at, other, unused);
    await at.api.delete(at.pathOfObject(pod));
    await waitForUse(at, counting, unused);
  };
  await show("long", {}, "not-terminating", "terminating");
  await show("short", { activeDeadlineSeconds: 3600 }, "terminating", "not-terminating");
}

async function scopeBestEffort(at: TestNamespace): Promise<void> {
  await at.create(quotaOf("best-effort", { pods: "5" }, { scopes: ["BestEffort"] }));
  await at.create(quotaOf("not-best-effort", { pods: "5" }, { scopes: ["NotBestEffort"] }));
  for (const name of ["best-effort", "not-best-effort"]) await waitForUse(at, name, { pods: "0" });
  const show = async (name: string, container: object, counting: string, other: string): Promise<void> => {
    const pod = podOf(name, PAUSE, { container });
    await at.create(pod);
    await waitForUse(at, counting, { pods: "1" });
    await waitForUse(at, other, { pods: "0" });
    await at.api.delete(at.pathOfObject(pod));
    await waitForUse(at, counting, { pods: "0" });
  };
  await show("free", {}, "best-effort", "not-best-effort");
  await show("sized", { resources }, "not-best-effort", "best-effort");
}

async function updateAndDelete(at: TestNamespace): Promise<void> {
  const quota = quotaOf("test-quota", { cpu: "1", memory: "500Mi" });
  const path = at.pathOfObject(quota);
  assert.deepEqual((await at.create(quota)).spec.hard, { cpu: "1", memory: "500Mi" });
  await at.api.update(path, ({ spec }) => {
    spec.hard = { cpu: "2", memory: "1Gi" };
  });
  assert.deepEqual((await at.api.get(path)).spec.hard, { cpu: "2", memory: "1Gi" });
  await at.api.delete(path);
  await at.api.waitGone(path);
}

async function changeStatus(at: TestNamespace): Promise<void> {
  const quota = quotaOf("test-quota", { cpu: "500m", memory: "500Mi" });
  const path = at.pathOfObject(quota);
  await at.create(quota);
  const hardIs = (cpu: string) => at.wait(path, `hard status of ${cpu}`, ({ status }) => status.hard?.cpu === cpu);
  await hardIs("500m");
  await at.api.update(`${path}/status`, ({ status }) => {
    status.hard = { cpu: "1", memory: "1Gi" };
  });
  // The controller sets the limits of the specification again.
  await hardIs("500m");
  await at.api.patch(path, { spec: { hard: { cpu: "1", memory: "1Gi" } } });
  await hardIs("1");
  const patched = await at.api.patch(`${path}/status`, { status: { hard: { cpu: "2", memory: "2Gi" } } });
  assert.deepEqual(patched.status.hard, { cpu: "2", memory: "2Gi" });
  await hardIs("1");
  const { status, spec } = await at.api.get(`${path}/status`);
  assert.deepEqual(status.hard, spec.hard);
  await at.api.patch(`${path}/status`, { status: { hard: { cpu: "3" } }, spec: { hard: { cpu: "3" } } });
  assert.deepEqual((await at.api.get(path)).spec.hard, { cpu: "1", memory: "1Gi" });
  await hardIs("1");
}

export const quotas: Behaviours = {
  "ResourceQuota should apply changes to a resourcequota status": changeStatus,
  "ResourceQuota should be able to update and delete ResourceQuota.": updateAndDelete,
  "ResourceQuota should create a ResourceQuota and capture the life of a pod.": countPods,
  "ResourceQuota should create a ResourceQuota and capture the life of a replica set.": countObject(
    "count/replicasets.apps",
    replicaSet,
  ),
  "ResourceQuota should create a ResourceQuota and capture the life of a replication controller.": countObject(
    "replicationcontrollers",
    controller,
  ),
  "ResourceQuota should create a ResourceQuota and ensure its status is promptly calculated.": async (at) => {
    const all = { pods: "5", services: "10", secrets: "10", resourcequotas: "1", persistentvolumeclaims: "10" };
    await at.create(quotaOf("test-quota", all));
    await waitForUse(at, "test-quota", { pods: "0", services: "0", resourcequotas: "1", persistentvolumeclaims: "0" });
    assert.deepEqual((await at.api.get(at.path("resourcequotas/test-quota"))).status.hard, all);
  },
  "ResourceQuota should create a ResourceQuota and capture the life of a configMap.": countObject(
    "configmaps",
    configMap,
  ),
  "ResourceQuota should create a ResourceQuota and capture the life of a secret.": countObject("secrets", secret),
  "ResourceQuota should create a ResourceQuota and capture the life of a service.": countObject("services", service, {
    "services.nodeports": "1",
  }),
  "ResourceQuota should verify ResourceQuota with best effort scope.": scopeBestEffort,
  "ResourceQuota should verify ResourceQuota with terminating scopes.": scopeTerminating,
};
