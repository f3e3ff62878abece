import t from "tap";
import { leaseKind } from "../../../api/coordination/lease/kind.ts";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { eventKind } from "../../../api/core/event/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { resourceQuotaKind } from "../../../api/core/resource-quota/kind.ts";
import type { ResourceQuota } from "../../../api/core/resource-quota/schema.ts";
import { serviceKind } from "../../../api/core/service/kind.ts";
import type { Service } from "../../../api/core/service/schema.ts";
import type { ApiObject, Kind } from "../../../api/kind.ts";
import {
  pluginDeps,
  type RequestFields,
  rejectionOf,
  runPlugin,
} from "../../../testing/admission/admission-fixture.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";
import type { ObjectWriter } from "../../chain/plugin.ts";
import { evaluatorOf } from "./evaluators.ts";
import { resourceQuota } from "./resource-quota.ts";

type Amounts = Readonly<Record<string, string>>;

function quotaOf(hard: Amounts, used: Amounts, spec: object = {}, name = "quota"): ResourceQuota {
  const metadata = { name, namespace: "default", resourceVersion: "1" };
  return { metadata, spec: { hard, ...spec }, status: { hard, used } } as ResourceQuota;
}

function pod(spec: object = {}, resources: object = {}): Pod {
  const containers = [{ name: "a", image: "web:1", resources }];
  return { metadata: { name: "web", namespace: "default" }, spec: { containers, ...spec } } as Pod;
}

function configurationWith(limitedResources: readonly object[]): PluginConfiguration {
  const value = { apiVersion: "apiserver.config.k8s.io/v1", kind: "ResourceQuotaConfiguration", limitedResources };
  return { value, locationOf: (path) => `file:${path}`, duplicates: [] };
}

interface Result {
  readonly why: string;
  /** The usage that was written, by quota. */
  readonly used: Readonly<Record<string, Amounts>>;
}

async function charge<T extends ApiObject>(
  quotas: readonly ResourceQuota[],
  kind: Kind<T>,
  object: T,
  fields: RequestFields = {},
  configuration?: PluginConfiguration,
): Promise<Result> {
  const used: Record<string, Amounts> = {};
  const writer: Pick<ObjectWriter, "update"> = {
    async update(_kind, { name }, next) {
      const after = next(quotas.find(({ metadata }) => metadata?.name === name) as never);
      used[name] = (after as ResourceQuota).status?.used ?? {};
      return after;
    },
  };
  const present = quotas.map((quota) => [resourceQuotaKind, quota] as const);
  const plugin = resourceQuota(pluginDeps(present, { writer: writer as ObjectWriter, configuration }));
  return { why: await rejectionOf(runPlugin(plugin, kind, object, fields)), used };
}

t.test("resourceQuota charges the requested resources to every matching quota of the namespace", async (t) => {
  const quotas = [
    quotaOf({ pods: "2", "requests.cpu": "1" }, { pods: "1", "requests.cpu": "500m" }),
    quotaOf({ "limits.memory": "2Gi" }, { "limits.memory": "1Gi" }, {}, "memory"),
    quotaOf({ configmaps: "1" }, { configmaps: "1" }, {}, "maps"),
  ];
  const resources = { requests: { cpu: "250m" }, limits: { memory: "512Mi" } };
  t.same(await charge(quotas, podKind, pod({}, resources)), {
    why: "",
    used: { quota: { pods: "2", "requests.cpu": "750m" }, memory: { "limits.memory": "1536Mi" } },
  });
  t.same((await charge(quotas, podKind, pod({}, resources), { dryRun: true })).used, {}, "a dry run is not charged");
});

t.test("resourceQuota rejects a request that exceeds a quota, without charging any", async (t) => {
  const quotas = [
    quotaOf({ pods: "9", cpu: "1", memory: "1Gi" }, { pods: "1", cpu: "900m", memory: "1Gi" }),
    quotaOf({ "count/pods": "5" }, { "count/pods": "1" }, {}, "second"),
  ];
  const tooLarge = pod({}, { requests: { cpu: "200m", memory: "1Mi" } });
  t.same(await charge(quotas, podKind, tooLarge), {
    why:
      'pods "web" is forbidden: exceeded quota: quota, requested: cpu=200m,memory=1Mi, ' +
      "used: cpu=900m,memory=1Gi, limited: cpu=1,memory=1Gi",
    used: {},
  });
  t.same(
    (await charge(quotas, podKind, tooLarge, { dryRun: true })).why.slice(0, 40),
    'pods "web" is forbidden: exceeded quota:',
  );
});

