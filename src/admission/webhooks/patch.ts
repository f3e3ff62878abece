/** Applies the JSON patch of a webhook. */
import { applyJsonPatch, JsonPatchError, type JsonPatchOperation } from "../../api/json-patch.ts";
import { StatusError } from "../../api/status.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { valuesMax } from "../../schema/value/limits.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { TimeSlice } from "../../std/async/time-slice.ts";
import { internalError } from "./failure-policy.ts";

/** Resolves to undefined for an empty patch. Throws a 500 if the patch is invalid or does not apply. */
export async function applyWebhookPatch(
  bytes: Buffer,
  object: unknown,
  webhook: string,
  slice: TimeSlice,
): Promise<unknown> {
  const operations = parsePatch(bytes);
  if (operations.length === 0) return undefined;
  await slice.yield();
  if (object === null) {
    const reason = "attempted to modify the object, which is not supported for this operation";
    throw internalError(`admission webhook ${goQuote(webhook)} ${reason}`);
  }
  let document: unknown;
  try {
    document = applyJsonPatch(structuredClone(object), operations);
  } catch (error) {
    if (!(error instanceof JsonPatchError) && !(error instanceof StatusError)) throw error;
    throw internalError(error.message, error);
  }
  return document;
}

function parsePatch(bytes: Buffer): readonly JsonPatchOperation[] {
  let value: unknown;
  try {
    ({ value } = parseJson(bytes, valuesMax));
  } catch (error) {
    throw internalError((error as Error).message, error);
  }
  if (value === null) return [];
  if (!Array.isArray(value)) throw internalError("json: cannot unmarshal the patch: expected a list of operations");
  for (const operation of value) {
    if (operation === null || isPlainObject(operation)) continue;
    throw internalError("json: cannot unmarshal the patch: expected a list of operations");
  }
  return value.map((operation) => operation ?? {});
}
