/** The `scale` subresource of a custom resource, at the paths that its definition sets. */
import { type FieldError, invalidField } from "../../../schema/validation/field-error.ts";
import { getMember, isPlainObject, setMember } from "../../../schema/value/plain-object.ts";
import { scaleKind, scaleMetadata } from "../../autoscaling/scale/kind.ts";
import type { Scale } from "../../autoscaling/scale/schema.ts";
import type { ApiObject, Subresource } from "../../kind.ts";
import { parseLabelSelector } from "../../meta/selectors/selector.ts";
import type { CustomResourceSubresourceScale } from "../custom-resource-definition/schema.ts";

const INT32_MAX = 2_147_483_647;

export function createCustomScale(paths: CustomResourceSubresourceScale): Subresource {
  return {
    name: "scale",
    kind: "Scale",
    group: "autoscaling",
    version: "v1",
    verbs: ["get", "patch", "update"],
    view: {
      kind: scaleKind,
      toView: (object) => scaleOf(object, paths),
      fromView: (object, shown: Scale) => {
        const metadata = { ...object.metadata, resourceVersion: shown.metadata?.resourceVersion };
        const replicas = shown.spec?.replicas ?? 0;
        return setValue({ ...object, metadata }, pathSteps(paths.specReplicasPath), replicas) as ApiObject;
      },
      managedPath: pathSteps(paths.specReplicasPath),
    },
  };
}

function scaleOf(object: ApiObject, paths: CustomResourceSubresourceScale): Scale {
  const selector = paths.labelSelectorPath === undefined ? "" : valueAt(object, paths.labelSelectorPath);
  return {
    metadata: scaleMetadata(object.metadata ?? {}),
    spec: { replicas: integerAt(object, paths.specReplicasPath) },
    status: {
      replicas: integerAt(object, paths.statusReplicasPath),
      selector: typeof selector === "string" ? selector : "",
    },
  };
}

/** Validates the replica counts and the selector. */
export function validateCustomScale(object: ApiObject, paths: CustomResourceSubresourceScale): readonly FieldError[] {
  const selector = paths.labelSelectorPath === undefined ? undefined : valueAt(object, paths.labelSelectorPath);
  return [
    ...validateReplicas(object, paths.specReplicasPath),
    ...validateReplicas(object, paths.statusReplicasPath),
    ...(typeof selector === "string" ? validateSelector(selector, paths.labelSelectorPath ?? "") : []),
  ];
}

function validateReplicas(object: ApiObject, path: string): readonly FieldError[] {
  const found = valueAt(object, path);
  const value = typeof found === "bigint" ? Number(found) : found;
  if (value === undefined) return [];
  if (typeof value !== "number" || !Number.isInteger(value)) {
    const why = `${path} accessor error: ${String(value)} is of the type ${typeof value}, expected int64`;
    return [invalidField(path, 0, why)];
  }
  if (value < 0) return [invalidField(path, value, "should be a non-negative integer")];
  return value > INT32_MAX ? [invalidField(path, value, `should be less than or equal to ${INT32_MAX}`)] : [];
}

function validateSelector(selector: string, path: string): readonly FieldError[] {
  try {
    parseLabelSelector(selector);
    return [];
  } catch (error) {
    return [invalidField(path, selector, (error as Error).message)];
  }
}

/** Splits the path at dots; the definition's validation allows no other syntax. */
function pathSteps(path: string): readonly string[] {
  return path.replace(/^\./, "").split(".");
}

function valueAt(object: unknown, path: string): unknown {
  let value = object;
  for (const name of pathSteps(path)) {
    if (!isPlainObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

function integerAt(object: unknown, path: string): number {
  const value = valueAt(object, path);
  return typeof value === "number" ? value : 0;
}

function setValue(object: unknown, [name = "", ...rest]: readonly string[], value: unknown): unknown {
  const members: Record<string, unknown> = isPlainObject(object) ? { ...object } : {};
  const old = getMember(members, name);
  setMember(members, name, rest.length === 0 ? value : setValue(old, rest, value));
  return members;
}
