/** Responses in the negotiated representation. JSON responses join the cached bytes of objects. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { HttpResponse } from "../../http/message.ts";
import { bytesResponse } from "../../http/respond.ts";
import type { ListPage } from "../../registry/list.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { encodeYaml } from "../../schema/yaml/yaml.ts";
import { internalType } from "../handlers/body-kind.ts";
import { encodeCborList, encodeCborObject, jsonToCbor } from "./cbor.ts";
import { joinChunks } from "./join-chunks.ts";
import {
  encodeProtobufList,
  encodeProtobufMetadata,
  encodeProtobufMetadataList,
  encodeProtobufObject,
  type ListMetadata,
} from "./protobuf.ts";
import type { Representation } from "./representation.ts";
import { wrongMetadataKind } from "./status-response.ts";
import { encodePartialMetadata, encodeTable, type Row, type TableOptions } from "./table.ts";
import { encodeObject, type TypeMeta, typeMetaPrefix } from "./type-meta.ts";

const NEWLINE = Buffer.from("\n");
const COMMA = Buffer.from(",");
const LIST_END = Buffer.from("]}\n");

export interface ResponseOptions {
  readonly typeMeta: TypeMeta;
  readonly representation: Representation;
  readonly table: Omit<TableOptions, "metaVersion" | "headers">;
}

/** Throws a 406 when PartialObjectMetadataList is requested for an object, or PartialObjectMetadata for a list. */
function checkMetadataKind(kind: Kind, { representation }: ResponseOptions, isList: boolean): void {
  if (representation.as !== "metadata" || representation.isListMetadata === isList) return;
  const custom = isList ? "unstructured.UnstructuredList" : "unstructured.Unstructured";
  const type = kind.custom === true ? custom : internalType(kind.group, isList ? kind.listKind : kind.kind);
  throw wrongMetadataKind(isList ? "PartialObjectMetadata" : "PartialObjectMetadataList", type);
}

/** `row.bytes` is the encoded object, from the cache when it is cached. */
export function objectResponse<T extends ApiObject>(
  status: number,
  kind: Kind<T>,
  row: Row<T>,
  responseOptions: ResponseOptions,
): HttpResponse {
  const { typeMeta, representation } = responseOptions;
  checkMetadataKind(kind as Kind, responseOptions, false);
  if (representation.as === "table") {
    const metadata = { resourceVersion: row.object.metadata?.resourceVersion ?? "" };
    return encodeJson(status, representation, [
      encodeTable(kind, typeMeta, metadata, [row], tableOptions(responseOptions)),
      NEWLINE,
    ]);
  }
  if (representation.as === "metadata" && representation.format === "protobuf") {
    const { mediaType, magic, metaVersion } = representation;
    return bytesResponse(status, mediaType, encodeProtobufMetadata(magic, metaVersion, row.object));
  }
  if (representation.as === "metadata") {
    return encodeJson(status, representation, [
      Buffer.from(`${encodePartialMetadata(row.object, representation.metaVersion)}\n`),
    ]);
  }
  if (representation.format === "protobuf") {
    return bytesResponse(
      status,
      representation.mediaType,
      encodeProtobufObject(representation.magic, typeMeta, kind, row.object),
    );
  }
  if (representation.format === "cbor") {
    return bytesResponse(status, representation.mediaType, encodeCborObject(kind, typeMeta, row.object));
  }
  return encodeJson(status, representation, [typeMetaPrefix(typeMeta), row.bytes.subarray(1), NEWLINE]);
}

/** The response of a write, whose object may not be in the cache yet. */
export function writtenResponse<T extends ApiObject>(
  status: number,
  kind: Kind<T>,
  object: T,
  responseOptions: ResponseOptions,
): HttpResponse {
  return objectResponse(status, kind, { object, bytes: encodeObject(kind, object) }, responseOptions);
}

