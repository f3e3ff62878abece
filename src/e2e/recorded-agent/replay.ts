/**
 * Gives a real agent on a real containerd the pods that a Kubernetes 1.33 agent was recorded with, and shows where it
 * does otherwise:
 *   node src/e2e/recorded-agent/replay.ts [AREA…] [--case ID]… [--at-once 8] [--show 400]
 */

import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { areas, type Case, recordedCases, type Step } from "./cases.ts";
import { differences } from "./compare.ts";
import { isPlayable, Machine, settingsOf } from "./machine.ts";
import { type HostActs, play } from "./player.ts";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    case: { type: "string", multiple: true, default: [] },
    "at-once": { type: "string", default: "8" },
    show: { type: "string", default: "40" },
  },
});

if (recordedCases("lifecycle") === undefined) console.log("shared/ is not present: there is nothing to compare with");
const chosen = (positionals.length === 0 ? areas : positionals)
  .flatMap((area) => recordedCases(area) ?? [])
  .filter(({ id }) => options.case.length === 0 || options.case.includes(id));

/** What is told of a case. */
interface Outcome {
  readonly one: Case;
  readonly differences: readonly string[];
}

const outcomes: Outcome[] = [];
for (const [kind, cases] of Map.groupBy(chosen, ({ id }) => settingsOf(id))) {
  if (!isPlayable(kind)) {
    console.log(`left out, since it needs other settings: ${cases.map(({ id }) => id).join(" ")}`);
    continue;
  }
  await using machine = await Machine.create(kind);
  const queue = [...cases];
  const workers = Array.from({ length: Math.min(Number(options["at-once"]), cases.length) }, async () => {
    for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
      const outcome = await tried(machine, one);
      outcomes.push(outcome);
      console.log(`${outcome.differences.length === 0 ? "as recorded" : "otherwise  "} ${one.id} (${one.about})`);
      for (const line of outcome.differences.slice(0, Number(options.show))) console.log(`    ${line}`);
    }
  });
  await Promise.all(workers);
}

async function tried(machine: Machine, one: Case): Promise<Outcome> {
  try {
    const played = await play(machine, one, actsOf(machine));
    return { one, differences: [...played.problems, ...differences(one, played)] };
  } catch (error) {
    return { one, differences: [`cannot be played: ${error instanceof Error ? error.stack : String(error)}`] };
  }
}

function actsOf(machine: Machine): HostActs {
  return {
    async act(step: Step) {
      if (step.do === "killAgent") return await machine.killAgent(step.signal ?? "SIGKILL");
      if (step.do === "startAgent") {
        await sleep((step.downSeconds ?? 0) * 1000);
        return await machine.startAgent();
      }
      throw new Error(`${step.do} is not known`);
    },
  };
}

let total = 0;
for (const [area, of] of Map.groupBy(outcomes, ({ one }) => one.area)) {
  const same = of.filter((outcome) => outcome.differences.length === 0).length;
  total += same;
  console.log(`${area}: ${same}/${of.length}`);
}
console.log(`all: ${total}/${outcomes.length}`);
