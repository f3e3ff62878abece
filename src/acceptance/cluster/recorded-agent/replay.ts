/**
 * Gives a real agent on a real containerd the pods that a Kubernetes 1.33 agent was recorded with, and shows where it
 * does otherwise. Fails when a case agrees no more that is on the list of those that do:
 *   node src/acceptance/cluster/recorded-agent/replay.ts [AREA…] [--case ID]… [--at-once 8] [--show 40] [--accept]
 */
import { parseArgs } from "node:util";
import { agreed, agreedFile, writeAgreed } from "./agreed.ts";
import { areas, recordedCases } from "./cases.ts";
import { withCompanions } from "./companions.ts";
import { isPlayable, settingsOf } from "./machine.ts";
import { type Outcome, playCases } from "./run.ts";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    case: { type: "string", multiple: true, default: [] },
    "at-once": { type: "string", default: "8" },
    show: { type: "string", default: "40" },
    /** Puts what agrees now on the list. */
    accept: { type: "boolean", default: false },
  },
});

if (recordedCases("lifecycle") === undefined) console.log("shared/ is not present: there is nothing to compare with");
const selected = (positionals.length === 0 ? areas : positionals)
  .flatMap((area) => recordedCases(area) ?? [])
  .filter(({ id }) => options.case.length === 0 || withCompanions(options.case).includes(id));
const unplayable = selected.filter(({ id }) => !isPlayable(settingsOf(id)));
if (unplayable.length > 0) {
  console.log(`left out, since it needs other settings: ${unplayable.map(({ id }) => id).join(" ")}`);
}

/** By id, the last one played. */
const outcomes = new Map<string, Outcome>();

function report(outcome: Outcome): void {
  const { one } = outcome;
  outcomes.set(one.id, outcome);
  const verdict = outcome.differences.length > 0 ? "otherwise  " : outcome.why === "" ? "as recorded" : "on purpose ";
  console.log(`${verdict} ${one.id} (${outcome.why === "" ? one.about : outcome.why})`);
  for (const line of outcome.differences.slice(0, Number(options.show))) console.log(`    ${line}`);
}

function worse(): readonly string[] {
  return [...outcomes.values()]
    .filter(({ one, differences }) => differences.length > 0 && agreed(one.area).includes(one.id))
    .map(({ one }) => one.id);
}

await playCases(selected, { atOnce: Number(options["at-once"]), report });
// Times are compared: a machine that was busy with others' pods gets a second chance.
const again = withCompanions(worse());
if (again.length > 0) {
  console.log(`once more: ${again.join(" ")}`);
  await playCases(
    selected.filter(({ id }) => again.includes(id)),
    { atOnce: 2, report },
  );
}

let total = 0;
for (const [area, of] of Map.groupBy(outcomes.values(), ({ one }) => one.area)) {
  const same = of.filter(({ differences }) => differences.length === 0);
  total += same.length;
  const meant = of.filter(({ why }) => why !== "").length;
  console.log(`${area}: ${same.length}/${of.length}${meant === 0 ? "" : `, ${meant} of them otherwise on purpose`}`);
  const ids = same.map(({ one }) => one.id);
  if (options.accept) writeAgreed(area, [...agreed(area), ...ids]);
}
console.log(`all: ${total}/${outcomes.size}`);
if (worse().length > 0) {
  console.log(`worse than in ${agreedFile}: ${worse().join(" ")}`);
  process.exitCode = 1;
}
