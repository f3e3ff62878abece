import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";

const shared = process.env.SVC_SHARED ?? new URL("../../../shared", import.meta.url).pathname;
const facts = join(shared, "facts/agent-events.json");

/** Where each event of Kubernetes' agent is told here; below `src/agent`. */
const told: Readonly<Record<string, string>> = {
  AlreadyMountedVolume: "volumes/local-volumes.ts",
  "Normal BackOff": "images/image-manager.ts",
  "Warning BackOff": "pods/status/waiting-reasons.ts",
  CgroupV1: "node/node-events.ts",
  CheckLimitsForResolvConf: "node/node-events.ts",
  Created: "pods/containers/start-container.ts",
  DNSConfigForming: "pods/sandbox/dns.ts",
  ErrImageNeverPull: "images/image-manager.ts",
  Evicted: "volumes/size-limits.ts",
  ExceededGracePeriod: "pods/admission/pod-admitter.ts",
  Failed: "images/image-manager.ts",
  FailedAttachVolume: "volumes/attachments.ts",
  FailedCreatePodContainer: "pods/sandbox/create-sandbox.ts",
  FailedCreatePodSandBox: "pods/sandbox/create-sandbox.ts",
  FailedKillPod: "pods/states/terminating.ts",
  FailedMapVolume: "volumes/csi/steps.ts",
  FailedMount: "volumes/volume-manager.ts",
  FailedNodeAllocatableEnforcement: "node/node-cgroups.ts",
  FailedPostStartHook: "pods/containers/start-container.ts",
  FailedPreStopHook: "pods/containers/kill-container.ts",
  FailedSync: "pods/worker/pod-worker.ts",
  FailedToRetrieveImagePullSecret: "images/image-manager.ts",
  FailedValidation: "assembly/pods.ts",
  FileSystemResizeSuccessful: "volumes/csi/csi-volumes.ts",
  InspectFailed: "images/image-manager.ts",
  Killing: "pods/containers/kill-container.ts",
  LifecycleHTTPFallback: "pods/containers/hooks.ts",
  MissingClusterDNS: "pods/sandbox/dns.ts",
  NetworkNotReady: "pods/sandbox/create-sandbox.ts",
  NodeAllocatableEnforced: "node/node-cgroups.ts",
  NodeHasDiskPressure: "node/node-keeper.ts",
  NodeHasInsufficientMemory: "node/node-keeper.ts",
  NodeHasInsufficientPID: "node/node-keeper.ts",
  NodeHasNoDiskPressure: "node/node-keeper.ts",
  NodeHasSufficientMemory: "node/node-keeper.ts",
  NodeHasSufficientPID: "node/node-keeper.ts",
  NodeNotReady: "node/node-keeper.ts",
  NodeNotSchedulable: "node/node-events.ts",
  NodeReady: "node/node-keeper.ts",
  NodeSchedulable: "node/node-events.ts",
  PossibleMemoryBackedVolumesOnDisk: "node/node-events.ts",
  Preempting: "pods/admission/pod-admitter.ts",
  ProbeWarning: "probes/prober.ts",
  Pulled: "images/image-manager.ts",
  Pulling: "images/image-manager.ts",
  Rebooted: "node/node-keeper.ts",
  SandboxChanged: "pods/sandbox/create-sandbox.ts",
  Started: "pods/containers/start-container.ts",
  Starting: "assembly/loops.ts",
  SuccessfulAttachVolume: "volumes/csi/csi-volumes.ts",
  SuccessfulMountVolume: "volumes/csi/csi-volumes.ts",
  SystemOOM: "node/oom-watch.ts",
  Unhealthy: "probes/prober.ts",
  VolumePermissionChangeInProgress: "volumes/ownership.ts",
  VolumeResizeFailed: "volumes/csi/csi-volumes.ts",
};

/** Why others are not. */
const untold: Readonly<Record<string, string>> = {
  ContainerGCFailed: "ended containers are removed when the next one starts, there is no collector that could fail",
  EvictionThresholdMet: "no pod is evicted for what the node is short of",
  FailedMountOnFilesystemMismatch: "the pod is told, as FailedMount; the volume is not",
  FailedPodSandBoxStatus: "FailedSync tells it: sandbox and containers are looked at together",
  FailedPrepareDynamicResources: "no devices are claimed",
  FileSystemResizeFailed: "VolumeResizeFailed tells it: file systems grow through drivers only",
  FreeDiskSpaceFailed: "images are not collected",
  HostIPsIPFamilyMismatch: "no cloud provider names addresses",
  ImageGCFailed: "images are not collected",
  InvalidDiskCapacity: "images are not collected",
  KubeletSetupFailed: "the agent does not start then, and its last words say why",
  Shutdown: "the node's shutdown is not waited for",
  VolumeConditionAbnormal: "drivers are not asked how volumes are: its gate is alpha, and off",
  VolumeResizeSuccessful: "FileSystemResizeSuccessful tells it, as with Kubernetes' CSI drivers",
};

t.test("Every event of Kubernetes' agent is told somewhere, or it is known why not", async (t) => {
  if (!existsSync(facts)) return t.comment("shared/ is not present: there is nothing to compare with");
  const { agentEvents } = JSON.parse(readFileSync(facts, "utf8")) as {
    readonly agentEvents: readonly { readonly reason: string; readonly type: string }[];
  };
  const keys = new Set<string>();
  for (const { reason, type } of agentEvents) {
    const key = [reason, `${type} ${reason}`].find((each) => each in told || each in untold);
    t.ok(key, `${type} ${reason} is in the table`);
    if (key !== undefined) keys.add(key);
    const file = told[key ?? ""];
    if (file === undefined) continue;
    const source = readFileSync(fileURLToPath(new URL(file, import.meta.url)), "utf8");
    t.ok(source.includes(`"${reason}"`), `${reason} is told in ${file}`);
  }
  t.same(
    Object.keys({ ...told, ...untold }).filter((key) => !keys.has(key)),
    [],
    "the table names no others",
  );
  t.same(
    Object.keys(told).filter((key) => key in untold),
    [],
  );
});
