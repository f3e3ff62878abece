import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { formatMetrics } from "../../../std/metrics/text-format.ts";
import {
  type FakePluginOptions,
  makeDevices,
  startFakeDevicePlugin,
} from "../../../testing/agent/fake-device-plugin.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { until } from "../../../testing/std/until.ts";
import { serveUnix } from "../../plugins/unix-server.ts";
import { emptyObservation, type ObservedContainer } from "../../runtime/observation.ts";
import { maskOf, nodesOf } from "../topology/numa-mask.ts";
import type { TopologyHint } from "../topology/topology-hint.ts";
import { readDeviceCheckpoint } from "./device-checkpoint.ts";
import { DeviceManager } from "./device-manager.ts";
import { deviceRegistration, type RegisterRequest } from "./messages.ts";

const GPU = "example.com/gpu";

class Node implements AsyncDisposable {
  readonly pods = new Map<string, Pod>();
  readonly clock = new FakeClock();
  readonly registry = new MetricRegistry();
  readonly directory: string;
  affinity: TopologyHint = { affinity: undefined, isPreferred: false };
  isReady = true;
  running: readonly ObservedContainer[] = [];
  manager: DeviceManager;
  readonly #stack = new AsyncDisposableStack();

  private constructor(directory: string, manager: DeviceManager) {
    this.directory = directory;
    this.manager = manager;
  }

  static async open(): Promise<Node> {
    // The path of a socket is short.
    const directory = await mkdtemp(join(tmpdir(), "svc-devices-"));
    const node = new Node(
      directory,
      await DeviceManager.open(
        Node.options(directory, () => node),
        {
          getAffinity: () => node.affinity,
        },
      ),
    );
    const server = await serveUnix(join(directory, "kubelet.sock"), deviceRegistration, {
      register: async (request: RegisterRequest) => {
        await node.manager.registerByCall(request);
        return {};
      },
    });
    node.#stack.use(server);
    return node;
  }

  /** As an agent that restarts, while its plugins keep running. */
  async restart(): Promise<void> {
    await this.manager[Symbol.asyncDispose]();
    this.manager = await DeviceManager.open(
      Node.options(this.directory, () => this, new MetricRegistry()),
      { getAffinity: () => this.affinity },
    );
  }

  static options(directory: string, of: () => Node, registry = new MetricRegistry()) {
    const running = () =>
      [...of().pods.values()].map((pod) => ({ pod, observation: { ...emptyObservation, containers: of().running } }));
    return {
      directory,
      numaNodes: [0, 1],
      activePods: () => (of().isReady ? running() : undefined),
      runningPods: running,
      onChange: () => {},
      registry,
      clock: new FakeClock(),
      log: silentLogger,
    };
  }

  async plug(options: Partial<FakePluginOptions>) {
    const all = { directory: this.directory, resource: GPU, devices: makeDevices("gpu", 4), ...options };
    const plugin = this.#stack.use(await startFakeDevicePlugin(all));
    await plugin.register();
    const { resource, devices } = all;
    await until(
      "the devices are known",
      () => this.manager.getCapacity().capacity[resource] === String(devices.length),
    );
    return plugin;
  }

