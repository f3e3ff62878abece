/** Lists in YAML and indented JSON, encoded item by item with the same bytes as the whole. */

import { parseExact, stringifyExact } from "../../schema/json/exact-numbers.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import { yamlChunks } from "../../schema/yaml/yaml-chunks.ts";
import type { TypeMeta } from "./type-meta.ts";

/** Ends a step of the computation. */
const STEP = Buffer.alloc(0);

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
  for (const item of items) {
    yield STEP;
    const value: unknown = parseExact(Buffer.from(item).toString());
    yield STEP;
    for (const chunk of yamlChunks([value])) yield Buffer.from(chunk);
  }
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
    yield STEP;
    const value: unknown = parseExact(Buffer.from(item).toString());
    yield STEP;
    const text = stringifyExact(value, 2).replaceAll("\n", "\n    ");
    yield STEP;
    yield Buffer.from(`${separator}${escapeHtml(text)}`);
    separator = ",\n    ";
  }
  yield Buffer.from("\n  ]\n}");
}
