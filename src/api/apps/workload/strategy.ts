/** Steps that the strategies of workload kinds share. */
import type { ObjectSchema } from "../../../schema/schema.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { setPodTemplateDefaults } from "../../core/pod-template/defaults.ts";
import type { PodTemplateSpec } from "../../core/pod-template/schema.ts";
import { podTemplateWarnings } from "../../core/pod-template/warnings.ts";
import type { ApiObject } from "../../kind.ts";
import { dns1123Label } from "../../meta/validation/names.ts";
import { dropStatus, keepStatus, setFirstGeneration, updateGeneration } from "../../strategy.ts";

interface WithSpec extends ApiObject {
  readonly spec?: unknown;
  readonly status?: unknown;
}

export function prepareForCreate<T extends WithSpec>(object: T): T {
  return setFirstGeneration(dropStatus(object));
}

/** Returns a function that keeps the status and updates the generation. `spec` is the schema of the kind's spec. */
export function createPrepareForUpdate<T extends WithSpec>(spec: ObjectSchema): (next: T, previous: T) => T {
  return (next, previous) =>
    updateGeneration(keepStatus(next, previous), previous, !semanticEqual(spec, next.spec, previous.spec));
}

/** The spec of the object, or an empty one: Go has no absent structs. */
export function specOf<S extends object>(object: { readonly spec?: S | undefined }): Partial<S> {
  return object.spec ?? {};
}

export function setTemplateDefaults(template: PodTemplateSpec | undefined): PodTemplateSpec {
  return setPodTemplateDefaults(template ?? {});
}

/** The names of controllers become parts of the names and host names of pods. */
export function podNameWarnings(object: ApiObject): readonly string[] {
  const problems = dns1123Label(object.metadata?.name ?? "");
  if (problems.length === 0) return [];
  const why = "this is used in Pod names and hostnames, which can result in surprising behavior";
  return [`metadata.name: ${why}; a DNS label is recommended: [${problems.join(" ")}]`];
}

/** For new objects, and for updates that change the spec. */
export function templateWarnings(
  object: ApiObject,
  previous: ApiObject | undefined,
  template: PodTemplateSpec | undefined,
  path: string,
): readonly string[] {
  const changed = previous === undefined || object.metadata?.generation !== previous.metadata?.generation;
  return changed && template !== undefined ? podTemplateWarnings(template, path) : [];
}

/** The warnings of kinds whose names become parts of pod names. */
export function controllerWarnings(
  object: ApiObject & { readonly spec?: { readonly template?: PodTemplateSpec | undefined } | undefined },
  previous: ApiObject | undefined,
): readonly string[] {
  return [
    ...(previous === undefined ? podNameWarnings(object) : []),
    ...templateWarnings(object, previous, object.spec?.template, "spec.template"),
  ];
}
