/** The metrics of controllers and scheduler: names, labels and buckets of Kubernetes' list, and what they count. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { replicaSetKind } from "../../api/apps/replica-set/kind.ts";
import { jobKind } from "../../api/batch/job/kind.ts";
import { builtinScheme } from "../../api/builtin.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { createApiServer } from "../../apiserver/server.ts";
import { createClient } from "../../client/api-client.ts";
import { startControllers } from "../../controllers/controller-manager.ts";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { HistogramFamily, MetricRegistry } from "../../std/metrics/metrics.ts";
import { createQueueMetrics } from "../../std/metrics/queue-metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { systemClock } from "../../std/time/clock.ts";
import { until } from "../../testing/std/until.ts";

interface ListedMetric {
  readonly namespace?: string;
  readonly subsystem?: string;
  readonly name: string;
  readonly type: string;
  readonly labels?: readonly string[];
  readonly buckets?: readonly number[];
}

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../shared", import.meta.url));

/** Families of these beginnings are the controllers' and the scheduler's. */
const OWN = [
  "attach_detach",
  "cronjob_controller",
  "endpoint_slice",
  "garbagecollector",
  "horizontal_pod",
  "job_controller",
  "node_collector",
  "replicaset_controller",
  "root_ca_cert",
  "running_managed",
  "scheduler_",
  "taint_eviction",
  "ttl_after",
  "workqueue_",
];
/** Kubernetes' names of the queues of those controllers that work as its own do. */
const QUEUES = [
  "ClusterRoleAggregator bootstrap_signer_queue certificate claims cronjob daemonset deployment",
  "disruption endpoint endpoint_slice endpoint_slice_mirroring ephemeral_volume garbage_collector_attempt_to_delete",
  "horizontalpodautoscaler ipaddresses job job_orphan_pod namespace node_lifecycle_controller orphaned_pods_nodes",
  "pvcprotection pvprotection replicaset replicationmanager resourcequota_primary",
  "root_ca_cert_publisher serviceaccount stale_pod_disruption statefulset token_cleaner",
  "ttl_jobs_to_delete ttlcontroller validatingadmissionpolicy-status volume_expand",
].flatMap((line) => line.split(" "));
const namespace = "default";

t.test("controllers and scheduler have the families of Kubernetes' list", { timeout: 120_000 }, async (t) => {
  const config = { ...defaultConfig, authorizationModes: ["Node", "RBAC"] };
  const { server } = await createApiServer(config, { clock: systemClock, log: silentLogger }, () => "");
  t.teardown(() => server[Symbol.asyncDispose]());
  const registry = new MetricRegistry();
  const running = startControllers(["*"], {
    clientFor: (user) =>
      createClient({ transport: server.handler, headers: { authorization: `Bearer ${server.loopbackToken(user)}` } }),
    clusterCa: "ca",
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    kinds: builtinScheme().kinds(),
    registry,
    queueMetrics: createQueueMetrics(registry),
  });
  t.teardown(() => running[Symbol.asyncDispose]());
  const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
  const client = createClient({ transport: server.handler, headers: { authorization: `Bearer ${token}` } });

  const amounts = { cpu: "8", memory: "8Gi", pods: "110" };
  const status = { capacity: amounts, allocatable: amounts, conditions: [{ type: "Ready", status: "True" }] };
  await client.create(nodeKind, { metadata: { name: "n" }, status });
  await client.patch(nodeKind, { name: "n" }, "merge", { spec: { taints: null } });
  const template = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "c", image: "img:1" }] } };
  const selector = { matchLabels: { app: "web" } };
  await client.create(replicaSetKind, {
    metadata: { name: "web", namespace },
    spec: { replicas: 2, selector, template },
  });
  const ports = [{ port: 80 }];
  await client.create(serviceKind, { metadata: { name: "web", namespace }, spec: { selector: { app: "web" }, ports } });
  const pod = { spec: { restartPolicy: "Never" as const, containers: [{ name: "c", image: "img:1" }] } };
  await client.create(jobKind, { metadata: { name: "once", namespace }, spec: { template: pod } });
  const shown = (): string => formatMetrics([registry], "prometheus");
  const podsOfJob = async () => (await client.list(podKind, { namespace, labelSelector: "job-name=once" })).items;
  const [own] = await until("the job's pod", async () => {
    const items = await podsOfJob();
    return items.some(({ spec }) => spec?.nodeName !== undefined) ? items : undefined;
  });
  const name = { name: own?.metadata?.name ?? "", namespace };
  await client.patch(podKind, name, "strategic", { status: { phase: "Succeeded" } }, { subresource: "status" });
  for (const line of [
    'job_controller_jobs_finished_total{completion_mode="NonIndexed",reason="CompletionsReached",result="succeeded"} 1',
    'job_controller_job_pods_finished_total{completion_mode="NonIndexed",result="succeeded"} 1',
    'job_controller_job_pods_creation_total{reason="new",status="succeeded"} 1',
    'job_controller_terminated_pods_tracking_finalizer_total{event="add"} 1',
    'endpoint_slice_controller_changes{operation="create"} 1',
    "endpoint_slice_controller_num_endpoint_slices 1",
    'node_collector_zone_size{zone=""} 1',
    'node_collector_zone_health{zone=""} 100',
    'root_ca_cert_publisher_sync_total{code="200"}',
    'scheduler_plugin_evaluation_total{extension_point="Filter",plugin="NodeResourcesFit",' +
      'profile="default-scheduler"} 3',
    'scheduler_scheduler_cache_size{type="nodes"} 1',
    'workqueue_adds_total{name="replicaset"}',
  ]) {
    await until(
      () => `${line} in\n${shown()}`,
      () => shown().includes(line),
      { timeoutMs: 20_000 },
    );
    t.pass(line);
  }
  const depths = [...shown().matchAll(/^workqueue_depth\{name="([^"]*)"\}/gm)].map(([, queue = ""]) => queue);
  t.same(
    QUEUES.filter((queue) => !depths.includes(queue)),
    [],
    "queues",
  );

  const text = readFileSync(`${shared}/oracles/metrics-list/documentation-list.yaml`, "utf8");
  const listed = parseYaml(text)[0]?.value as readonly ListedMetric[];
  const families = new Map(registry.all().map((family) => [family.options.name, family]));
  for (const metric of listed) {
    const full = [metric.namespace, metric.subsystem, metric.name].filter((part) => part !== undefined).join("_");
    if (!OWN.some((beginning) => full.startsWith(beginning))) continue;
    const family = families.get(full);
    t.ok(family, full);
    if (family === undefined) continue;
    t.equal(family.type, metric.type.toLowerCase(), `type of ${full}`);
    t.same([...family.labels].sort(), metric.labels ?? [], `labels of ${full}`);
    if (family instanceof HistogramFamily && metric.buckets !== undefined) {
      t.same(family.bounds.map(printed), metric.buckets.map(printed), `buckets of ${full}`);
    }
  }
});

/** The list has been written with fewer digits than a number may have. */
function printed(bound: number): string {
  return Number(bound).toPrecision(12);
}
