/** What the strategies of the kinds that make pods have in common. */
import type { ObjectSchema } from "../../../schema/schema.ts";
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import type { PodTemplateSpec } from "../../core/pod-template/schema.ts";
import { podTemplateWarnings, setPodTemplateDefaults } from "../../core/pod-template/validation.ts";
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

/** An update keeps the status and counts the changes of the spec, whose schema is given. */
export function createPrepareForUpdate<T extends WithSpec>(spec: ObjectSchema): (next: T, previous: T) => T {
  return (next, previous) =>
    updateGeneration(keepStatus(next, previous), previous, !semanticEqual(spec, next.spec, previous.spec));
}

/** The spec of `object`, or of one that its author left empty: Go has no absent structs. */
export function specOf<S extends object>(object: { readonly spec?: S | undefined }): Partial<S> {
  return object.spec ?? {};
}

export function setTemplateDefaults(template: PodTemplateSpec | undefined): PodTemplateSpec {
  return setPodTemplateDefaults(template ?? {});
}

/** Names of controllers become part of the names and host names of their pods. */
export function podNameWarnings(object: ApiObject): readonly string[] {
  const problems = dns1123Label(object.metadata?.name ?? "");
  if (problems.length === 0) return [];
  const why = "this is used in Pod names and hostnames, which can result in surprising behavior";
  return [`metadata.name: ${why}; a DNS label is recommended: [${problems.join(" ")}]`];
}

/** On create, and on updates of what is wanted. */
export function templateWarnings(
  object: ApiObject,
  previous: ApiObject | undefined,
  template: PodTemplateSpec | undefined,
  path: string,
): readonly string[] {
  const changed = previous === undefined || object.metadata?.generation !== previous.metadata?.generation;
  return changed && template !== undefined ? podTemplateWarnings(template, path) : [];
}

/** Warnings of the kinds whose names become part of their pods' names. */
export function controllerWarnings(
  object: ApiObject & { readonly spec?: { readonly template?: PodTemplateSpec | undefined } | undefined },
  previous: ApiObject | undefined,
): readonly string[] {
  return [
    ...(previous === undefined ? podNameWarnings(object) : []),
    ...templateWarnings(object, previous, object.spec?.template, "spec.template"),
  ];
}
