import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Container } from "../../api/core/container/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { type FakeMachine, fakeMachines, writeFakeMachine } from "../../testing/agent/fake-machine.ts";
import { unpinnedConfig } from "../../testing/agent/manager-config.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { fileDirectory } from "../../testing/std/file-directory.ts";
import { emptyObservation, type ObservedContainer } from "../runtime/observation.ts";
import type { ResourceManagersConfig } from "./config.ts";
import { ResourceManagers } from "./resource-managers.ts";
import { type MachineTopology, readMachineTopology } from "./topology/machine-topology.ts";

const GIB = 2 ** 30;
/** Trees of many CPUs take time to write: each machine is written once. */
const topologies = new Map<FakeMachine, Promise<MachineTopology>>();
const trees = fileDirectory(t, {});

function readFakeMachine(machine: FakeMachine): Promise<MachineTopology> {
  const root = join(trees, String(topologies.size));
  const known = topologies.get(machine) ?? writeFakeMachine(root, machine).then(() => readMachineTopology(root, GIB));
  topologies.set(machine, known);
  return known;
}

interface Overrides {
  readonly machine?: FakeMachine;
  readonly cpu?: Partial<ResourceManagersConfig["cpu"]>;
  readonly memory?: ResourceManagersConfig["memory"];
  readonly topology?: Partial<ResourceManagersConfig["topology"]>;
  readonly reservation?: Record<string, string>;
}

class Node {
  readonly pods = new Map<string, Pod>();
  readonly running: ObservedContainer[] = [];
  readonly updates: string[] = [];
  readonly registry = new MetricRegistry();
  isReady = true;
  readonly directory: string;
  readonly #overrides: Overrides;
  #managers: ResourceManagers | undefined;

  constructor(t: Test, overrides: Overrides) {
    this.directory = t.testdir({});
    this.#overrides = overrides;
  }

  get managers(): ResourceManagers {
    if (this.#managers === undefined) throw new Error("not open");
    return this.#managers;
  }

  /** Also as an agent that restarts. */
  async open(changed: Overrides = {}): Promise<this> {
    const { machine = fakeMachines.singleSocketHt, ...own } = { ...this.#overrides, ...changed };
    this.#managers = await ResourceManagers.open({
      config: {
        ...unpinnedConfig,
        cpu: { ...unpinnedConfig.cpu, policy: "static", ...own.cpu },
        memory: own.memory ?? unpinnedConfig.memory,
        topology: { ...unpinnedConfig.topology, ...own.topology },
      },
      rootDir: this.directory,
      machine: await readFakeMachine(machine),
      reservation: own.reservation ?? { cpu: "1" },
      runtime: {
        updateContainerResources: async ({ containerId, linux }) => {
          this.updates.push(`${containerId}=${linux?.cpusetCpus}`);
          return {};
        },
      },
      activePods: () =>
        this.isReady
          ? [...this.pods.values()].map((pod) => ({
              pod,
              observation: { ...emptyObservation, containers: this.running },
            }))
          : undefined,
      runningPods: () => [],
      onDevicesChange: () => {},
      registry: new MetricRegistry(),
      clock: new FakeClock(),
      log: silentLogger,
    });
    return this;
  }

  /** `reason: message` of a rejection, else the CPUs of the containers. */
  async admit(pod: Pod): Promise<string> {
    const uid = pod.metadata?.uid ?? "";
    this.pods.set(uid, pod);
    const rejection = await this.managers.admit(pod);
    if (rejection === undefined) return await this.cpusOf(pod);
    this.pods.delete(uid);
    return `${rejection.reason}: ${rejection.message}`;
  }

  async cpusOf(pod: Pod): Promise<string> {
    const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
    const assigned = await Promise.all(containers.map((each) => this.managers.getAssignment(pod, each)));
    return assigned.map(({ cpusetCpus }) => cpusetCpus).join(" ");
  }

  remove(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    this.pods.delete(uid);
    this.managers.release(uid);
  }

