/** The effect of each flag of `svc scheduler`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Test } from "tap";
import { type schedulerFlags, schedulerProgram } from "../../scheduler/flags.ts";
import { type SchedulerOptions, schedulerOptions } from "../../scheduler/options.ts";
import { invokeMutant } from "../../testing/flags/mutant.ts";
import { componentEffects, showsGate } from "./component-effects.ts";

type Effects = Partial<Record<keyof typeof schedulerFlags, (t: Test) => Promise<void>>>;

function invoke(...argv: readonly string[]) {
  const invoked = invokeMutant(schedulerProgram, argv, { version: "v1.33.0" });
  if (invoked.kind === "exit") throw new Error(invoked.stderr);
  return invoked;
}

const options = (...argv: readonly string[]): SchedulerOptions => {
  const { flags, gates } = invoke(...argv);
  return schedulerOptions(flags, gates);
};

const CONFIG = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/svc/scheduler.conf, qps: 70, burst: 140}
leaderElection: {leaderElect: true, leaseDuration: 40s, renewDeadline: 20s, resourceName: from-file}
profiles: [{schedulerName: packer}]
`;

export const schedulerEffects: Effects = {
  ...componentEffects({ word: "scheduler", name: "kube-scheduler", invoke, options }),
  "feature-gates": async (t) => {
    t.same(options("--feature-gates=SchedulerQueueingHints=false,SchedulerPopFromBackoffQ=false").features, {
      asyncPreemption: true,
      popFromBackoff: false,
      queueingHints: false,
      storageCapacityScoring: false,
      dynamicResources: undefined,
    });
    t.same(options("--feature-gates=DynamicResourceAllocation=true,DRADeviceTaints=true").features.dynamicResources, {
      adminAccess: false,
      prioritizedList: false,
      partitionableDevices: false,
      deviceTaints: true,
    });
    const file = join(t.testdir(), "config.yaml");
    const shape = "args: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}";
    writeFileSync(file, CONFIG.replace("packer", `packer, pluginConfig: [{name: VolumeBinding, ${shape}}]`));
    t.throws(() => options(`--config=${file}`), { message: /unexpected field `shape`, remove it or turn on the/ });
    const gate = "--feature-gates=StorageCapacityScoring=true";
    t.equal(options(`--config=${file}`, gate).config.profiles[0]?.pluginConfig?.VolumeBinding?.shape?.length, 2);
    t.equal(options().streamsLists, false);
    t.equal(options("--feature-gates=WatchListClient=true").streamsLists, true);
    t.equal(options("--feature-gates=ClientsPreferCBOR=true").cbor, undefined);
    t.equal(options("--feature-gates=ClientsAllowCBOR=true").cbor, "accept");
    t.equal(options("--feature-gates=ClientsAllowCBOR=true,ClientsPreferCBOR=true").cbor, "prefer");
    t.throws(() => options("--feature-gates=NoSuchGate=true"), { message: /unknown feature gate/ });
  },
  "pod-max-in-unschedulable-pods-duration": async (t) => {
    t.equal(options("--pod-max-in-unschedulable-pods-duration=20s").config.unschedulableMaxMs, 20_000);
  },
  config: async (t) => {
    const file = join(t.testdir(), "config.yaml");
    writeFileSync(file, CONFIG);
    const { config, connection, election } = options(`--config=${file}`);
    t.equal(config.profiles[0]?.schedulerName, "packer");
    t.match(connection, { kubeconfig: "/etc/svc/scheduler.conf", qps: 70, burst: 140 });
    t.match(election, { name: "from-file", leaseDurationMs: 40_000, renewDeadlineMs: 20_000, retryPeriodMs: 2_000 });
    t.equal(options(`--config=${file}`, "--leader-elect-resource-name=given").election?.name, "given");
    t.throws(() => options("--config=/missing.yaml"), { message: /Cannot read --config \/missing.yaml/ });
    writeFileSync(file, CONFIG.replace("20s", "50s"));
    t.throws(() => options(`--config=${file}`), { message: /LeaseDuration must be greater than RenewDeadline/ });
    writeFileSync(file, `${CONFIG}unknown: 1\n`);
    t.throws(() => options(`--config=${file}`), { message: /unknown field "unknown"/ });
  },
};

const shows = (gate: string, read: (options: SchedulerOptions) => unknown, needed: readonly string[] = []) =>
  showsGate(options, gate, read, needed);

const devices = (
  gate: string,
  feature: keyof NonNullable<SchedulerOptions["features"]["dynamicResources"]>,
): ((t: Test) => Promise<void>) =>
  shows(gate, ({ features }) => features.dynamicResources?.[feature], ["DynamicResourceAllocation=true"]);

export const schedulerGateEffects: Readonly<Record<string, (t: Test) => Promise<void>>> = {
  AllAlpha: shows("AllAlpha", ({ features }) => features.storageCapacityScoring),
  AllBeta: shows("AllBeta", ({ features }) => features.asyncPreemption),
  ClientsAllowCBOR: shows("ClientsAllowCBOR", ({ cbor }) => cbor !== undefined),
  ClientsPreferCBOR: shows("ClientsPreferCBOR", ({ cbor }) => cbor === "prefer", ["ClientsAllowCBOR=true"]),
  DRAAdminAccess: devices("DRAAdminAccess", "adminAccess"),
  DRADeviceTaints: devices("DRADeviceTaints", "deviceTaints"),
  DRAPartitionableDevices: devices("DRAPartitionableDevices", "partitionableDevices"),
  DRAPrioritizedList: devices("DRAPrioritizedList", "prioritizedList"),
  DynamicResourceAllocation: shows(
    "DynamicResourceAllocation",
    ({ features }) => features.dynamicResources !== undefined,
  ),
  SchedulerAsyncPreemption: shows("SchedulerAsyncPreemption", ({ features }) => features.asyncPreemption),
  SchedulerPopFromBackoffQ: shows("SchedulerPopFromBackoffQ", ({ features }) => features.popFromBackoff),
  SchedulerQueueingHints: shows("SchedulerQueueingHints", ({ features }) => features.queueingHints),
  StorageCapacityScoring: shows("StorageCapacityScoring", ({ features }) => features.storageCapacityScoring),
  WatchListClient: shows("WatchListClient", ({ streamsLists }) => streamsLists),
};
