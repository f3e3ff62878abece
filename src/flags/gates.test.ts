import t from "tap";
import { agentGates } from "./gate-tables/agent.ts";
import { apiserverGates } from "./gate-tables/apiserver.ts";
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

t.test("gateProblems() names unknown gates with the nearest, and locked ones", async (t) => {
  t.same(gateProblems(table, { Erly: true, Done: false, KubeletThing: true, constructor: true }), [
    "unknown feature gate Erly: did you mean Early?",
    "feature gate Done cannot be set to false: it is GA and locked to true",
    "unknown feature gate constructor",
  ]);
  t.same(gateProblems(table, { Done: true, Idle: false }), []);
  t.match(gateProblems(table, { Idle: true }), [/Idle cannot be set to true: .* only its default false/]);
  t.match(gateWarnings(table, { Done: true, Late: true }), [/GA feature gate Done=true/]);
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
