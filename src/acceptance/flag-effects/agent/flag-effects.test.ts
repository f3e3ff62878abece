/** The effect of each flag, configuration field and feature gate of `svc agent`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { configFields, isEffective } from "../../../agent/config/fields.ts";
import { agentFlags } from "../../../agent/flags.ts";
import { findMachineProblem } from "../../../agent/node/machine/machine-check.ts";
import { toAgentConfig } from "../../../agent/options.ts";
import type { Flag } from "../../../flags/flag.ts";
import { agentGates } from "../../../flags/gate-tables/agent.ts";
import { type AgentFlagName, createTestAgent } from "../../../testing/agent/flag-harness.ts";
import { loadMutant } from "../../../testing/flags/mutant.ts";
import { agentGateEffects, fieldEffects, fileWith, separateEffects, verifyField } from "./config-effects.ts";
import { agentEffects as effects } from "./effects.ts";

/** Flags with a test of their own, of another process or cluster. */
const testedElsewhere: readonly AgentFlagName[] = [
  "ca-hash",
  "exit-on-lock-contention",
  "join",
  "lock-file",
  "tls-private-key-file",
  "token",
];

t.test("--fail-swap-on and --fail-cgroupv1 report one problem at a time", async (t) => {
  const problem = (...argv: readonly string[]) =>
    findMachineProblem(toAgentConfig(loadMutant(argv)), { swap: ["/dev/sdb2"], cgroupV1: true });
  t.match(problem(), /swap is on/);
  t.match(problem("--fail-swap-on=false"), /uses cgroup v1/);
  t.equal(problem("--fail-swap-on=false", "--fail-cgroupv1=false"), undefined);
});

t.test("gates combine with the settings that they allow", async (t) => {
  const of = (...argv: readonly string[]) => toAgentConfig(loadMutant(argv));
  const both = ["KubeletCrashLoopBackOffMax", "ReduceDefaultCrashLoopBackOffDecay"];
  const gates = both.map((gate) => `--feature-gates=${gate}=true`);
  const file = `--config=${fileWith(t, "authorization: {mode: AlwaysAllow}\n")}`;
  t.same(of(file).pods.restartDelays, { initialMs: 10_000, maxMs: 300_000 });
  t.same(of(file, ...gates).pods.restartDelays, { initialMs: 1_000, maxMs: 300_000 });
  t.equal(of("--feature-gates=RotateKubeletServerCertificate=false").certificates.rotateServing, false);
  const single = fileWith(t, "authorization: {mode: AlwaysAllow}\nsingleProcessOOMKill: false\n");
  const machine = findMachineProblem(of(`--config=${single}`), { swap: [], cgroupV1: true });
  t.match(machine, /^singleProcessOOMKill is false, which needs cgroup v2/);
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

t.test("every flag, field and gate that has an effect has a test", async (t) => {
  const effective = Object.entries(agentFlags as Readonly<Record<string, Flag>>).filter(
    ([, row]) => row.inert === undefined,
  );
  const tested = [...Object.keys(effects), ...Object.keys(separateEffects), ...testedElsewhere].sort();
  t.same(tested, effective.map(([name]) => name).sort());
  const fields = configFields.filter((field) => field.flag === undefined && isEffective(field));
  t.same(Object.keys(fieldEffects).sort(), fields.map(({ steps }) => steps.join(".")).sort());
  const gates = Object.keys(agentGates).filter((name) => agentGates[name]?.effective);
  t.same(Object.keys(agentGateEffects).sort(), gates.sort());
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

for (const [name, verify] of Object.entries(separateEffects)) t.test(`--${name} has an effect`, verify);
for (const [name, effect] of Object.entries(fieldEffects))
  t.test(`field ${name} has an effect`, async (t) => verifyField(t, effect));
for (const [name, verify] of Object.entries(agentGateEffects)) t.test(`gate ${name} has an effect`, verify);
