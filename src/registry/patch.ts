import type { Operation } from "rfc6902";
import { applyJsonPatch } from "../api/json-patch.ts";
import type { ApiObject, Kind } from "../api/kind.ts";
import { formatApiVersion } from "../api/scheme.ts";
import { badRequest, StatusError } from "../api/status.ts";
import { stringify } from "../schema/json/encode.ts";
import { parseJson } from "../schema/json/parse.ts";
import { jsonMergePatch } from "../schema/patch/merge-patch.ts";
import { PatchError, strategicMergePatch } from "../schema/patch/strategic-merge.ts";
import { guaranteedUpdate, type UpdateFunction } from "./write/guaranteed-update.ts";
import { trackManagedFields, keepUnchangedTimes } from "./managed-fields/track-managed-fields.ts";
import type { Registry, Scope } from "./registry.ts";
import { revised } from "./write/pipeline.ts";
import { type DecodeFailure, describeDecodeFailure } from "./patches/decode-failure.ts";
import { setName, type UpdateOptions } from "./update.ts";
import { applyDefaults, setNamespace, resourceVersionRequired, dedupOwnerReferences, requestedResourceVersion } from "./write/prepare.ts";

export type Patch =
  | { readonly type: "json"; readonly operations: readonly Operation[] }
  | { readonly type: "merge"; readonly value: unknown }
  | { readonly type: "strategic"; readonly value: unknown };

export interface PatchOptions<T extends ApiObject> extends UpdateOptions<T> {
  /** From the patched JSON to an object of the kind; reports what the schema does not know. Throws `show`n errors. */
  readonly decode: (value: unknown, show: (why: string) => DecodeFailure) => T;
}

/** Applies the patch to the object as it is at the moment of the write. */
export async function patch<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  patch: Patch,
  options: PatchOptions<T>,
): Promise<T> {
  const next: UpdateFunction<T> = async (previous, allocate) => {
    const current = (): unknown => toJsonValue(registry.kind, scope.group, previous);
    const value = applyPatch(registry.kind, current(), patch);
    const decoded = options.decode(value, (why) => describeDecodeFailure(patch, current(), value, why));
    const sent = setNamespace(registry, scope, setName(decoded, name));
    if (requestedResourceVersion(sent) === undefined && registry.kind.strategy.allowUnconditionalUpdate === false) {
      throw resourceVersionRequired(registry, scope, name);
    }
    const filled = dedupOwnerReferences(applyDefaults(registry, sent), options);
    const object = await trackManagedFields(registry, scope, filled, previous, options);
    return keepUnchangedTimes(await revised(registry, scope, object, previous, options, allocate), previous);
  };
  return await guaranteedUpdate(registry, scope, name, next, options);
}

/** An object as JSON has it, spelled in `group`. */
export function toJsonValue<T extends ApiObject>(kind: Kind<T>, group: string, object: T): unknown {
  const typed = { ...object, kind: kind.kind, apiVersion: formatApiVersion(group, kind.version) };
  return parseJson(Buffer.from(stringify(kind.schema, typed))).value;
}

/** What a patch makes of a value, which may be changed. Throws 400, 422 or 500 for a patch that does not fit. */
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
    // Kubernetes blames the client for the form of its directives alone.
    throw error.code === "format" ? badRequest(error.message) : new StatusError(500, "", error.message);
  }
}
