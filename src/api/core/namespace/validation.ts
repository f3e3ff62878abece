import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { validateFinalizer } from "../../meta/validation/object-meta.ts";
import type { Namespace } from "./schema.ts";

export function validateNamespaceStatusUpdate({ metadata, status }: Namespace): readonly FieldError[] {
  const leaving = metadata?.deletionTimestamp !== undefined;
  const wanted = leaving ? "Terminating" : "Active";
  const phase = status?.phase ?? "";
  if (phase === wanted) return [];
  const when = leaving ? "is not empty" : "is empty";
  return [invalidField("status.Phase", phase, `may only be '${wanted}' if \`deletionTimestamp\` ${when}`)];
}

export function validateNamespaceFinalize({ spec }: Namespace): readonly FieldError[] {
  return (spec?.finalizers ?? []).flatMap((finalizer, i) => validateFinalizer(finalizer, index("spec.finalizers", i)));
}
