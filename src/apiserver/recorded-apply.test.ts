/**
 * Applies, patches and whoever manages the fields then, answered as a Kubernetes 1.33 server answered them. Scenarios
 * that differ stand in `testdata/recorded-differences/scenarios.json` under the reason why; the list only shrinks.
 *
 *     SVC_SCENARIO=apply/ node src/apiserver/recorded-apply.test.ts     shows what differs in these
 *     SVC_RECORD=1 node src/apiserver/recorded-apply.test.ts            strikes what no longer does
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { play, recordedScenarios, type Scenario, type ScenarioOutcome } from "./recorded-scenarios.ts";

const list = fileURLToPath(new URL("../../testdata/recorded-differences/scenarios.json", import.meta.url));
const UNEXPLAINED = "unexplained";
const wanted = process.env.SVC_SCENARIO;

type Differences = Readonly<Record<string, readonly string[]>>;

function listed(): Differences {
  return existsSync(list) ? (JSON.parse(readFileSync(list, "utf8")) as Differences) : {};
}

function record(known: Differences, differing: readonly string[]): void {
  const kept = Object.entries(known).filter(([reason]) => reason !== UNEXPLAINED);
  const explained = new Set(kept.flatMap(([, ids]) => ids));
  const entries = kept.map(([reason, ids]) => [reason, ids.filter((id) => differing.includes(id))] as const);
  const rest = differing.filter((id) => !explained.has(id)).sort();
  const all = [...entries, [UNEXPLAINED, rest] as const].filter(([, ids]) => ids.length > 0);
  writeFileSync(list, `${JSON.stringify(Object.fromEntries(all), undefined, 1)}\n`);
}

/** Watches and other areas have rulers of their own. */
function isPlayed({ id, steps }: Scenario): boolean {
  if (id.startsWith("apply/")) return true;
  return JSON.stringify(steps).includes("managedFields") && steps.every(({ mode }) => mode !== "events");
}

/** Beside the applies it matters who manages what. */
function comparedOf({ id }: Scenario): "all" | "book" {
  return id.startsWith("apply/") ? "all" : "book";
}

t.test("scenarios with managers of fields end as on a Kubernetes 1.33 server", async (t) => {
  const scenarios = recordedScenarios("apply", "patch", "flows");
  if (scenarios === undefined) {
    t.comment("shared/ is not present: recorded scenarios left out");
    return;
  }
  const outcomes: ScenarioOutcome[] = [];
  for (const scenario of scenarios.filter(isPlayed)) {
    if (wanted === undefined || scenario.id.includes(wanted)) outcomes.push(await play(scenario, comparedOf(scenario)));
  }
  const differing = outcomes.filter(({ difference }) => difference !== undefined);
  t.comment(`${outcomes.length - differing.length}/${outcomes.length} scenarios`);
  if (wanted !== undefined) {
    for (const { scenario, difference } of differing) console.log(`${scenario.id}\n    ${difference}`);
    return;
  }
  const ids = differing.map(({ scenario }) => scenario.id);
  if (process.env.SVC_RECORD === "1") record(listed(), ids);
  const expected = Object.values(listed()).flat();
  t.same(
    differing
      .filter(({ scenario }) => !expected.includes(scenario.id))
      .map(({ scenario, difference }) => `${scenario.id}: ${difference}`),
    [],
    "nothing else differs",
  );
  const agreeing = expected.filter((id) => !ids.includes(id));
  if (agreeing.length > 0) t.comment(`listed and agreeing by now (SVC_RECORD=1 strikes them): ${agreeing.join(", ")}`);
});
