import t from "tap";
import { agentGates } from "./gate-tables/agent.ts";
import { allGates } from "./gate-tables/all.ts";
import { apiserverGates } from "./gate-tables/apiserver.ts";
import { apiserverGatesIn } from "./gate-tables/apiserver-history.ts";
import { FeatureGates, gateProblems, gateWarnings } from "./gates.ts";

const table = {
  AllAlpha: { stage: "ALPHA", default: false },
  AllBeta: { stage: "BETA", default: false },
  Early: { stage: "ALPHA", default: false, effective: true },
  Late: { stage: "BETA", default: true, effective: true },
  SvcletThing: { stage: "BETA", default: true, effective: true },
  Idle: { stage: "BETA", default: false },
  Done: { stage: "GA", default: true, locked: true },
} as const;

t.test("FeatureGates.enabled() follows defaults, settings, then AllAlpha and AllBeta", async (t) => {
  t.equal(new FeatureGates(table).enabled("Late"), true);
  t.equal(new FeatureGates(table, { Late: false }).enabled("Late"), false);
  t.equal(new FeatureGates(table, { AllAlpha: true }).enabled("Early"), true);
  t.equal(new FeatureGates(table, { AllAlpha: true, Early: false }).enabled("Early"), false);
  t.equal(new FeatureGates(table, { AllBeta: false }).enabled("Late"), false);
  t.equal(new FeatureGates(table, { AllBeta: false }).enabled("Done"), true);
  t.equal(new FeatureGates(table, { KubeletThing: false }).enabled("SvcletThing"), false);
  t.throws(() => new FeatureGates(table).enabled("Typo"), RangeError);
  t.equal(new FeatureGates(table).has("Typo"), false);
});

t.test("a gate that the program does not read keeps its state", async (t) => {
  const settings = { AllAlpha: true, AllBeta: true, Idle: true };
  t.equal(new FeatureGates(table, settings).enabled("Idle"), false);
  t.equal(new FeatureGates({ ...table, Idle: { ...table.Idle, actual: true } }).enabled("Idle"), true);
  t.match(gateWarnings(table, settings), [
    /AllAlpha=true has an effect only on the gates that this build reads: Early$/,
    /AllBeta=true has an effect only on the gates that this build reads: Late, SvcletThing$/,
    /Idle=true has no effect: nothing in this build depends on it, it stays false/,
  ]);
  t.same(gateWarnings(table, { AllAlpha: false, Idle: false, Early: true }), []);
});

t.test("gateProblems() names unknown gates with the nearest, and locked ones", async (t) => {
  t.same(gateProblems(table, { Erly: true, Done: false, KubeletThing: true, constructor: true }), [
    "unknown feature gate Erly: did you mean Early?",
    "feature gate Done cannot be set to false: it is GA and locked to true",
    "unknown feature gate constructor",
  ]);
  t.same(gateProblems(table, { Done: true, Idle: true }), []);
  t.match(gateWarnings(table, { Done: true, Late: true }), [/GA feature gate Done=true/]);
});

t.test("one list of all gates with all values configures both programs", async (t) => {
  for (const [program, gates] of Object.entries({ agentGates, apiserverGates, older: apiserverGatesIn("1.31") })) {
    for (const name of Object.keys(allGates)) {
      for (const value of [true, false]) {
        if (gates[name]?.locked && gates[name].default !== value) continue;
        t.same(gateProblems(gates, { [name]: value }, allGates), [], `${program} ${name}=${value}`);
        const isEffective = gates[name]?.effective === true;
        const enabled = new FeatureGates(gates, { [name]: value }).has(name);
        const warnings = gateWarnings(gates, { [name]: value }).filter((text) => text.includes("effect"));
        t.equal(isEffective || enabled === value || warnings.length === 1, true, `${program} ${name}=${value} warns`);
        if (isEffective) t.equal(enabled, value, `${program} ${name}=${value} acts`);
      }
    }
  }
});

t.test("AllAlpha, AllBeta and emulation change only the gates that the API server reads", async (t) => {
  const states = (gates: FeatureGates) => new Map(gates.list().map(({ name, enabled }) => [name, enabled]));
  const usual = states(new FeatureGates(apiserverGates));
  const settings = { AllAlpha: true, AllBeta: true };
  for (const version of ["1.31", "1.32", "1.33"]) {
    for (const [name, enabled] of states(new FeatureGates(apiserverGatesIn(version), settings))) {
      if (apiserverGates[name]?.effective !== true) t.equal(enabled, usual.get(name), `${name} in ${version}`);
    }
  }
});

t.test("gate tables agree with their own stages", async (t) => {
  for (const gates of [agentGates, apiserverGates]) {
    t.ok(gates.AllAlpha && gates.AllBeta);
    for (const [name, gate] of Object.entries(gates)) {
      t.notOk(gate.locked && (gate.stage === "ALPHA" || gate.stage === "BETA"), name);
    }
  }
  t.equal(new FeatureGates(agentGates).list().length, Object.keys(agentGates).length);
});