export function listResponse<T extends ApiObject>(
  kind: Kind<T>,
  page: ListPage<T>,
  responseOptions: ResponseOptions,
): HttpResponse {
  const { representation } = responseOptions;
  checkMetadataKind(kind as Kind, responseOptions, true);
  const metadata: ListMetadata = {
    resourceVersion: String(page.revision),
    ...(page.continue === undefined ? {} : { continue: page.continue }),
    ...(page.remaining === undefined ? {} : { remainingItemCount: page.remaining }),
  };
  const listTypeMeta = { kind: kind.listKind, apiVersion: responseOptions.typeMeta.apiVersion };
  if (representation.as === "table") {
    return encodeJson(200, representation, [
      encodeTable(kind, responseOptions.typeMeta, metadata, page.items, tableOptions(responseOptions)),
      NEWLINE,
    ]);
  }
  if (representation.as === "metadata" && representation.format === "protobuf") {
    const { mediaType, magic, metaVersion } = representation;
    const objects = page.items.map(({ object }) => object);
    return bytesResponse(200, mediaType, encodeProtobufMetadataList(magic, metaVersion, metadata, objects));
  }
  if (representation.as === "metadata") {
    const head = { kind: "PartialObjectMetadataList", apiVersion: representation.metaVersion, metadata };
    const items = page.items.map(({ object }) => encodePartialMetadata(object, representation.metaVersion));
    // Kubernetes encodes an empty list of metadata as null.
    const list = items.length === 0 ? "null" : `[${items.join(",")}]`;
    const text = `${JSON.stringify(head).slice(0, -1)},"items":${list}}\n`;
    return encodeJson(200, representation, [Buffer.from(text)]);
  }
  if (representation.format === "protobuf") {
    const objects = page.items.map(({ object }) => object);
    const body = encodeProtobufList(representation.magic, listTypeMeta, kind, metadata, objects);
    return bytesResponse(200, representation.mediaType, body);
  }
  if (representation.format === "cbor") {
    const objects = page.items.map(({ object }) => object);
    const body = encodeCborList(kind, listTypeMeta, responseOptions.typeMeta, metadata, objects);
    return bytesResponse(200, representation.mediaType, body);
  }
  // Lists of custom resources have an empty `continue`, and items with apiVersion and kind.
  const listMetadata = kind.custom === true ? { continue: "", ...metadata } : metadata;
  const chunks: Uint8Array[] = [
    typeMetaPrefix(listTypeMeta),
    Buffer.from(`"metadata":${JSON.stringify(listMetadata)},"items":[`),
  ];
  for (const [index, item] of page.items.entries()) {
    if (index > 0) chunks.push(COMMA);
    if (kind.custom === true) chunks.push(typeMetaPrefix(responseOptions.typeMeta), item.bytes.subarray(1));
    else chunks.push(item.bytes);
  }
  chunks.push(LIST_END);
  return encodeJson(200, representation, chunks);
}

function tableOptions(responseOptions: ResponseOptions): TableOptions {
  return { ...responseOptions.table, metaVersion: responseOptions.representation.metaVersion, headers: true };
}

/** Encodes JSON chunks as the body: unchanged, indented, or converted to YAML or CBOR. */
function encodeJson(status: number, representation: Representation, chunks: readonly Uint8Array[]): HttpResponse {
  if (representation.format === "cbor") {
    return bytesResponse(status, representation.mediaType, jsonToCbor(Buffer.concat(chunks)));
  }
  if (representation.format === "yaml") {
    const value = parseJson(Buffer.concat(chunks)).value;
    return bytesResponse(status, representation.mediaType, Buffer.from(encodeYaml(value)));
  }
  if (representation.pretty) {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString());
    return bytesResponse(
      status,
      representation.mediaType,
      Buffer.from(escapeHtml(JSON.stringify(value, undefined, 2))),
    );
  }
  return bytesResponse(status, representation.mediaType, joinChunks(chunks));
}
