/** Replays a few recorded pods of each area; `make recorded-agent` replays all. */
import t from "tap";
import { findMissingRequirement } from "./cluster.ts";
import { recordedAreas, recordedCases } from "./recorded-agent/cases.ts";
import { listedCases } from "./recorded-agent/listed-cases.ts";
import { type Outcome, playCases } from "./recorded-agent/run.ts";

/** Short cases that cover many features. */
const selected: readonly string[] = [
  "complete-never",
  "image-never-missing",
  "poststart-fail",
  "prestop-http-ok",
  "readiness-http-request",
  "grpc-service",
  "env-full",
  "env-expansion",
  "mount-propagation",
  "recursive-readonly",
  "caps-drop-all",
  "run-as-user-group",
  "host-aliases",
  "resize-infeasible",
  "out-of-cpu",
];

t.setTimeout(300_000);

t.test("every listed case exists in the recordings", async (t) => {
  for (const area of recordedAreas()) {
    const ids = recordedCases(area).map(({ id }) => id);
    const absent = listedCases(area).filter((id) => !ids.includes(id));
    // Other recordings have other cases.
    if (absent.length < listedCases(area).length) t.same(absent, [], area);
  }
});

const missing = findMissingRequirement();
if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("startAgent() produces the recorded events, statuses and logs of kubelet", async (t) => {
    const cases = recordedAreas()
      .flatMap(recordedCases)
      .filter(({ id }) => selected.includes(id));
    if (cases.length === 0) return t.comment("Skipped: shared/ is not present");
    const outcomes = new Map<string, Outcome>();
    const report = (outcome: Outcome): void => void outcomes.set(outcome.one.id, outcome);
    await playCases(cases, { atOnce: 8, report });
    // Times are compared: cases that a busy machine may have delayed run twice.
    const again = cases.filter(({ id }) => outcomes.get(id)?.differences.length !== 0);
    await playCases(again, { atOnce: 2, report });
    for (const { id } of cases) t.same(outcomes.get(id)?.differences, [], id);
  });
}
