/** Lists in YAML and indented JSON, encoded item by item with the same bytes as the whole. */

import { parseExact, stringifyExact } from "../../schema/json/exact-numbers.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { encodeYaml } from "../../schema/yaml/yaml.ts";
import type { TypeMeta } from "./type-meta.ts";

interface ListHead extends TypeMeta {
  readonly metadata: object;
}

/** `items`: each as JSON. There is at least one. */
export function* yamlListChunks(
  { kind, apiVersion, metadata }: ListHead,
  items: Iterable<Uint8Array>,
): Generator<Uint8Array> {
  // Members are in alphabetical order.
  yield Buffer.from(`${encodeYaml({ apiVersion })}items:\n`);
  for (const item of items) yield Buffer.from(encodeYaml([parseJson(item).value]));
  yield Buffer.from(encodeYaml({ kind, metadata }));
}

/** `items`: each as JSON. There is at least one. */
export function* indentedListChunks(
  { kind, apiVersion, metadata }: ListHead,
  items: Iterable<Uint8Array>,
): Generator<Uint8Array> {
  const head = JSON.stringify({ kind, apiVersion, metadata }, undefined, 2);
  yield Buffer.from(`${escapeHtml(head.slice(0, -"\n}".length))},\n  "items": [\n    `);
  let separator = "";
  for (const item of items) {
    const value: unknown = parseExact(Buffer.from(item).toString());
    const text = stringifyExact(value, 2).replaceAll("\n", "\n    ");
    yield Buffer.from(`${separator}${escapeHtml(text)}`);
    separator = ",\n    ";
  }
  yield Buffer.from("\n  ]\n}");
}
