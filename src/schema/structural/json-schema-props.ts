/** The schema of a CustomResourceDefinition (`apiextensions/v1.JSONSchemaProps`). */
import type { ValidationRule } from "../validation/rules.ts";
import { getMember } from "../value/plain-object.ts";

export interface JsonSchemaProps {
  readonly id?: string | undefined;
  readonly $schema?: string | undefined;
  readonly $ref?: string | undefined;
  readonly description?: string | undefined;
  readonly type?: string | undefined;
  readonly format?: string | undefined;
  readonly title?: string | undefined;
  readonly default?: unknown;
  readonly maximum?: number | undefined;
  readonly exclusiveMaximum?: boolean | undefined;
  readonly minimum?: number | undefined;
  readonly exclusiveMinimum?: boolean | undefined;
  readonly maxLength?: number | undefined;
  readonly minLength?: number | undefined;
  readonly pattern?: string | undefined;
  readonly maxItems?: number | undefined;
  readonly minItems?: number | undefined;
  readonly uniqueItems?: boolean | undefined;
  readonly multipleOf?: number | undefined;
  readonly enum?: readonly unknown[] | undefined;
  readonly maxProperties?: number | undefined;
  readonly minProperties?: number | undefined;
  readonly required?: readonly string[] | undefined;
  readonly items?: JsonSchemaProps | readonly JsonSchemaProps[] | undefined;
  readonly allOf?: readonly JsonSchemaProps[] | undefined;
  readonly oneOf?: readonly JsonSchemaProps[] | undefined;
  readonly anyOf?: readonly JsonSchemaProps[] | undefined;
  readonly not?: JsonSchemaProps | undefined;
  readonly properties?: Readonly<Record<string, JsonSchemaProps>> | undefined;
  readonly additionalProperties?: JsonSchemaProps | boolean | undefined;
  readonly patternProperties?: Readonly<Record<string, JsonSchemaProps>> | undefined;
  readonly dependencies?: Readonly<Record<string, JsonSchemaProps | readonly string[]>> | undefined;
  readonly additionalItems?: JsonSchemaProps | boolean | undefined;
  readonly definitions?: Readonly<Record<string, JsonSchemaProps>> | undefined;
  readonly externalDocs?: { readonly description?: string | undefined; readonly url?: string | undefined } | undefined;
  readonly example?: unknown;
  readonly nullable?: boolean | undefined;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean | undefined;
  readonly "x-kubernetes-embedded-resource"?: boolean | undefined;
  readonly "x-kubernetes-int-or-string"?: boolean | undefined;
  readonly "x-kubernetes-list-map-keys"?: readonly string[] | undefined;
  readonly "x-kubernetes-list-type"?: string | undefined;
  readonly "x-kubernetes-map-type"?: string | undefined;
  readonly "x-kubernetes-validations"?: readonly ValidationRule[] | undefined;
}

/** The schema of all items; undefined when there is none, or one per index. */
export function itemsOf(props: JsonSchemaProps): JsonSchemaProps | undefined {
  return Array.isArray(props.items) ? undefined : (props.items as JsonSchemaProps | undefined);
}

/** The schema of `additionalProperties`; undefined when absent or boolean. */
export function valuesOf(props: JsonSchemaProps): JsonSchemaProps | undefined {
  const { additionalProperties } = props;
  return typeof additionalProperties === "object" ? additionalProperties : undefined;
}

export function propertiesOf(props: JsonSchemaProps): readonly (readonly [string, JsonSchemaProps])[] {
  return Object.entries(props.properties ?? {});
}

/** An own property, never one inherited from `Object.prototype`. */
export function propertyOf(props: JsonSchemaProps, name: string): JsonSchemaProps | undefined {
  return getMember(props.properties, name);
}

/** Whether the schema or any subschema satisfies the predicate. */
export function someSubschema(props: JsonSchemaProps, predicate: (props: JsonSchemaProps) => boolean): boolean {
  const inPart = (part: JsonSchemaProps | undefined): boolean => part !== undefined && someSubschema(part, predicate);
  const inParts = (parts: readonly JsonSchemaProps[] | undefined): boolean => parts?.some(inPart) === true;
  const inMap = (map: Readonly<Record<string, JsonSchemaProps>> | undefined): boolean =>
    map !== undefined && Object.values(map).some(inPart);
  return (
    predicate(props) ||
    inPart(itemsOf(props)) ||
    inPart(valuesOf(props)) ||
    inPart(props.not) ||
    inParts(props.allOf) ||
    inParts(props.anyOf) ||
    inParts(props.oneOf) ||
    (Array.isArray(props.items) && inParts(props.items)) ||
    inMap(props.properties) ||
    inMap(props.definitions) ||
    inMap(props.patternProperties)
  );
}
