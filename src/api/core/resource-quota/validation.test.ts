import t from "tap";
import type { ResourceQuota } from "./schema.ts";
import { validateResourceQuota } from "./validation.ts";

t.test("scopes that are names of JavaScript's object members are unsupported, as others are", async (t) => {
  for (const scope of ["Other", "constructor", "toString", "__proto__"]) {
    const spec = { scopes: [scope], scopeSelector: { matchExpressions: [{ scopeName: scope, operator: "Exists" }] } };
    const errors = validateResourceQuota({ spec } as ResourceQuota).map(({ field, detail }) => `${field}: ${detail}`);
    t.same(
      errors,
      ["spec.scopes: unsupported scope", "spec.scopeSelector.matchExpressions.scopeName: unsupported scope"],
      scope,
    );
  }
});

t.test("opposite scopes of a selector are reported with the value of spec.scopes", async (t) => {
  const matchExpressions = ["BestEffort", "NotBestEffort"].map((scopeName) => ({ scopeName, operator: "Exists" }));
  for (const scopes of [undefined, ["PriorityClass"]]) {
    const spec = { ...(scopes && { scopes }), scopeSelector: { matchExpressions } };
    t.same(validateResourceQuota({ spec } as ResourceQuota), [
      {
        type: "FieldValueInvalid",
        field: "spec.scopeSelector.matchExpressions",
        badValue: scopes ?? [],
        detail: "conflicting scopes",
      },
    ]);
  }
});
