import type { ApiObject } from "../../api/kind.ts";
import { runMutatingAdmission, runValidatingAdmission } from "./admission.ts";
import type { Allocate } from "./allocation.ts";
import type { Registry, Scope } from "../registry.ts";
import { AFTER_ADMISSION, dedupOwnerReferences, type RevisionOptions, updated } from "./prepare.ts";

/**
 * The object to be written where there was `previous`: what plugins make of what the client sent, with what the server
 * keeps and the kind's rules make of that, checked by all of them. Throws 400, 403, 409 or 422.
 */
export async function revised<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  sent: T,
  previous: T,
  options: RevisionOptions<T>,
  allocate: Allocate<T> | undefined,
): Promise<T> {
  const { view } = options;
  const changed =
    view === undefined
      ? await runMutatingAdmission(sent, previous, options)
      : view.fromView(sent, await runMutatingAdmission(view.toView(sent), view.toView(previous), options));
  const admitted = dedupOwnerReferences(changed, options, AFTER_ADMISSION);
  await options.checkEscalation?.(scope, admitted, previous);
  const next = await updated(registry, scope, admitted, previous, options, allocate);
  if (view === undefined) await runValidatingAdmission(next, previous, options);
  else await runValidatingAdmission(view.toView(next), view.toView(previous), options);
  return next;
}
