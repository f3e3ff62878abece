import t from "tap";
import type { ParsedFlags } from "../../flags/flag.ts";
import type { agentFlags } from "../flags.ts";
import { loadAgentConfig } from "./load.ts";
import { emptyBranch, toOrigins } from "./origin.ts";
import { validateRules } from "./validate.ts";

type AgentFlags = ParsedFlags<typeof agentFlags>;

const defaults = loadAgentConfig([], {}).flags;
const problems = (changed: Partial<AgentFlags>) => validateRules({ ...defaults, ...changed }, emptyBranch);

t.test("validateRules() accepts the defaults", async (t) => {
  t.same(problems({}), []);
});

t.test("validateRules() returns the message of each broken rule", async (t) => {
  const cases: readonly [Partial<AgentFlags>, RegExp][] = [
    [{ "image-gc-low-threshold": 90, "image-gc-high-threshold": 80 }, /imageGCLowThresholdPercent must not be above/],
    [
      { "enforce-node-allocatable": ["none", "pods"] },
      /may not contain additional enforcements when "none" is specified/,
    ],
    [
      { "enforce-node-allocatable": ["system-reserved"] },
      /systemReservedCgroup .* must be specified when "system-reserved" contained/,
    ],
    [
      { "enforce-node-allocatable": ["svc-reserved"] },
      /svcReservedCgroup .* must be specified when "svc-reserved" contained/,
    ],
    [{ "cgroups-per-qos": false }, /cgroupsPerQOS \(--cgroups-per-qos\) must be set to true when "pods" contained/],
    [{ "system-cgroups": "/system" }, /systemCgroups .* was specified and cgroupRoot .* was not/],
    [{ runonce: true }, /runOnce and enableServer cannot both be true/],
    [{ "eviction-soft": { "memory.available": "1Gi" } }, /evictionSoft needs a grace period/],
    [{ "tls-cert-file": "/a" }, /must be set together/],
    [{ "enforce-node-allocatable": ["pods", "pods"] }, /duplicated enforcements "pods" in enforceNodeAllocatable/],
    [
      { "reserved-memory": [{ numaNode: 1, limits: { memory: "0" } }] },
      /reserved memory may not be zero for NUMA node 1 and resource "memory"/,
    ],
    [
      {
        "reserved-memory": [
          { numaNode: 0, limits: { memory: "1Gi" } },
          { numaNode: 0, limits: { memory: "2Gi" } },
        ],
      },
      /the reserved memory has a duplicate value for NUMA node 0 and resource "memory"/,
    ],
    [
      { "reserved-cpus": "0", "system-reserved-cgroup": "/s" },
      /can't use reservedSystemCPUs \(--reserved-cpus\) with systemReservedCgroup/,
    ],
  ];
  for (const [changed, message] of cases) t.match(problems(changed), [message], JSON.stringify(changed));
});

t.test("validateRules() accepts valid settings", async (t) => {
  t.same(problems({ "enforce-node-allocatable": ["none"], "cgroups-per-qos": false }), []);
  t.same(problems({ "enforce-node-allocatable": ["system-reserved"], "system-reserved-cgroup": "/s" }), []);
  t.same(problems({ runonce: true, "enable-server": false }), []);
  t.same(problems({ "tls-cert-file": "/a", "tls-private-key-file": "/b" }), []);
});

t.test("validateRules() refuses serialized image pulls together with parallel ones", async (t) => {
  const of = (settings: object, serialize: boolean) => {
    const origins = toOrigins(settings, () => ({ kind: "flag", flag: "config" }));
    if (origins.kind !== "branch") throw new Error("an object is a branch");
    return validateRules({ ...defaults, "serialize-image-pulls": serialize }, origins);
  };
  t.same(of({ maxParallelImagePulls: 1 }, true), []);
  t.same(of({ maxParallelImagePulls: 5 }, false), []);
  t.match(of({ maxParallelImagePulls: 2 }, true), [/cannot be larger than 1 unless SerializeImagePulls/]);
  t.match(of({ maxParallelImagePulls: 0 }, false), [/must be a positive number/]);
});

t.test("validateRules() reports the source of the field", async (t) => {
  const origins = toOrigins({ cgroupsPerQOS: false }, () => ({ kind: "file", file: "a.yaml", line: 3 }));
  if (origins.kind !== "branch") throw new Error("an object is a branch");
  t.match(validateRules({ ...defaults, "cgroups-per-qos": false }, origins), [
    /^a\.yaml:3: invalid configuration: .*cgroupsPerQOS/,
  ]);
});

t.test("validateRules() checks fields without a flag", async (t) => {
  const of = (settings: object) => validateRules(defaults, toOrigins(settings, () => ({ kind: "default" })) as never);
  const restart = /CrashLoopBackOff.MaxContainerRestartPeriod \(got: [\d.]+ seconds\) must be set between 1s and 300s$/;
  const ids = /^userNamespaces.idsPerPod must be a multiple of 65536/;
  const cases: readonly [object, RegExp | undefined][] = [
    [{ containerLogMaxWorkers: 0 }, /containerLogMaxWorkers must be greater than or equal to 1$/],
    [{ containerLogMaxWorkers: 3 }, undefined],
    [{ tracing: { samplingRatePerMillion: -1 } }, /^tracing.samplingRatePerMillion: .*must be positive/],
    [{ tracing: { endpoint: "https://a" } }, /^tracing.endpoint: .*unsupported scheme: https/],
    [{ tracing: { endpoint: "localhost:4317" } }, undefined],
    [{ crashLoopBackOff: { maxContainerRestartPeriod: "300s" } }, undefined],
    [{ crashLoopBackOff: { maxContainerRestartPeriod: "301s" } }, restart],
    [{ crashLoopBackOff: { maxContainerRestartPeriod: "999ms" } }, restart],
    [{ crashLoopBackOff: { maxContainerRestartPeriod: "soon" } }, restart],
    [{ imageMaximumGCAge: "2m0s" }, /imageMaximumGCAge 2m0s must be greater than imageMinimumGCAge 2m0s/],
    [{ imageMaximumGCAge: "2m1s" }, undefined],
    [{ podLogsDir: "logs" }, /pod logs path "logs" must be absolute path/],
    [{ podLogsDir: "/a/../b" }, /pod logs path "\/a\/..\/b" must be normalized/],
    [{ podLogsDir: "/\u00e4" }, /must contain ASCII characters only/],
    [{ enableSystemLogQuery: true, enableSystemLogHandler: false }, /enableSystemLogHandler is required/],
    [{ registerWithTaints: [{ key: "a", effect: "NoSchedule", timeAdded: "2020-01-01T00:00:00Z" }] }, /TimeAdded/],
    [{ userNamespaces: { idsPerPod: 131_072 } }, undefined],
    [{ userNamespaces: { idsPerPod: 65_537 } }, ids],
    [{ userNamespaces: { idsPerPod: 0 } }, ids],
    [{ userNamespaces: { idsPerPod: 2 ** 32 } }, ids],
  ];
  for (const [settings, message] of cases) {
    t.match(of(settings), message === undefined ? [] : [message], JSON.stringify(settings));
    t.equal(of(settings).length, message === undefined ? 0 : 1, JSON.stringify(settings));
  }
});
