import t from "tap";
import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import { horizontalPodAutoscalerKind } from "../../api/autoscaling/horizontal-pod-autoscaler/kind.ts";
import type {
  HorizontalPodAutoscalerSpec,
  MetricSpec,
} from "../../api/autoscaling/horizontal-pod-autoscaler/schema.ts";
import { builtinKinds } from "../../api/builtin.ts";
import { eventKind } from "../../api/core/event/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { StatusError } from "../../api/status.ts";
import type { Client } from "../../client/client.ts";
import { createSharedInformers } from "../../client/informer/shared-informers.ts";
import { formatTime } from "../../schema/value/time.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { startInMemoryCluster } from "../../testing/apiserver/in-memory-cluster.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { passTime } from "../../testing/std/pass-time.ts";
import { defaultControllerOptions } from "../controller-options.ts";
import { runAutoscalerController } from "./autoscaler-controller.ts";

const namespace = "default";
const PERIOD_MS = 15_000;
const labels = { app: "web" };

/** A cluster with two ready pods of a deployment, whose metrics the test sets. */
async function startAutoscaler(t: Parameters<typeof startInMemoryCluster>[0]) {
  const clock = new FakeClock();
  const cluster = await startInMemoryCluster(t, { embeddedControllers: ["serviceaccount"] }, clock);
  await passTime(clock, 1000);
  const template = {
    metadata: { labels },
    spec: { containers: [{ name: "c", image: "web:1", resources: { requests: { cpu: "1" } } }] },
  };
  const spec = { replicas: 2, selector: { matchLabels: labels }, template };
  const deployment = await cluster.create(deploymentKind, { metadata: { name: "web", namespace }, spec });
  await cluster.updateStatus(deploymentKind, { ...deployment, status: { replicas: 2 } });
  for (const name of ["a", "b"]) await createReadyPod(cluster, clock, name);
  /** By the path of the request. */
  const answers = new Map<string, unknown>();
  const requests: string[] = [];
  const answer = (path: string): unknown => {
    requests.push(path);
    const found = answers.get(path);
    if (found === undefined) throw new StatusError(404, "NotFound", "the server could not find the requested resource");
    return found;
  };
  const client = new Proxy(cluster, {
    get(target, name: keyof Client) {
      if (name === "list") {
        return async (kind: (typeof builtinKinds)[number], ...rest: [never]) =>
          kind.group.includes("metrics") ? answer(`${kind.group}/${kind.plural}`) : await target.list(kind, ...rest);
      }
      if (name === "getSubresource") {
        return async (kind: (typeof builtinKinds)[number], object: { name: string }, sub: string, ...rest: [never]) =>
          kind.group.includes("metrics")
            ? answer(`${kind.group}/${kind.version}/${kind.plural}/${object.name}/${sub}`)
            : await target.getSubresource(kind, object, sub, ...rest);
      }
      return (...parameters: unknown[]): unknown =>
        (target[name] as (...parameters: unknown[]) => unknown).apply(target, parameters);
    },
  });
  const stop = new AbortController();
  const shared = { clock, random: seededRandom(1), log: silentLogger };
  const informers = createSharedInformers({ client: cluster, ...shared }, stop.signal);
  const running = runAutoscalerController({
    ...shared,
    client,
    observer: cluster,
    informers,
    kinds: builtinKinds,
    options: defaultControllerOptions,
    signal: stop.signal,
  });
  t.teardown(async () => {
    stop.abort();
    await running;
    await informers[Symbol.asyncDispose]();
  });
  await passTime(clock, 100);
  const replicas = async (): Promise<number | undefined> =>
    (await cluster.get(deploymentKind, { name: "web", namespace })).spec?.replicas;
  const status = async () => (await cluster.get(horizontalPodAutoscalerKind, { name: "h", namespace })).status;
  const setUsage = (cpu: string, names = ["a", "b"]): void => {
    const timestamp = formatTime(clock.now() + PERIOD_MS);
    const items = names.map((name) => ({
      metadata: { name, namespace },
      timestamp,
      window: "10s",
      containers: [{ name: "c", usage: { cpu } }],
    }));
    answers.set("metrics.svc.io/pods", { items, resourceVersion: "" });
  };
  return { cluster, clock, answers, requests, replicas, status, setUsage };
}

