/** The effect of each flag of `svc agent`, set on the command line and in the configuration file. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import t, { type Test } from "tap";
import { parseAgentCommandLine } from "../../../agent/config/command-line.ts";
import { loadAgentConfig } from "../../../agent/config/load.ts";
import { agentFlags } from "../../../agent/flags.ts";
import { findKernelProblems } from "../../../agent/node/machine/kernel-tunables.ts";
import { findMachineProblem } from "../../../agent/node/machine/machine-check.ts";
import { toAgentConfig } from "../../../agent/options.ts";
import type { Flag } from "../../../flags/flag.ts";
import { agentGates } from "../../../flags/gate-tables/agent.ts";
import { type AgentFlagName, createTestAgent, type Settings } from "../../../testing/agent/flag-harness.ts";
import { apiClientEffects } from "./api-client-effects.ts";
import { authenticationEffects } from "./authentication-effects.ts";
import { networkingEffects } from "./networking-effects.ts";
import { podSourcesEffects } from "./pod-sources-effects.ts";
import { registrationEffects } from "./registration-effects.ts";
import { resourcesEffects } from "./resources-effects.ts";
import { runtimeEffects } from "./runtime-effects.ts";
import { servingEffects } from "./serving-effects.ts";
import type { Effect } from "./support.ts";

const effects: Partial<Record<AgentFlagName, Effect>> = {
  ...podSourcesEffects,
  ...registrationEffects,
  ...runtimeEffects,
  ...servingEffects,
  ...authenticationEffects,
  ...resourcesEffects,
  ...networkingEffects,
  ...apiClientEffects,
};

/** Flags with a test of their own: they configure no running agent, or reject other values. */
const testedSeparately: readonly AgentFlagName[] = [
  "authorization-mode",
  "bootstrap-svcconfig",
  "ca-hash",
  "config",
  "config-dir",
  "dry-run-config",
  "exit-on-lock-contention",
  "fail-cgroupv1",
  "fail-swap-on",
  "help",
  "join",
  "lock-file",
  "protect-kernel-defaults",
  "rotate-certificates",
  "rotate-server-certificates",
  "tls-private-key-file",
  "token",
  "version",
];

function fileWith(t: Test, text: string): string {
  const directory = t.testdir({
    "agent.yaml": `apiVersion: svclet.config.svc.io/v1beta1\nkind: SvcletConfiguration\n${text}`,
  });
  return join(directory, "agent.yaml");
}

t.test("--authorization-mode defaults to Webhook with a configuration file", async (t) => {
  const mode = (...argv: string[]) => toAgentConfig(loadAgentConfig(argv, {})).server.authorization.mode;
  t.equal(mode(), "AlwaysAllow");
  t.equal(mode("--authorization-mode=Webhook"), "Webhook");
  const file = fileWith(t, "");
  t.equal(mode(`--config=${file}`), "Webhook");
  t.equal(mode(`--config=${file}`, "--authorization-mode=AlwaysAllow"), "AlwaysAllow");
});

t.test("files in --config-dir override the file of --config", async (t) => {
  const file = fileWith(t, "maxPods: 7\npodsPerCore: 3\n");
  const header = "apiVersion: svclet.config.svc.io/v1beta1\nkind: SvcletConfiguration\n";
  writeFileSync(join(dirname(file), "10.conf"), `${header}maxPods: 8\n`);
  const { flags } = loadAgentConfig([`--config=${file}`, `--config-dir=${dirname(file)}`], {});
  t.match(flags, { "max-pods": 8, "pods-per-core": 3 });
});

