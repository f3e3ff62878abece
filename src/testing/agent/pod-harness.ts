/** A pod manager over the fake runtime and a fake clock, without mounts and API server. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ImageManager } from "../../agent/images/image-manager.ts";
import type { PodServices } from "../../agent/pods/pod-context.ts";
import type { PodEventRecorder } from "../../agent/pods/pod-events.ts";
import { podUid } from "../../agent/pods/pod-fields.ts";
import { PodManager } from "../../agent/pods/pod-manager.ts";
import { StartLimiter } from "../../agent/pods/worker/start-limiter.ts";
import { ProbeManager } from "../../agent/probes/probe-manager.ts";
import { digestOf, observe } from "../../agent/runtime/observation.ts";
import { TokenManager } from "../../agent/volumes/projected/token-manager.ts";
import { VolumeManager } from "../../agent/volumes/volume-manager.ts";
import type { Pod, PodStatus } from "../../api/core/pod/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { FakeRuntime } from "./fake-runtime.ts";
import { mountAll } from "./mount-all.ts";

export interface RecordedEvent {
  readonly pod: string;
  readonly container: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

export interface Harness extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly fake: FakeRuntime;
  readonly manager: PodManager;
  readonly services: PodServices;
  readonly events: RecordedEvent[];
  readonly statuses: { readonly pod: string; readonly status: PodStatus }[];
  readonly finished: string[];
  readonly removed: string[];
  readonly objects: Map<string, Readonly<Record<string, string>>>;
  readonly rootDir: string;
  /** The last status of the pod. */
  status(name: string): PodStatus | undefined;
  /** Advances the clock in steps of a second, with a listing of the runtime in each. */
  run(seconds: number): Promise<void>;
  /** A second agent over the same runtime, as after a crash. */
  restart(): PodManager;
}

