import { mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { status as grpcStatus } from "@grpc/grpc-js";
import t, { type Test } from "tap";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { PodSpec } from "../../../api/core/pod-spec/schema.ts";
import type { Volume } from "../../../api/core/volume/schema.ts";
import { createClient } from "../../../client/api-client.ts";
import { systemRandom } from "../../../std/crypto/random.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { formatMetrics } from "../../../std/metrics/text-format.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { FakeApi } from "../../../testing/agent/fake-api.ts";
import { type FakeDriver, type FakeDriverOptions, startFakeDriver } from "../../../testing/agent/fake-csi-driver.ts";
import { mountAll } from "../../../testing/agent/mount-all.ts";
import { until } from "../../../testing/std/until.ts";
import { createPluginMetrics } from "../../metrics/plugin-metrics.ts";
import { toAttachmentName } from "../csi/volume.ts";
import { VolumeHealth } from "../csi/volume-health.ts";
import type { Mounter } from "../mount/mounter.ts";
import { TokenManager, type TokenRequestSource } from "../projected/token-manager.ts";
import { type MountError, VolumeManager } from "../volume-manager.ts";
import { VolumePlugins, type VolumePluginsOptions } from "./volume-plugins.ts";

const NAME = "disks.example.com";
const HANDLE = "vol-1";
const UNIQUE = `kubernetes.io/csi/${NAME}^${HANDLE}`;
const ALL = ["STAGE_UNSTAGE_VOLUME", "EXPAND_VOLUME", "SINGLE_NODE_MULTI_WRITER"];

/** A mounter that only records mounts. */
function pretended(): Mounter & { readonly points: Map<string, string> } {
  const points = new Map<string, string>();
  return {
    points,
    listMountPoints: async (path) =>
      [...points.keys()]
        .filter((each) => each === path || each.startsWith(`${path}/`))
        .sort((a, b) => b.length - a.length),
    tmpfs: async (target) => void points.set(target, "tmpfs"),
    hugePages: async (target, pageSize) => void points.set(target, pageSize),
    bind: async (source, target) => void points.set(target, source),
    unmount: async (target) => void points.delete(target),
  };
}

interface Node extends AsyncDisposable {
  readonly api: FakeApi;
  readonly mounter: ReturnType<typeof pretended>;
  readonly rootDir: string;
  readonly events: string[];
  readonly changed: string[];
  readonly nodeVolumes: VolumePlugins;
  readonly volumes: VolumeManager;
  driver(options?: Partial<FakeDriverOptions>): Promise<FakeDriver>;
  until(what: string, holds: () => boolean | Promise<boolean>): Promise<void>;
  /** A new agent with the same directories and mounts. */
  again(): Promise<Node>;
}

const claim: PersistentVolumeClaim = {
  metadata: { name: "data", namespace: "default", uid: "claim" },
  spec: { volumeName: "pv1" },
  status: { phase: "Bound", capacity: { storage: "1Gi" } },
};

const persistent: PersistentVolume = {
  metadata: { name: "pv1" },
  spec: {
    claimRef: { uid: "claim" },
    accessModes: ["ReadWriteOnce"],
    capacity: { storage: "1Gi" },
    mountOptions: ["noatime"],
    csi: {
      driver: NAME,
      volumeHandle: HANDLE,
      fsType: "ext4",
      volumeAttributes: { tier: "gold" },
      nodeStageSecretRef: { namespace: "kube-system", name: "stage" },
    },
  },
};

type Passed = "controllerAttach" | "pluginDir" | "pluginObserver" | "seLinuxMounts" | "seLinux";

interface NodeOptions extends Partial<Pick<VolumePluginsOptions, Passed>> {
  readonly volume?: PersistentVolume;
  readonly claim?: PersistentVolumeClaim;
}

async function node(t: Test, options: NodeOptions = {}): Promise<Node> {
  const rootDir = await mkdtemp(join(tmpdir(), "svc-csi-"));
  t.teardown(() => rm(rootDir, { recursive: true, force: true }));
  const api = new FakeApi();
  api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1" }, status: {} });
  const name = "storage.svc.io/v1/csidrivers";
  api.put(`/apis/${name}/${NAME}`, { kind: "CSIDriver", metadata: { name: NAME }, spec: { attachRequired: false } });
  return start(options, rootDir, api, pretended());
}

async function start(options: NodeOptions, rootDir: string, api: FakeApi, mounter: Node["mounter"]): Promise<Node> {
  const stop = new AbortController();
  const events: string[] = [];
  const changed: string[] = [];
  const client = createClient({ transport: api.transport });
  const clock = systemClock;
  const directories = { rootDir, podLogsDir: rootDir };
  const token: TokenRequestSource["requestToken"] = async (_namespace, _account, request) => ({
    ...request,
    status: { token: "t0k3n", expirationTimestamp: "2126-01-01T00:00:00Z" },
  });
  const claims = {
    claim: async () => options.claim ?? claim,
    persistentVolume: async () => options.volume ?? persistent,
    updateClaimSize: async (_claim: PersistentVolumeClaim, storage: string) =>
      void events.push(`resized to ${storage}`),
  };
  const podEvents: VolumePluginsOptions["events"] = {
    recordPodEvent: (_pod, type, reason, message) => void events.push(`${type} ${reason}: ${message}`),
    recordContainerEvent: () => undefined,
  };
  const nodeVolumes = new VolumePlugins({
    directories,
    nodeName: "n1",
    controllerAttach: options.controllerAttach ?? true,
    pluginDir: options.pluginDir ?? join(rootDir, "flex"),
    seLinuxMounts: options.seLinuxMounts,
    seLinux: options.seLinux,
    client,
    clock,
    random: systemRandom,
    log: silentLogger,
    mounter,
    events: podEvents,
    secret: async (_namespace, name) => (name === "absent" ? undefined : { password: Buffer.from(`of ${name}`) }),
    tokens: { requestToken: token },
    claims,
    node: async () => api.objects.get("/api/v1/nodes/n1") as never,
    onInUseChange: () => undefined,
    retryPod: (uid) => void changed.push(uid),
    retryAllPods: () => undefined,
    pluginObserver: options.pluginObserver,
  });
  await nodeVolumes.drivers.recover();
  const running = nodeVolumes.run(stop.signal);
  const self: Node = {
    api,
    mounter,
    rootDir,
    events,
    changed,
    nodeVolumes,
    volumes: new VolumeManager({
      directories,
      mounter,
      clock,
      objects: { configMap: async () => undefined, secret: async () => undefined },
      node: () => ({ name: "n1", ips: [], allocatable: { cpuMillis: 0, memoryBytes: 0, storageBytes: 0 } }),
      tokens: new TokenManager({ source: { requestToken: token }, clock }),
      claims,
      events: podEvents,
      drivers: nodeVolumes.drivers,
    }),
    async driver(options = {}) {
      await mkdir(join(rootDir, "plugins_registry"), { recursive: true });
      const socket = join(rootDir, "plugins_registry", `${options.name ?? NAME}.sock`);
      const storage = join(rootDir, "storage");
      const driver = await startFakeDriver({ name: NAME, socket, storage, mounter, capabilities: ALL, ...options });
      await self.until("the driver is registered", () =>
        driver.calls.some(({ method }) => method === "notifyRegistrationStatus"),
      );
      return driver;
    },
    async until(what, holds) {
      await until(what, holds);
    },
    again: () => start(options, rootDir, api, mounter),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
  return self;
}

function podOf(name: string, spec: Partial<PodSpec> = {}): Pod {
  return mountAll({
    metadata: { name, namespace: "default", uid: `uid-${name}` },
    spec: { containers: [], serviceAccountName: "worker", volumes: [claimed], ...spec },
  });
}

const claimed: Volume = { name: "data", persistentVolumeClaim: { claimName: "data" } };

async function messages(work: Promise<void>): Promise<readonly unknown[]> {
  const error = (await work.then(
    () => undefined,
    (each: unknown) => each,
  )) as MountError;
  return error.volumes.map(({ event, message }) => [event, message]);
}

t.test("VolumePlugins creates the CSINode as soon as the Node exists, before any driver registers", async (t) => {
  const api = new FakeApi();
  const rootDir = await mkdtemp(join(tmpdir(), "svc-csi-"));
  t.teardown(() => rm(rootDir, { recursive: true, force: true }));
  await using at = await start({}, rootDir, api, pretended());
  api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1" }, status: {} });
  const path = "/apis/storage.svc.io/v1/csinodes/n1";
  await at.until("it is there", () => api.objects.has(path));
  t.match(api.objects.get(path)?.metadata, {
    annotations: {
      "storage.alpha.kubernetes.io/migrated-plugins":
        "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder," +
        "kubernetes.io/gce-pd,kubernetes.io/vsphere-volume",
    },
    ownerReferences: [{ kind: "Node", name: "n1", uid: "uid-n1" }],
  });
});

t.test("VolumePlugins counts the sockets of plugins, and those whose plugins are registered", async (t) => {
  const metrics = new MetricRegistry();
  await using at = await node(t, { pluginObserver: createPluginMetrics(metrics) });
  const path = join(at.rootDir, "plugins_registry", `${NAME}.sock`);
  const states = () =>
    ["desired", "actual"].filter((state) =>
      formatMetrics([metrics], "prometheus").includes(
        `plugin_manager_total_plugins{socket_path="${path}",state="${state}_state_of_world"} 1`,
      ),
    );
  t.same(states(), []);
  const driver = await at.driver({});
  await at.until("the plugin is registered", () => states().length === 2);
  await driver[Symbol.asyncDispose]();
  await rm(path, { force: true });
  await at.until("the plugin is gone", () => states().length === 0);
});

t.test("VolumePlugins updates the CSINode when a driver registers or deregisters", async (t) => {
  await using at = await node(t);
  const driver = await at.driver({ topology: { "topology.example.com/zone": "z1" } });
  t.match(driver.calls.at(-1), { request: { pluginRegistered: true } });
  const path = "/apis/storage.svc.io/v1/csinodes/n1";
  t.match(at.api.objects.get(path), {
    metadata: { ownerReferences: [{ kind: "Node", name: "n1", uid: "uid-n1" }] },
    spec: {
      drivers: [
        { name: NAME, nodeID: `${NAME}-id`, topologyKeys: ["topology.example.com/zone"], allocatable: { count: 7 } },
      ],
    },
  });
  t.match(at.api.objects.get("/api/v1/nodes/n1")?.metadata, {
    annotations: { "csi.volume.kubernetes.io/nodeid": `{"${NAME}":"${NAME}-id"}` },
    labels: { "topology.example.com/zone": "z1" },
  });
  await driver[Symbol.asyncDispose]();
  await rm(join(at.rootDir, "plugins_registry", `${NAME}.sock`), { force: true });
  const drivers = () => (at.api.objects.get(path)?.spec as { drivers?: unknown[] | null } | undefined)?.drivers ?? [];
  await at.until("the driver is gone", () => drivers().length === 0);
});

t.test(
  "VolumePlugins refuses a driver whose topology contradicts the node's labels, and notifies the driver",
  async (t) => {
    await using at = await node(t);
    at.api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1", labels: { zone: "z2" } }, status: {} });
    await using driver = await at.driver({ topology: { zone: "z1" } });
    const notified = driver.calls.find(({ method }) => method === "notifyRegistrationStatus");
    t.match(notified?.request.error, /detected topology value collision: driver reported "zone":"z1"/);
    t.notOk(notified?.request.pluginRegistered);
  },
);

t.test("VolumePlugins refuses a driver of an unsupported version before it calls the driver", async (t) => {
  await using at = await node(t);
  await using driver = await at.driver({ versions: ["9.9.9"] });
  const notified = driver.calls.find(({ method }) => method === "notifyRegistrationStatus");
  t.equal(
    notified?.request.error,
    "RegisterPlugin error -- plugin validation failed with err: validation failed for CSI Driver " +
      `${NAME} at endpoint ${join(at.rootDir, "plugins_registry", `${NAME}.sock`)}: kubernetes.io/csi: ValidatePlugin ` +
      `for CSI driver "${NAME}" failed. None of the versions specified ["9.9.9"] are supported. err=could not find a ` +
      "highest supported version from versions ([9.9.9]) reported: <nil>",
  );
  t.notOk(driver.calls.some(({ method }) => method === "nodeGetInfo"));
});

t.test("VolumeHealth reads the conditions of mounted volumes, and records an event for abnormal ones", async (t) => {
  await using at = await node(t);
  await using driver = await at.driver({ capabilities: ["GET_VOLUME_STATS", "VOLUME_CONDITION"] });
  const pods = [{ pod: podOf("one") }, { pod: podOf("two") }];
  const { signal } = new AbortController();
  const health = new VolumeHealth({
    pods: () => pods,
    readCondition: (...volume) => at.volumes.readCondition(...volume),
    events: {
      recordPodEvent: (pod, type, ...text) => void at.events.push([pod.metadata?.name, type, ...text].join(" ")),
    },
    periodMs: 60_000,
    clock: systemClock,
    log: silentLogger,
  });
  const [one, two] = pods as [{ pod: Pod }, { pod: Pod }];
  const found = () => [health.isAbnormal(one.pod, "data"), health.isAbnormal(two.pod, "data")];
  await at.volumes.setUp(one.pod, []);
  await health.refresh(signal);
  t.same(found(), [false, undefined], "the volume of the other pod is not mounted");
  const request = driver.calls.find(({ method }) => method === "getVolumeStats")?.request;
  t.match(request, { volumeId: HANDLE, volumePath: at.volumes.path(one.pod, claimed) });
  driver.condition = { abnormal: true, message: "the disk is gone" };
  at.events.splice(0);
  await health.refresh(signal);
  t.same(found(), [true, undefined]);
  t.same(at.events, ["one Warning VolumeConditionAbnormal Volume data: the disk is gone"]);
  driver.failures.set("getVolumeStats", { code: grpcStatus.UNAVAILABLE, details: "busy" });
  await health.refresh(signal);
  t.same(found(), [undefined, undefined], "a failed call reports nothing");
  pods.splice(0);
  await health.refresh(signal);
});

t.test("VolumeHealth calls no driver without the capability VOLUME_CONDITION", async (t) => {
  await using at = await node(t);
  await using driver = await at.driver({ capabilities: ["GET_VOLUME_STATS"] });
  await at.volumes.setUp(podOf("one"), []);
  t.equal(await at.volumes.readCondition(podOf("one"), claimed, new AbortController().signal), undefined);
  t.notOk(driver.calls.some(({ method }) => method === "getVolumeStats"));
});

t.test("VolumeManager stages a volume once, publishes it for each pod, and unstages it after the last", async (t) => {
  await using at = await node(t);
  await using driver = await at.driver();
  const [one, two] = [podOf("one"), podOf("two")];
  await at.volumes.setUp(one, []);
  await at.volumes.setUp(one, []);
  t.same(driver.volumeCalls, ["stageVolume", "publishVolume"], "once is enough");
  const mount = join(at.rootDir, "pods/uid-one/volumes/kubernetes.io~csi/pv1/mount");
  t.equal(at.volumes.path(one, claimed), mount);
  const [stage, publish] = driver.calls.filter(({ method }) => /^(stage|publish)Volume$/.test(method));
  const staging = stage?.request.stagingTargetPath;
  t.match(staging, /\/plugins\/kubernetes\.io\/csi\/disks\.example\.com\/[0-9a-f]{64}\/globalmount$/);
  t.match(stage?.request, { volumeId: HANDLE, secrets: { password: "of stage" }, volumeContext: { tier: "gold" } });
  t.match(publish?.request, {
    targetPath: mount,
    stagingTargetPath: staging,
    volumeCapability: {
      mount: { fsType: "ext4", mountFlags: ["noatime"] },
      accessMode: { mode: "SINGLE_NODE_MULTI_WRITER" },
    },
  });
  await at.volumes.setUp(two, []);
  await at.volumes.tearDown("uid-one");
  t.notOk(driver.volumeCalls.includes("unstageVolume"), "another pod has it");
  t.same(at.mounter.points.size, 2);
  await at.volumes.tearDown("uid-two");
  t.same(driver.volumeCalls.slice(-2), ["unpublishVolume", "unstageVolume"]);
  t.same([...at.mounter.points], []);
  t.same(await readdir(join(at.rootDir, "pods")), []);
});

t.test("VolumeManager mounts volumes with the SELinux label of their pod where the driver supports it", async (t) => {
  const label = (level: string) => `system_u:object_r:container_file_t:${level}`;
  const seLinux = {
    isEnabled: () => true,
    readFile: (path: string) => (path.endsWith("/contexts") ? `process = "p"\nfile = "${label("s0")}"\n` : undefined),
  };
  const container = { name: "c", volumeMounts: [{ name: "data", mountPath: "/d" }] };
  const labelled = (name: string, level: string, policy?: "Recursive"): Pod =>
    podOf(name, {
      containers: [container],
      securityContext: { seLinuxOptions: { level }, seLinuxChangePolicy: policy },
    });
  const persistentOf = (mode: "ReadWriteMany" | "ReadWriteOncePod"): PersistentVolume => ({
    ...persistent,
    spec: { ...persistent.spec, accessModes: [mode] },
  });
  const context = `context="${label("s0:c1,c2")}"`;
  for (const [mode, seLinuxMounts, isDriver, isLabelled] of [
    ["ReadWriteOncePod", "ReadWriteOncePod", true, true],
    ["ReadWriteOncePod", "ReadWriteOncePod", false, false],
    ["ReadWriteOncePod", "none", true, false],
    ["ReadWriteMany", "ReadWriteOncePod", true, false],
    ["ReadWriteMany", "all", true, true],
  ] as const) {
    await using at = await node(t, { volume: persistentOf(mode), seLinuxMounts, seLinux });
    const spec = { attachRequired: false, seLinuxMount: isDriver };
    at.api.put(`/apis/storage.svc.io/v1/csidrivers/${NAME}`, { kind: "CSIDriver", metadata: { name: NAME }, spec });
    await using driver = await at.driver();
    const one = labelled("one", "s0:c1,c2");
    await at.volumes.setUp(one, []);
    const mountFlags = isLabelled ? ["noatime", context] : ["noatime"];
    const mounts = driver.calls.filter(({ method }) => /^(stage|publish)Volume$/.test(method));
    const name = `${mode}, ${seLinuxMounts}, ${isDriver}`;
    for (const { request } of mounts) t.match(request, { volumeCapability: { mount: { mountFlags } } }, name);
    t.equal(at.volumes.isLabelled(one, claimed), isLabelled, name);
    if (mode !== "ReadWriteMany" || !isLabelled) continue;
    const conflict = `"${label("s0:c1,c2")}" and "${label("s0:c3")}"`;
    const failed = `MountVolume.SetUp failed for volume "pv1" : conflicting SELinux labels of volume pv1: ${conflict}`;
    t.same(await messages(at.volumes.setUp(labelled("two", "s0:c3"), [])), [["FailedMount", failed]]);
    const relabelled = labelled("three", "s0:c1,c2", "Recursive");
    t.match(await messages(at.volumes.setUp(relabelled, [])), [["FailedMount", / and ""$/]]);
    await at.volumes.setUp(labelled("four", "s0:c1,c2"), []);
  }
});

t.test("VolumeManager of a new agent finds mounted volumes, and unmounts them through the driver", async (t) => {
  await using at = await node(t);
  await using driver = await at.driver();
  await at.volumes.setUp(podOf("one"), []);
  await at[Symbol.asyncDispose]();
  await using next = await at.again();
  const isAnew = () => driver.calls.filter(({ method }) => method === "notifyRegistrationStatus").length === 2;
  await next.until("the driver has registered again", isAnew);
  const steps = driver.volumeCalls.length;
  await next.volumes.setUp(podOf("one"), []);
  t.equal(driver.volumeCalls.length, steps, "nothing is mounted twice");
  t.match(next.volumes.path(podOf("one"), claimed), /pv1\/mount$/);
  await next.volumes.tearDown("uid-one");
  t.same(driver.volumeCalls.slice(steps), ["unpublishVolume", "unstageVolume"]);
  t.same([...at.mounter.points], []);
});

t.test("VolumeManager.tearDown() removes nothing while the driver is not registered", async (t) => {
  await using at = await node(t);
  {
    await using _driver = await at.driver();
    await at.volumes.setUp(podOf("one"), []);
  }
  await rm(join(at.rootDir, "plugins_registry", `${NAME}.sock`), { force: true });
  await at.until("the driver is gone", () =>
    at.volumes.tearDown("uid-one").then(
      () => false,
      (error: Error) => /not found in the list of registered CSI drivers/.test(error.message),
    ),
  );
  t.equal(at.mounter.points.size, 2);
  await using _back = await at.driver();
  await at.volumes.tearDown("uid-one");
  t.same([...at.mounter.points], []);
});

t.test("VolumeManager rejects with kubelet's messages when a driver fails", async (t) => {
  await using at = await node(t);
  t.same(await messages(at.volumes.setUp(podOf("one"), [])), [
    [
      "FailedMount",
      'MountVolume.MountDevice failed for volume "pv1" : kubernetes.io/csi: attacher.MountDevice failed to create ' +
        `newCsiDriverClient: driver name ${NAME} not found in the list of registered CSI drivers`,
    ],
  ]);
  await at.volumes.tearDown("uid-one");
  await using driver = await at.driver();
  driver.failures.set("publishVolume", { code: grpcStatus.INTERNAL, details: "no disk" });
  t.same(await messages(at.volumes.setUp(podOf("one"), [])), [
    ["FailedMount", 'MountVolume.SetUp failed for volume "pv1" : rpc error: code = Internal desc = no disk'],
  ]);
  const inline: Volume = { name: "own", csi: { driver: NAME } };
  t.same(await messages(at.volumes.setUp(podOf("two", { volumes: [inline] }), [])), [
    [
      "FailedMount",
      'MountVolume.SetUp failed for volume "own" : kubernetes.io/csi: mounter.SetupAt failed to check volume ' +
        `lifecycle mode: volume mode "Ephemeral" not supported by driver ${NAME} (only supports ["Persistent"])`,
    ],
  ]);
  await at.volumes.tearDown("uid-two");
  await at.volumes.tearDown("uid-one");
  t.same(driver.volumeCalls.slice(-2), ["unpublishVolume", "unstageVolume"], "what has failed half way is undone");
});

t.test("VolumeManager mounts an ephemeral volume with the pod information that the driver requests", async (t) => {
  await using at = await node(t);
  at.api.put(`/apis/storage.svc.io/v1/csidrivers/${NAME}`, {
    kind: "CSIDriver",
    metadata: { name: NAME },
    spec: {
      podInfoOnMount: true,
      requiresRepublish: true,
      volumeLifecycleModes: ["Ephemeral"],
      tokenRequests: [{ audience: "vault" }],
    },
  });
  await using driver = await at.driver();
  const inline: Volume = {
    name: "own",
    csi: { driver: NAME, readOnly: true, volumeAttributes: { size: "1" }, nodePublishSecretRef: { name: "key" } },
  };
  const pod = podOf("one", { volumes: [inline] });
  await at.volumes.setUp(pod, []);
  t.same(driver.volumeCalls, ["publishVolume"]);
  t.match(driver.calls.find(({ method }) => method === "publishVolume")?.request, {
    volumeId: /^csi-[0-9a-f]{64}$/,
    readonly: true,
    secrets: { password: "of key" },
    volumeContext: {
      size: "1",
      "csi.storage.k8s.io/pod.name": "one",
      "csi.storage.k8s.io/pod.uid": "uid-one",
      "csi.storage.k8s.io/serviceAccount.name": "worker",
      "csi.storage.k8s.io/ephemeral": "true",
      "csi.storage.k8s.io/serviceAccount.tokens":
        '{"vault":{"token":"t0k3n","expirationTimestamp":"2126-01-01T00:00:00Z"}}',
    },
  });
  await at.nodeVolumes.drivers.refresh(pod, inline, undefined, undefined);
  t.same(driver.volumeCalls, ["publishVolume", "publishVolume"], "published again");
  await at.volumes.tearDown("uid-one");
  t.same(driver.volumeCalls.slice(2), ["unpublishVolume"]);
});

t.test("VolumeManager maps a block volume as a device, and expands it", async (t) => {
  const volume: PersistentVolume = {
    ...persistent,
    spec: { ...persistent.spec, volumeMode: "Block", capacity: { storage: "2Gi" } },
  };
  await using at = await node(t, { volume });
  await using driver = await at.driver();
  const pod = podOf("one", { containers: [{ name: "c", volumeDevices: [{ name: "data", devicePath: "/dev/x" }] }] });
  await at.volumes.setUp(pod, []);
  const link = join(at.rootDir, "pods/uid-one/volumeDevices/kubernetes.io~csi/pv1");
  t.equal(at.volumes.device(pod, "data"), link);
  t.ok(await stat(link));
  t.same(driver.volumeCalls, ["stageVolume", "publishVolume", "expandVolume"]);
  t.match(driver.calls.find(({ method }) => method === "expandVolume")?.request.capacityRange, {
    requiredBytes: 2n * 1024n ** 3n,
  });
  t.match(at.events, [
    /^Normal SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv1" globalMapPath /,
    /volumeMapPath /,
    "resized to 2Gi",
    /^Normal FileSystemResizeSuccessful/,
  ]);
  await at.volumes.tearDown("uid-one");
  t.same([...at.mounter.points], []);
});

t.test("VolumeManager waits until the controller has attached a volume, without events", async (t) => {
  await using at = await node(t);
  at.api.delete(`/apis/storage.svc.io/v1/csidrivers/${NAME}`);
  await using driver = await at.driver();
  const pod = podOf("one");
  const [[event, message] = []] = (await messages(at.volumes.setUp(pod, []))) as [unknown, string][];
  t.equal(event, undefined);
  t.match(message, /has not been added to the list of VolumesInUse/);
  t.same(at.nodeVolumes.attachments.inUse, [UNIQUE]);
  const reportStatus = (status: Record<string, unknown>) => {
    at.api.put("/api/v1/nodes/n1", { kind: "Node", metadata: { name: "n1" }, status });
    at.nodeVolumes.attachments.nodeChanged();
  };
  reportStatus({ volumesInUse: [UNIQUE] });
  t.same(at.changed, ["uid-one"], "who waits looks again");
  t.match(await messages(at.volumes.setUp(pod, [])), [[undefined, /Volume not attached according to node status/]]);
  reportStatus({ volumesInUse: [UNIQUE], volumesAttached: [{ name: UNIQUE, devicePath: "" }] });
  t.match(await messages(at.volumes.setUp(pod, [])), [
    ["FailedMount", /^MountVolume.WaitForAttach failed .* not found/],
  ]);
  const attachment = toAttachmentName({ driver: NAME, handle: HANDLE }, "n1");
  at.api.put(`/apis/storage.svc.io/v1/volumeattachments/${attachment}`, {
    kind: "VolumeAttachment",
    metadata: { name: attachment },
    spec: { attacher: NAME, nodeName: "n1", source: { persistentVolumeName: "pv1" } },
    status: { attached: true, attachmentMetadata: { lun: "3" } },
  });
  await at.volumes.setUp(pod, []);
  t.match(driver.calls.find(({ method }) => method === "stageVolume")?.request, { publishContext: { lun: "3" } });
  await using next = await at.again();
  t.same(next.nodeVolumes.attachments.inUse, [UNIQUE], "a new agent reports the volumes in use");
  await at.volumes.tearDown("uid-one");
  t.same(at.nodeVolumes.attachments.inUse, []);
});

t.test("VolumeManager creates VolumeAttachments when no controller does", async (t) => {
  await using at = await node(t, { controllerAttach: false });
  at.api.delete(`/apis/storage.svc.io/v1/csidrivers/${NAME}`);
  await using driver = await at.driver();
  const made = at.volumes.setUp(podOf("one"), []);
  const attachments = () => at.api.listBelow("/apis/storage.svc.io/v1/volumeattachments");
  await at.until("the VolumeAttachment is created", () => attachments().length === 1);
  const [found] = attachments();
  t.match(found?.spec, { attacher: NAME, nodeName: "n1", source: { persistentVolumeName: "pv1" } });
  const path = `/apis/storage.svc.io/v1/volumeattachments/${found?.metadata.name}`;
  at.api.put(path, { ...found!, status: { attached: true } });
  await made;
  t.same(at.events, ['Normal SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "pv1" ']);
  t.ok(driver.volumeCalls.includes("publishVolume"));
  await at.volumes.tearDown("uid-one");
  t.same(attachments(), []);
});
