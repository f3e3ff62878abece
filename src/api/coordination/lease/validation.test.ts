import t from "tap";
import { validateLease } from "./validation.ts";

t.test("validateLease() validates the strategy, which a preferred holder requires", async (t) => {
  const errorsOf = (spec: Parameters<typeof validateLease>[0]["spec"]): readonly string[] =>
    validateLease({ spec }).map(({ type, field }) => `${type} ${field}`);
  t.same(errorsOf({ strategy: "OldestEmulationVersion", preferredHolder: "a" }), []);
  t.same(errorsOf({ strategy: "example.com/mine" }), []);
  t.same(errorsOf({ strategy: "Other" }), ["FieldValueNotSupported spec.strategy.strategy"]);
  t.same(errorsOf({ preferredHolder: "a" }), ["FieldValueForbidden spec.preferredHolder"]);
  t.match(validateLease({ spec: { preferredHolder: "a" } }), [
    { detail: "may only be specified if `strategy` is defined" },
  ]);
  t.same(errorsOf({ leaseDurationSeconds: 0, leaseTransitions: -1 }), [
    "FieldValueInvalid spec.leaseDurationSeconds",
    "FieldValueInvalid spec.leaseTransitions",
  ]);
});