async function createReadyPod(client: Client, clock: FakeClock, name: string): Promise<void> {
  await client.create(podKind, {
    metadata: { name, namespace, labels },
    spec: { containers: [{ name: "c", image: "web:1", resources: { requests: { cpu: "1" } } }] },
  });
  const at = formatTime(clock.now() - 1000);
  const conditions = [{ type: "Ready", status: "True", lastTransitionTime: at }];
  const patch = { status: { phase: "Running", startTime: at, conditions } };
  await client.patch(podKind, { name, namespace }, "strategic", patch, { subresource: "status" });
}

async function createAutoscaler(
  client: Client,
  metrics: readonly MetricSpec[],
  more: Partial<HorizontalPodAutoscalerSpec> = {},
): Promise<void> {
  const scaleTargetRef = { apiVersion: "apps/v1", kind: "Deployment", name: "web" };
  await client.create(horizontalPodAutoscalerKind, {
    metadata: { name: "h", namespace },
    spec: { scaleTargetRef, maxReplicas: 10, metrics, ...more },
  });
}

const CPU: MetricSpec = {
  type: "Resource",
  resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 50 } },
};

t.test("a target is scaled up at once, and down after the stabilization window", async (t) => {
  const { cluster, clock, replicas, status, setUsage } = await startAutoscaler(t);
  setUsage("900m");
  await createAutoscaler(cluster, [CPU]);
  await passTime(clock, PERIOD_MS + 1000);
  t.equal(await replicas(), 4);
  t.match(await status(), {
    currentReplicas: 2,
    desiredReplicas: 4,
    currentMetrics: [{ type: "Resource", resource: { current: { averageUtilization: 90, averageValue: "900m" } } }],
    conditions: [
      { type: "AbleToScale", status: "True", reason: "SucceededRescale" },
      { type: "ScalingActive", status: "True", reason: "ValidMetricFound" },
      { type: "ScalingLimited", status: "False", reason: "DesiredWithinRange" },
    ],
  });
  for (const name of ["c", "d"]) await createReadyPod(cluster, clock, name);
  setUsage("100m", ["a", "b", "c", "d"]);
  await passTime(clock, PERIOD_MS);
  t.equal(await replicas(), 4);
  t.match((await status())?.conditions?.[0], { reason: "ScaleDownStabilized" });
  await passTime(clock, 5 * 60_000 + PERIOD_MS);
  t.equal(await replicas(), 1);
  const { items } = await cluster.list(eventKind, { namespace });
  const messages = items.map(({ message }) => message);
  t.ok(messages.includes("New size: 4; reason: cpu resource utilization (percentage of request) above target"));
  t.ok(messages.some((message) => message?.endsWith("reason: All metrics below target")));
});

t.test("the highest proposal of pods, object and external metrics counts", async (t) => {
  const { cluster, clock, answers, requests, replicas, status } = await startAutoscaler(t);
  const timestamp = formatTime(clock.now());
  const metricOf = (name: string, value: string) => ({ describedObject: { name }, metricName: "m", timestamp, value });
  answers.set("custom.metrics.k8s.io/v1beta1/pods/*/queue", { items: [metricOf("a", "20"), metricOf("b", "20")] });
  answers.set("custom.metrics.k8s.io/v1beta1/services/main/hits", { items: [metricOf("main", "30")] });
  answers.set("external.metrics.k8s.io/depth", { items: [{ metricName: "depth", timestamp, value: "50" }] });
  await createAutoscaler(cluster, [
    { type: "Pods", pods: { metric: { name: "queue" }, target: { type: "AverageValue", averageValue: "16" } } },
    {
      type: "Object",
      object: {
        describedObject: { apiVersion: "v1", kind: "Service", name: "main" },
        metric: { name: "hits" },
        target: { type: "Value", value: "20" },
      },
    },
    { type: "External", external: { metric: { name: "depth" }, target: { type: "AverageValue", averageValue: "12" } } },
  ]);
  await passTime(clock, PERIOD_MS + 1000);
  t.ok(requests.includes("custom.metrics.k8s.io/v1beta2/pods/*/queue"), "newer version first");
  // 2 * 20 / 16 = 3 of pods, 2 * 30 / 20 = 3 of the object, 50 / 12 = 5 of the queue, limited to twice or four.
  t.equal(await replicas(), 4);
  t.match(await status(), {
    currentMetrics: [
      { type: "Pods", pods: { current: { averageValue: "20" } } },
      { type: "Object", object: { current: { value: "30" }, describedObject: { name: "main" } } },
      { type: "External", external: { current: { averageValue: "25" } } },
    ],
    conditions: [
      {},
      { reason: "ValidMetricFound", message: /external metric depth\(nil\)$/ },
      { reason: "ScaleUpLimit" },
    ],
  });
});

