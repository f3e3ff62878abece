import t from "tap";
import { runCases, stepCases, scenarioCases } from "../../testing/agent/faults.ts";

/** `SVC_FAULTS=all node src/acceptance/agent/faults.test.ts` tries every mishap at every step. */
const isWhole = process.env.SVC_FAULTS === "all";
const jobs = 8;

t.setTimeout(600_000);

t.test("startAgent() ends well whatever fails at any step of a pod's start and end", async (t) => {
  const all = stepCases();
  const cases = isWhole ? all : all.filter(({ name }, place) => name.startsWith("the agent") || place % 7 === 0);
  const wrong = await runCases(cases, jobs);
  t.comment(`${cases.length - wrong.length}/${cases.length}`);
  t.same(wrong, []);
});

t.test("startAgent() ends well when much fails together", async (t) => {
  const cases = scenarioCases();
  const wrong = await runCases(cases, jobs);
  t.comment(`${cases.length - wrong.length}/${cases.length}`);
  t.same(wrong, []);
});
