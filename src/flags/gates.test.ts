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

t.test("a gate that the program does not read can be set, with a warning", async (t) => {
  t.equal(new FeatureGates(table, { Idle: true }).enabled("Idle"), true);
  t.match(gateWarnings(table, { Idle: true }), [/Idle=true has no effect: other programs read it/]);
  t.match(gateWarnings({ ...table, WinDSR: table.Idle }, { WinDSR: true }), [/WinDSR=true has no effect: nodes run L/]);
  t.same(gateWarnings(table, { AllAlpha: false, Idle: false, Early: true }), []);
});

t.test("gateProblems() names unknown gates with the nearest, and locked ones", async (t) => {
  t.same(gateProblems(table, { Erly: true, Done: false, KubeletThing: true, constructor: true }), [
    "unknown feature gate Erly: did you mean Early?",
    "cannot set feature gate Done to false, feature is locked to true",
    "unknown feature gate constructor",
  ]);
  t.same(gateProblems(table, { Done: true, Idle: true }), []);
  t.match(gateWarnings(table, { Done: true, Late: true }), [/GA feature gate Done=true/]);
});

t.test("one list of all gates with all values configures both programs", async (t) => {
  for (const [program, gates] of Object.entries({ agentGates, apiserverGates, older: apiserverGatesIn("1.31") })) {
    for (const name of Object.keys(allGates)) {
      for (const value of [true, false]) {
        const gate = gates[name];
        if (gate?.locked && gate.default !== value) {
          t.equal(gateProblems(gates, { [name]: value }, allGates).length, 1, `${program} ${name}=${value} is refused`);
          continue;
        }
        t.same(gateProblems(gates, { [name]: value }, allGates), [], `${program} ${name}=${value}`);
        const enabled = new FeatureGates(gates, { [name]: value }).has(name);
        if (gate !== undefined) t.equal(enabled, value, `${program} ${name}=${value}`);
        const warnings = gateWarnings(gates, { [name]: value }).filter((text) => text.includes("effect"));
        const changes = value !== gate?.default;
        t.equal(warnings.length, gate === undefined || (gate.effective !== true && changes) ? 1 : 0, name);
      }
    }
  }
});

t.test("AllAlpha, AllBeta and emulation set every gate of their stage that is not locked", async (t) => {
  for (const version of ["1.31", "1.32", "1.33"]) {
    const gates = apiserverGatesIn(version);
    for (const { name, stage, enabled } of new FeatureGates(gates, { AllAlpha: true, AllBeta: true }).list()) {
      if (name === "AllAlpha" || name === "AllBeta") continue;
      const expected = stage === "ALPHA" || stage === "BETA" || gates[name]?.default;
      t.equal(enabled, expected, `${name} in ${version}`);
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
