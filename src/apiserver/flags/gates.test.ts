import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { plugins } from "../../admission/plugins/built-in-plugins.ts";
import type { Flag } from "../../flags/flag.ts";
import { apiserverGates } from "../../flags/gate-tables/apiserver.ts";
import { apiserverFlags } from "./flags.ts";

t.test("the API server's effective gates are exactly those that its code reads", async (t) => {
  const read = new Set(["AllAlpha", "AllBeta", "LoggingBetaOptions"]);
  for (const { featureGate, create } of plugins) {
    if (featureGate !== undefined && create !== undefined) read.add(featureGate);
  }
  for (const row of Object.values<Flag>(apiserverFlags)) {
    if (row.gate !== undefined && row.inert === undefined) read.add(row.gate);
  }
  const patterns = [
    /(?:gates\.has|gates\.enabled|isFeatureEnabled|isEnabled|isOn)\("(\w+)"\)/g,
    /(?:name ===|const gate =) "(\w+)"/g,
  ];
  for (const folder of ["apiserver", "admission"]) {
    const directory = new URL(`../../${folder}`, import.meta.url).pathname;
    for (const file of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
      if (!file.endsWith(".ts") || file.endsWith(".test.ts")) continue;
      const text = readFileSync(join(directory, file), "utf8");
      for (const pattern of patterns) {
        for (const [, name = ""] of text.matchAll(pattern)) if (Object.hasOwn(apiserverGates, name)) read.add(name);
      }
    }
  }
  const effective = Object.keys(apiserverGates).filter((name) => apiserverGates[name]?.effective);
  t.same(effective, [...read].sort());
});
