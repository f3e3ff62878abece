/** The effect of gates on the controllers and the scheduler that run in the process of the API server. */
import type { Test } from "tap";
import { schedulerFeatures } from "../../../scheduler/config/features.ts";
import { createMemoryStore } from "../../../storage/memory.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { temporaryFile, writeConfiguration } from "./encryption-effects.ts";
import { fieldGateEffects } from "./field-gate-effects.ts";
import { configWith, type Gates, withGates } from "./gate-settings.ts";
import { type Effect, metricLines, startServer } from "./support.ts";

async function keepsConfigMap(gates: Gates): Promise<boolean> {
  await using server = await startServer(withGates(gates, { "embedded-controllers": "namespace" }));
  const namespace = "/api/v1/namespaces/brief";
  const container = { name: "c", image: "i" };
  const pod = { metadata: { name: "p", finalizers: ["example.com/wait"] }, spec: { containers: [container] } };
  await server.send("POST /api/v1/namespaces", { metadata: { name: "brief" } });
  await server.send("POST /api/v1/namespaces/brief/serviceaccounts", { metadata: { name: "default" } });
  await server.send(`POST ${namespace}/pods`, pod);
  await server.send(`POST ${namespace}/configmaps`, { metadata: { name: "m" } });
  await server.send(`DELETE ${namespace}`);
  await server.until("the first attempt has ended", async () => {
    const { json } = await server.send(`GET ${namespace}`);
    return (json.status.conditions ?? []).length > 0;
  });
  return (await server.send(`GET ${namespace}/configmaps/m`)).status === 200;
}

/** Whether a scale down deletes the pod with the lower cost, whichever it is. */
async function followsCosts(gates: Gates): Promise<boolean> {
  const deletes = async (cheap: string): Promise<boolean> => {
    await using server = await startServer(withGates(gates, { "embedded-controllers": "replicaset" }));
    const pods = "/api/v1/namespaces/default/pods";
    const labels = { app: "web" };
    const spec = { containers: [{ name: "c", image: "i" }] };
    await server.send("POST /api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
    for (const name of ["a", "b"]) {
      const annotations = name === cheap ? { "controller.kubernetes.io/pod-deletion-cost": "-1" } : {};
      await server.send(`POST ${pods}`, { metadata: { name, labels, annotations }, spec });
    }
    const set = { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } };
    await server.send("POST /apis/apps/v1/namespaces/default/replicasets", { metadata: { name: "web" }, spec: set });
    const remaining = async (): Promise<readonly string[]> => {
      const { json } = await server.send(`GET ${pods}`);
      return json.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
    };
    await server.until("one pod is left", async () => (await remaining()).length === 1);
    return !(await remaining()).includes(cheap);
  };
  return (await deletes("a")) && (await deletes("b"));
}