  readState(name: "cpu" | "memory"): Record<string, unknown> {
    return JSON.parse(readFileSync(join(this.directory, `${name}_manager_state`), "utf8"));
  }
}

const container = (name: string, cpu: string, memory = "1Gi", more: Partial<Container> = {}): Container => {
  const list = { cpu, memory };
  return { name, resources: { limits: list, requests: list }, ...more };
};

function pod(name: string, ...containers: readonly Container[]): Pod {
  return { metadata: { name, uid: name }, spec: { containers: [...containers] } };
}

const openStatic = (t: Test, overrides: Overrides = {}): Promise<Node> => new Node(t, overrides).open();

t.test("containers of Guaranteed pods with whole CPUs get their own; the others share the rest", async (t) => {
  const node = await openStatic(t);
  t.equal(await node.admit(pod("two", container("c", "2"))), "1,5");
  t.equal(await node.admit(pod("part", container("c", "1500m"))), "0,2-4,6-7");
  const burstable = { ...container("c", "2"), resources: { requests: { cpu: "2" }, limits: { cpu: "3" } } };
  t.equal(await node.admit(pod("burstable", burstable)), "0,2-4,6-7");
  t.equal(await node.admit(pod("mixed", container("a", "1"), container("b", "500m"))), "4 0,2-3,6-7");
  const full = "not enough cpus available to satisfy request: requested=5, available=4";
  t.equal(
    await node.admit(pod("full", container("c", "5"))),
    `UnexpectedAdmissionError: Allocate failed due to ${full}, which is unexpected`,
  );
  t.equal(await node.admit(pod("rest", container("c", "4"))), "2-3,6-7");
});

t.test("CPUs of removed pods are free for others, once all sources have been read", async (t) => {
  const node = await openStatic(t);
  const first = pod("first", container("c", "6"));
  t.equal(await node.admit(first), "1-3,5-7");
  node.isReady = false;
  node.remove(first);
  t.match(await node.admit(pod("early", container("c", "6"))), /^UnexpectedAdmissionError/);
  node.isReady = true;
  t.equal(await node.admit(pod("next", container("c", "6"))), "1-3,5-7");
});

t.test("init containers give their CPUs to the containers after them; sidecars keep theirs", async (t) => {
  const node = await openStatic(t, { machine: fakeMachines.dualSocketHt });
  const spec = {
    initContainers: [
      container("init", "4"),
      { ...container("sidecar", "2"), restartPolicy: "Always" as const },
      container("late", "2"),
    ],
    containers: [container("a", "2"), container("b", "2")],
  };
  const assigned = await node.admit({ metadata: { name: "p", uid: "p" }, spec });
  t.equal(assigned, "1-2,7-8 1,7 2,8 2,8 3,9");
});

t.test("a restarted agent keeps the assignments, and rejects a state that does not fit", async (t) => {
  const node = await openStatic(t);
  const pinned = pod("pinned", container("c", "2"));
  await node.admit(pinned);
  await node.open();
  t.equal(await node.admit(pinned), "1,5", "the same CPUs");
  t.equal(await node.admit(pod("other", container("c", "2"))), "2,6");
  t.match(node.readState("cpu"), { policyName: "static", entries: { pinned: { c: "1,5" }, other: { c: "2,6" } } });
  const path = join(node.directory, "cpu_manager_state");
  const advice = /please drain this node and delete the CPU manager checkpoint file ".*cpu_manager_state" before/;
  await t.rejects(node.open({ cpu: { policy: "none" } }), advice);
  await t.rejects(
    node.open({ cpu: { policy: "none" } }),
    /configured policy "none" differs from state checkpoint policy "static"/,
  );
  await t.rejects(node.open({ reservation: { cpu: "3" } }), /not all reserved cpus: "0-1,4" are present in/);
  await t.rejects(
    node.open({ machine: fakeMachines.dualSocketHt }),
    /available CPUs "0-11" doesn't match with CPUs in state "0-7", please drain node and remove policy state file$/,
  );
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace("1,5", "1,6"));
  await t.rejects(node.open(), /checkpoint is corrupted/);
  writeFileSync(path, "{");
  await t.rejects(node.open(), /unexpected end of JSON input|JSON/);
});

