import type { ApiObject } from "../api/kind.ts";
import { areLong, checkStoredValues } from "../schema/value/check-values.ts";
import { runInSlices } from "../std/async/steps.ts";
import { TimeSlice } from "../std/async/time-slice.ts";
import { applyPatch, objectToJson, objectToJsonSteps, type Patch } from "./patches/apply-patch.ts";
import { type DecodeFailure, describeDecodeFailure } from "./patches/decode-failure.ts";
import type { Registry } from "./registry.ts";
import type { Scope } from "./scope.ts";
import { guaranteedUpdate, type UpdateFunction } from "./write/guaranteed-update.ts";
import { checkName, setNamespace } from "./write/name-and-namespace.ts";
import { pipeline } from "./write/pipeline.ts";
import type { WriteOptions } from "./write/request.ts";
import { requestedResourceVersion, resourceVersionRequired } from "./write/resource-version.ts";

export interface PatchOptions<T extends ApiObject> extends WriteOptions<T> {
  /** Decodes the patched JSON, and reports unknown fields. Its errors show what `describe` returns. */
  readonly decode: (value: unknown, describe: (message: string) => DecodeFailure) => T;
}

/** Patches the object as stored at the moment of the write. */
export async function patch<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  patch: Patch,
  options: PatchOptions<T>,
): Promise<T> {
  const { kind } = registry;
  const request = { registry, scope, name, options };
  const update: UpdateFunction<T> = async (previous, store) => {
    const slice = areLong(patch, previous) ? new TimeSlice() : undefined;
    if (slice !== undefined) await slice.end();
    const current = (): unknown => objectToJson(kind, scope.group, previous);
    const encoding = runInSlices(objectToJsonSteps(kind, scope.group, previous), slice);
    const json = encoding instanceof Promise ? await encoding : encoding;
    if (slice?.isOver) await slice.end();
    const value = applyPatch(kind, json, patch);
    if (slice?.isOver) await slice.end();
    // Copies of a JSON patch multiply; other patches add as many values as a body has.
    if (patch.type === "json") checkStoredValues(value, previous);
    if (slice?.isOver) await slice.end();
    const decoded = options.decode(value, (message) => describeDecodeFailure(patch, current(), value, message));
    const object = setNamespace(request, checkName(decoded, name));
    if (requestedResourceVersion(object) === undefined && kind.strategy.allowUnconditionalUpdate === false) {
      throw resourceVersionRequired(request);
    }
    if (slice?.isOver) await slice.end();
    return await pipeline(request, object)(previous, store);
  };
  return await guaranteedUpdate(request, update);
}
