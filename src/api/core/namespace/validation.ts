import { type FieldError, invalidField, validateEach } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { validateFinalizer } from "../../meta/validation/object-meta.ts";
import type { Namespace } from "./schema.ts";

export function validateNamespaceStatusUpdate({ metadata, status }: Namespace): readonly FieldError[] {
  const isTerminating = metadata?.deletionTimestamp !== undefined;
  const expected = isTerminating ? "Terminating" : "Active";
  const phase = status?.phase ?? "";
  if (phase === expected) return [];
  const when = isTerminating ? "is not empty" : "is empty";
  return [invalidField("status.Phase", phase, `may only be '${expected}' if \`deletionTimestamp\` ${when}`)];
}

export function validateNamespaceFinalize({ spec }: Namespace): readonly FieldError[] {
  return validateEach(spec?.finalizers ?? [], (finalizer, i) =>
    validateFinalizer(finalizer, index("spec.finalizers", i)),
  );
}
