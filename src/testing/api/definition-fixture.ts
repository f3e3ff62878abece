/** For tests: definitions of custom resources as short as they can be. */

import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import {
  type CustomResourceDefinition,
  type CustomResourceDefinitionVersion,
  customResourceDefinition,
} from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { decode } from "../../schema/decode/decode.ts";
import type { JsonSchemaProps } from "../../schema/structural/json-schema-props.ts";

/** Widgets of `example.com/v1`, with the properties given. */
export function widgets(
  properties: Readonly<Record<string, JsonSchemaProps>>,
  version: Partial<CustomResourceDefinitionVersion> = {},
): CustomResourceDefinition {
  return definitionOf({ schema: { openAPIV3Schema: { type: "object", properties } }, ...version });
}

/** As it stands after its defaults; what is wrong with it is for the test to find. */
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