t.test("state files of Kubernetes are read, with its checksums", async (t) => {
  const files = [
    '{"policyName":"static","defaultCpuSet":"0-7","checksum":CHECK}'.replace("CHECK", "0"),
    '{"policyName":"static","defaultCpuSet":"0,2-4,6-7","entries":{"pinned":{"c":"1,5"}},"checksum":0}',
  ];
  for (const text of files) {
    const node = new Node(t, {});
    writeFileSync(join(node.directory, "cpu_manager_state"), text);
    await t.resolves(node.open());
  }
});

t.test("full cores only: requests of part of a core are rejected", async (t) => {
  const node = await openStatic(t, { cpu: { options: { "full-pcpus-only": "true" } } });
  const odd = "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2";
  t.equal(await node.admit(pod("odd", container("c", "3"))), `SMTAlignmentError: ${odd}`);
  t.equal(await node.admit(pod("even", container("c", "4"))), "1-2,5-6");
  const few =
    "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2, requested CPUs = 4, " +
    "CPUs per core = 2";
  t.equal(await node.admit(pod("many", container("c", "4"))), `SMTAlignmentError: ${few}`);
});

t.test("strict reservation keeps shared containers off the reserved CPUs", async (t) => {
  const node = await openStatic(t, {
    cpu: { options: { "strict-cpu-reservation": "true" }, reservedCpus: "0,4" },
    reservation: { cpu: "2" },
  });
  t.equal(await node.admit(pod("shared", container("c", "500m"))), "1-3,5-7");
  await t.rejects(
    node.open({ cpu: { reservedCpus: "0,4" } }),
    /not all reserved cpus: "0,4" are present in defaultCpuSet: "1-3,5-7"/,
  );
});

t.test("caches of different sizes: a request that fits in one does not use two", async (t) => {
  const options = { "prefer-align-cpus-by-uncorecache": "true" };
  const node = await openStatic(t, { machine: fakeMachines.unevenCaches, cpu: { options, reservedCpus: "0" } });
  t.equal(await node.admit(pod("small", container("c", "8"))), "6-9,16-19");
  t.equal(await node.admit(pod("big", container("c", "10"))), "1-5,11-15");
});

t.test("options that contradict each other, the machine or the gates end the start", async (t) => {
  const open = (options: Record<string, string>, more: Overrides = {}) =>
    new Node(t, { ...more, cpu: { options, ...more.cpu } }).open();
  const both = { "full-pcpus-only": "true", "distribute-cpus-across-cores": "true" };
  await t.rejects(open(both), /full-pcpus-only and distribute-cpus-across-cores can not be used at the same time/);
  await t.rejects(open({ nonsense: "true" }), /unknown CPU Manager Policy option: "nonsense"/);
  await t.rejects(open({ "full-pcpus-only": "maybe" }), /bad value for option "full-pcpus-only": strconv.ParseBool/);
  await t.rejects(
    open({ "align-by-socket": "true" }, { cpu: { gates: { alpha: false, beta: true } } }),
    /CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided/,
  );
  await t.rejects(
    open({ "strict-cpu-reservation": "true" }, { cpu: { gates: { alpha: false, beta: false } } }),
    /CPU Manager Policy Beta-level Options not enabled/,
  );
  await t.rejects(
    open({ "align-by-socket": "true" }, { topology: { policy: "single-numa-node" } }),
    /single-numa-node policy is incompatible with CPUManager align-by-socket policy option/,
  );
  await t.rejects(open({}, { reservation: {} }), /requires systemreserved.cpu \+ kubereserved.cpu to be greater than/);
  await t.rejects(open({}, { cpu: { reservedCpus: "0-2" } }), /size of 0-2 did not equal 1/);
  await t.rejects(open({}, { cpu: { reservedCpus: "99" } }), /unable to build the reserved physical CPUs/);
});

