/** The admission plugins of a write: mutating ones before the strategy, validating ones after it. */
import type { ApiObject } from "../../api/kind.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { andThen } from "../../std/async/maybe-promise.ts";
import { runSteps } from "../../std/async/steps.ts";
import { inExportedSpan } from "../../tracing/span.ts";
import { readManagers } from "../managed-fields/entries.ts";
import { metadataOf, withMetadata } from "./object-metadata.ts";
import type { WriteOptions, WriteRequest } from "./request.ts";

const MUTATING = { name: "mutating admission" };
const VALIDATING = { name: "validating admission" };

type AdmissionRequest<T extends ApiObject> = Pick<WriteRequest<T>, "options">;

/** Resolves with the object as the plugins changed it. Throws when a plugin denies the request. */
export function runMutatingAdmission<T extends ApiObject>(
  { options }: AdmissionRequest<T>,
  object: T,
  previous: T | undefined,
): MaybePromise<T> {
  if (options.admission === undefined) return object;
  return inExportedSpan(MUTATING, () => mutate(options, object, previous));
}

function mutate<T extends ApiObject>(
  { admission, view, warn }: WriteRequest<T>["options"],
  object: T,
  previous: T | undefined,
): MaybePromise<T> {
  if (admission === undefined) return object;
  const { chain, context } = admission;
  if (previous === undefined) {
    return andThen(chain.mutate(context, "CREATE", object), (next) => keepReadableManagedFields(next, object, warn));
  }
  if (view === undefined) {
    const mutated = chain.mutate(context, "UPDATE", object, previous);
    return andThen(mutated, (next) => keepReadableManagedFields(next, object, warn));
  }
  const sent = view.toView(object);
  const mutated = chain.mutate(context, "UPDATE", sent, view.toView(previous));
  return andThen(mutated, (next) => view.fromView(object, keepReadableManagedFields(next, sent, warn)));
}

/** Throws when a plugin denies the request. */
export function runValidatingAdmission<T extends ApiObject>(
  { options }: AdmissionRequest<T>,
  object: T,
  previous: T | undefined,
): MaybePromise<void> {
  if (options.admission === undefined) return;
  return inExportedSpan(VALIDATING, () => validate(options, object, previous));
}

function validate<T extends ApiObject>(
  { admission, view }: WriteRequest<T>["options"],
  object: T,
  previous: T | undefined,
): MaybePromise<void> {
  if (admission === undefined) return;
  const { chain, context } = admission;
  if (previous === undefined) return chain.validate(context, "CREATE", object);
  if (view === undefined) return chain.validate(context, "UPDATE", object, previous);
  return chain.validate(context, "UPDATE", view.toView(object), view.toView(previous));
}

/** Throws when a plugin denies that the object is deleted. */
export async function runDeleteAdmission(previous: ApiObject, { admission }: WriteOptions): Promise<void> {
  if (admission === undefined) return;
  await admission.chain.mutate(admission.context, "DELETE", undefined, previous);
  await admission.chain.validate(admission.context, "DELETE", undefined, previous);
}

/** Restores managedFields that a plugin left invalid, with a warning. */
function keepReadableManagedFields<T extends ApiObject>(next: T, before: T, warn: WriteOptions["warn"]): T {
  if (next === before) return next;
  const { managedFields: entries } = metadataOf(next);
  const { managedFields: kept } = metadataOf(before);
  if (entries === kept || runSteps(readManagers(entries)) !== undefined) return next;
  const why = "this could be caused by an outdated mutating admission controller; please fix your requests";
  warn?.([`.metadata.managedFields was in an invalid state after admission; ${why}: its entries cannot be read`]);
  const { managedFields: _, ...metadata } = metadataOf(next);
  return withMetadata(next, kept === undefined ? metadata : { ...metadata, managedFields: kept });
}
