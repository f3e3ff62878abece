/**
 * Plays what Kubernetes 1.33's scheduler did: nodes, conditions, events, victims and the order of binding.
 * `testdata/recorded-differences/scheduler.json` lists the scenarios that differ by reason; no scenario may be added.
 *
 *     SVC_SCENARIO=fit-0528 node src/acceptance/scheduler/recorded/recorded-scheduler.test.ts   prints differences
 */
import { readFileSync } from "node:fs";
import t from "tap";
import { playScenario } from "./player.ts";
import { readScenarios } from "./scenario.ts";

const wanted = process.env.SVC_SCENARIO;
const file = new URL("../../../../testdata/recorded-differences/scheduler.json", import.meta.url);
const known = Object.values(JSON.parse(readFileSync(file, "utf8")) as Record<string, readonly string[]>).flat();

t.setTimeout(300_000);

for (const [area, all] of readScenarios()) {
  const scenarios = all.filter(({ id }) => wanted === undefined || id.startsWith(wanted));
  if (scenarios.length === 0) continue;
  t.test(`the scheduler does as recorded: ${area}`, { timeout: 300_000 }, async (t) => {
    for (const scenario of scenarios) {
      const { id, title } = scenario;
      const differences = await playScenario(scenario);
      if (wanted !== undefined) for (const difference of differences) t.comment(`${id}: ${difference}`);
      t.equal(differences.length > 0, known.includes(id), `${id}: ${title}`);
    }
  });
}
