/**
 * The tests of effects fail when the value of their flag, field or gate is withheld. A run takes a sample that changes
 * from day to day; `make mutants` takes all, or those in SVC_MUTANTS, and prints those that survive.
 */
import t from "tap";
import { agentFlags } from "../../agent/flags.ts";
import { apiserverFlags } from "../../apiserver/flags/flags.ts";
import { controllerManagerFlags } from "../../controller-manager/flags.ts";
import type { Flag, FlagTable } from "../../flags/flag.ts";
import { schedulerFlags } from "../../scheduler/flags.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { type AgentFlagName, createTestAgent } from "../../testing/agent/flag-harness.ts";
import { killMutant, type MutationTest } from "../../testing/flags/mutation-test.ts";
import { agentGateEffects, fieldEffects, separateEffects, verifyField } from "./agent/config-effects.ts";
import { agentEffects } from "./agent/effects.ts";
import { apiserverEffects } from "./apiserver/effects.ts";
import { gateEffects } from "./apiserver/gate-effects.ts";
import { controllerManagerEffects, controllerManagerGateEffects } from "./controller-manager-effects.ts";
import { schedulerEffects, schedulerGateEffects } from "./scheduler-effects.ts";
import { upEffects } from "./up-effects.ts";

type Run = MutationTest["run"];

/** Of a sample; a mutant that is being tested runs to its end. */
const SAMPLE_MS = 12_000;
const DAY_MS = 86_400_000;

const table = (program: string, kind: MutationTest["kind"], runs: Readonly<Record<string, Run>>): MutationTest[] =>
  Object.entries(runs).map(([name, run]) => ({ program, kind, name, run }));

const agentRuns = (form: "flag" | "file") =>
  Object.fromEntries(
    Object.entries(agentEffects)
      .filter(([name]) => form === "flag" || (agentFlags[name as AgentFlagName] as Flag).config !== undefined)
      .map(([name, { set, verify }]): [string, Run] => [
        name,
        async (t) => {
          const settings = typeof set === "function" ? await set() : set;
          await using agent = await createTestAgent(form, settings);
          await verify(t, agent);
        },
      ]),
  );

const fieldRuns = Object.fromEntries(
  Object.entries(fieldEffects).map(([name, effect]): [string, Run] => [name, (t) => verifyField(t, effect)]),
);

/** A flag with one value cannot be withheld: its test shows that others are refused. */
const hasValues = (flags: FlagTable, name: string): boolean => flags[name]?.type.choices?.length !== 1;
const apiserverRuns = Object.fromEntries(
  Object.entries(apiserverEffects).filter(([name]) => hasValues(apiserverFlags, name)),
);

/** Withholding a flag that changes nothing changes nothing but its warning. */
const controllerManagerRuns = Object.fromEntries(
  Object.entries(controllerManagerEffects).filter(
    ([name]) =>
      hasValues(controllerManagerFlags, name) && (controllerManagerFlags as FlagTable)[name]?.redundant === undefined,
  ),
);

const schedulerRuns = Object.fromEntries(
  Object.entries(schedulerEffects).filter(
    ([name]) => hasValues(schedulerFlags, name) && (schedulerFlags as FlagTable)[name]?.redundant === undefined,
  ),
);

const mutants: readonly MutationTest[] = [
  ...table("apiserver", "flag", apiserverRuns),
  ...table("apiserver", "gate", gateEffects),
  ...table("agent", "flag", { ...agentRuns("flag"), ...separateEffects }),
  ...table("agent with a file", "flag", agentRuns("file")),
  ...table("agent", "field", fieldRuns),
  ...table("agent", "gate", agentGateEffects),
  ...table("controller-manager", "flag", controllerManagerRuns),
  ...table("controller-manager", "gate", controllerManagerGateEffects),
  ...table("scheduler", "flag", schedulerRuns),
  ...table("scheduler", "gate", schedulerGateEffects),
  ...table("up", "flag", upEffects),
];

const wanted = process.env.SVC_MUTANTS ?? "";
/** `SVC_MUTANTS_PART=2/4` of those in SVC_MUTANTS. */
const [part = 0, parts = 1] = (process.env.SVC_MUTANTS_PART ?? "0/1").split("/").map(Number);
const seed = Number(process.env.SVC_MUTANTS_SEED ?? Math.floor(Date.now() / DAY_MS));

t.setTimeout(wanted === "" ? 120_000 : 3_600_000);

t.test("each test of an effect fails when the value is withheld", { timeout: 3_600_000 }, async (t) => {
  const names = wanted.split(",");
  const chosen = wanted === "" || wanted === "all" ? mutants : mutants.filter(({ name }) => names.includes(name));
  const began = performance.now();
  const survivors: string[] = [];
  const leaving: string[] = [];
  let count = 0;
  const ofPart = chosen.filter((_, index) => index % parts === part);
  for (const mutant of wanted === "" ? shuffled(ofPart) : ofPart) {
    if (wanted === "" && performance.now() - began > SAMPLE_MS) break;
    const title = `${mutant.program}: ${mutant.kind} ${mutant.name}`;
    const started = performance.now();
    const { reason, leftOpen } = await killMutant(mutant);
    count++;
    if (reason === undefined) survivors.push(title);
    if (leftOpen.length > 0) leaving.push(`${title}: ${leftOpen.join(", ")}`);
    if (wanted !== "") t.comment(`${title}: ${reason ?? "SURVIVES"} (${Math.round(performance.now() - started)} ms)`);
  }
  t.comment(`${count} of ${mutants.length} mutants, seed ${seed}`);
  t.ok(count > 0, "some mutants are tested");
  t.same(survivors, [], "no test of an effect passes without the value");
  t.same(leaving, [], "a test that fails closes what it opened");
});

function shuffled<T>(items: readonly T[]): readonly T[] {
  const random = seededRandom(seed);
  const keyed = items.map((item) => [random.fraction(), item] as const);
  return keyed.sort(([a], [b]) => a - b).map(([, item]) => item);
}
