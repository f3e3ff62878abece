import { applyPatch, type Operation } from "rfc6902";
import type { ApiObject } from "../api/kind.ts";
import { formatApiVersion } from "../api/scheme.ts";
import { badRequest, conflict, StatusError } from "../api/status.ts";
import { parseJson, stringify } from "../schema/json.ts";
import { mergePatch } from "../schema/merge-patch.ts";
import { PatchError, strategicMerge } from "../schema/strategic-merge.ts";
import { change } from "./change.ts";
import type { Registry, Scope } from "./registry.ts";
import { named, type UpdateOptions } from "./update.ts";
import { defaulted, inNamespace, metadataOf, updated } from "./write.ts";

export type Patch =
  | { readonly type: "json"; readonly operations: readonly Operation[] }
  | { readonly type: "merge"; readonly value: unknown }
  | { readonly type: "strategic"; readonly value: unknown };

/** Operations one request may carry, as in Kubernetes. */
const OPERATIONS_MAX = 10_000;

export interface PatchOptions<T> extends UpdateOptions {
  /** From the patched JSON to an object of the kind; reports what the schema does not know. */
  readonly decode: (value: unknown) => T;
}

/** Applies the patch to the object as it is at the moment of the write. */
export async function patch<T extends ApiObject>(
  registry: Registry<T>,
  scope: Scope,
  name: string,
  patch: Patch,
  options: PatchOptions<T>,
): Promise<T> {
  const part = options.part ?? "object";
  const next = (previous: T): T => {
    const patched = options.decode(applied(registry, scope, previous, patch));
    const object = inNamespace(registry, scope, named(patched, name));
    const { uid } = metadataOf(object);
    if (uid && uid !== metadataOf(previous).uid) {
      const why = `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${metadataOf(previous).uid}`;
      throw conflict(registry.subject(scope, name), why);
    }
    return updated(registry, scope, defaulted(registry, object), previous, part);
  };
  return await change(registry, scope, name, next, options);
}

function applied<T extends ApiObject>(registry: Registry<T>, scope: Scope, previous: T, patch: Patch): unknown {
  const { kind } = registry;
  const typed = { ...previous, kind: kind.kind, apiVersion: formatApiVersion(scope.group, kind.version) };
  const current = parseJson(Buffer.from(stringify(kind.schema, typed))).value;
  switch (patch.type) {
    case "json":
      return withOperations(current, patch.operations);
    case "merge":
      return mergePatch(current, patch.value);
    case "strategic":
      return strategically(registry, current, patch.value);
    default:
      return patch satisfies never;
  }
}

/** `current` is this call's own copy: a patch that fails half-way leaves nothing behind. */
function withOperations(current: unknown, operations: readonly Operation[]): unknown {
  if (operations.length > OPERATIONS_MAX) {
    const message = `The allowed maximum operations in a JSON patch is ${OPERATIONS_MAX}, got ${operations.length}`;
    throw new StatusError(413, "RequestEntityTooLarge", `Request entity too large: ${message}`);
  }
  const document = { root: current };
  const rooted = operations.map((operation) => ({
    ...operation,
    path: `/root${operation.path}`,
    ...("from" in operation ? { from: `/root${operation.from}` } : {}),
  })) as Operation[];
  for (const failure of applyPatch(document, rooted)) {
    if (failure !== null)
      throw new StatusError(422, "Invalid", "the server rejected our request due to an error in our request", {
        details: {},
      });
  }
  return document.root;
}

function strategically<T extends ApiObject>(registry: Registry<T>, current: unknown, patch: unknown): unknown {
  try {
    return strategicMerge(registry.kind.schema, current, patch);
  } catch (error) {
    if (error instanceof PatchError) throw badRequest(error.message);
    throw error;
  }
}
