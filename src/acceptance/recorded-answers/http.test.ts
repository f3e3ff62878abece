/**
 * Requests in a row, answered as a Kubernetes 1.33 server answered them: whole answers, watches, managed fields.
 * Scenarios that differ stand in `testdata/recorded-differences/scenarios.json` under the reason why; the list only
 * shrinks.
 *
 *     SVC_SCENARIO=apply/ node src/apiserver/recorded-http.test.ts     shows what differs in these
 *     SVC_RECORD=1 node src/apiserver/recorded-http.test.ts            strikes what no longer does
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

const differing: string[] = [];

for (const area of AREAS) {
  t.test(`scenarios of ${area} end as on a Kubernetes 1.33 server`, async (t) => {
    const scenarios = recordedScenarios(area);
    if (scenarios === undefined) {
      t.comment("shared/ is not present: recorded scenarios left out");
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
    const expected = process.env.SVC_RECORD === "1" ? differing : Object.values(listed()).flat();
    const others = different.filter(({ scenario }) => !expected.includes(scenario.id));
    t.same(
      others.map(({ scenario, difference }) => `${scenario.id}: ${difference}`),
      [],
      "nothing else differs",
    );
    const agreeing = expected.filter((id) => id.startsWith(`${area}/`) && !differing.includes(id));
    if (agreeing.length > 0)
      t.comment(`listed and agreeing by now (SVC_RECORD=1 strikes them): ${agreeing.join(", ")}`);
  });
}

t.teardown(() => {
  if (process.env.SVC_RECORD === "1" && wanted === undefined) record(listed(), differing);
});
