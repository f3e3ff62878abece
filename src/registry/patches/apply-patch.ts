/** JSON patches, merge patches and strategic merge patches of an object's JSON. */
import type { Operation } from "rfc6902";
import { applyJsonPatch } from "../../api/json-patch.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { formatApiVersion } from "../../api/scheme.ts";
import { badRequest, StatusError } from "../../api/status.ts";
import { stringify } from "../../schema/json/encode.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { jsonMergePatch } from "../../schema/patch/merge-patch.ts";
import { PatchError, strategicMergePatch } from "../../schema/patch/strategic-merge.ts";

export type Patch =
  | { readonly type: "json"; readonly operations: readonly Operation[] }
  | { readonly type: "merge"; readonly value: unknown }
  | { readonly type: "strategic"; readonly value: unknown };

/** The object as JSON, with the apiVersion that `group` and the kind's version make. */
export function objectToJson<T extends ApiObject>(kind: Kind<T>, group: string, object: T): unknown {
  const typed = { ...object, kind: kind.kind, apiVersion: formatApiVersion(group, kind.version) };
  return parseJson(Buffer.from(stringify(kind.schema, typed))).value;
}

/** Returns the patched value; may modify `current`. Throws a 400, 422 or 500 for a patch that does not apply. */
export function applyPatch(kind: Kind, current: unknown, patch: Patch): unknown {
  switch (patch.type) {
    case "json":
      return applyJsonPatch(current, patch.operations);
    case "merge":
      return jsonMergePatch(current, patch.value);
    case "strategic":
      return applyStrategicPatch(kind, current, patch.value);
    default:
      return patch satisfies never;
  }
}

function applyStrategicPatch(kind: Kind, current: unknown, patch: unknown): unknown {
  try {
    return strategicMergePatch(kind.schema, current, patch);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    // Kubernetes answers 400 only for malformed directives.
    throw error.code === "format" ? badRequest(error.message) : new StatusError(500, "", error.message);
  }
}
