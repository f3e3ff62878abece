/**
 * Compares the responses to sequences of requests with those recorded of a Kubernetes 1.33 server: whole responses,
 * watches, managed fields. `testdata/recorded-differences/scenarios.json` lists the scenarios that differ by reason; no
 * scenario may be added.
 *
 *     SVC_SCENARIO=apply/ node src/acceptance/recorded-answers/http.test.ts   prints the differences of these
 *     SVC_RECORD=1 node src/acceptance/recorded-answers/http.test.ts          removes scenarios that agree now
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { playTogether, recordedScenarios } from "./scenarios.ts";

const AREAS = [
  "apply",
  "patch",
  "flows",
  "errors",
  "list",
  "watch",
  "watchlist",
  "compaction",
  "tables",
  "health",
  "authn",
  "authz",
  "discovery",
];

const list = fileURLToPath(new URL("../../../testdata/recorded-differences/scenarios.json", import.meta.url));
const UNEXPLAINED = "unexplained";
const wanted = process.env.SVC_SCENARIO;

type Differences = Readonly<Record<string, readonly string[]>>;

function readDifferences(): Differences {
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

const differing: string[] = [];

for (const area of AREAS) {
  t.test(`scenarios of ${area} get the responses of a Kubernetes 1.33 server`, async (t) => {
    const scenarios = recordedScenarios(area);
    if (scenarios === undefined) {
      t.comment("Skipped: shared/ is not present");
      return;
    }
    const selected = scenarios.filter(({ id }) => wanted === undefined || id.includes(wanted));
    const outcomes = await playTogether(selected);
    const different = outcomes.filter(({ difference }) => difference !== undefined);
    t.comment(`${area}: ${outcomes.length - different.length}/${outcomes.length} scenarios`);
    if (wanted !== undefined) {
      for (const { scenario, difference } of different) console.log(`${scenario.id}\n    ${difference}`);
      return;
    }
    differing.push(...different.map(({ scenario }) => scenario.id));
    const expected = process.env.SVC_RECORD === "1" ? differing : Object.values(readDifferences()).flat();
    const others = different.filter(({ scenario }) => !expected.includes(scenario.id));
    t.same(
      others.map(({ scenario, difference }) => `${scenario.id}: ${difference}`),
      [],
      "no other scenario differs",
    );
    const agreeing = expected.filter((id) => id.startsWith(`${area}/`) && !differing.includes(id));
    if (agreeing.length > 0)
      t.comment(`listed, but without a difference now (SVC_RECORD=1 removes them): ${agreeing.join(", ")}`);
  });
}

t.teardown(() => {
  if (process.env.SVC_RECORD === "1" && wanted === undefined) record(readDifferences(), differing);
});