t.test("a pod whose metrics lack the container counts as one without metrics", async (t) => {
  const { cluster, clock, answers, replicas, status } = await startAutoscaler(t);
  const usageOf = (name: string, container: string) => ({
    metadata: { name, namespace },
    timestamp: formatTime(clock.now() + PERIOD_MS),
    window: "10s",
    containers: [{ name: container, usage: { cpu: "900m" } }],
  });
  const container = { name: "cpu", container: "c", target: { type: "Utilization", averageUtilization: 50 } };
  answers.set("metrics.svc.io/pods", { items: [usageOf("a", "c"), usageOf("b", "sidecar")], resourceVersion: "" });
  await createAutoscaler(cluster, [{ type: "ContainerResource", containerResource: container }]);
  await passTime(clock, PERIOD_MS + 1000);
  t.equal(await replicas(), 2, "with no usage of the other pod");
  t.match(await status(), {
    currentMetrics: [{ containerResource: { container: "c", current: { averageUtilization: 90 } } }],
    conditions: [{}, { type: "ScalingActive", status: "True", reason: "ValidMetricFound" }],
  });
});

t.test("a metric that fails does not stop a scale up, but a scale down", async (t) => {
  const { cluster, clock, replicas, status, setUsage } = await startAutoscaler(t);
  const missing: MetricSpec = {
    type: "Pods",
    pods: { metric: { name: "queue" }, target: { type: "AverageValue", averageValue: "16" } },
  };
  setUsage("100m");
  await createAutoscaler(cluster, [CPU, missing]);
  await passTime(clock, PERIOD_MS + 1000);
  t.equal(await replicas(), 2);
  const message =
    "the HPA was unable to compute the replica count: unable to get metric queue: " +
    "unable to fetch metrics from custom metrics API: no known available metric versions found";
  t.match((await status())?.conditions?.[1], { status: "False", reason: "FailedGetPodsMetric", message });
  setUsage("900m");
  await passTime(clock, PERIOD_MS);
  t.equal(await replicas(), 4);
});

t.test("each metric without its API is reported in the condition, its own event and the event of all", async (t) => {
  const depth = { metric: { name: "depth" } };
  const hits = { describedObject: { apiVersion: "v1", kind: "Service", name: "main" }, metric: { name: "hits" } };
  const noApi = (group: string): string => `unable to fetch metrics from ${group} metrics API: `;
  const noCustom = `${noApi("custom")}no known available metric versions found`;
  const NOT_FOUND = "the server could not find the requested resource";
  const noResource = `${noApi("resource")}${NOT_FOUND} (get pods.metrics.k8s.io)`;
  const noDepth = `${noApi("external")}${NOT_FOUND} (get depth.external.metrics.k8s.io)`;
  const noExternal = `unable to get external metric default/depth/nil: ${noDepth}`;
  const noObject = `unable to get metric hits: Service on default main/${noCustom}`;
  const average = { type: "AverageValue", averageValue: "1" };
  const value = { type: "Value", value: "1" };
  const container = { name: "cpu", container: "c", target: { type: "Utilization", averageUtilization: 50 } };
  const usage = `failed to get memory usage: unable to get metrics for resource memory: ${noResource}`;
  const utilization = `failed to get cpu utilization: unable to get metrics for resource cpu: ${noResource}`;
  /** The metric, the reason, the message of the condition, and the error of all metrics. */
  const cases: readonly (readonly [MetricSpec, string, string, string])[] = [
    [
      { type: "External", external: { ...depth, target: value } },
      "FailedGetExternalMetric",
      noExternal,
      `failed to get depth external metric value: failed to get external metric depth: ${noExternal}`,
    ],
    [
      { type: "External", external: { ...depth, target: average } },
      "FailedGetExternalMetric",
      noExternal,
      `failed to get depth external metric value: failed to get depth external metric: ${noExternal}`,
    ],
    [
      { type: "Object", object: { ...hits, target: value } },
      "FailedGetObjectMetric",
      noObject,
      `failed to get object metric value: ${noObject}`,
    ],
    [
      { type: "Object", object: { ...hits, target: average } },
      "FailedGetObjectMetric",
      noObject,
      `failed to get object metric value: failed to get hits object metric: ${noObject}`,
    ],
    [
      { type: "Resource", resource: { name: "memory", target: average } },
      "FailedGetResourceMetric",
      usage,
      `failed to get memory resource metric value: ${usage}`,
    ],
    [
      { type: "ContainerResource", containerResource: container },
      "FailedGetContainerResourceMetric",
      utilization,
      `failed to get c container metric value: ${utilization}`,
    ],
  ];
  for (const [metric, reason, message, summary] of cases) {
    const { cluster, clock, status } = await startAutoscaler(t);
    await createAutoscaler(cluster, [metric]);
    await passTime(clock, PERIOD_MS + 1000);
    const condition = (await status())?.conditions?.find(({ type }) => type === "ScalingActive");
    t.match(condition, {
      status: "False",
      reason,
      message: `the HPA was unable to compute the replica count: ${message}`,
    });
    const { items } = await cluster.list(eventKind, { namespace });
    const messageOf = (reason: string) => items.find((event) => event.reason === reason)?.message;
    t.equal(messageOf(reason), message);
    t.equal(
      messageOf("FailedComputeMetricsReplicas"),
      `invalid metrics (1 invalid out of 1), first error is: ${summary}`,
    );
  }
});

