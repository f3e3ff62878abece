import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Container } from "../../api/core/container/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { systemClock } from "../../std/time/clock.ts";
import { makeDevices, startFakeDevicePlugin } from "../../testing/agent/fake-device-plugin.ts";
import { fakeMachines, writeFakeMachine } from "../../testing/agent/fake-machine.ts";
import { pinnedConfig } from "../../testing/agent/manager-config.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { UnixChannel } from "../plugins/unix-channel.ts";
import { serveUnix } from "../plugins/unix-server.ts";
import { deviceRegistration, type RegisterRequest } from "../resource-managers/devices/messages.ts";
import { ResourceManagers } from "../resource-managers/resource-managers.ts";
import { readMachineTopology } from "../resource-managers/topology/machine-topology.ts";
import { podResourcesLister } from "./messages.ts";
import { servePodResources } from "./pod-resources.ts";

const GIB = 2 ** 30;
const GPU = "example.com/gpu";
const list = { cpu: "2", memory: "1Gi", [GPU]: "2" };
const containers: readonly Container[] = [
  { name: "pinned", resources: { limits: list, requests: list } },
  { name: "plain", resources: { limits: { cpu: "100m", memory: "1Mi" }, requests: { cpu: "100m", memory: "1Mi" } } },
];
const pod: Pod = { metadata: { name: "web", namespace: "shop", uid: "u" }, spec: { containers: [...containers] } };

async function open(stack: AsyncDisposableStack, servesGet: boolean) {
  const directory = await mkdtemp(join(tmpdir(), "svc-res-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  await writeFakeMachine(join(directory, "sys"), fakeMachines.dualSocketHt);
  const registry = new MetricRegistry();
  const clock = new FakeClock();
  const managers = await ResourceManagers.open({
    config: { ...pinnedConfig("single-numa-node"), servesPodResourcesGet: servesGet },
    rootDir: directory,
    machine: await readMachineTopology(join(directory, "sys"), GIB),
    reservation: { cpu: "1", memory: "1Gi" },
    runtime: { updateContainerResources: async () => ({}) },
    activePods: () => undefined,
    runningPods: () => [],
    onDevicesChange: () => {},
    registry,
    clock,
    log: silentLogger,
  });
  const { devices } = managers;
  stack.use(devices);
  stack.use(
    await serveUnix(join(directory, "device-plugins/kubelet.sock"), deviceRegistration, {
      register: async (request: RegisterRequest) => {
        await devices.registerByCall(request);
        return {};
      },
    }),
  );
  const socket = join(directory, "pod-resources/kubelet.sock");
  stack.use(await servePodResources({ socket, managers, devices, pods: () => [pod], servesGet, registry, clock }));
  const plugin = stack.use(
    await startFakeDevicePlugin({
      directory: join(directory, "device-plugins"),
      resource: GPU,
      devices: [...makeDevices("a", 1, 0), ...makeDevices("b", 2, 1)],
    }),
  );
  await plugin.register();
  await until("the devices are known", () => devices.getCapacity().capacity[GPU] === "3");
  const channel = stack.use(new UnixChannel(socket, systemClock));
  return { managers, registry, clock, channel };
}

const limits = { timeoutMs: 5_000 };
const node1 = { nodes: [{ id: 1n }] };

t.test("List and Get have the CPUs, the memory and the devices of each container", async (t) => {
  await using stack = new AsyncDisposableStack();
  const { managers, channel, registry } = await open(stack, true);
  t.equal(await managers.admit(pod), undefined);
  const expected = {
    name: "web",
    namespace: "shop",
    containers: [
      {
        name: "pinned",
        cpuIds: [3n, 9n],
        memory: [{ memoryType: "memory", size: BigInt(GIB), topology: node1 }],
        devices: [
          { resourceName: GPU, deviceIds: ["b0"], topology: node1 },
          { resourceName: GPU, deviceIds: ["b1"], topology: node1 },
        ],
      },
      { name: "plain", memory: [{ memoryType: "memory", size: BigInt(2 ** 20) }] },
    ],
  };
  t.match(await channel.call(podResourcesLister.list, {}, limits), { podResources: [expected] });
  const one = { podName: "web", podNamespace: "shop" };
  t.match(await channel.call(podResourcesLister.get, one, limits), { podResources: expected });
  await t.rejects(
    channel.call(podResourcesLister.get, { ...one, podName: "no" }, limits),
    /pod no in namespace shop not/,
  );
  const text = formatMetrics([registry], "prometheus");
  t.match(text, /^kubelet_pod_resources_endpoint_requests_total{server_api_version="v1"} 3$/m);
  t.match(text, /^kubelet_pod_resources_endpoint_requests_list{server_api_version="v1"} 1$/m);
  t.match(text, /^kubelet_pod_resources_endpoint_errors_get{server_api_version="v1"} 1$/m);
});

t.test("GetAllocatableResources has what the node can assign", async (t) => {
  await using stack = new AsyncDisposableStack();
  const { channel } = await open(stack, false);
  const allocatable = await channel.call(podResourcesLister.getAllocatableResources, {}, limits);
  t.match(allocatable, {
    cpuIds: [1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n, 10n, 11n],
    memory: [
      { memoryType: "memory", size: BigInt(7 * GIB), topology: { nodes: [{ id: 0n }] } },
      { memoryType: "memory", size: BigInt(8 * GIB), topology: node1 },
    ],
    devices: [{ deviceIds: ["a0"] }, { deviceIds: ["b0"] }, { deviceIds: ["b1"] }],
  });
  await t.rejects(channel.call(podResourcesLister.get, {}, limits), /PodResources API Get method disabled/);
});

t.test("requests beyond the rate are refused", async (t) => {
  await using stack = new AsyncDisposableStack();
  const { channel, clock } = await open(stack, false);
  const calls = Array.from({ length: 11 }, () => channel.call(podResourcesLister.list, {}, limits));
  const results = await Promise.allSettled(calls);
  t.equal(results.filter(({ status }) => status === "rejected").length, 1);
  await t.rejects(channel.call(podResourcesLister.list, {}, limits), /rejected by rate limit/);
  await clock.advance(10);
  await t.resolves(channel.call(podResourcesLister.list, {}, limits));
});
