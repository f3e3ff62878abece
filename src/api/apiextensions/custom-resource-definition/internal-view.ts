/**
 * A definition as Kubernetes' internal type: fields that all versions share are at the top level, under their names
 * from before versions existed. Errors have these paths.
 */
import type { JsonSchemaProps } from "../../../schema/structural/json-schema-props.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinitionSpec,
  CustomResourceDefinitionVersion,
  CustomResourceSubresources,
  SelectableField,
} from "./schema.ts";

/** The fields in which versions may differ. Undefined at the level where they are not set. */
export interface VersionFields {
  readonly schema?: JsonSchemaProps | undefined;
  readonly subresources?: CustomResourceSubresources | undefined;
  readonly columns?: readonly CustomResourceColumnDefinition[] | undefined;
  readonly selectableFields?: readonly SelectableField[] | undefined;
}

export interface InternalView {
  readonly shared: VersionFields;
  readonly versions: readonly (VersionFields & { readonly version: CustomResourceDefinitionVersion })[];
}

const parts = ["schema", "subresources", "columns", "selectableFields"] as const;

export function internalViewOf({ versions }: CustomResourceDefinitionSpec): InternalView {
  const all = versions.map((version) => ({ version, ...versionFieldsOf(version) }));
  const [first] = all;
  if (first === undefined) return { shared: {}, versions: [] };
  const common = parts.filter((part) => all.every((one) => deepEqual(one[part], first[part])));
  return {
    shared: Object.fromEntries(common.map((part) => [part, first[part]])),
    versions: all.map((one) => ({ ...one, ...Object.fromEntries(common.map((part) => [part, undefined])) })),
  };
}

/** The fields of a version, from either level of the view. */
export function versionFieldsOf(version: CustomResourceDefinitionVersion): VersionFields {
  return {
    schema: version.schema?.openAPIV3Schema,
    subresources: version.subresources,
    columns: version.additionalPrinterColumns,
    selectableFields: version.selectableFields,
  };
}

export function hasStatus(subresources: CustomResourceSubresources | undefined): boolean {
  return subresources?.status !== undefined;
}
