import type { WriteOptions } from "../../registry/write/request.ts";
import type { RequestContext } from "../request/request-context.ts";
import { createAdmission } from "./admission.ts";
import type { ResourceTarget } from "./target.ts";

/** Admission and the escalation check of a write. */
export function writeChecks(
  target: ResourceTarget,
  context: RequestContext,
  params: Readonly<Record<string, string>>,
  dryRun: boolean,
): Pick<WriteOptions, "admission" | "checkEscalation"> {
  const { kind, settings } = target;
  return {
    admission: createAdmission(target, context, params, { dryRun }),
    checkEscalation: settings.escalationCheckFor(kind, params.name ?? ""),
  };
}

/** Appends warnings to those of the response, which sends each text once. */
export function warningAppender({ warnings }: RequestContext): (texts: readonly string[]) => void {
  return (texts) => {
    for (const text of texts) warnings.push(text);
  };
}
