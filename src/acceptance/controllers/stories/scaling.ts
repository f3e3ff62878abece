/** A budget of pods that are evicted, and a deployment that is scaled by a metric. */
import { deploymentKind } from "../../../api/apps/deployment/kind.ts";
import { replicaSetKind } from "../../../api/apps/replica-set/kind.ts";
import { horizontalPodAutoscalerKind } from "../../../api/autoscaling/horizontal-pod-autoscaler/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import { podDisruptionBudgetKind } from "../../../api/policy/pod-disruption-budget/kind.ts";
import { StatusError } from "../../../api/status.ts";
import type { HttpResponse } from "../../../http/message.ts";
import { formatTime } from "../../../schema/value/time.ts";
import type { Story } from "./story.ts";

const labels = { app: "web" };
const selector = { matchLabels: labels };
const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "img:1" }] } };

export const budgetStory: Story = {
  title: "a disruption budget",
  controllers: ["disruption", "replicaset"],
  async play(scene) {
    const { client, namespace } = scene;
    await client.create(replicaSetKind, {
      metadata: { name: "web", namespace },
      spec: { replicas: 3, selector, template },
    });
    const spec = { minAvailable: 2, selector };
    await client.create(podDisruptionBudgetKind, { metadata: { name: "b", namespace }, spec });
    const statusOf = async () => (await client.get(podDisruptionBudgetKind, { name: "b", namespace })).status;
    let code = 0;
    const read = async () => {
      const { currentHealthy, desiredHealthy, expectedPods, disruptionsAllowed, conditions } = (await statusOf()) ?? {};
      const allowed = conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
      return { currentHealthy, desiredHealthy, expectedPods, disruptionsAllowed, allowed, code };
    };
    const evict = async (): Promise<void> => {
      const { items } = await client.list(podKind, { namespace });
      const name = items.find(({ metadata }) => metadata?.deletionTimestamp === undefined)?.metadata?.name ?? "";
      const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
      code = await client.createSubresource(podKind, { name, namespace }, "eviction", body).then(
        () => 201,
        (error: unknown) => (error instanceof StatusError ? (error.status.code ?? 0) : 0),
      );
    };
    const isDone = async (): Promise<boolean> => {
      const { items } = await client.list(podKind, { namespace });
      return items.length === 3 && (await statusOf())?.currentHealthy === 3;
    };
    await scene.step(read, isDone);
    await evict();
    await scene.step(read, isDone);
    await client.patch(podDisruptionBudgetKind, { name: "b", namespace }, "merge", { spec: { minAvailable: "100%" } });
    await scene.step(read, isDone);
    await evict();
    await scene.step(read, isDone);
  },
};

export const autoscalerStory: Story = {
  title: "a deployment that is scaled by a metric",
  controllers: ["deployment", "horizontalpodautoscaling", "replicaset"],
  answer({ shared, clock }, { path }): HttpResponse | undefined {
    if (!path.startsWith("/apis/external.metrics.k8s.io/")) return undefined;
    const timestamp = formatTime(clock.now());
    const list = {
      apiVersion: "external.metrics.k8s.io/v1beta1",
      kind: "ExternalMetricValueList",
      metadata: {},
      items: [{ metricName: "depth", metricLabels: {}, timestamp, value: shared.get("depth") ?? "0" }],
    };
    return { status: 200, headers: { "content-type": "application/json" }, body: Buffer.from(JSON.stringify(list)) };
  },
  async play(scene) {
    const { client, namespace, shared } = scene;
    const name = { name: "web", namespace };
    await client.create(deploymentKind, { metadata: name, spec: { replicas: 1, selector, template } });
    shared.set("depth", "30");
    await client.create(horizontalPodAutoscalerKind, {
      metadata: name,
      spec: {
        scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "web" },
        minReplicas: 1,
        maxReplicas: 6,
        metrics: [
          {
            type: "External",
            external: { metric: { name: "depth" }, target: { type: "AverageValue", averageValue: "10" } },
          },
        ],
        behavior: { scaleDown: { stabilizationWindowSeconds: 0 } },
      },
    });
    const read = async () => {
      const { spec, status } = await client.get(deploymentKind, name);
      const scaler = (await client.get(horizontalPodAutoscalerKind, name)).status;
      return {
        replicas: [spec?.replicas, status?.readyReplicas, scaler?.currentReplicas, scaler?.desiredReplicas],
        conditions: scaler?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`).sort(),
      };
    };
    const reach = (replicas: number) =>
      scene.step(read, async () => (await read()).replicas.every((value) => value === replicas));
    await reach(3);
    shared.set("depth", "100");
    await reach(6);
    shared.set("depth", "15");
    await reach(2);
    await client.delete(horizontalPodAutoscalerKind, name);
  },
};
