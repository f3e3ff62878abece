import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";

const shared = process.env.SVC_SHARED ?? new URL("../../../shared", import.meta.url).pathname;
const facts = join(shared, "facts/agent-events.json");

/** The file below `src/agent` that records each event of kubelet. */
const recordedIn: Readonly<Record<string, string>> = {
  AlreadyMountedVolume: "volumes/local/local-volumes.ts",
  CgroupV1: "node/node-events.ts",
  CheckLimitsForResolvConf: "node/node-events.ts",
  ContainerGCFailed: "garbage-collection/collect-garbage.ts",
  Created: "pods/containers/start-container.ts",
  DNSConfigForming: "pods/sandbox/dns.ts",
  ErrImageNeverPull: "images/image-manager.ts",
  Evicted: "eviction/begin-eviction.ts",
  EvictionThresholdMet: "eviction/eviction-manager.ts",
  ExceededGracePeriod: "pods/admission/pod-admitter.ts",
  Failed: "images/image-manager.ts",
  FailedAttachVolume: "volumes/drivers/attachments.ts",
  FailedCreatePodContainer: "pods/sandbox/create-sandbox.ts",
  FailedCreatePodSandBox: "pods/sandbox/create-sandbox.ts",
  FailedKillPod: "pods/states/terminating.ts",
  FailedMapVolume: "volumes/csi/steps.ts",
  FailedMount: "volumes/volume-manager.ts",
  FailedNodeAllocatableEnforcement: "cgroups/node-cgroups.ts",
  FailedPostStartHook: "pods/containers/start-container.ts",
  FailedPrepareDynamicResources: "pods/sandbox/create-sandbox.ts",
  FailedPreStopHook: "pods/containers/kill-container.ts",
  FailedSync: "pods/worker/pod-worker.ts",
  FailedToRetrieveImagePullSecret: "images/image-manager.ts",
  FailedValidation: "assembly/pods.ts",
  FileSystemResizeSuccessful: "volumes/csi/csi-volumes.ts",
  FreeDiskSpaceFailed: "garbage-collection/image-collector.ts",
  ImageGCFailed: "garbage-collection/collect-garbage.ts",
  InspectFailed: "images/image-manager.ts",
  InvalidDiskCapacity: "garbage-collection/image-collector.ts",
  Killing: "pods/containers/kill-container.ts",
  LifecycleHTTPFallback: "pods/containers/hooks.ts",
  MissingClusterDNS: "pods/sandbox/dns.ts",
  NetworkNotReady: "pods/sandbox/create-sandbox.ts",
  NodeAllocatableEnforced: "cgroups/node-cgroups.ts",
  NodeHasDiskPressure: "node/status/node-status-manager.ts",
  NodeHasInsufficientMemory: "node/status/node-status-manager.ts",
  NodeHasInsufficientPID: "node/status/node-status-manager.ts",
  NodeHasNoDiskPressure: "node/status/node-status-manager.ts",
  NodeHasSufficientMemory: "node/status/node-status-manager.ts",
  NodeHasSufficientPID: "node/status/node-status-manager.ts",
  NodeNotReady: "node/status/node-status-manager.ts",
  NodeNotSchedulable: "node/node-events.ts",
  NodeReady: "node/status/node-status-manager.ts",
  NodeSchedulable: "node/node-events.ts",
  "Normal BackOff": "images/image-manager.ts",
  PossibleMemoryBackedVolumesOnDisk: "node/node-events.ts",
  Preempting: "pods/admission/pod-admitter.ts",
  ProbeWarning: "probes/prober.ts",
  Pulled: "images/image-manager.ts",
  Pulling: "images/image-manager.ts",
  Rebooted: "node/status/node-status-manager.ts",
  SandboxChanged: "pods/sandbox/create-sandbox.ts",
  Shutdown: "node/shutdown/shutdown-manager.ts",
  Started: "pods/containers/start-container.ts",
  Starting: "assembly/loops.ts",
  SuccessfulAttachVolume: "volumes/csi/csi-volumes.ts",
  SuccessfulMountVolume: "volumes/csi/csi-volumes.ts",
  SystemOOM: "node/machine/oom-watch.ts",
  Unhealthy: "probes/prober.ts",
  VolumeConditionAbnormal: "volumes/csi/volume-health.ts",
  VolumePermissionChangeInProgress: "volumes/mount/ownership.ts",
  VolumeResizeFailed: "volumes/csi/csi-volumes.ts",
  "Warning BackOff": "pods/status/waiting-reasons.ts",
};

/** Events of kubelet that this agent does not record, and why. */
const notRecorded: Readonly<Record<string, string>> = {
  FailedMountOnFilesystemMismatch: "recorded about the pod as FailedMount, not about the volume",
  FailedPodSandBoxStatus: "FailedSync covers it: sandbox and containers are read together",
  FileSystemResizeFailed: "VolumeResizeFailed covers it: only CSI drivers expand file systems",
  HostIPsIPFamilyMismatch: "there is no cloud provider that sets node addresses",
  KubeletSetupFailed: "the agent does not start then; it logs the reason",
  VolumeResizeSuccessful: "FileSystemResizeSuccessful covers it, as with kubelet's CSI volumes",
};

t.test("the agent records no event that the table lists as not recorded", async (t) => {
  const folder = fileURLToPath(new URL(".", import.meta.url));
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const sources = files.filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"));
  for (const reason of Object.keys(notRecorded)) {
    const found = sources.filter((file) => readFileSync(join(folder, file), "utf8").includes(`"${reason}"`));
    t.same(found, [], reason);
  }
});

t.test(
  "every event of kubelet is recorded by the file in the table, or the table has the reason why not",
  async (t) => {
    if (!existsSync(facts)) return t.comment("shared/ is not present: there is nothing to compare with");
    const { agentEvents } = JSON.parse(readFileSync(facts, "utf8")) as {
      readonly agentEvents: readonly { readonly reason: string; readonly type: string }[];
    };
    const keys = new Set<string>();
    for (const { reason, type } of agentEvents) {
      const key = [reason, `${type} ${reason}`].find((each) => each in recordedIn || each in notRecorded);
      t.ok(key, `${type} ${reason} is in the table`);
      if (key !== undefined) keys.add(key);
      const file = recordedIn[key ?? ""];
      if (file === undefined) continue;
      const source = readFileSync(fileURLToPath(new URL(file, import.meta.url)), "utf8");
      t.ok(source.includes(`"${reason}"`), `${reason} is recorded in ${file}`);
    }
    t.same(
      Object.keys({ ...recordedIn, ...notRecorded }).filter((key) => !keys.has(key)),
      [],
      "the tables have no other events",
    );
    t.same(
      Object.keys(recordedIn).filter((key) => key in notRecorded),
      [],
    );
  },
);