t.test("CPUs are taken from the NUMA nodes that the topology manager chose", async (t) => {
  const machine = fakeMachines.fourNodesHt;
  const restricted = await openStatic(t, { machine, topology: { policy: "restricted" } });
  t.equal(await restricted.admit(pod("a", container("c", "20"))), "10-19,50-59");
  t.equal(await restricted.admit(pod("b", container("c", "16"))), "1-8,41-48");
  t.equal(await restricted.admit(pod("wide", container("c", "40"))), "20-39,60-79");
  t.equal(
    await restricted.admit(pod("split", container("c", "4"))),
    "TopologyAffinityError: Resources cannot be allocated with Topology locality",
  );
  const bySocket = new Node(t, {
    machine,
    topology: { policy: "restricted" },
    cpu: { options: { "align-by-socket": "true" } },
  });
  await bySocket.open();
  t.equal(await bySocket.admit(pod("a", container("c", "18"))), "1-9,41-49");
  t.equal(await bySocket.admit(pod("b", container("c", "14"))), "10-16,50-56");
});

t.test("distributed across NUMA nodes, and across cores", async (t) => {
  const machine = fakeMachines.fourNodesHt;
  const numa = await openStatic(t, { machine, cpu: { options: { "distribute-cpus-across-numa": "true" } } });
  t.equal(await numa.admit(pod("a", container("c", "24"))), "10-15,20-25,50-55,60-65");
  const cores = new Node(t, { machine, cpu: { options: { "distribute-cpus-across-cores": "true" } } });
  await cores.open();
  t.equal(await cores.admit(pod("a", container("c", "4"))), "1-4");
});

t.test("running containers get the shared CPUs again when these change", async (t) => {
  const node = await openStatic(t);
  const shared = pod("shared", container("c", "500m"));
  await node.admit(shared);
  const base = { sandboxId: "s", createdAt: 0, startedAt: 0, finishedAt: 0, exitCode: 0, reason: "", message: "" };
  const rest = {
    image: "",
    imageId: "",
    hash: "",
    restartCount: 0,
    logPath: "",
    labels: {},
    annotations: {},
    mounts: [],
  };
  node.running.push({ ...base, ...rest, id: "1", name: "c", state: "running" });
  const { cpu } = node.managers;
  const signal = new AbortController().signal;
  await cpu?.reconcile(signal);
  await cpu?.reconcile(signal);
  t.same(node.updates, ["1=0-7"]);
  await node.admit(pod("pinned", container("other", "2")));
  await cpu?.reconcile(signal);
  t.same(node.updates, ["1=0-7", "1=0,2-4,6-7"]);
});

t.test("Guaranteed pods cannot be resized where a manager is static", async (t) => {
  const message = "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy";
  const node = await openStatic(t);
  t.same(node.managers.findResizeProblem(pod("p", container("c", "2"))), { reason: "Infeasible", message });
  t.equal(node.managers.findResizeProblem(pod("p", { name: "c" })), undefined);
  await node.open({ cpu: { resizesExclusive: true } });
  t.equal(node.managers.findResizeProblem(pod("p", container("c", "2"))), undefined);
});

t.test("pods with resources of the pod as a whole are not pinned", async (t) => {
  const node = await openStatic(t);
  const { spec, metadata } = pod("p", container("c", "2"));
  const list = { cpu: "2", memory: "1Gi" };
  t.equal(await node.admit({ metadata, spec: { containers: [], ...spec, resources: { limits: list } } }), "0-7");
});

