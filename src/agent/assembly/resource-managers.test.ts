import { mkdirSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import type { PodStatus } from "../../api/core/pod/schema.ts";
import { makeDevices, startFakeDevicePlugin } from "../../testing/agent/fake-device-plugin.ts";
import { fakeMachines, writeFakeMachine } from "../../testing/agent/fake-machine.ts";
import { createTestAgent, type TestAgent } from "../../testing/agent/flag-harness.ts";
import { registration } from "../plugins/messages.ts";
import { serveUnix } from "../plugins/unix-server.ts";
import { driverServices } from "../resource-managers/claims/messages.ts";

const GPU = "example.com/gpu";

interface CreatedContainer {
  readonly envs?: readonly { readonly key: string; readonly value: string }[];
  readonly devices?: readonly object[];
  readonly mounts?: readonly object[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly CDIDevices?: readonly object[];
}

function createdContainer(agent: TestAgent): CreatedContainer {
  const call = agent.fake.calls.findLast(({ method }) => method === "createContainer");
  return (call?.request as { readonly config?: CreatedContainer } | undefined)?.config ?? {};
}

function gpuPod(agent: TestAgent, name: string): void {
  const list = { [GPU]: "1" };
  agent.createPod(name, {
    containers: [
      {
        name: "c",
        image: "busybox:1",
        imagePullPolicy: "IfNotPresent",
        env: [{ name: "OWN", value: "1" }],
        resources: { limits: list, requests: list },
      },
    ],
  });
}

const capacityOf = (agent: TestAgent): string | undefined =>
  (agent.getNode().status as { capacity?: Record<string, string> } | undefined)?.capacity?.[GPU];

t.test("a device plugin's devices are in the node's status, and reach the containers that request them", async (t) => {
  await using agent = await createTestAgent("flag", {});
  await agent.start();
  const directory = join(agent.config.rootDir, "device-plugins");
  const options = {
    directory,
    resource: GPU,
    devices: makeDevices("gpu", 1),
    allocate: (ids: readonly string[]) => ({
      envs: { VISIBLE: ids.join(","), OWN: "0" },
      devices: ids.map((id) => ({ hostPath: `/dev/${id}`, containerPath: `/dev/${id}`, permissions: "rw" })),
      mounts: [{ hostPath: "/lib/gpu", containerPath: "/lib/gpu", readOnly: true }],
      annotations: { "example.com/used": "yes" },
      cdiDevices: ids.map((id) => ({ name: `example.com/gpu=${id}` })),
    }),
  };
  await using plugin = await startFakeDevicePlugin(options);
  await plugin.register();
  await agent.until("the node has the device", () => capacityOf(agent) === "1");
  gpuPod(agent, "a");
  await agent.untilRunning("a");
  const created = createdContainer(agent);
  t.match(created, {
    devices: [{ hostPath: "/dev/gpu0", containerPath: "/dev/gpu0", permissions: "rw" }],
    CDIDevices: [{ name: "example.com/gpu=gpu0" }],
    annotations: { "example.com/used": "yes" },
  });
  t.same(
    created.envs?.filter(({ key }) => key === "OWN" || key === "VISIBLE"),
    [
      { key: "OWN", value: "0" },
      { key: "VISIBLE", value: "gpu0" },
      { key: "OWN", value: "1" },
    ],
    "the pod's own variables come last",
  );
  t.match(created.mounts?.[0], { hostPath: "/lib/gpu", containerPath: "/lib/gpu", readonly: true });
  gpuPod(agent, "b");
  const status = () => agent.api.objects.get("/api/v1/namespaces/default/pods/b")?.status;
  await agent.until("there is no device for a second pod", () => status()?.phase === "Failed");
  t.match(status(), {
    reason: "UnexpectedAdmissionError",
    message:
      "Pod was rejected: Allocate failed due to requested number of devices unavailable for example.com/gpu. " +
      "Requested: 1, Available: 0, which is unexpected",
  });
  await agent.stop();
  await agent.start();
  await agent.until("the resource stays without devices", () => capacityOf(agent) === "0");
  await agent.untilRunning("a");
  // A plugin serves again when the agent has removed its socket.
  await using restarted = await startFakeDevicePlugin(options);
  await restarted.register();
  await agent.until("the plugin is back", () => capacityOf(agent) === "1");
  t.same(restarted.calls, [], "the container kept its device");
});

t.test("reserved CPUs that the machine does not have end the start", async (t) => {
  await using agent = await createTestAgent("flag", { "reserved-cpus": "0,4095" });
  await t.rejects(agent.start(), { message: 'Invalid cpuset "0,4095" specified by --reserved-cpus' });
});

t.test("a claim's devices are prepared by its driver, and reach the containers that name the claim", async (t) => {
  await using agent = await createTestAgent("flag", { "feature-gates": "DynamicResourceAllocation=true" });
  const calls: string[] = [];
  const endpoint = join(agent.config.rootDir, "plugins/dra.sock");
  const service = driverServices["v1beta1.DRAPlugin"];
  if (service === undefined) throw new Error("no such version");
  await agent.start();
  const answer = (method: string, result: object) => async (request: { claims: readonly { uid: string }[] }) => {
    calls.push(method);
    return { claims: Object.fromEntries(request.claims.map(({ uid }) => [uid, result])) };
  };
  const devices = [{ requestNames: ["gpu"], poolName: "n1", deviceName: "d0", cdiDeviceIds: ["example.com/gpu=d0"] }];
  await using _driver = await serveUnix(endpoint, service, {
    prepare: answer("prepare", { devices }),
    unprepare: answer("unprepare", {}),
  });
  mkdirSync(join(agent.config.rootDir, "plugins_registry"), { recursive: true });
  const info = { type: "DRAPlugin", name: "gpu.example.com", endpoint, supportedVersions: ["v1beta1.DRAPlugin"] };
  await using _registration = await serveUnix(join(agent.config.rootDir, "plugins_registry/dra.sock"), registration, {
    getInfo: async () => info,
    notifyRegistrationStatus: async () => {
      calls.push("registered");
      return {};
    },
  });
  await agent.until("the driver is registered", () => calls.includes("registered"));
  const { metadata } = agent.createPod("web", {
    resourceClaims: [{ name: "dev", resourceClaimName: "mine" }],
    containers: [
      {
        name: "c",
        image: "busybox:1",
        imagePullPolicy: "IfNotPresent",
        resources: { claims: [{ name: "dev" }] },
      },
    ],
  });
  const results = [{ request: "gpu", driver: "gpu.example.com", pool: "n1", device: "d0" }];
  agent.api.put("/apis/resource.svc.io/v1beta1/namespaces/default/resourceclaims/mine", {
    apiVersion: "resource.svc.io/v1beta1",
    kind: "ResourceClaim",
    metadata: { name: "mine", namespace: "default", uid: "claim" },
    spec: {},
    status: {
      allocation: { devices: { results } },
      reservedFor: [{ resource: "pods", name: "web", uid: metadata?.uid ?? "" }],
    },
  } as never);
  await agent.untilRunning("web");
  t.match(createdContainer(agent).CDIDevices, [{ name: "example.com/gpu=d0" }]);
  t.ok(calls.includes("prepare"));
});

t.test("the status of a pod has the health of its devices", async (t) => {
  for (const isOn of [true, false]) {
    await using agent = await createTestAgent("flag", { "feature-gates": `ResourceHealthStatus=${isOn}` });
    await agent.start();
    const devices = makeDevices("gpu", 1);
    const directory = join(agent.config.rootDir, "device-plugins");
    await using plugin = await startFakeDevicePlugin({ directory, resource: GPU, devices });
    await plugin.register();
    await agent.until("the node has the device", () => capacityOf(agent) === "1");
    gpuPod(agent, "a");
    await agent.untilRunning("a");
    const health = () => {
      const status = agent.api.objects.get("/api/v1/namespaces/default/pods/a")?.status as PodStatus | undefined;
      return status?.containerStatuses?.[0]?.allocatedResourcesStatus;
    };
    const expected = (value: string) => [{ name: GPU, resources: [{ resourceID: "gpu0", health: value }] }];
    t.same(health(), isOn ? expected("Healthy") : undefined);
    plugin.update(devices.map((device) => ({ ...device, health: "Unhealthy" })));
    if (!isOn) continue;
    const shown = () => health()?.[0]?.resources?.[0]?.health;
    await agent.until("the device is unhealthy", () => shown() === "Unhealthy");
    t.same(health(), expected("Unhealthy"));
  }
});

t.test("reserved memory that does not add up is reported in the units of the flags", async (t) => {
  const rejects = async (available: string, message: RegExp): Promise<void> => {
    const reserved = {
      "memory-manager-policy": "Static",
      "reserved-memory": "0:memory=1Gi",
      "system-reserved": "cpu=1",
    };
    await using agent = await createTestAgent("flag", {
      ...reserved,
      "eviction-hard": `memory.available<${available}`,
    });
    await writeFakeMachine(join(agent.directory, "sys"), fakeMachines.dualSocketHt);
    await t.rejects(agent.start(), message);
  };
  await rejects("100Mi", /the total amount "1Gi" of type "memory" is not equal to the value "100Mi" determined by/);
  await rejects("100M", /is not equal to the value "100M" determined by/);
});
