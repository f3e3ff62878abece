import t from "tap";
import { FakeRuntime } from "../../testing/agent/fake-runtime.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { defaultAgentConfig } from "../options.ts";
import type { MachineInfo, Usage } from "./machine/machine.ts";
import { computeNodeCapacity, computeThreshold } from "./status/capacity.ts";
import { computeNodeConditions } from "./status/conditions.ts";
import { collectNodeStatus, formatRuntimeVersion } from "./status/node-status.ts";

const machine: MachineInfo = {
  machineId: "m",
  systemUuid: "u",
  bootId: "b",
  kernelVersion: "6",
  osImage: "Linux",
  architecture: "amd64",
  cpus: 2,
  swapBytes: 0,
  memoryBytes: 8 * 2 ** 30,
  hugePages: { "2Mi": 0 },
};
const usage: Usage = {
  disk: { capacityBytes: 100 * 2 ** 30, availableBytes: 50 * 2 ** 30 },
  inodes: { capacity: 1000, free: 900 },
};
const { node } = defaultAgentConfig("n1");

t.test("computeNodeCapacity() subtracts reservations and eviction thresholds from allocatable", async (t) => {
  const reserved = { cpu: "500m", memory: "1Gi" };
  const found = computeNodeCapacity(machine, usage, { ...node, reserved });
  t.match(found.capacity, { cpu: "2", memory: "8388608Ki", pods: "110", "hugepages-2Mi": "0" });
  t.match(found.allocatable, { cpu: "1500m", memory: `${7 * 2 ** 20 - 100 * 1024}Ki` });
  t.equal(found.allocatable["ephemeral-storage"], String(90 * 2 ** 30 - 160), "with Kubernetes' precision of shares");
  const whole = computeNodeCapacity(machine, usage, { ...node, allocatableIgnoresEviction: true });
  t.match(whole.allocatable, { memory: "8388608Ki", "ephemeral-storage": String(100 * 2 ** 30) });
  t.equal(computeNodeCapacity(machine, usage, { ...node, podsPerCore: 10 }).pods, 20);
});

t.test("computeThreshold() accepts quantities and percentages", async (t) => {
  t.equal(computeThreshold("10%", 1000), 100);
  t.equal(computeThreshold("1Ki", 5), 1024);
  t.equal(computeThreshold(undefined, 5), 0);
  t.equal(computeThreshold("100%", 5), 0);
  t.equal(computeThreshold("10%", 104_887_734_272), 10_488_773_583, "as Kubernetes, which has shares in 32 bits");
});

t.test("computeNodeConditions() keeps lastTransitionTime while the status does not change", async (t) => {
  const runtime = { status: { conditions: [{ type: "RuntimeReady", status: true }] } };
  const base = {
    pressures: [],
    isShuttingDown: false,
    runtime,
    relistProblem: undefined,
    manifestProblems: [],
    previous: [],
  };
  const first = computeNodeConditions({ ...base, now: "t1" });
  t.same(
    first.map((each) => [each.type, each.status, each.reason]),
    [
      ["MemoryPressure", "False", "KubeletHasSufficientMemory"],
      ["DiskPressure", "False", "KubeletHasNoDiskPressure"],
      ["PIDPressure", "False", "KubeletHasSufficientPID"],
      ["Ready", "True", "KubeletReady"],
    ],
  );
  const second = computeNodeConditions({ ...base, pressures: ["MemoryPressure"], now: "t2", previous: first });
  t.match(second[0], { status: "True", lastTransitionTime: "t2", lastHeartbeatTime: "t2" });
  t.match(second[3], { status: "True", lastTransitionTime: "t1", lastHeartbeatTime: "t2" });
});

t.test("computeNodeConditions() has the tunnel's condition, also after a start without one", async (t) => {
  const base = {
    pressures: [],
    isShuttingDown: false,
    runtime: undefined,
    relistProblem: undefined,
    manifestProblems: [],
  };
  const of = (more: Partial<Parameters<typeof computeNodeConditions>[0]>) =>
    computeNodeConditions({ ...base, now: "t", previous: [], ...more }).find(({ type }) => type === "TunnelReady");
  const tunnel = { type: "TunnelReady", status: "True", reason: "TunnelOpen", message: "open" } as const;
  t.equal(of({}), undefined);
  t.match(of({ tunnel }), tunnel);
  t.match(of({ previous: [tunnel] }), { status: "False", reason: "TunnelDisabled" });
});

t.test("computeNodeConditions() is not Ready without a network or a runtime", async (t) => {
  const base = {
    pressures: [],
    isShuttingDown: false,
    relistProblem: undefined,
    manifestProblems: [],
    previous: [],
    now: "t",
  };
  t.match(computeNodeConditions({ ...base, runtime: undefined })[3], {
    status: "False",
    message: "container runtime is down",
  });
  const relistProblem = "pleg was last seen active 3m2s ago; threshold is 3m0s";
  t.equal(
    computeNodeConditions({ ...base, runtime: undefined, relistProblem })[3]?.message,
    `[container runtime is down, PLEG is not healthy: ${relistProblem}]`,
  );
  const conditions = [
    { type: "RuntimeReady", status: true },
    { type: "NetworkReady", reason: "NetworkPluginNotReady", message: "cni plugin not initialized" },
  ];
  t.equal(
    computeNodeConditions({ ...base, runtime: { status: { conditions } } })[3]?.message,
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady " +
      "message:cni plugin not initialized",
  );
  t.equal(
    computeNodeConditions({ ...base, runtime: undefined, isShuttingDown: true })[3]?.message,
    "[container runtime is down, node is shutting down]",
  );
});

t.test("collectNodeStatus() reports the features of newer runtimes", async (t) => {
  const fake = new FakeRuntime(new FakeClock());
  const { status } = fake.runtime;
  const runtimeHandlers = [{ name: "", features: { recursiveReadOnlyMounts: true, userNamespaces: true } }];
  const read = (more: object) =>
    collectNodeStatus(
      {
        config: { ...defaultAgentConfig("n1"), rootDir: t.testdir() },
        machine,
        runtime: { ...fake.runtime, status: async () => ({ ...(await status({})), ...more }) },
        images: fake.images,
        ips: async () => [],
        port: () => 0,
        relistProblem: () => undefined,
        isShuttingDown: () => false,
        manifestProblems: () => [],
        pressures: () => [],
        now: () => 0,
      },
      undefined,
    );
  t.match(await read({ runtimeHandlers, features: { supplementalGroupsPolicy: true } }), {
    runtimeHandlers,
    features: { supplementalGroupsPolicy: true },
  });
  t.notOk("runtimeHandlers" in (await read({})));
});

t.test("formatRuntimeVersion() leaves out what is no part of a semantic version", async (t) => {
  for (const [version, text] of [
    ["v1.7.24", "1.7.24"],
    ["1.6.20~ds1", "1.6.20"],
    ["v2.0.0-rc.1+k3s1", "2.0.0-rc.1+k3s1"],
    ["1.30", "1.30"],
    ["unknown", "unknown"],
  ] as const) {
    t.equal(formatRuntimeVersion(version), text);
  }
});
