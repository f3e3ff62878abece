import t from "tap";
import { FeatureGates, gateWarnings } from "../gates.ts";
import { agentGates } from "./agent.ts";
import { apiserverGates } from "./apiserver.ts";
import { apiserverGatesIn } from "./apiserver-history.ts";
import { missingFeatures } from "./missing-features.ts";

const names = Object.values(missingFeatures).flat();

t.test("gates whose feature is missing are reported as disabled, whatever they are set to", async (t) => {
  t.same([...new Set(names)], names, "each once");
  const tables = { agentGates, apiserverGates, emulated: apiserverGatesIn("1.32") };
  for (const [program, table] of Object.entries(tables)) {
    const set = Object.fromEntries(names.map((name) => [name, true]));
    for (const gates of [new FeatureGates(table), new FeatureGates(table, set)]) {
      const reported = gates.list().filter(({ name, enabled }) => enabled && names.includes(name));
      const read = reported.filter(({ name }) => table[name]?.effective !== true);
      t.same(read, [], program);
    }
  }
});

t.test("every listed gate is enabled in Kubernetes, and no program reads it", async (t) => {
  for (const name of names) {
    const rows = [agentGates[name], apiserverGates[name]].filter((row) => row !== undefined);
    t.ok(
      rows.some((row) => row.default),
      `${name} is enabled`,
    );
    t.same(
      rows.filter((row) => row.effective),
      [],
      `${name} is not read`,
    );
  }
});

t.test("a gate that is enabled although its feature is missing gets a warning", async (t) => {
  t.match(gateWarnings(apiserverGates, { APIServerTracing: true }), [/has no effect: .*, it stays false/]);
  t.same(gateWarnings(apiserverGates, { APIServerTracing: false }), []);
});
