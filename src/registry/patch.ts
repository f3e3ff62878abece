import type { Operation } from "rfc6902";
import { applyJsonPatch } from "../api/json-patch.ts";
import type { ApiObject, Kind } from "../api/kind.ts";
import { formatApiVersion } from "../api/scheme.ts";
import { badRequest, StatusError } from "../api/status.ts";
import { stringify } from "../schema/json/encode.ts";
import { parseJson } from "../schema/json/parse.ts";
import { jsonMergePatch } from "../schema/patch/merge-patch.ts";
import { PatchError, strategicMergePatch } from "../schema/patch/strategic-merge.ts";
import { change, type Next } from "./write/guaranteed-update.ts";
import { booked, withOldTimes } from "./managed-fields/track-managed-fields.ts";
import type { Registry, Scope } from "./registry.ts";
import { revised } from "./write/pipeline.ts";
import { type Shown, shownPatch } from "./write/patch-error.ts";
import { named, type UpdateOptions } from "./update.ts";
import { defaulted, inNamespace, mustNameVersion, ownersOnce, sentVersion } from "./write/prepare.ts";

export type Patch =
  | { readonly type: "json"; readonly operations: readonly Operation[] }
  | { readonly type: "merge"; readonly value: unknown }
  | { readonly type: "strategic"; readonly value: unknown };

export interface PatchOptions<T extends ApiObject> extends UpdateOptions<T> {
  /** From the patched JSON to an object of the kind; reports what the schema does not know. Throws `show`n errors. */
  readonly decode: (value: unknown, show: (why: string) => Shown) => T;
}

/** Applies the patch to the object as it is at the moment of the write. */
export async function patch<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  patch: Patch,
  options: PatchOptions<T>,
): Promise<T> {
  const next: Next<T> = async (previous, allocate) => {
    const current = (): unknown => jsonOf(registry.kind, scope.group, previous);
    const value = patched(registry.kind, current(), patch);
    const decoded = options.decode(value, (why) => shownPatch(patch, current(), value, why));
    const sent = inNamespace(registry, scope, named(decoded, name));
    if (sentVersion(sent) === undefined && registry.kind.strategy.allowUnconditionalUpdate === false) {
      throw mustNameVersion(registry, scope, name);
    }
    const filled = ownersOnce(defaulted(registry, sent), options);
    const object = await booked(registry, scope, filled, previous, options);
    return withOldTimes(await revised(registry, scope, object, previous, options, allocate), previous);
  };
  return await change(registry, scope, name, next, options);
}

/** An object as JSON has it, spelled in `group`. */
export function jsonOf<T extends ApiObject>(kind: Kind<T>, group: string, object: T): unknown {
  const typed = { ...object, kind: kind.kind, apiVersion: formatApiVersion(group, kind.version) };
  return parseJson(Buffer.from(stringify(kind.schema, typed))).value;
}

/** What a patch makes of a value, which may be changed. Throws 400, 422 or 500 for a patch that does not fit. */
export function patched(kind: Kind, current: unknown, patch: Patch): unknown {
  switch (patch.type) {
    case "json":
      return applyJsonPatch(current, patch.operations);
    case "merge":
      return jsonMergePatch(current, patch.value);
    case "strategic":
      return strategically(kind, current, patch.value);
    default:
      return patch satisfies never;
  }
}

function strategically(kind: Kind, current: unknown, patch: unknown): unknown {
  try {
    return strategicMergePatch(kind.schema, current, patch);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    // Kubernetes blames the client for the form of its directives alone.
    throw error.code === "form" ? badRequest(error.message) : new StatusError(500, "", error.message);
  }
}
