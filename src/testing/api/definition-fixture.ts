/** Minimal CustomResourceDefinitions for tests. */

import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionVersion,
  customResourceDefinition,
} from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { decode } from "../../schema/decode/decode.ts";
import type { JsonSchemaProps } from "../../schema/structural/json-schema-props.ts";

/** A definition of Widgets in `example.com/v1` with these properties. */
export function widgets(
  properties: Readonly<Record<string, JsonSchemaProps>>,
  version: Partial<CustomResourceDefinitionVersion> = {},
): CustomResourceDefinition {
  return definitionOf({ schema: { openAPIV3Schema: { type: "object", properties } }, ...version });
}

/** A definition with these versions, with defaults applied but not validated. */
export function definitionOf(
  ...versions: readonly Partial<CustomResourceDefinitionVersion>[]
): CustomResourceDefinition {
  const { value } = decode(customResourceDefinition, {
    metadata: { name: "widgets.example.com" },
    spec: {
      group: "example.com",
      names: { plural: "widgets", kind: "Widget" },
      scope: "Namespaced",
      versions: versions.map((version, i) => ({ name: `v${i + 1}`, served: true, storage: i === 0, ...version })),
    },
  });
  return customResourceDefinitionKind.strategy.setDefaults?.(value) ?? value;
}
