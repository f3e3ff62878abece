import t from "tap";
import { runCases, scenarioCases, stepCases } from "../../testing/agent/faults.ts";

/** `SVC_FAULTS=all node src/acceptance/agent/faults.test.ts` injects every fault at every step. */
const isWhole = process.env.SVC_FAULTS === "all";
const jobs = 8;

t.setTimeout(600_000);

t.test("startAgent() recovers from a fault at every step of a pod's start and end", async (t) => {
  const all = stepCases();
  const cases = isWhole ? all : all.filter(({ name }, index) => name.startsWith("the agent") || index % 7 === 0);
  const failures = await runCases(cases, jobs);
  t.comment(`${cases.length - failures.length}/${cases.length}`);
  t.same(failures, []);
});

t.test("startAgent() recovers when several components fail together", async (t) => {
  const cases = scenarioCases();
  const failures = await runCases(cases, jobs);
  t.comment(`${cases.length - failures.length}/${cases.length}`);
  t.same(failures, []);
});