/** The number of terminating pods in the status of a deployment whose only pod cannot end. */
async function countTerminating(gates: Gates): Promise<number | undefined> {
  const settings = { "embedded-controllers": "deployment,replicaset" };
  await using server = await startServer(withGates(gates, settings));
  const [pods, deployments] = ["/api/v1/namespaces/default/pods", "/apis/apps/v1/namespaces/default/deployments"];
  await server.send("POST /api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  const labels = { app: "web" };
  const metadata = { labels, finalizers: ["example.com/wait"] };
  const template = { metadata, spec: { containers: [{ name: "c", image: "i" }] } };
  const spec = { replicas: 1, selector: { matchLabels: labels }, template };
  await server.send(`POST ${deployments}`, { metadata: { name: "web" }, spec });
  const listPods = async () => (await server.send(`GET ${pods}`)).json.items;
  await server.until("there is a pod", async () => (await listPods()).length === 1);
  const [{ metadata: first }] = await listPods();
  const patch = { ...server.admin, "content-type": "application/merge-patch+json" };
  await server.send(`PATCH ${pods}/${first.name}`, { metadata: { finalizers: ["example.com/wait"] } }, patch);
  await server.send(`DELETE ${pods}/${first.name}`);
  await server.until("there is another pod", async () => (await listPods()).length === 2);
  let status: { readonly unavailableReplicas?: number; readonly terminatingReplicas?: number } = {};
  await server.until("the status is up to date", async () => {
    status = (await server.send(`GET ${deployments}/web`)).json.status;
    return status.unavailableReplicas === 1 && status.terminatingReplicas !== 0;
  });
  return status.terminatingReplicas;
}

/** How many pods of a stateful set are unavailable at once during a rolling update that allows two. */
async function countUpdatedAtOnce(gates: Gates): Promise<number> {
  await using server = await startServer(withGates(gates, { "embedded-controllers": "statefulset" }));
  const [pods, sets] = ["/api/v1/namespaces/default/pods", "/apis/apps/v1/namespaces/default/statefulsets"];
  await server.send("POST /api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  const labels = { app: "db" };
  // Deleted pods stay.
  const template = {
    metadata: { labels, finalizers: ["example.com/wait"] },
    spec: { containers: [{ name: "c", image: "i" }] },
  };
  const rollingUpdate = { maxUnavailable: 2 };
  const spec = {
    replicas: 3,
    serviceName: "db",
    podManagementPolicy: "Parallel",
    selector: { matchLabels: labels },
    updateStrategy: { type: "RollingUpdate", rollingUpdate },
    template,
  };
  await server.send(`POST ${sets}`, { metadata: { name: "db" }, spec });
  const listPods = async () => (await server.send(`GET ${pods}`)).json.items;
  await server.until("there are three pods", async () => (await listPods()).length === 3);
  const patch = { ...server.admin, "content-type": "application/merge-patch+json" };
  const conditions = [{ type: "Ready", status: "True" }];
  for (const { metadata } of await listPods()) {
    await server.send(`PATCH ${pods}/${metadata.name}/status`, { status: { phase: "Running", conditions } }, patch);
  }
  const read = async () => (await server.send(`GET ${sets}/db`)).json;
  await server.until("the pods are ready", async () => (await read()).status.availableReplicas === 3);
  const update = { spec: { template: { spec: { containers: [{ name: "c", image: "j" }] } } } };
  const { generation } = (await server.send(`PATCH ${sets}/db`, update, patch)).json.metadata;
  await server.until("the update has begun", async () => {
    const { status } = await read();
    return status.observedGeneration === generation;
  });
  const items: readonly { metadata: { deletionTimestamp?: string } }[] = await listPods();
  return items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined).length;
}

/** Whether a controller's informers get their first objects with their watch. */
async function streamsLists(gates: Gates): Promise<boolean> {
  await using server = await startServer(withGates(gates, { "embedded-controllers": "namespace" }));
  await server.send("POST /api/v1/namespaces", { metadata: { name: "brief" } });
  await server.send("DELETE /api/v1/namespaces/brief");
  await server.until("the controller works", async () => {
    return (await server.send("GET /api/v1/namespaces/brief")).status === 404;
  });
  const counts = await metricLines(server, "apiserver_request_total");
  return !counts.some((line) => line.includes('resource="namespaces"') && line.includes('verb="LIST"'));
}

/** The media types of the requests and responses of a controller that removes a namespace. */
async function controllerMediaTypes(gates: Gates): Promise<{ readonly listed: number; readonly rejected: boolean }> {
  await using server = await startServer(withGates(gates, { "embedded-controllers": "namespace" }));
  await server.send("POST /api/v1/namespaces", { metadata: { name: "brief" } });
  await server.send("DELETE /api/v1/namespaces/brief");
  await server.until("the controller works", async () => {
    return (await server.send("GET /api/v1/namespaces/brief")).status === 404;
  });
  const sizes = await metricLines(server, "apiserver_response_sizes_sum");
  const list = sizes.find((line) => line.includes('resource="namespaces"') && line.includes('verb="LIST"'));
  const counts = await metricLines(server, "apiserver_request_total");
  return { listed: Number(list?.split(" ").at(-1)), rejected: counts.some((line) => line.includes('code="415"')) };
}

interface Migrations {
  /** Of a migration of secrets, and of one of a resource that does not exist. */
  readonly conditions: readonly (readonly string[])[];
  /** The keys of the store whose values got the new encryption key. */
  readonly migrated: readonly string[];
}

/** Changes the encryption key of secrets, and requests migrations. */
async function requestMigrations(t: Test, gates: Gates): Promise<Migrations> {
  const migrated: string[] = [];
  const inner = createMemoryStore({ clock: new FakeClock(Date.now()) });
  const file = writeConfiguration(temporaryFile(t), "k1");
  const settings = {
    "embedded-controllers": "storage-version-migrator",
    "encryption-provider-config": file,
    "encryption-provider-config-automatic-reload": "true",
    "runtime-config": "storagemigration.k8s.io/v1alpha1=true",
  };
  await using server = await startServer(withGates(gates, settings), {
    update: (key, value, ...rest) => {
      if (Buffer.from(value).toString("latin1").startsWith("k8s:enc:secretbox:v1:k2:")) migrated.push(key);
      return inner.update(key, value, ...rest);
    },
    get: inner.get.bind(inner),
    list: inner.list.bind(inner),
    scan: inner.scan.bind(inner),
    readVersion: inner.readVersion.bind(inner),
    watch: inner.watch.bind(inner),
    create: inner.create.bind(inner),
    delete: inner.delete.bind(inner),
    current: inner.current.bind(inner),
  });
  const secrets = "/api/v1/namespaces/default/secrets";
  for (const name of ["a", "b"]) await server.send(`POST ${secrets}`, { metadata: { name }, data: {} });
  writeConfiguration(file, "k2", "k1");
  await server.until("the new key is used", async () => {
    await server.send(`PUT ${secrets}/b`, { metadata: { name: "b" }, data: {} });
    return migrated.length > 0;
  });
  migrated.length = 0;
  const migrations = "/apis/storagemigration.k8s.io/v1alpha1/storageversionmigrations";
  const resources = ["secrets", "spells"];
  for (const resource of resources) {
    const spec = { resource: { group: "", version: "v1", resource } };
    await server.send(`POST ${migrations}`, { metadata: { name: resource }, spec });
  }
  const conditions: (readonly string[])[] = [];
  for (const name of resources) {
    let found: readonly { type: string; status: string; reason: string; message?: string }[] = [];
    const read = async (): Promise<boolean> => {
      const response = await server.send(`GET ${migrations}/${name}`);
      // Without the gate the kind is not served.
      found = response.status === 404 ? [] : (response.json.status?.conditions ?? []);
      return found.some(({ type }) => type !== "Running");
    };
    if (gates.StorageVersionMigrator === true) await server.until(`the migration of ${name} has ended`, read);
    else await server.clock.advance(10_000).then(read);
    conditions.push(found.map((one) => [one.type, one.status, one.reason, one.message ?? ""].join(" ").trim()));
  }
  return { conditions, migrated };
}

function schedules(gate: string, feature: keyof ReturnType<typeof schedulerFeatures>): Effect {
  return async (t) => {
    for (const value of [true, false]) {
      const { features } = configWith({ [gate]: value }).observability;
      const enabled = new Set(features.filter((each) => each.enabled).map(({ name }) => name));
      t.equal(schedulerFeatures(enabled)[feature], value);
    }
  };
}

async function acceptsZeroReplicas(gates: Gates): Promise<number> {
  await using server = await startServer(withGates(gates));
  const external = { metric: { name: "queue" }, target: { type: "Value", value: "1" } };
  const spec = {
    minReplicas: 0,
    maxReplicas: 3,
    scaleTargetRef: { kind: "Deployment", name: "web", apiVersion: "apps/v1" },
    metrics: [{ type: "External", external }],
  };
  const path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
  return (await server.send(`POST ${path}`, { metadata: { name: "web" }, spec })).status;
}

interface ClusterIps {
  readonly codes: readonly number[];
  readonly objects: readonly string[];
  readonly ranges: readonly string[];
  /** Whether the controller gives a new ServiceCIDR its condition. */
  readonly isManaged: boolean;
}

/** Where the addresses of services are recorded, and the answers to two services with one address. */
async function recordClusterIps(gates: Gates): Promise<ClusterIps> {
  const settings = {
    "embedded-controllers": "service-cidr-controller,namespace",
    "service-cluster-ip-range": "10.0.0.0/24",
  };
  await using server = await startServer(withGates(gates, settings));
  const services = "/api/v1/namespaces/default/services";
  const spec = { clusterIP: "10.0.0.77", ports: [{ port: 80 }] };
  const codes: number[] = [];
  for (const name of ["a", "b"])
    codes.push((await server.send(`POST ${services}`, { metadata: { name }, spec })).status);
  await server.send(`DELETE ${services}/a`);
  codes.push((await server.send(`POST ${services}`, { metadata: { name: "b" }, spec })).status);
  const networking = "/apis/networking.k8s.io/v1";
  const cidr = { metadata: { name: "more" }, spec: { cidrs: ["10.9.0.0/24"] } };
  await server.send(`POST ${networking}/servicecidrs`, cidr);
  // After its last controller has started, all have.
  await server.send("POST /api/v1/namespaces", { metadata: { name: "brief" } });
  await server.send("DELETE /api/v1/namespaces/brief");
  await server.until(
    "the controllers work",
    async () => (await server.send("GET /api/v1/namespaces/brief")).status === 404,
  );
  const isManaged = gates.MultiCIDRServiceAllocator !== false;
  const hasCondition = async (): Promise<boolean> =>
    (await server.send(`GET ${networking}/servicecidrs/more`)).json.status?.conditions !== undefined;
  if (isManaged) await server.until("the ServiceCIDR is ready", hasCondition);
  const { json } = await server.send(`GET ${networking}/ipaddresses`);
  return {
    codes,
    objects: json.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name).sort(),
    ranges: [
      ...new Set(server.writes.map(({ key }) => key).filter((key) => key.startsWith("/registry/ranges/serviceips"))),
    ],
    isManaged: await hasCondition(),
  };
}