t.test("CPUs of a container have no quota, unless the gate is off", async (t) => {
  const node = await openStatic(t);
  const pinned = pod("p", container("c", "2"), container("d", "500m"));
  await node.admit(pinned);
  const isWithoutQuota = async (index: number) => {
    const spec = pinned.spec?.containers[index];
    return spec && (await node.managers.getAssignment(pinned, spec)).isWithoutQuota;
  };
  t.same(
    [await isWithoutQuota(0), await isWithoutQuota(1), node.managers.isPodWithoutQuota(pinned)],
    [true, false, true],
  );
  await node.open({ cpu: { quotaOffForExclusive: false } });
  t.same([await isWithoutQuota(0), node.managers.isPodWithoutQuota(pinned)], [false, false]);
});

const staticMemory: Overrides = {
  machine: { ...fakeMachines.dualSocketHt, memoryGib: 4, hugePages: { 2048: 512 } },
  cpu: { policy: "none" },
  memory: { policy: "Static", reserved: [{ numaNode: 0, limits: { memory: "1Gi" } }] },
  reservation: { memory: "1Gi", "hugepages-2Mi": "0" },
};

async function memsOf(node: Node, pod: Pod): Promise<string> {
  const containers = pod.spec?.containers ?? [];
  const assigned = await Promise.all(containers.map((each) => node.managers.getAssignment(pod, each)));
  return assigned.map(({ cpusetMems }) => cpusetMems).join(" ");
}

t.test(
  "memory of Guaranteed pods comes from one NUMA node, or from a group that only such containers use",
  async (t) => {
    // 2Gi are allocatable on node 0, 3Gi on node 1.
    const node = await openStatic(t, staticMemory);
    const admit = async (name: string, memory: string): Promise<string> => {
      const own = pod(name, container("c", "100m", memory));
      const answer = await node.admit(own);
      return answer === "" ? await memsOf(node, own) : answer;
    };
    t.equal(await admit("big", "3Gi"), "1");
    t.equal(await admit("small", "1Gi"), "0");
    const why =
      "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available";
    t.equal(
      await admit("wide", "2Gi"),
      `UnexpectedAdmissionError: Allocate failed due to ${why}, which is unexpected`,
      "nodes with containers of one node form no group",
    );
    const state = node.readState("memory") as { machineState: Record<string, { memoryMap: Record<string, object> }> };
    t.match(state.machineState["1"], {
      numberOfAssignments: 1,
      cells: [1],
      memoryMap: {
        memory: { total: 4 * GIB, systemReserved: 0, allocatable: 3 * GIB, reserved: 3 * GIB, free: 0 },
        "hugepages-2Mi": { total: GIB, free: GIB },
      },
    });
    for (const each of ["big", "small"]) node.remove(pod(each));
    t.equal(await admit("both", "4Gi"), "0-1");
    t.equal(await admit("same", "1Gi"), "0-1", "the nodes are a group");
    t.match(await admit("none", "1Gi"), /^UnexpectedAdmissionError/);
  },
);

t.test("memory: a restarted agent finds its state, and rejects one of another machine or policy", async (t) => {
  const node = await openStatic(t, staticMemory);
  const own = pod("p", container("c", "100m", "1Gi"));
  await node.admit(own);
  await node.open();
  t.equal(await node.admit(own), "");
  t.equal(await memsOf(node, own), "0");
  await t.rejects(
    node.open({ memory: { policy: "None", reserved: [] } }),
    /\[memorymanager\] configured policy "None" differs from state checkpoint policy "Static", please drain this node/,
  );
  await t.rejects(
    node.open({ machine: { ...fakeMachines.dualSocketHt, memoryGib: 4 } }),
    /is different from the real one \(resources of NUMA node 0: stored hugepages-2Mi,memory, real memory\)/,
  );
  await t.rejects(
    node.open({ machine: { ...fakeMachines.dualSocketHt, memoryGib: 8, hugePages: { 2048: 512 } } }),
    /\(total memory of NUMA node 0: stored 4294967296, real 8589934592\), please drain node and remove policy state/,
  );
});