t.test("an object metric of an unknown kind, and one of which the API has no single value, are reported", async (t) => {
  const { cluster, clock, answers, status } = await startAutoscaler(t);
  const metric = (kind: string): MetricSpec => ({
    type: "Object",
    object: {
      describedObject: { apiVersion: "example.com/v1", kind, name: "main" },
      metric: { name: "hits" },
      target: { type: "Value", value: "1" },
    },
  });
  const message = async (): Promise<string | undefined> => {
    await passTime(clock, PERIOD_MS + 1000);
    return (await status())?.conditions?.find(({ type }) => type === "ScalingActive")?.message;
  };
  const prefix = "unable to fetch metrics from custom metrics API: ";
  await createAutoscaler(cluster, [metric("Queue")]);
  t.match(await message(), new RegExp(`${prefix}no known available metric versions found$`));
  answers.set("custom.metrics.k8s.io/v1beta2/queues.example.com/main/hits", { items: [] });
  t.match(
    await message(),
    new RegExp(
      `${prefix}unable to map kind Queue.example.com to resource: no matches for kind "Queue" in group "example.com"$`,
    ),
  );
  const service: MetricSpec = {
    type: "Object",
    object: {
      describedObject: { apiVersion: "v1", kind: "Service", name: "main" },
      metric: { name: "hits" },
      target: { type: "Value", value: "1" },
    },
  };
  answers.set("custom.metrics.k8s.io/v1beta2/services/main/hits", { items: [] });
  await cluster.patch(horizontalPodAutoscalerKind, { name: "h", namespace }, "merge", { spec: { metrics: [service] } });
  t.match(
    await message(),
    new RegExp(`${prefix}the custom metrics API server returned 0 results when we asked for exactly one$`),
  );
});

t.test("a target that cannot be scaled is reported; a target with zero replicas is left alone", async (t) => {
  const { cluster, clock, replicas, status, setUsage } = await startAutoscaler(t);
  setUsage("900m");
  const scaleTargetRef = { apiVersion: "example.com/v1", kind: "Web", name: "web" };
  await createAutoscaler(cluster, [CPU], { scaleTargetRef });
  await passTime(clock, PERIOD_MS + 1000);
  const why = 'no matches for kind "Web" in group "example.com"';
  t.match((await status())?.conditions, [
    { type: "AbleToScale", status: "False", reason: "FailedGetScale", message: new RegExp(`scale: ${why}$`) },
  ]);
  const autoscaler = await cluster.get(horizontalPodAutoscalerKind, { name: "h", namespace });
  const target = { ...scaleTargetRef, apiVersion: "apps/v1", kind: "Deployment" };
  await cluster.update(horizontalPodAutoscalerKind, {
    ...autoscaler,
    spec: { ...autoscaler.spec!, scaleTargetRef: target },
  });
  await cluster.patch(deploymentKind, { name: "web", namespace }, "merge", { spec: { replicas: 0 } });
  await passTime(clock, PERIOD_MS);
  t.equal(await replicas(), 0);
  t.match((await status())?.conditions?.[1], { type: "ScalingActive", status: "False", reason: "ScalingDisabled" });
});
