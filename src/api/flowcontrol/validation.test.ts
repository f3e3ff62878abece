import t from "tap";
import type { FlowSchemaSpec } from "./flow-schema/schema.ts";
import { validateFlowSchema } from "./flow-schema/validation.ts";
import { mandatoryFlowSchemas, mandatoryPriorityLevels } from "./mandatory-configuration.ts";
import type { QueuingConfiguration } from "./priority-level-configuration/schema.ts";
import { validatePriorityLevel } from "./priority-level-configuration/validation.ts";
import { suggestedFlowSchemas, suggestedPriorityLevels } from "./suggested-configuration.ts";

function urls(...nonResourceURLs: readonly string[]): FlowSchemaSpec {
  const subjects = [{ kind: "User", user: { name: "u" } }];
  return {
    priorityLevelConfiguration: { name: "p" },
    matchingPrecedence: 2,
    rules: [{ subjects, nonResourceRules: [{ verbs: ["get"], nonResourceURLs }] }],
  };
}

function errorsOf(spec: FlowSchemaSpec, name = "s"): readonly string[] {
  return validateFlowSchema({ metadata: { name }, spec }).map(({ detail }) => detail);
}

t.test("validateFlowSchema() rejects invalid non-resource URLs", async (t) => {
  for (const good of ["/", "/a", "/a/*", "/*", "*"]) t.same(errorsOf(urls(good)), [], good);
  const bad: Readonly<Record<string, string>> = {
    "": "must not be empty",
    a: "must start with slash",
    "/a b": "must not contain white-space",
    "/a//b": "must not contain double slash",
    "/a*": "wildcard can only do suffix matching",
    "/*/a": "wildcard can only do suffix matching",
    "/*/*": "wildcard can only do suffix matching",
  };
  for (const [url, problem] of Object.entries(bad)) t.same(errorsOf(urls(url)), [problem], url);
  t.same(errorsOf(urls("*", "/a")), ["if '*' is present, must not specify other non-resource URLs"]);
});

t.test("validateFlowSchema() rejects changes of mandatory flow schemas", async (t) => {
  for (const [name, spec] of Object.entries(mandatoryFlowSchemas)) {
    t.same(errorsOf(spec, name), []);
    t.same(errorsOf({ ...spec, rules: [] }, name), [`spec of '${name}' must equal the fixed value`]);
  }
  t.same(errorsOf({ ...urls("/"), matchingPrecedence: 1 }), [
    "only the schema named 'exempt' may have matchingPrecedence 1",
  ]);
});

t.test("mandatory and suggested flow schemas and priority levels are valid", async (t) => {
  for (const [name, spec] of Object.entries(suggestedFlowSchemas)) t.same(errorsOf(spec, name), [], name);
  for (const [name, spec] of Object.entries({ ...mandatoryPriorityLevels, ...suggestedPriorityLevels })) {
    t.same(validatePriorityLevel({ metadata: { name }, spec }), [], name);
  }
  const levels = new Set(Object.keys({ ...mandatoryPriorityLevels, ...suggestedPriorityLevels }));
  for (const [name, spec] of Object.entries(suggestedFlowSchemas)) {
    t.ok(levels.has(spec.priorityLevelConfiguration.name), `${name} has its level`);
  }
});

t.test("validatePriorityLevel() requires a hand size that a 60-bit hash can deal", async (t) => {
  const check = (queuing: QueuingConfiguration) => {
    const limited = { nominalConcurrencyShares: 1, limitResponse: { type: "Queue", queuing } };
    const spec = { type: "Limited", limited };
    return validatePriorityLevel({ metadata: { name: "p" }, spec }).map(({ detail }) => detail);
  };
  t.same(check({ queues: 64, handSize: 10, queueLengthLimit: 1 }), [], "60 bits");
  t.match(check({ queues: 64, handSize: 11, queueLengthLimit: 1 }), [/^required entropy bits of deckSize 64/]);
  t.same(check({ queues: 4, handSize: 8, queueLengthLimit: 1 }), ["should not be greater than queues (4)"]);
  t.same(check({ queues: 10_000_001, handSize: 1, queueLengthLimit: 0 }), [
    "must be positive",
    "must not be greater than 10000000",
  ]);
});

t.test("validatePriorityLevel() accepts changes of the shares of the exempt level", async (t) => {
  const exempt = { type: "Exempt", exempt: { nominalConcurrencyShares: 3, lendablePercent: 50 } };
  t.same(validatePriorityLevel({ metadata: { name: "exempt" }, spec: exempt }), []);
  t.equal(validatePriorityLevel({ metadata: { name: "catch-all" }, spec: exempt }).length, 2);
  for (const [name, spec] of Object.entries(mandatoryPriorityLevels)) {
    t.same(validatePriorityLevel({ metadata: { name }, spec }), []);
  }
});
