/** Rules for migrations to a storage version. Paths are those of Kubernetes, which omits `spec` in some. */

import { list } from "../../../schema/define.ts";
import { type FieldError, invalidField, requiredField } from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { validateConditions } from "../../meta/validation/condition.ts";
import { migrationCondition, type StorageVersionMigration } from "./schema.ts";

const CONDITIONS = "status.conditions";
const RESOURCE_VERSION = "status.resourceVersion";
const RESOURCE_VERSION_MAX = 2n ** 63n - 1n;

export function validateMigration({ spec }: StorageVersionMigration): readonly FieldError[] {
  const { resource = "", version = "" } = spec?.resource ?? {};
  return [
    ...(resource === "" ? [requiredField("spec.resource.resource", "resource is required")] : []),
    ...(version === "" ? [requiredField("spec.resource.version", "version is required")] : []),
  ];
}

export function validateMigrationUpdate(
  next: StorageVersionMigration,
  previous: StorageVersionMigration,
): readonly FieldError[] {
  return (["group", "version", "resource"] as const).flatMap((field) => {
    const value = next.spec?.resource[field] ?? "";
    return value === (previous.spec?.resource[field] ?? "") ? [] : [invalidField(field, value, "field is immutable")];
  });
}

export function validateMigrationStatus(
  next: StorageVersionMigration,
  previous: StorageVersionMigration,
): readonly FieldError[] {
  const version = next.status?.resourceVersion ?? "";
  const before = previous.status?.resourceVersion ?? "";
  const conditions = (next.status?.conditions ?? []).map((condition) => {
    const { type, status, lastUpdateTime = "", reason = "", message = "" } = condition;
    return { type, status, lastTransitionTime: lastUpdateTime, reason, message };
  });
  return [
    ...validateResourceVersion(version),
    ...validateConditions(conditions, CONDITIONS),
    ...(before !== "" && before !== version
      ? [invalidField(RESOURCE_VERSION, version, "resourceVersion cannot be updated")]
      : []),
    ...validateProgress(next, previous),
  ];
}

function validateResourceVersion(text: string): readonly FieldError[] {
  if (text === "") return [];
  const quoted = goQuote(text);
  const problem = (why: string) =>
    `failed to parse resource version ${quoted}: strconv.ParseInt: parsing ${quoted}: ${why}`;
  if (!/^[-+]?\d+$/.test(text)) return [invalidField(RESOURCE_VERSION, text, problem("invalid syntax"))];
  const version = BigInt(text.replace("+", ""));
  if (version > RESOURCE_VERSION_MAX || version < -RESOURCE_VERSION_MAX - 1n) {
    return [invalidField(RESOURCE_VERSION, text, problem("value out of range"))];
  }
  return version < 0n ? [invalidField(RESOURCE_VERSION, version, "must be greater than or equal to 0")] : [];
}

/** A migration that succeeded or failed does not run, and stays so. */
function validateProgress(next: StorageVersionMigration, previous: StorageVersionMigration): readonly FieldError[] {
  const isTrue = ({ status }: StorageVersionMigration, type: string): boolean =>
    status?.conditions?.find((condition) => condition.type === type)?.status === "True";
  const [succeeded, failed, running] = ["Succeeded", "Failed", "Running"].map((type) => isTrue(next, type));
  const rules: readonly [broken: boolean | undefined, detail: string][] = [
    [succeeded && failed, "Both success and failed conditions cannot be true at the same time"],
    [succeeded && running, "Running condition cannot be true when success condition is true"],
    [failed && running, "Running condition cannot be true when failed condition is true"],
    [isTrue(previous, "Succeeded") && !succeeded, "Success condition cannot be set to false once it is true"],
    [isTrue(previous, "Failed") && !failed, "Failed condition cannot be set to false once it is true"],
  ];
  return rules.flatMap(([broken, detail]) =>
    broken ? [invalidField(CONDITIONS, goStruct(list(migrationCondition), next.status?.conditions), detail)] : [],
  );
}
