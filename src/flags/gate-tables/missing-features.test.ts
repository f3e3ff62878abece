import { readFileSync } from "node:fs";
import t from "tap";
import { FeatureGates } from "../gates.ts";
import { agentGates } from "./agent.ts";
import { allGates } from "./all.ts";
import { apiserverGates } from "./apiserver.ts";
import { apiserverGatesIn } from "./apiserver-history.ts";
import { missingFeatures, permanentFeatures } from "./missing-features.ts";
import { gatesWithoutEffect } from "./without-effect.ts";

const names = Object.values(missingFeatures).flat();
const permanent = Object.values(permanentFeatures).flat();
const list = new URL("../../../testdata/gates-without-feature.json", import.meta.url);

t.test("the gates that cannot be enabled or disabled are exactly those of the list, which only shrinks", async (t) => {
  t.same([...names, ...permanent].sort(), JSON.parse(readFileSync(list, "utf8")));
});

t.test("gates whose feature is missing are reported as disabled", async (t) => {
  t.same([...new Set(names)], names, "each once");
  const tables = { agentGates, apiserverGates, emulated: apiserverGatesIn("1.32") };
  for (const [program, table] of Object.entries(tables)) {
    const reported = new FeatureGates(table).list().filter(({ name, enabled }) => enabled && names.includes(name));
    t.same(reported, [], program);
  }
});

t.test("every gate of a list exists, and no program reads it", async (t) => {
  for (const name of [...names, ...permanent, ...gatesWithoutEffect.keys()]) {
    const rows = [agentGates[name], apiserverGates[name]].filter((row) => row !== undefined);
    t.ok(allGates[name], name);
    t.same(
      rows.filter((row) => row.effective),
      [],
      `${name} is not read`,
    );
  }
});