export async function podHarness(): Promise<Harness> {
  const rootDir = await mkdtemp(join(tmpdir(), "svc-pods-"));
  const clock = new FakeClock();
  const fake = new FakeRuntime(clock);
  const events: RecordedEvent[] = [];
  const statuses: { pod: string; status: PodStatus }[] = [];
  const finished: string[] = [];
  const gone: string[] = [];
  const objects = new Map<string, Readonly<Record<string, string>>>();
  const recorder: PodEventRecorder = {
    recordPodEvent: (pod, type, reason, message) =>
      events.push({ pod: pod.metadata?.name ?? "", container: "", type, reason, message }),
    recordContainerEvent: (pod, { name }, type, reason, message) =>
      events.push({ pod: pod.metadata?.name ?? "", container: name, type, reason, message }),
  };
  const text = async (kind: string, namespace: string, name: string) => objects.get(`${kind}/${namespace}/${name}`);
  const bytes = async (kind: string, namespace: string, name: string) => {
    const found = await text(kind, namespace, name);
    return found && Object.fromEntries(Object.entries(found).map(([key, value]) => [key, Buffer.from(value)]));
  };
  const directories = { rootDir, podLogsDir: join(rootDir, "logs") };
  const mounter = {
    tmpfs: async () => undefined,
    hugePages: async () => undefined,
    bind: async () => undefined,
    unmount: async () => undefined,
    listMountPoints: async () => [],
  };
  const node = {
    name: "n1",
    ips: ["192.0.2.1"],
    allocatable: { cpuMillis: 2000, memoryBytes: 2 ** 30, storageBytes: 2 ** 34 },
  };
  let current: PodManager;
  const services: PodServices = {
    settings: {
      directories,
      cpu: { cpuCfsQuota: true, cpuCfsQuotaPeriodMs: 100 },
      cgroups: { cgroupDriver: "cgroupfs", cgroupRoot: "", cgroupsPerQos: true },
      seccompDefault: false,
      clusterDns: ["192.0.2.53"],
      clusterDomain: "cluster.local",
      syncMs: 60_000,
      deadRunsMax: 1,
      deadRunMinAgeMs: 0,
      memoryCapacityBytes: 2 ** 30,
      hookUserAgent: "test",
    },
    clock,
    log: silentLogger,
    runtime: fake.runtime,
    images: new ImageManager({
      images: fake.images,
      clock,
      events: recorder,
      getSecret: (namespace, name) => text("secret", namespace, name),
      serialize: true,
      qps: 0,
      burst: 0,
    }),
    volumes: new VolumeManager({
      directories,
      mounter,
      clock,
      objects: {
        configMap: (namespace, name) => bytes("configMap", namespace, name),
        secret: (namespace, name) => bytes("secret", namespace, name),
      },
      node: () => node,
      tokens: new TokenManager({ source: { requestToken: async (_namespace, _account, request) => request }, clock }),
      claims: { claim: async () => undefined, persistentVolume: async () => undefined },
      events: recorder,
    }),
    mounter,
    probes: new ProbeManager({
      runtime: fake.runtime,
      clock,
      events: recorder,
      userAgent: "test",
      onChange: (uid) => current.onRuntimeChange(uid),
    }),
    events: recorder,
    environment: {
      configMap: (namespace, name) => text("configMap", namespace, name),
      secret: (namespace, name) => text("secret", namespace, name),
      services: async () => [],
    },
    node: () => node,
    getRuntimeName: () => "fake",
    readHostFile: async () => "",
    cgroups: { apply: async () => undefined, remove: async () => undefined, removeAll: async () => undefined },
    getRuntimeHandler: async () => "",
    admission: {
      admit: async (_pod, runtimeProblem) => runtimeProblem,
      adopt: () => undefined,
      resize: async () => undefined,
    },
    startLimiter: new StartLimiter({ clock, minConcurrent: 1, isBusy: () => false }),
    expectChange: () => undefined,
    onFinished: (pod) => void finished.push(pod.metadata?.name ?? ""),
  };
  const start = (): PodManager =>
    new PodManager({
      services,
      onStatus: (pod, status) => statuses.push({ pod: pod.metadata?.name ?? "", status }),
      onRemoved: (pod) => void gone.push(pod.metadata?.name ?? ""),
    });
  current = start();
  const harness: Harness = {
    clock,
    fake,
    services,
    events,
    statuses,
    finished,
    removed: gone,
    objects,
    rootDir,
    get manager() {
      return current;
    },
    status: (name) => statuses.findLast((each) => each.pod === name)?.status,
    async run(seconds) {
      for (let second = 0; second < seconds; second++) {
        await waitUntilIdle(clock, fake, current);
        await relist(fake, current);
        await waitUntilIdle(clock, fake, current);
        await clock.advance(1000);
      }
      await relist(fake, current);
      await waitUntilIdle(clock, fake, current);
    },
    restart() {
      current = start();
      return current;
    },
    async [Symbol.asyncDispose]() {
      const closing = current.close({ stopPods: false, graceSeconds: 0 });
      await clock.advance(0);
      await closing;
      await rm(rootDir, { recursive: true, force: true });
    },
  };
  return harness;
}

/** As the relister: notifies only workers whose pod has changed. */
async function relist({ runtime }: FakeRuntime, manager: PodManager): Promise<void> {
  for (const { pod, observation } of manager.workers) {
    const now = await observe(runtime, podUid(pod), observation, new AbortController().signal).catch(() => undefined);
    if (now === undefined || digestOf(now) !== digestOf(observation)) manager.onRuntimeChange(podUid(pod));
  }
}

/** Bounds `waitUntilIdle`: a test whose workers never become idle fails at its assertions instead of hanging. */
const STEPS_MAX = 5_000;

/** Waits until all workers sleep. File system calls take real time while the fake clock stands still. */
async function waitUntilIdle(clock: FakeClock, fake: FakeRuntime, manager: PodManager): Promise<void> {
  for (let step = 0, idleSteps = 0; step < STEPS_MAX && idleSteps < 3; step++) {
    await clock.advance(0);
    const isIdle = fake.pendingCalls > 0 || [...manager.workers].every((worker) => worker.isIdle);
    idleSteps = isIdle ? idleSteps + 1 : 0;
  }
}

/** A pod of one container named `c` unless the spec has containers. */
/** Its first container mounts all volumes. */
export function testPod(name: string, spec: Partial<PodSpec> = {}): Pod {
  return mountAll({
    metadata: { name, namespace: "default", uid: `uid-${name}` },
    spec: { containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" }], ...spec },
  });
}