t.test("memory of init containers is used again", async (t) => {
  const node = await openStatic(t, staticMemory);
  const spec = { initContainers: [container("init", "100m", "2Gi")], containers: [container("a", "100m", "1Gi")] };
  await node.admit({ metadata: { name: "p", uid: "p" }, spec });
  t.match(node.readState("memory"), {
    entries: {
      p: {
        init: [{ numaAffinity: [0], type: "memory", size: GIB }],
        a: [{ numaAffinity: [0], type: "memory", size: GIB }],
      },
    },
    machineState: { 0: { memoryMap: { memory: { reserved: 2 * GIB } } } },
  });
});

t.test("reserved memory must add up, and be of nodes that exist", async (t) => {
  const open = (reserved: ResourceManagersConfig["memory"]["reserved"], reservation: Record<string, string>) =>
    new Node(t, { ...staticMemory, memory: { policy: "Static", reserved }, reservation }).open();
  await t.rejects(open([], { memory: "1Gi" }), {
    message:
      'the total amount "0" of type "memory" is not equal to the value "1Gi" determined by Node Allocatable feature',
  });
  await t.rejects(
    open([{ numaNode: 5, limits: { memory: "1Gi" } }], { memory: "1Gi" }),
    /references a NUMA node 5 that does not exist on this machine/,
  );
  await t.rejects(open([], { memory: "0" }), /you should specify the system reserved memory/);
  const huge = [{ numaNode: 1, limits: { memory: "1Gi", "hugepages-2Mi": "2Mi" } }];
  await t.rejects(open(huge, { memory: "1Gi" }), /of type "hugepages-2Mi" is not equal to the value "0"/);
  await t.resolves(open(huge, { memory: "1Gi", "hugepages-2Mi": "2Mi" }));
});

t.test("with both managers, CPUs and memory are on the same node", async (t) => {
  const node = await openStatic(t, {
    ...staticMemory,
    cpu: { policy: "static" },
    topology: { policy: "single-numa-node" },
    reservation: { cpu: "1", memory: "1Gi" },
  });
  const a = pod("a", container("c", "4", "3Gi"));
  t.equal(await node.admit(a), "3-4,9-10");
  t.equal(await memsOf(node, a), "1");
  t.equal(
    await node.admit(pod("b", container("c", "2", "3Gi"))),
    "UnexpectedAdmissionError: Allocate failed due to [memorymanager] failed to find NUMA nodes to extend the " +
      "current topology hint, which is unexpected",
  );
});

t.test("metrics count requests, failures and the shared CPUs", async (t) => {
  const registry = new MetricRegistry();
  const managers = await ResourceManagers.open({
    config: { ...unpinnedConfig, cpu: { ...unpinnedConfig.cpu, policy: "static" } },
    rootDir: t.testdir({}),
    machine: await readFakeMachine(fakeMachines.singleSocketHt),
    reservation: { cpu: "2" },
    runtime: { updateContainerResources: async () => ({}) },
    activePods: () => undefined,
    runningPods: () => [],
    onDevicesChange: () => {},
    registry,
    clock: new FakeClock(),
    log: silentLogger,
  });
  await managers.admit(pod("a", container("c", "2")));
  await managers.admit(pod("b", container("c", "9")));
  const text = formatMetrics([registry], "prometheus");
  t.match(text, /^kubelet_cpu_manager_pinning_requests_total 2$/m);
  t.match(text, /^kubelet_cpu_manager_pinning_errors_total 1$/m);
  t.match(text, /^kubelet_cpu_manager_shared_pool_size_millicores 4000$/m);
  t.match(text, /^kubelet_cpu_manager_exclusive_cpu_allocation_count 2$/m);
  t.match(text, /^kubelet_cpu_manager_allocation_per_numa\{numa_node="0"\} 2$/m);
  const aligned = (name: string, boundary: string): string =>
    `kubelet_container_aligned_compute_resources_${name}{boundary="${boundary}",scope="container"}`;
  t.match(text, `${aligned("count", "uncore_cache")} 1\n`, "all CPUs share the cache");
  t.match(text, `${aligned("count", "physical_cpu")} 0\n`);
  t.match(text, `${aligned("failure_count", "physical_cpu")} 0\n`);
});