t.test("resourceQuota requires that each container specifies a limited resource", async (t) => {
  const quotas = [
    quotaOf({ "requests.cpu": "9", "limits.memory": "9Gi" }, { "requests.cpu": "0", "limits.memory": "0" }),
  ];
  const containers = [{ name: "b" }, { name: "a", resources: { requests: { cpu: "1" } } }];
  const { why } = await charge(quotas, podKind, pod({ containers, initContainers: [{ name: "c" }] }));
  t.equal(
    why,
    'pods "web" is forbidden: failed quota: quota: must specify limits.memory for: a,b,c; requests.cpu for: b,c',
  );
  const resources = { requests: { cpu: "1" }, limits: { memory: "1Gi" } };
  t.match((await charge(quotas, podKind, pod({ containers, resources }))).why, "", "the pod as a whole specifies them");
});

t.test("resourceQuota rejects requests while the usage of a quota is unknown", async (t) => {
  const { why } = await charge(
    [quotaOf({ pods: "1", cpu: "1" }, { cpu: "0" })],
    podKind,
    pod({}, { requests: { cpu: "1" } }),
  );
  t.equal(why, 'pods "web" is forbidden: status unknown for quota: quota, resources: cpu,pods');
  const unseen = { ...quotaOf({ pods: "0" }, {}), status: undefined };
  t.equal((await charge([unseen], podKind, pod())).why, "", "a quota without status does not limit anything");
});

const affinity = { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ namespaces: ["other"] }] } };
const scopeCases: readonly (readonly [object, Pod, boolean])[] = [
  [{ scopes: ["Terminating"] }, pod({ activeDeadlineSeconds: 5 }), true],
  [{ scopes: ["Terminating"] }, pod(), false],
  [{ scopes: ["NotTerminating"] }, pod(), true],
  [{ scopes: ["BestEffort"] }, pod(), true],
  [{ scopes: ["BestEffort"] }, pod({}, { requests: { cpu: "1" } }), false],
  [{ scopes: ["NotBestEffort", "Terminating"] }, pod({}, { requests: { cpu: "1" } }), false],
  [{ scopes: ["NotBestEffort", "NotTerminating"] }, pod({}, { requests: { cpu: "1" } }), true],
  [{ scopes: ["CrossNamespacePodAffinity"] }, pod({ affinity }), true],
  [{ scopes: ["CrossNamespacePodAffinity"] }, pod({ affinity: { podAffinity: {} } }), false],
  [{ scopes: ["PriorityClass"] }, pod({ priorityClassName: "high" }), true],
  [{ scopes: ["PriorityClass"] }, pod(), false],
  [{ scopeSelector: selector("In", ["high"]) }, pod({ priorityClassName: "high" }), true],
  [{ scopeSelector: selector("In", ["high"]) }, pod({ priorityClassName: "low" }), false],
  [{ scopeSelector: selector("NotIn", ["high"]) }, pod(), true],
  [{ scopeSelector: selector("DoesNotExist", []) }, pod(), true],
  [{ scopeSelector: selector("DoesNotExist", []) }, pod({ priorityClassName: "low" }), false],
];
function selector(operator: string, values: readonly string[]): object {
  return { matchExpressions: [{ scopeName: "PriorityClass", operator, values }] };
}
t.test("resourceQuota counts objects that match all scopes of a quota", async (t) => {
  for (const [spec, object, isCounted] of scopeCases) {
    const { used } = await charge([quotaOf({ pods: "9" }, { pods: "0" }, spec)], podKind, object);
    t.same(used, isCounted ? { quota: { pods: "1" } } : {}, JSON.stringify([spec, object.spec]));
  }
  const map = { metadata: { name: "m", namespace: "default" } };
  const scoped = quotaOf({ configmaps: "0" }, { configmaps: "0" }, { scopes: ["BestEffort"] });
  t.equal((await charge([scoped], configMapKind, map)).why, "", "scopes do not apply to config maps");
});

