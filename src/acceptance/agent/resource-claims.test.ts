/** Dynamic resource allocation from a template to a container: server, controllers, scheduler, agent and driver. */
import { setTimeout } from "node:timers/promises";
import t from "tap";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import {
  betaDeviceClassKind,
  betaResourceClaimKind,
  betaResourceClaimTemplateKind,
  betaResourceSliceKind,
} from "../../api/resource/flat-versions/kinds.ts";
import { createDefaultConfig } from "../../apiserver/config/default-config.ts";
import { createApiServer } from "../../apiserver/server.ts";
import { createClient } from "../../client/api-client.ts";
import type { Transport } from "../../client/client.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { startFakeClaimDriver } from "../../testing/agent/fake-claim-driver.ts";
import { createTestAgent } from "../../testing/agent/flag-harness.ts";
import { until } from "../../testing/std/until.ts";

const DRIVER = "gpu.example.com";
const GATES = { DynamicResourceAllocation: true };
const namespace = "default";

async function startServer(t: { teardown(stop: () => Promise<void>): void }) {
  const config = createDefaultConfig(GATES);
  const controllers = ["garbage-collector", "node-lifecycle", "resourceclaim", "scheduler"];
  const { server } = await createApiServer(
    {
      ...config,
      authorizationModes: ["Node", "RBAC"],
      embeddedControllers: controllers,
      garbageCollector: true,
      apis: { ...config.apis, runtimeConfig: { "resource.k8s.io/v1beta1": "true" } },
    },
    { clock: systemClock, log: silentLogger },
    () => "",
  );
  t.teardown(async () => await server[Symbol.asyncDispose]());
  const connect = (name: string, group: string): Transport => {
    const token = server.loopbackToken({ name, uid: "", groups: [group, "system:authenticated"], extra: {} });
    return (request) =>
      server.handler({ ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } });
  };
  return { connect, client: createClient({ transport: connect("admin", "system:masters") }) };
}

function pod(name: string): Pod {
  const resources = { claims: [{ name: "gpu" }] };
  const container = { name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent", resources } as const;
  return {
    metadata: { name, namespace },
    spec: {
      restartPolicy: "Never",
      resourceClaims: [{ name: "gpu", resourceClaimTemplateName: "large" }],
      containers: [container],
    },
  };
}

t.test("a pod gets a device from a template by a driver, and releases it for the next pod", async (t) => {
  const { connect, client } = await startServer(t);
  const flags = { "feature-gates": "DynamicResourceAllocation=true", "sync-frequency": "1s" };
  await using agent = await createTestAgent("flag", flags, connect("system:node:n1", "system:nodes"));
  await agent.start();
  await using driver = await startFakeClaimDriver({
    name: DRIVER,
    rootDir: agent.config.rootDir,
    async prepare({ name = "" }) {
      const { status } = await client.get(betaResourceClaimKind, { namespace, name });
      return (status?.allocation?.devices?.results ?? []).map(({ request, pool, device }) => ({
        requestNames: [request],
        poolName: pool,
        deviceName: device,
        cdiDeviceIds: [`${DRIVER}/gpu=${device}`],
      }));
    },
  });
  await agent.until("the driver is registered", () => driver.calls.includes("registered"));

  const memory = (value: string) => ({ basic: { capacity: { memory: { value } } } });
  const devices = [
    { name: "small", ...memory("8Gi") },
    { name: "large", ...memory("80Gi") },
  ];
  const pool = { name: "n1", generation: 1, resourceSliceCount: 1 };
  const spec = { driver: DRIVER, nodeName: "n1", pool, devices };
  await client.create(betaResourceSliceKind, { metadata: { name: "n1-gpu" }, spec });
  const select = (expression: string) => [{ cel: { expression } }];
  const selectors = select(`device.driver == "${DRIVER}"`);
  await client.create(betaDeviceClassKind, { metadata: { name: "gpu" }, spec: { selectors } });
  const expression = `device.capacity["${DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0`;
  const request = { name: "gpu", deviceClassName: "gpu", selectors: select(expression) };
  const template = { metadata: { name: "large", namespace }, spec: { spec: { devices: { requests: [request] } } } };
  await client.create(betaResourceClaimTemplateKind, template);

  const find = async (name: string) => await client.get(podKind, { namespace, name }).catch(() => undefined);
  const untilPod = async (what: string, name: string, holds: (pod: Pod | undefined) => boolean) => {
    let found: Pod | undefined;
    let reading: Promise<void> | undefined;
    await agent.until(`${name} ${what}`, () => {
      reading ??= find(name).then((pod) => {
        found = pod;
        reading = undefined;
      });
      return found !== undefined || what === "is gone" ? holds(found) : false;
    });
    await reading;
    return found;
  };
  await client.create(podKind, pod("first"));
  const first = await untilPod("runs", "first", (found) => found?.status?.phase === "Running");
  const [named] = first?.status?.resourceClaimStatuses ?? [];
  t.match(named?.resourceClaimName, /^first-gpu-[a-z0-9]{5}$/);
  const claimName = named?.resourceClaimName ?? "";
  const claim = await client.get(betaResourceClaimKind, { namespace, name: claimName });
  t.match(claim, {
    metadata: {
      finalizers: ["resource.kubernetes.io/delete-protection"],
      annotations: { "resource.kubernetes.io/pod-claim-name": "gpu" },
      ownerReferences: [{ kind: "Pod", name: "first", controller: true }],
    },
    status: {
      allocation: {
        devices: { results: [{ request: "gpu", driver: DRIVER, pool: "n1", device: "large" }] },
        nodeSelector: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", values: ["n1"] }] }] },
      },
      reservedFor: [{ resource: "pods", name: "first", uid: first?.metadata?.uid }],
    },
  });
  const created = agent.fake.calls.findLast(({ method }) => method === "createContainer")?.request;
  t.match(created, { config: { CDIDevices: [{ name: `${DRIVER}/gpu=large` }] } });
  t.ok(driver.calls.includes(`prepare ${claimName}`));

  await client.create(podKind, pod("second"));
  const waits = (found: Pod | undefined) => (found?.status?.conditions ?? []).some(({ message }) => Boolean(message));
  const second = await untilPod("waits", "second", waits);
  t.equal(
    second?.status?.conditions?.[0]?.message,
    "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, " +
      "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
  );

  await client.delete(podKind, { namespace, name: "first" }, { gracePeriodSeconds: 1 });
  await untilPod("runs", "second", (found) => found?.status?.phase === "Running");
  t.ok(driver.calls.includes(`unprepare ${claimName}`));
  await untilPod("is gone", "first", (found) => found === undefined);
  const left = await client.list(betaResourceClaimKind, { namespace });
  t.notOk(left.items.some(({ metadata }) => metadata?.name === claimName));

  await driver[Symbol.asyncDispose]();
  const hasSlices = async () => (await client.list(betaResourceSliceKind)).items.length > 0;
  t.ok(await hasSlices(), "the driver may come back");
  const wait = async () => {
    await setTimeout(10);
    await agent.clock.advance(1_000);
  };
  await until("the slices of the driver are gone", async () => !(await hasSlices()), { wait });
});
