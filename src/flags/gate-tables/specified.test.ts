import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { agentGates } from "./agent.ts";
import { apiserverGates } from "./apiserver.ts";

const shared = process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname;
const path = `${shared}/spec/gates-plugins-suites.json`;

/** Gates of features that the agent has, which are on in Kubernetes 1.33; the specification has older defaults. */
const NEWER = ["InPlacePodVerticalScaling", "SupplementalGroupsPolicy"];

type Gates = Readonly<Record<string, { readonly stage: string; readonly default: boolean }>>;

t.test("gates have the stages and defaults of the specification", async (t) => {
  if (!existsSync(path)) {
    t.comment("Skipped: shared/ is not present");
    return;
  }
  const { feature_gates: specified } = JSON.parse(readFileSync(path, "utf8")) as {
    readonly feature_gates: Readonly<Record<string, Gates>>;
  };
  for (const [program, table] of [
    ["agent", agentGates],
    ["apiserver", apiserverGates],
  ] as const) {
    const differences = Object.entries(specified[program] ?? {}).filter(([name, gate]) => {
      return table[name]?.stage !== gate.stage || table[name].default !== gate.default;
    });
    t.same(differences.map(([name]) => name).sort(), program === "agent" ? NEWER : [], program);
    for (const name of program === "agent" ? NEWER : []) t.match(table[name], { stage: "BETA", default: true }, name);
    t.ok(Object.keys(specified[program] ?? {}).length > 100, `${program} has gates`);
  }
});