export const controllerGateEffects: Readonly<Record<string, Effect>> = {
  DeploymentReplicaSetTerminatingReplicas: async (t) => {
    await fieldGateEffects.DeploymentReplicaSetTerminatingReplicas?.(t);
    t.equal(await countTerminating({}), undefined);
    t.equal(await countTerminating({ DeploymentReplicaSetTerminatingReplicas: true }), 1);
  },
  HPAScaleToZero: async (t) => {
    t.equal(await acceptsZeroReplicas({}), 422);
    t.equal(await acceptsZeroReplicas({ HPAScaleToZero: true }), 201);
  },
  DisableAllocatorDualWrite: async (t) => {
    const [codes, objects] = [
      [201, 422, 201],
      ["10.0.0.1", "10.0.0.77"],
    ];
    const on = await recordClusterIps({ DisableAllocatorDualWrite: true });
    t.same(on, { codes, objects, ranges: [], isManaged: true });
  },
  MaxUnavailableStatefulSet: async (t) => {
    await fieldGateEffects.MaxUnavailableStatefulSet?.(t);
    t.equal(await countUpdatedAtOnce({}), 1);
    t.equal(await countUpdatedAtOnce({ MaxUnavailableStatefulSet: true }), 2);
  },
  MultiCIDRServiceAllocator: async (t) => {
    const codes = [201, 422, 201];
    const objects = ["10.0.0.1", "10.0.0.77"];
    const ranges = ["/registry/ranges/serviceips"];
    t.same(await recordClusterIps({}), { codes, objects, ranges, isManaged: true });
    const off = await recordClusterIps({ MultiCIDRServiceAllocator: false });
    t.same(off, { codes, objects: [], ranges, isManaged: false });
  },
  OrderedNamespaceDeletion: async (t) => {
    t.equal(await keepsConfigMap({}), true);
    t.equal(await keepsConfigMap({ OrderedNamespaceDeletion: false }), false);
  },
  PodDeletionCost: async (t) => {
    t.equal(await followsCosts({}), true);
    t.equal(await followsCosts({ PodDeletionCost: false }), false);
  },
  ClientsAllowCBOR: async (t) => {
    const json = await controllerMediaTypes({ CBORServingAndStorage: true });
    const cbor = await controllerMediaTypes({ CBORServingAndStorage: true, ClientsAllowCBOR: true });
    t.ok(cbor.listed < json.listed, `a list has ${cbor.listed} bytes instead of ${json.listed}`);
    const allowed = await controllerMediaTypes({ ClientsAllowCBOR: true });
    t.same(allowed, { ...json, rejected: false }, "a server without CBOR");
  },
  ClientsPreferCBOR: async (t) => {
    t.equal((await controllerMediaTypes({ ClientsAllowCBOR: true })).rejected, false);
    t.equal((await controllerMediaTypes({ ClientsPreferCBOR: true })).rejected, false, "CBOR is not allowed");
    const both = { ClientsAllowCBOR: true, ClientsPreferCBOR: true };
    t.equal((await controllerMediaTypes(both)).rejected, true, "a server without CBOR");
    t.equal((await controllerMediaTypes({ ...both, CBORServingAndStorage: true })).rejected, false);
  },
  WatchListClient: async (t) => {
    t.equal(await streamsLists({}), false);
    t.equal(await streamsLists({ WatchListClient: true }), false, "the server does not support it");
    t.equal(await streamsLists({ WatchList: true, WatchListClient: true }), true);
  },
  StorageVersionMigrator: async (t) => {
    t.same(await requestMigrations(t, {}), { conditions: [[], []], migrated: [] });
    t.same(await requestMigrations(t, { StorageVersionMigrator: true }), {
      conditions: [
        ["Running False StorageVersionMigrationInProgress", "Succeeded True StorageVersionMigrationSucceeded"],
        ["Failed True StorageVersionMigrationFailed resource does not exist in discovery"],
      ],
      migrated: ["/registry/secrets/default/a"],
    });
  },
  SchedulerAsyncPreemption: schedules("SchedulerAsyncPreemption", "asyncPreemption"),
  SchedulerPopFromBackoffQ: schedules("SchedulerPopFromBackoffQ", "popFromBackoff"),
  SchedulerQueueingHints: schedules("SchedulerQueueingHints", "queueingHints"),
  StorageCapacityScoring: schedules("StorageCapacityScoring", "storageCapacityScoring"),
};
