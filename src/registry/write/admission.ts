/** How the verbs ask the plugins: they have a word before a kind's own rules see an object, and one after them. */
import type { AdmissionContext, AdmissionChain } from "../../admission/chain/chain.ts";
import type { ApiObject } from "../../api/kind.ts";
import { readManagers } from "../managed-fields/entries.ts";
import type { WriteOptions } from "../registry.ts";
import { metadataOf, withMetadata } from "./prepare.ts";

/** One request's way to the plugins; `about` is what the verbs do not know of it. */
export interface Admission {
  readonly chain: AdmissionChain;
  readonly context: AdmissionContext;
}

/** Resolves with what the plugins make of the object. Throws what they forbid. */
export async function runMutatingAdmission<T extends ApiObject>(
  object: T,
  previous: T | undefined,
  { admission, warn }: WriteOptions,
): Promise<T> {
  if (admission === undefined) return object;
  const { chain, context: about } = admission;
  const operation = previous === undefined ? "CREATE" : "UPDATE";
  const next = await chain.mutate(about, operation, object, previous);
  return next === object ? object : keepReadableManagedFields(next, object, warn);
}

/** Throws what the plugins forbid. */
export async function runValidatingAdmission<T extends ApiObject>(
  object: T,
  previous: T | undefined,
  { admission }: WriteOptions,
): Promise<void> {
  await admission?.chain.validate(admission.context, previous === undefined ? "CREATE" : "UPDATE", object, previous);
}

/** Throws what the plugins forbid about deleting the object. */
export async function runDeleteAdmission(previous: ApiObject, { admission }: WriteOptions): Promise<void> {
  if (admission === undefined) return;
  await admission.chain.mutate(admission.context, "DELETE", undefined, previous);
  await admission.chain.validate(admission.context, "DELETE", undefined, previous);
}

/** A plugin that spoils the book of who manages what does not get its way, and the client is told. */
function keepReadableManagedFields<T extends ApiObject>(next: T, before: T, warn: WriteOptions["warn"]): T {
  const { managedFields: entries } = metadataOf(next);
  const { managedFields: kept } = metadataOf(before);
  if (entries === kept || readManagers(entries) !== undefined) return next;
  const why = "this could be caused by an outdated mutating admission controller; please fix your requests";
  warn?.([`.metadata.managedFields was in an invalid state after admission; ${why}: its entries cannot be read`]);
  const { managedFields: _, ...metadata } = metadataOf(next);
  return withMetadata(next, kept === undefined ? metadata : { ...metadata, managedFields: kept });
}
