/**
 * Runs the recorded pods of kubelet 1.33 with svc agent on containerd and prints the differences. Fails when a case
 * differs that is listed as matching:
 *   node src/acceptance/cluster/recorded-agent/replay.ts [AREA…] [--case ID]… [--at-once 8] [--show 40] [--accept]
 */
import { parseArgs } from "node:util";
import { recordedAreas, recordedCases } from "./cases.ts";
import { withCompanions } from "./companions.ts";
import { listedCases, listFile, writeListedCases } from "./listed-cases.ts";
import { type Outcome, playCases } from "./run.ts";
import { isPlayable, settingsOf } from "./settings.ts";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    case: { type: "string", multiple: true, default: [] },
    "at-once": { type: "string", default: "8" },
    show: { type: "string", default: "40" },
    /** Adds the matching cases to the list. */
    accept: { type: "boolean", default: false },
  },
});

if (recordedAreas().length === 0) console.log("Skipped: shared/ is not present");
const all = (positionals.length === 0 ? recordedAreas() : positionals).flatMap(recordedCases);
const selected = options.case.length === 0 ? all : withCompanions(options.case, all);

const unplayable = selected.filter((one) => !isPlayable(settingsOf(one)));
if (unplayable.length > 0) {
  console.log(`skipped, since they need another configuration: ${unplayable.map(({ id }) => id).join(" ")}`);
}

/** The last outcome by case id. */
const outcomes = new Map<string, Outcome>();

function report(outcome: Outcome): void {
  const { one } = outcome;
  outcomes.set(one.id, outcome);
  const verdict = outcome.differences.length > 0 ? "differs  " : outcome.why === "" ? "matches  " : "by design";
  console.log(`${verdict} ${one.id} (${outcome.why === "" ? one.about : outcome.why})`);
  for (const line of outcome.differences.slice(0, Number(options.show))) console.log(`    ${line}`);
}

function findDifferent(): readonly string[] {
  return [...outcomes.values()].flatMap(({ one, differences }) => (differences.length > 0 ? [one.id] : []));
}

function findRegressions(): readonly string[] {
  return [...outcomes.values()]
    .filter(({ one, differences }) => differences.length > 0 && listedCases(one.area).includes(one.id))
    .map(({ one }) => one.id);
}

await playCases(selected, { atOnce: Number(options["at-once"]), report });
// Times are compared: cases that a busy machine may have delayed run twice.
const again = withCompanions(findDifferent(), all);
if (again.length > 0) {
  console.log(`retrying: ${again.map(({ id }) => id).join(" ")}`);
  await playCases(again, { atOnce: 2, report });
}

let total = 0;
for (const [area, of] of Map.groupBy(outcomes.values(), ({ one }) => one.area)) {
  const same = of.filter(({ differences }) => differences.length === 0);
  total += same.length;
  const byDesign = of.filter(({ why }) => why !== "").length;
  console.log(`${area}: ${same.length}/${of.length}${byDesign === 0 ? "" : `, ${byDesign} of them differ by design`}`);
  const ids = same.map(({ one }) => one.id);
  if (options.accept) writeListedCases(area, [...listedCases(area), ...ids]);
}
console.log(`all: ${total}/${outcomes.size}`);
if (findRegressions().length > 0) {
  console.log(`differ, but are listed in ${listFile}: ${findRegressions().join(" ")}`);
  process.exitCode = 1;
}
