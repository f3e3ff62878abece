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

function faults(spec: FlowSchemaSpec, name = "s"): readonly string[] {
  return validateFlowSchema({ metadata: { name }, spec }).map(({ detail }) => detail);
}

t.test("validateFlowSchema() knows which URLs can match anything", async (t) => {
  for (const good of ["/", "/a", "/a/*", "/*", "*"]) t.same(faults(urls(good)), [], good);
  const bad: Readonly<Record<string, string>> = {
    "": "must not be empty",
    a: "must start with slash",
    "/a b": "must not contain white-space",
    "/a//b": "must not contain double slash",
    "/a*": "wildcard can only do suffix matching",
    "/*/a": "wildcard can only do suffix matching",
    "/*/*": "wildcard can only do suffix matching",
  };
  for (const [url, problem] of Object.entries(bad)) t.same(faults(urls(url)), [problem], url);
  t.same(faults(urls("*", "/a")), ["if '*' is present, must not specify other non-resource URLs"]);
});

t.test("validateFlowSchema() keeps the mandatory ones as they are", async (t) => {
  for (const [name, spec] of Object.entries(mandatoryFlowSchemas)) {
    t.same(faults(spec, name), []);
    t.same(faults({ ...spec, rules: [] }, name), [`spec of '${name}' must equal the fixed value`]);
  }
  t.same(faults({ ...urls("/"), matchingPrecedence: 1 }), [
    "only the schema named 'exempt' may have matchingPrecedence 1",
  ]);
});

t.test("the flow schemas and priority levels that servers make are valid", async (t) => {
  for (const [name, spec] of Object.entries(suggestedFlowSchemas)) t.same(faults(spec, name), [], name);
  for (const [name, spec] of Object.entries({ ...mandatoryPriorityLevels, ...suggestedPriorityLevels })) {
    t.same(validatePriorityLevel({ metadata: { name }, spec }), [], name);
  }
  const levels = new Set(Object.keys({ ...mandatoryPriorityLevels, ...suggestedPriorityLevels }));
  for (const [name, spec] of Object.entries(suggestedFlowSchemas)) {
    t.ok(levels.has(spec.priorityLevelConfiguration.name), `${name} has its level`);
  }
});

t.test("validatePriorityLevel() wants hands that one hash can deal", async (t) => {
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

t.test("validatePriorityLevel() lets the shares of the exempt level be set", async (t) => {
  const exempt = { type: "Exempt", exempt: { nominalConcurrencyShares: 3, lendablePercent: 50 } };
  t.same(validatePriorityLevel({ metadata: { name: "exempt" }, spec: exempt }), []);
  t.equal(validatePriorityLevel({ metadata: { name: "catch-all" }, spec: exempt }).length, 2);
  for (const [name, spec] of Object.entries(mandatoryPriorityLevels)) {
    t.same(validatePriorityLevel({ metadata: { name }, spec }), []);
  }
});