t.test("--dry-run-config, --version and --help print and exit", async (t) => {
  const printed = (...argv: string[]) => parseAgentCommandLine(argv, {}, { version: "v1.33.0" });
  t.match(printed("--dry-run-config", "--max-pods=7"), { kind: "exit", code: 0, stdout: /^maxPods: 7 +# flag/m });
  t.match(printed("--version"), { kind: "exit", code: 0, stdout: "agent v1.33.0\n" });
  t.match(printed("--version=v1.33.9-site"), { kind: "run", version: "v1.33.9-site" });
  t.match(printed("--help"), { kind: "exit", code: 0, stdout: /Usage:/ });
});

t.test("--version=v… is the version that the node reports", async (t) => {
  for (const version of ["false", "v1.33.9-site"]) {
    await using agent = await createTestAgent("flag", { version });
    await agent.start();
    const { nodeInfo } = agent.getNode().status as { nodeInfo: { kubeletVersion: string } };
    t.match(nodeInfo.kubeletVersion, version === "false" ? /^v1\.33\.\d+/ : /^v1\.33\.9-site$/);
  }
});

t.test("--protect-kernel-defaults rejects other kernel parameters", async (t) => {
  const directory = t.testdir({ vm: { overcommit_memory: "0\n", panic_on_oom: "0\n" } });
  const kernel = await findKernelProblems(directory);
  t.same(kernel, ["invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0"]);
  const problem = (...argv: string[]) =>
    findMachineProblem(toAgentConfig(loadAgentConfig(argv, {})), { swap: [], cgroupV1: false, kernel });
  t.equal(problem(), undefined);
  t.match(problem("--protect-kernel-defaults"), /^invalid kernel flag: .*--protect-kernel-defaults=false$/);
});

t.test("--fail-swap-on and --fail-cgroupv1 reject machines with swap or cgroup v1", async (t) => {
  const machine = { swap: ["/dev/sdb2"], cgroupV1: true };
  const problem = (settings: Settings, found = machine) =>
    findMachineProblem(
      toAgentConfig(
        loadAgentConfig(
          Object.entries(settings).map(([k, v]) => `--${k}=${v}`),
          {},
        ),
      ),
      found,
    );
  t.match(problem({}), /swap is on \(\/dev\/sdb2\).*--fail-swap-on=false/);
  t.match(problem({ "fail-swap-on": "false" }), /uses cgroup v1.*--fail-cgroupv1=false/);
  t.equal(problem({ "fail-swap-on": "false", "fail-cgroupv1": "false" }), undefined);
  t.equal(problem({}, { swap: [], cgroupV1: false }), undefined);
  const inFile = (text: string) =>
    toAgentConfig(loadAgentConfig([`--config=${fileWith(t, `authorization: {mode: AlwaysAllow}\n${text}`)}`], {}));
  t.equal(
    findMachineProblem(inFile("failSwapOn: false\n"), machine),
    undefined,
    "cgroup v1 is allowed with a configuration file",
  );
  t.match(findMachineProblem(inFile("failSwapOn: false\nfailCgroupV1: true\n"), machine), /uses cgroup v1/);
});

t.test("gates enable user namespaces, stop signals and tokens for credential providers", async (t) => {
  const of = (...gates: readonly string[]) =>
    toAgentConfig(
      loadAgentConfig(
        gates.map((gate) => `--feature-gates=${gate}=true`),
        {},
      ),
    ).pods;
  t.match(of(), { stopSignals: false, idsPerPod: undefined });
  t.match(of("ContainerStopSignals", "KubeletServiceAccountTokenForCredentialProviders"), { stopSignals: true });
  t.match(of("UserNamespacesSupport"), { idsPerPod: 65_536 });
});

t.test("gates enable image volumes, fine-grained authorization and other restart delays", async (t) => {
  const of = (text: string, ...gates: readonly string[]) => {
    const file = fileWith(t, `authorization: {mode: AlwaysAllow}\n${text}`);
    return toAgentConfig(
      loadAgentConfig([`--config=${file}`, ...gates.map((gate) => `--feature-gates=${gate}=true`)], {}),
    );
  };
  const max = "crashLoopBackOff: {maxContainerRestartPeriod: 7s}\n";
  t.match(of(""), { volumes: { images: false }, server: { authorization: { fineGrained: false } } });
  t.match(of("", "ImageVolume"), { volumes: { images: true } });
  t.match(of("", "KubeletFineGrainedAuthz"), { server: { authorization: { fineGrained: true } } });
  t.same(of("").pods.restartDelays, { initialMs: 10_000, maxMs: 300_000 });
  t.same(of("", "ReduceDefaultCrashLoopBackOffDecay").pods.restartDelays, { initialMs: 1_000, maxMs: 60_000 });
  t.same(of(max, "KubeletCrashLoopBackOffMax").pods.restartDelays, { initialMs: 7_000, maxMs: 7_000 });
  const both = ["KubeletCrashLoopBackOffMax", "ReduceDefaultCrashLoopBackOffDecay"];
  t.same(of("", ...both).pods.restartDelays, { initialMs: 1_000, maxMs: 300_000 });
  t.throws(() => of(max), /crashLoopBackOff.maxContainerRestartPeriod: needs feature gate SvcletCrashLoopBackOffMax/);
  const closed = ["--rotate-server-certificates", "--feature-gates=RotateKubeletServerCertificate=false"];
  t.throws(() => loadAgentConfig(closed, {}), /serverTLSBootstrap: needs feature gate RotateSvcletServerCertificate/);
  t.equal(toAgentConfig(loadAgentConfig(closed.slice(1), {})).certificates.rotateServing, false);
});

t.test("every gate that the agent reads can be set", async (t) => {
  const directory = new URL("../../../agent", import.meta.url).pathname;
  const sources = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const gateNames = sources.flatMap((file) => [
    ...readFileSync(join(directory, file), "utf8").matchAll(/gates\.(?:enabled|has)\("(\w+)"\)/g),
  ]);
  t.ok(gateNames.length > 4);
  for (const [, name = ""] of gateNames) t.equal(agentGates[name]?.effective, true, name);
});

t.test("configuration fields without a flag have an effect", async (t) => {
  const text = [
    "authorization: {mode: AlwaysAllow}",
    "configMapAndSecretChangeDetectionStrategy: Get",
    "containerLogMaxWorkers: 4",
    "containerLogMonitorInterval: 3s",
    "enableDebugFlagsHandler: false",
    "enableProfilingHandler: false",
    "enableSystemLogHandler: false",
    "featureGates: {UserNamespacesSupport: true}",
    "maxParallelImagePulls: 3",
    "nodeLeaseDurationSeconds: 20",
    "nodeStatusReportFrequency: 1m",
    "podLogsDir: /var/log/edge",
    "singleProcessOOMKill: false",
    "userNamespaces: {idsPerPod: 131072}",
    "",
  ].join("\n");
  const options = toAgentConfig(loadAgentConfig([`--config=${fileWith(t, text)}`], {}));
  t.match(options, {
    podLogsDir: "/var/log/edge",
    runtime: { serializeImagePulls: false, parallelImagePulls: 3, singleProcessOomKill: false },
    node: { leaseDurationSeconds: 20, statusReportMs: 60_000 },
    server: { debugFlags: false, profiling: false, nodeLogs: false },
    pods: { logMonitorMs: 3000, logWorkers: 4, idsPerPod: 131_072, changeDetection: "Get" },
  });
  t.match(
    findMachineProblem(options, { swap: [], cgroupV1: true }),
    /^singleProcessOOMKill is false, which needs cgroup v2/,
  );
  t.equal(findMachineProblem(options, { swap: [], cgroupV1: false }), undefined);
});

const effective = Object.entries(agentFlags as Readonly<Record<string, Flag>>).filter(
  ([, row]) => row.inert === undefined,
);

t.test("every flag without an inert mark has a test", async (t) => {
  const tested = [...Object.keys(effects), ...testedSeparately].sort();
  t.same(tested, effective.map(([name]) => name).sort());
});

for (const [name, { set, verify }] of Object.entries(effects)) {
  const row: Flag = agentFlags[name as AgentFlagName];
  for (const form of row.config === undefined ? (["flag"] as const) : (["flag", "file"] as const)) {
    t.test(
      `--${name} has an effect ${form === "flag" ? "on the command line" : "in the configuration file"}`,
      async (t) => {
        const settings = typeof set === "function" ? await set() : set;
        await using agent = await createTestAgent(form, settings);
        await verify(t, agent);
      },
    );
  }
}
