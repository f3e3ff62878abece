/** Encodes the tables that `kubectl get` prints: one row for each object, with the cells of the kind's columns. */

import { columnDescriptions } from "../../api/columns/descriptions.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { invalid } from "../../api/status.ts";
import { stringify } from "../../schema/json/encode.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { notSupported, renderFieldError } from "../../schema/validation/field-error.ts";
import { partialObjectMetadata } from "./partial-metadata.ts";
import type { ListMetadata } from "./protobuf.ts";
import { type TypeMeta, typeMetaPrefix } from "./type-meta.ts";

export interface TableOptions {
  /** `meta.k8s.io/v1` */
  readonly metaVersion: string;
  readonly includeObject: "None" | "Metadata" | "Object";
  /** Milliseconds; ages are relative to this time. */
  readonly now: number;
  /** Whether to include column definitions: only in the first table of a watch. */
  readonly headers: boolean;
}

export interface Row<T> {
  readonly object: T;
  /** JSON without kind and apiVersion. */
  readonly bytes: Buffer;
}

export function parseIncludeObject(query: URLSearchParams): TableOptions["includeObject"] {
  const value = query.get("includeObject") ?? "";
  if (value === "") return "Metadata";
  if (value === "None" || value === "Metadata" || value === "Object") return value;
  const error = notSupported("includeObject", value, ["", "Metadata", "None", "Object"]);
  throw invalid({ group: "meta.k8s.io", resource: "TableOptions", name: "" }, [error], renderFieldError);
}

export function encodeTable<T extends ApiObject>(
  kind: Kind<T>,
  typeMeta: TypeMeta,
  metadata: Partial<ListMetadata>,
  rows: readonly Row<T>[],
  options: TableOptions,
): Buffer {
  return Buffer.concat([...tableChunks(kind, typeMeta, metadata, rows, options)]);
}

/** The same in parts, one for each row. */
export function* tableChunks<T extends ApiObject>(
  kind: Kind<T>,
  typeMeta: TypeMeta,
  metadata: Partial<ListMetadata>,
  rows: readonly Row<T>[],
  options: TableOptions,
): Generator<Uint8Array> {
  const head = { kind: "Table", apiVersion: options.metaVersion, metadata };
  const definitions = options.headers ? columnDefinitions(kind) : null;
  yield Buffer.from(`${JSON.stringify(head).slice(0, -1)},"columnDefinitions":${JSON.stringify(definitions)},"rows":[`);
  for (const [i, row] of sortRows(kind, rows).entries()) {
    yield Buffer.from(`${i === 0 ? "" : ","}${encodeRow(kind, typeMeta, row, options)}`);
  }
  yield TABLE_END;
}

const TABLE_END = Buffer.from("]}");

function sortRows<T extends ApiObject>(kind: Kind<T>, rows: readonly Row<T>[]): readonly Row<T>[] {
  if (kind.compareRows === undefined) return rows;
  return rows.toSorted((a, b) => kind.compareRows?.(a.object, b.object) ?? 0);
}

function columnDefinitions<T extends ApiObject>(kind: Kind<T>) {
  const texts = kind.custom === true ? undefined : columnDescriptions[kind.kind];
  return kind.columns.map(({ name, type, format = "", description = "", priority }) => {
    return { name, type, format, description: texts?.[name] ?? description, priority };
  });
}

function encodeRow<T extends ApiObject>(kind: Kind<T>, typeMeta: TypeMeta, row: Row<T>, options: TableOptions): string {
  const cells = kind.columns.map((column) => column.cell(row.object, options.now));
  const conditions = kind.rowConditions?.(row.object) ?? [];
  const conditionsJson = conditions.length === 0 ? "" : `"conditions":${escapeHtml(JSON.stringify(conditions))},`;
  const rowObject = encodeRowObject(typeMeta, row, options);
  return `{"cells":${escapeHtml(stringifyExact(cells))},${conditionsJson}"object":${rowObject}}`;
}

function encodeRowObject<T extends ApiObject>(typeMeta: TypeMeta, row: Row<T>, options: TableOptions): string {
  switch (options.includeObject) {
    case "None":
      return "null";
    case "Object":
      return typeMetaPrefix(typeMeta).toString() + row.bytes.subarray(1).toString();
    case "Metadata":
      return encodePartialMetadata(row.object, options.metaVersion);
    default:
      return options.includeObject satisfies never;
  }
}

/** `PartialObjectMetadata` as JSON. */
export function encodePartialMetadata(object: ApiObject, metaVersion: string): string {
  const head = JSON.stringify({ kind: "PartialObjectMetadata", apiVersion: metaVersion }).slice(0, -1);
  return `${head},${stringify(partialObjectMetadata, { metadata: object.metadata }).slice(1)}`;
}