t.test("evaluatorOf() returns the usage of each kind", (t) => {
  const usage = <T extends ApiObject>(kind: Kind<T>, object: object): Amounts =>
    Object.fromEntries(
      [...(evaluatorOf(kind)?.usage(object as ApiObject) ?? [])]
        .map(([name, { nanos }]) => [name, String(nanos / 1_000_000_000n)] as const)
        .filter(([, amount]) => amount !== "0"),
    );
  const ports = [{ port: 1 }, { port: 2, nodePort: 30000 }];
  const service = (spec: object): Service => ({ spec: { ports, ...spec } }) as Service;
  const services = { "count/services": "1", services: "1" };
  t.same(usage(serviceKind, service({ type: "ClusterIP" })), services);
  t.same(usage(serviceKind, service({ type: "NodePort" })), { ...services, "services.nodeports": "2" });
  const balancer = { ...services, "services.loadbalancers": "1" };
  t.same(usage(serviceKind, service({ type: "LoadBalancer" })), { ...balancer, "services.nodeports": "2" });
  const bare = service({ type: "LoadBalancer", allocateLoadBalancerNodePorts: false });
  t.same(usage(serviceKind, bare), { ...balancer, "services.nodeports": "1" });
  const claim = { spec: { storageClassName: "gold", resources: { requests: { storage: "1500m" } } } };
  t.same(usage(persistentVolumeClaimKind, claim), {
    "count/persistentvolumeclaims": "1",
    persistentvolumeclaims: "1",
    "requests.storage": "2",
    "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
    "gold.storageclass.storage.k8s.io/requests.storage": "2",
    "gold.storageclass.storage.svc.io/persistentvolumeclaims": "1",
    "gold.storageclass.storage.svc.io/requests.storage": "2",
  });
  const requests = { cpu: "1", "hugepages-2Mi": "4Mi", "a.b/gpu": "2" };
  t.same(usage(podKind, pod({ overhead: { cpu: "1", memory: "1" } }, { requests, limits: { cpu: "3" } })), {
    "count/pods": "1",
    pods: "1",
    cpu: "2",
    "requests.cpu": "2",
    "limits.cpu": "4",
    memory: "1",
    "requests.memory": "1",
    "hugepages-2Mi": "4194304",
    "requests.hugepages-2Mi": "4194304",
    "requests.a.b/gpu": "2",
  });
  t.same(usage(podKind, { ...pod(), status: { phase: "Failed" } }), { "count/pods": "1" });
  t.same(usage(configMapKind, {}), { "count/configmaps": "1", configmaps: "1" });
  t.same(usage(leaseKind, {}), { "count/leases.coordination.k8s.io": "1", "count/leases.coordination.svc.io": "1" });
  t.same(usage(eventKind, {}), {});
  t.end();
});

t.test("resourceQuota charges only the increase of an update", async (t) => {
  const claim = (storage: string): PersistentVolumeClaim =>
    ({
      metadata: { name: "c", namespace: "default" },
      spec: { resources: { requests: { storage } } },
    }) as PersistentVolumeClaim;
  const hard = { "requests.storage": "10Gi", persistentvolumeclaims: "1" };
  const quotas = [quotaOf(hard, { "requests.storage": "8Gi", persistentvolumeclaims: "1" })];
  const update = (from: string, to: string) =>
    charge(quotas, persistentVolumeClaimKind, claim(to), { oldObject: claim(from) });
  t.same((await update("1Gi", "3Gi")).used, { quota: { persistentvolumeclaims: "1", "requests.storage": "10Gi" } });
  t.same((await update("3Gi", "1Gi")).used, {}, "the controller subtracts a decrease");
  t.same((await update("1Gi", "1Gi")).used, {});
  t.match((await update("1Gi", "4Gi")).why, "requested: requests.storage=3Gi, used: requests.storage=8Gi");
  const sized = (cpu: string): Pod => pod({}, { requests: { cpu } });
  const resize = { oldObject: sized("2"), subresource: "resize" };
  const full = [quotaOf({ cpu: "2" }, { cpu: "2" })];
  t.same((await charge(full, podKind, sized("1"), resize)).used, { quota: { cpu: "1" } });
  t.match((await charge(full, podKind, sized("3"), resize)).why, "exceeded quota");
});

t.test("resourceQuota rejects limited resources that no quota covers", async (t) => {
  const matchScopes = [{ scopeName: "PriorityClass", operator: "In", values: ["high"] }];
  const limited = configurationWith([
    { resource: "persistentvolumeclaims", matchContains: ["gold.storageclass"] },
    { resource: "pods", matchScopes },
  ]);
  const claim = {
    metadata: { name: "c", namespace: "default" },
    spec: { storageClassName: "gold", resources: { requests: { storage: "1Gi" } } },
  } as PersistentVolumeClaim;
  t.match(
    (await charge([], persistentVolumeClaimKind, claim, {}, limited)).why,
    /^persistentvolumeclaims "c" is forbidden: insufficient quota to consume: gold.storageclass.storage/,
  );
  const high = pod({ priorityClassName: "high" });
  t.equal(
    (await charge([], podKind, high, {}, limited)).why,
    "insufficient quota to match these scopes: [{PriorityClass In [high]}]",
  );
  t.equal((await charge([], podKind, pod(), {}, limited)).why, "");
  const covering = quotaOf({ pods: "1" }, { pods: "0" }, { scopeSelector: selector("In", ["high"]) });
  t.equal((await charge([covering], podKind, high, {}, limited)).why, "");
});

t.test("resourceQuota rejects an invalid configuration", (t) => {
  const make = (configuration: PluginConfiguration) => () => resourceQuota(pluginDeps([], { configuration }));
  t.throws(make(configurationWith([{ matchContains: ["a"] }])), {
    message: "Cannot use file:limitedResources[0].resource: limitedResources[0].resource: it is missing",
  });
  const before = { apiVersion: "resourcequota.admission.k8s.io/v1beta1", kind: "Configuration" };
  t.doesNotThrow(make({ ...configurationWith([]), value: before }));
  t.throws(make({ ...configurationWith([]), value: { ...before, kind: "Other" } }), /expected apiVersion/);
  t.end();
});
