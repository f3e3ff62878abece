import t from "tap";
import { renderFieldError } from "../../../schema/validation/field-error.ts";
import type { LeaseCandidateSpec } from "./schema.ts";
import { validateLeaseCandidate, validateLeaseCandidateUpdate } from "./validation.ts";

const good = {
  leaseName: "web",
  binaryVersion: "1.33.0",
  emulationVersion: "1.32.0",
  strategy: "OldestEmulationVersion",
};

function errorsOf(spec: Partial<LeaseCandidateSpec>): readonly string[] {
  const errors = validateLeaseCandidate({ spec: { ...good, ...spec } });
  return errors.map((error) => `${error.field}: ${renderFieldError(error)}`);
}

t.test("validateLeaseCandidate() checks names, versions and the strategy", async (t) => {
  t.same(errorsOf({}), []);
  t.same(errorsOf({ strategy: "example.com/newest", emulationVersion: "" }), []);
  t.same(errorsOf({ leaseName: "", binaryVersion: "", strategy: "" }), [
    "spec.leaseName: Required value",
    "spec.binaryVersion: Required value",
    "spec.strategy: Required value",
  ]);
  t.same(errorsOf({ emulationVersion: "1.34.0" }), [
    'spec.binaryVersion: Invalid value: "1.33.0": must be greater than or equal to `emulationVersion`',
  ]);
  t.same(errorsOf({ emulationVersion: "1.32" }), [
    'spec.emulationVersion: Invalid value: "1.32": must be a valid semantic version',
    "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'",
  ]);
  t.match(errorsOf({ strategy: "Newest" }), [
    /^spec\.strategy\.strategy: Unsupported value: "Newest": supported values/,
  ]);
  t.match(errorsOf({ strategy: "a/b/c" }), [/a qualified name must consist of/]);
  t.match(validateLeaseCandidate({}).length, 3);
});

t.test("validateLeaseCandidateUpdate() keeps the name of the lease", async (t) => {
  t.same(validateLeaseCandidateUpdate({ spec: good }, { spec: good }), []);
  const next = { spec: { ...good, leaseName: "other" } };
  t.match(validateLeaseCandidateUpdate(next, { spec: good }), [
    { field: "spec.leaseName", detail: "field is immutable" },
  ]);
});
