import t from "tap";
import type { StorageVersionMigration } from "./schema.ts";
import { validateMigration, validateMigrationStatus, validateMigrationUpdate } from "./validation.ts";

const spec = { resource: { group: "apps", version: "v1", resource: "deployments" } };

function withConditions(types: Readonly<Record<string, string>>, resourceVersion = "7"): StorageVersionMigration {
  const conditions = Object.entries(types).map(([type, status]) => {
    return { type, status, lastUpdateTime: "2026-01-02T03:04:05Z", reason: "Done" };
  });
  return { spec, status: { conditions, resourceVersion } };
}

t.test("validateMigration() requires a resource that does not change", async (t) => {
  t.same(validateMigration({ spec }), []);
  t.match(validateMigration({}), [{ detail: "resource is required" }, { detail: "version is required" }]);
  const next = { spec: { resource: { ...spec.resource, version: "v2" } } };
  t.match(validateMigrationUpdate(next, { spec }), [{ field: "version", detail: "field is immutable" }]);
});

t.test("validateMigrationStatus() checks the conditions and their progress", async (t) => {
  const details = (next: StorageVersionMigration, previous: StorageVersionMigration = { spec }) =>
    validateMigrationStatus(next, previous).map(({ field, detail }) => `${field}: ${detail}`);
  t.same(details(withConditions({ Running: "True" })), []);
  t.same(details({ spec }), []);
  t.same(details(withConditions({ Succeeded: "True", Failed: "True", Running: "True" })), [
    "status.conditions: Both success and failed conditions cannot be true at the same time",
    "status.conditions: Running condition cannot be true when success condition is true",
    "status.conditions: Running condition cannot be true when failed condition is true",
  ]);
  t.same(details(withConditions({}), withConditions({ Succeeded: "True" })), [
    "status.conditions: Success condition cannot be set to false once it is true",
  ]);
  t.same(details(withConditions({}, "8"), withConditions({}, "7")), [
    "status.resourceVersion: resourceVersion cannot be updated",
  ]);
  t.same(details(withConditions({}, "x")), [
    'status.resourceVersion: failed to parse resource version "x": strconv.ParseInt: parsing "x": invalid syntax',
  ]);
  t.same(details(withConditions({}, "-1")), ["status.resourceVersion: must be greater than or equal to 0"]);
  t.match(details(withConditions({}, "9".repeat(20))), [/value out of range/]);
  const bare = { spec, status: { conditions: [{ type: "Running", status: "Maybe" }] } };
  t.same(
    validateMigrationStatus(bare, { spec }).map(({ field }) => field),
    ["status", "lastTransitionTime", "reason"].map((name) => `status.conditions[0].${name}`),
  );
});