  /** The device IDs of the pod's containers, or the error. */
  async allocate(pod: Pod): Promise<string> {
    const uid = pod.metadata?.uid ?? "";
    this.pods.set(uid, pod);
    const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
    try {
      for (const container of containers) await this.manager.allocate(pod, container);
      const ids = containers.map(({ name }) =>
        this.manager.listEntries(uid, name).flatMap(({ devices }) => [...devices.values()].flat()),
      );
      return ids.map((each) => [...new Set(each)].sort().join(",")).join(" ");
    } catch (error) {
      this.pods.delete(uid);
      return String(error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.manager[Symbol.asyncDispose]();
    await this.#stack.disposeAsync();
    await rm(this.directory, { recursive: true, force: true });
  }
}

const container = (name: string, count: number, resource = GPU): Container => {
  const list = { [resource]: String(count) };
  return { name, resources: { limits: list, requests: list } };
};

function pod(name: string, ...containers: readonly Container[]): Pod {
  return { metadata: { name, uid: name }, spec: { containers: [...containers] } };
}

t.test("registrations with another version or an invalid name are refused", async (t) => {
  await using node = await Node.open();
  await using plugin = await startFakeDevicePlugin({ directory: node.directory, resource: GPU, devices: [] });
  await t.rejects(plugin.register({ version: "v1alpha1" }), /requested API version "v1alpha1" is not supported/);
  await t.rejects(plugin.register({ resourceName: "gpu" }), /the ResourceName "gpu" is invalid/);
  for (const resourceName of ["kubernetes.io/gpu", "mykubernetes.io/gpu", "a..b/gpu", "requests.a/gpu", "a/b/c"]) {
    await t.rejects(plugin.register({ resourceName }), /is invalid/, resourceName);
  }
  const bySocket = { type: "DevicePlugin", name: GPU, endpoint: "/x" };
  t.doesNotThrow(() => node.manager.validate({ ...bySocket, versions: ["v1alpha1", "v1beta1"] }));
  t.throws(() => node.manager.validate({ ...bySocket, versions: ["v1alpha1", "v1"] }), {
    message: "manager version, v1beta1, is not among plugin supported versions [v1alpha1 v1]",
  });
  t.throws(() => node.manager.validate({ ...bySocket, name: "gpu", versions: ["v1beta1"] }), {
    message: 'invalid name of device plugin socket: the ResourceName "gpu" is invalid',
  });
  await t.rejects(
    node.manager.registerByCall({ version: "v1beta1", endpoint: "../x", resourceName: GPU }),
    /no name of/,
  );
  await t.rejects(
    node.manager.registerByCall({ version: "v1beta1", endpoint: "none.sock", resourceName: GPU }),
    /failed to get device plugin options/,
  );
});

t.test("devices count in capacity, healthy ones in allocatable; both change with the plugin", async (t) => {
  await using node = await Node.open();
  const plugin = await node.plug({});
  t.same(node.manager.getCapacity(), { capacity: { [GPU]: "4" }, allocatable: { [GPU]: "4" } });
  plugin.update([...makeDevices("gpu", 3), { id: "gpu3", health: "Unhealthy" }]);
  await until("a device is unhealthy", () => node.manager.getCapacity().allocatable[GPU] === "3");
  t.equal(node.manager.getCapacity().capacity[GPU], "4");
  t.equal(node.manager.getHealth(GPU, "gpu3"), "Unhealthy");
  await plugin[Symbol.asyncDispose]();
  await until("the plugin is gone", () => node.manager.getCapacity().allocatable[GPU] === "0");
  t.equal(node.manager.getCapacity().capacity[GPU], "4", "the devices are there for a while");
  t.equal(
    await node.allocate(pod("p", container("c", 1))),
    `Error: no healthy devices present; cannot allocate unhealthy devices ${GPU}`,
  );
});

t.test("a container gets devices of its own; what the plugin returns is set in the runtime", async (t) => {
  await using node = await Node.open();
  const plugin = await node.plug({
    options: { preStartRequired: true },
    allocate: (ids) => ({
      envs: { VISIBLE: ids.join(",") },
      devices: ids.map((id) => ({ hostPath: `/dev/${id}`, containerPath: `/dev/${id}`, permissions: "rw" })),
      mounts: [{ hostPath: "/lib/gpu", containerPath: "/lib/gpu", readOnly: true }],
      annotations: { "example.com/used": "yes" },
      cdiDevices: ids.map((name) => ({ name: `example.com/gpu=${name}` })),
    }),
  });
  const own = pod("a", container("c", 2));
  t.equal(await node.allocate(own), "gpu0,gpu1");
  t.equal(await node.allocate(pod("b", container("c", 2))), "gpu2,gpu3");
  t.equal(
    await node.allocate(pod("more", container("c", 1))),
    `Error: requested number of devices unavailable for ${GPU}. Requested: 1, Available: 0`,
  );
  t.equal(await node.allocate(own), "gpu0,gpu1", "again: it has them already");
  const [spec] = own.spec?.containers ?? [];
  t.match(spec && (await node.manager.prepareContainer(own, spec)), [
    {
      envs: { VISIBLE: "gpu0,gpu1" },
      devices: [{ hostPath: "/dev/gpu0" }, { hostPath: "/dev/gpu1" }],
      cdiDevices: [{ name: "example.com/gpu=gpu0" }, { name: "example.com/gpu=gpu1" }],
    },
  ]);
  t.same(plugin.calls, ["allocate gpu0,gpu1", "allocate gpu2,gpu3", "preStart gpu0,gpu1"]);
  node.pods.delete("b");
  t.equal(await node.allocate(pod("more", container("c", 1))), "gpu2", "the devices of a pod that ended are free");
  t.match(node.manager.countAllocated(), { [GPU]: 3 });
  t.equal(
    await node.allocate(pod("a", container("c", 3))),
    `Error: pod "a" container "c" changed request for resource "${GPU}" from 2 to 3`,
  );
});

t.test("devices of init containers are used again; those of sidecars are not", async (t) => {
  await using node = await Node.open();
  await node.plug({});
  const spec = {
    initContainers: [container("init", 2), { ...container("sidecar", 1), restartPolicy: "Always" as const }],
    containers: [container("a", 1), container("b", 1)],
  };
  t.equal(await node.allocate({ metadata: { name: "p", uid: "p" }, spec }), "gpu0,gpu1 gpu0 gpu1 gpu2");
});

t.test("the plugin's preference is honored within what is aligned", async (t) => {
  await using node = await Node.open();
  const seen: string[] = [];
  await node.plug({
    devices: [...makeDevices("a", 2, 0), ...makeDevices("b", 3, 1)],
    options: { getPreferredAllocationAvailable: true },
    prefer(available, mustInclude, count) {
      seen.push(`${available.join(",")} ${mustInclude.join(",")} ${count}`);
      return available.toReversed();
    },
  });
  t.equal(await node.allocate(pod("any", container("c", 1))), "b2");
  node.affinity = { affinity: maskOf([0]), isPreferred: true };
  t.equal(await node.allocate(pod("near", container("c", 1))), "a1");
  t.equal(await node.allocate(pod("rest", container("c", 2))), "a0,b1");
  t.same(seen, ["a0,a1,b0,b1,b2  1", "a0,a1  1", "a0,b0,b1,a0 a0 2".replace(",a0 ", " ")]);
});

t.test("hints have the nodes of free devices", async (t) => {
  await using node = await Node.open();
  await node.plug({ devices: [...makeDevices("a", 2, 0), ...makeDevices("b", 2, 1)] });
  await node.plug({ resource: "example.com/nic", devices: makeDevices("nic", 2) });
  const hints = (count: number, resource = GPU) => {
    const own = pod("p", container("c", count, resource));
    const [spec] = own.spec?.containers ?? [];
    const of = spec && node.manager.getTopologyHints(own, spec);
    t.same(node.manager.getPodTopologyHints(own), of);
    return of?.[resource]?.map(
      ({ affinity = 0n, isPreferred }) => `${nodesOf(affinity).join("")}${isPreferred ? "!" : ""}`,
    );
  };
  t.same(hints(2), ["0!", "1!", "01"]);
  t.same(hints(3), ["01!"]);
  t.same(hints(5), []);
  t.equal(hints(1, "example.com/nic"), undefined, "devices without nodes have no preference");
  await node.allocate(pod("one", container("c", 1)));
  t.same(hints(2), ["1!", "01"]);
});

t.test("after a restart containers keep their devices, and plugins register again", async (t) => {
  await using node = await Node.open();
  const plugin = await node.plug({});
  const own = pod("p", container("c", 2));
  await node.allocate(own);
  node.isReady = false;
  node.running = [{ name: "c", state: "running" } as ObservedContainer];
  await node.restart();
  t.same(node.manager.getCapacity().capacity, { [GPU]: "0" }, "until the plugin registers");
  t.equal(await node.allocate(own), "gpu0,gpu1", "the container runs");
  node.isReady = true;
  t.equal(await node.allocate(own), "gpu0,gpu1", "also when all sources have been read before");
  node.isReady = false;
  node.running = [];
  t.match(await node.allocate(own), /no healthy devices present/, "after a reboot nothing runs");
  node.isReady = true;
  await plugin.register();
  await until("the devices are back", () => node.manager.getCapacity().allocatable[GPU] === "4");
  t.equal(await node.allocate(own), "gpu0,gpu1");
  t.equal(await node.allocate(pod("q", container("c", 2))), "gpu2,gpu3");
});

t.test("an agent that is killed during an allocation completes it with the same devices", async (t) => {
  const own = pod("p", container("a", 1), container("b", 1));
  // The checkpoint is written after each container.
  for (const written of [0, 1, 2]) {
    await using node = await Node.open();
    const plugin = await node.plug({});
    const path = join(node.directory, "kubelet_internal_checkpoint");
    t.equal(await node.allocate(pod("neighbour", container("c", 1))), "gpu0");
    const checkpoints = [readFileSync(path)];
    for (const each of own.spec?.containers ?? []) {
      await node.manager.allocate(own, each);
      checkpoints.push(readFileSync(path));
    }
    writeFileSync(path, checkpoints[written] ?? "");
    await node.restart();
    await plugin.register();
    await until("the devices are back", () => node.manager.getCapacity().allocatable[GPU] === "4");
    t.equal(await node.allocate(own), "gpu1 gpu2", `${written} of 2 containers are in the checkpoint`);
    t.equal(await node.allocate(pod("next", container("c", 1))), "gpu3");
    t.match(await node.allocate(pod("last", container("c", 1))), /requested number of devices unavailable/);
  }
});

t.test("the checkpoint has kubelet's format and checksum; a damaged one is ignored", async (t) => {
  const files = t.testdir({
    kind:
      '{"Data":{"PodDeviceEntries":[{"PodUID":"bf52b2cd-b611-4e79-86b1-280b283185c3","ContainerName":"check",' +
      '"ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["tegra"]},"AllocResp":"Ch8KFk5WSURJQV9WSVNJQkxFX0RFVklDRVMSBXRlZ3Jh"}],' +
      '"RegisteredDevices":{"nvidia.com/gpu":["tegra"]}},"Checksum":3660592824}',
    empty:
      '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":' +
      '["GPU-0650a168-e770-3ea8-8ac3-8a1d419763e0"]}},"Checksum":3952659280}',
    wrong: '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}',
  });
  const read = await readDeviceCheckpoint(join(files, "kind"));
  t.match(read?.entries, [{ container: "check", resource: "nvidia.com/gpu" }]);
  t.same(read?.entries[0]?.devices.get(-1), ["tegra"]);
  t.match(await readDeviceCheckpoint(join(files, "empty")), { entries: [] });
  await t.rejects(readDeviceCheckpoint(join(files, "wrong")), /checkpoint is corrupted/);
  await using node = await Node.open();
  await node.plug({ devices: makeDevices("gpu", 2, 1) });
  await node.allocate(pod("p", container("c", 1)));
  const path = join(node.directory, "kubelet_internal_checkpoint");
  t.match(JSON.parse(readFileSync(path, "utf8")), {
    Data: {
      PodDeviceEntries: [{ PodUID: "p", ContainerName: "c", ResourceName: GPU, DeviceIDs: { 1: ["gpu0"] } }],
      RegisteredDevices: { [GPU]: ["gpu0", "gpu1"] },
    },
  });
  t.equal((await readDeviceCheckpoint(path))?.entries.length, 1);
  mkdirSync(node.directory, { recursive: true });
  writeFileSync(path, "{");
  await node.restart();
  t.same(node.manager.getCapacity().capacity, {});
});

t.test("metrics count registrations and allocations", async (t) => {
  await using node = await Node.open();
  const registry = new MetricRegistry();
  node.manager = await DeviceManager.open(
    Node.options(node.directory, () => node, registry),
    {
      getAffinity: () => node.affinity,
    },
  );
  await node.plug({});
  await node.allocate(pod("p", container("c", 1)));
  const text = formatMetrics([registry], "prometheus");
  t.match(text, /^kubelet_device_plugin_registration_total{resource_name="example.com\/gpu"} 1$/m);
  t.match(text, /^kubelet_device_plugin_alloc_duration_seconds_count{resource_name="example.com\/gpu"} 1$/m);
});
