/** JSON patches, merge patches and strategic merge patches of an object's JSON. */
import { applyJsonPatch, JsonPatchError, type JsonPatchOperation } from "../../api/json-patch.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import { stringify } from "../../schema/json/encode.ts";
import { parseExact } from "../../schema/json/exact-numbers.ts";
import { jsonMergePatch } from "../../schema/patch/merge-patch.ts";
import { PatchError, strategicMergePatch } from "../../schema/patch/strategic-merge.ts";
import { copyJson } from "../../schema/value/plain-object.ts";
import { runSteps, type Steps } from "../../std/async/steps.ts";

export type Patch =
  | { readonly type: "json"; readonly operations: readonly JsonPatchOperation[] }
  | { readonly type: "merge"; readonly value: unknown }
  | { readonly type: "strategic"; readonly value: unknown }
  /** Reported when it is applied, since a missing object is reported first. */
  | { readonly type: "malformed"; readonly error: StatusError };

/** The object as JSON, with the apiVersion that `group` and the kind's version make. */
export function objectToJson<T extends ApiObject>(kind: Kind<T>, group: string, object: T): unknown {
  return runSteps(objectToJsonSteps(kind, group, object));
}

export function* objectToJsonSteps<T extends ApiObject>(kind: Kind<T>, group: string, object: T): Steps<unknown> {
  const typed = { ...object, kind: kind.kind, apiVersion: formatApiVersion(group, kind.version) };
  // A custom resource is JSON already, and can have so many members that a text would take several times as long.
  if (kind.schema.unstructured === true) return copyJson(typed);
  const text = stringify(kind.schema, typed);
  yield;
  return parseExact(text);
}

/** Returns the patched value; may modify `current`. Throws a 400, 422 or 500 for a patch that does not apply. */
export function applyPatch(kind: Kind, current: unknown, patch: Patch): unknown {
  switch (patch.type) {
    case "json":
      return applyOperations(current, patch.operations);
    case "merge":
      return jsonMergePatch(current, patch.value);
    case "strategic":
      return applyStrategicPatch(kind, current, patch.value);
    case "malformed":
      throw patch.error;
    default:
      return patch satisfies never;
  }
}

function applyOperations(current: unknown, operations: readonly JsonPatchOperation[]): unknown {
  try {
    return applyJsonPatch(current, operations);
  } catch (error) {
    throw error instanceof JsonPatchError ? unprocessable(error) : error;
  }
}

/** Kubernetes does not report why. */
function unprocessable(cause: Error): StatusError {
  const message = "the server rejected our request due to an error in our request";
  return new StatusError(422, "Invalid", message, { details: {}, cause });
}

function applyStrategicPatch(kind: Kind, current: unknown, patch: unknown): unknown {
  try {
    return strategicMergePatch(kind.schema, current, patch);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    // Kubernetes answers 400 only for malformed directives.
    if (error.code === "format") throw badRequest(error.message);
    if (error.code === "unsupported") throw unprocessable(error);
    throw new StatusError(500, "", error.message);
  }
}
