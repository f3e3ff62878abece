/** Answers in the representation a client asked for. Plain JSON is cached bytes put together. */
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { HttpResponse } from "../../http/message.ts";
import { bytesResponse } from "../../http/respond.ts";
import type { ListPage } from "../../registry/list.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { encodeYaml } from "../../schema/yaml/yaml.ts";
import { internalType } from "../handlers/body-kind.ts";
import { cborList, cborObject, cborOf } from "./cbor.ts";
import { joined } from "./join-chunks.ts";
import { type ListMetadata, protobufList, protobufMetadata, protobufMetadataList, protobufObject } from "./protobuf.ts";
import type { Representation } from "./representation.ts";
import { otherForm } from "./status-response.ts";
import { partialMetadata, type Row, type TableOptions, table } from "./table.ts";
import { encodeObject, headOf, type Identity } from "./type-meta.ts";

const NEWLINE = Buffer.from("\n");
const COMMA = Buffer.from(",");
const LIST_END = Buffer.from("]}\n");

export interface Answering {
  readonly identity: Identity;
  readonly representation: Representation;
  readonly table: Omit<TableOptions, "metaVersion" | "headers">;
}

/** Throws a 406 when metadata was asked for in the form of a list, and this is none; or the other way round. */
function checkForm(kind: Kind, { representation }: Answering, isList: boolean): void {
  if (representation.as !== "metadata" || representation.ofList === isList) return;
  const custom = isList ? "unstructured.UnstructuredList" : "unstructured.Unstructured";
  const type = kind.custom === true ? custom : internalType(kind.group, isList ? kind.listKind : kind.kind);
  throw otherForm(isList ? "PartialObjectMetadata" : "PartialObjectMetadataList", type);
}

/** `row.bytes` are the cache's where the object is cached. */
export function objectResponse<T extends ApiObject>(
  status: number,
  kind: Kind<T>,
  row: Row<T>,
  answering: Answering,
): HttpResponse {
  const { identity, representation } = answering;
  checkForm(kind as unknown as Kind, answering, false);
  if (representation.as === "table") {
    const metadata = { resourceVersion: row.object.metadata?.resourceVersion ?? "" };
    return encoded(status, representation, [table(kind, identity, metadata, [row], tableOptions(answering)), NEWLINE]);
  }
  if (representation.as === "metadata" && representation.format === "protobuf") {
    const { mediaType, magic, metaVersion } = representation;
    return bytesResponse(status, mediaType, protobufMetadata(magic, metaVersion, row.object));
  }
  if (representation.as === "metadata") {
    return encoded(status, representation, [
      Buffer.from(`${partialMetadata(row.object, representation.metaVersion)}\n`),
    ]);
  }
  if (representation.format === "protobuf") {
    return bytesResponse(
      status,
      representation.mediaType,
      protobufObject(representation.magic, identity, kind, row.object),
    );
  }
  if (representation.format === "cbor") {
    return bytesResponse(status, representation.mediaType, cborObject(kind, identity, row.object));
  }
  return encoded(status, representation, [headOf(identity), row.bytes.subarray(1), NEWLINE]);
}

/** For objects just written, which the cache may not have yet. */
export function writtenResponse<T extends ApiObject>(
  status: number,
  kind: Kind<T>,
  object: T,
  answering: Answering,
): HttpResponse {
  return objectResponse(status, kind, { object, bytes: encodeObject(kind, object) }, answering);
}

export function listResponse<T extends ApiObject>(
  kind: Kind<T>,
  page: ListPage<T>,
  answering: Answering,
): HttpResponse {
  const { representation } = answering;
  checkForm(kind as unknown as Kind, answering, true);
  const metadata: ListMetadata = {
    resourceVersion: String(page.revision),
    ...(page.continue === undefined ? {} : { continue: page.continue }),
    ...(page.remaining === undefined ? {} : { remainingItemCount: page.remaining }),
  };
  const identity = { kind: kind.listKind, apiVersion: answering.identity.apiVersion };
  if (representation.as === "table") {
    return encoded(200, representation, [
      table(kind, answering.identity, metadata, page.items, tableOptions(answering)),
      NEWLINE,
    ]);
  }
  if (representation.as === "metadata" && representation.format === "protobuf") {
    const { mediaType, magic, metaVersion } = representation;
    const objects = page.items.map(({ object }) => object);
    return bytesResponse(200, mediaType, protobufMetadataList(magic, metaVersion, metadata, objects));
  }
  if (representation.as === "metadata") {
    const head = { kind: "PartialObjectMetadataList", apiVersion: representation.metaVersion, metadata };
    const items = page.items.map(({ object }) => partialMetadata(object, representation.metaVersion));
    // Kubernetes writes an empty list of metadata so.
    const list = items.length === 0 ? "null" : `[${items.join(",")}]`;
    const text = `${JSON.stringify(head).slice(0, -1)},"items":${list}}\n`;
    return encoded(200, representation, [Buffer.from(text)]);
  }
  if (representation.format === "protobuf") {
    const objects = page.items.map(({ object }) => object);
    const body = protobufList(representation.magic, identity, kind, metadata, objects);
    return bytesResponse(200, representation.mediaType, body);
  }
  if (representation.format === "cbor") {
    const objects = page.items.map(({ object }) => object);
    const body = cborList(kind, identity, answering.identity, metadata, objects);
    return bytesResponse(200, representation.mediaType, body);
  }
  // Lists of custom resources say even that there is no more, and what each item is.
  const told = kind.custom === true ? { continue: "", ...metadata } : metadata;
  const pieces: Uint8Array[] = [headOf(identity), Buffer.from(`"metadata":${JSON.stringify(told)},"items":[`)];
  for (const [index, item] of page.items.entries()) {
    if (index > 0) pieces.push(COMMA);
    if (kind.custom === true) pieces.push(headOf(answering.identity), item.bytes.subarray(1));
    else pieces.push(item.bytes);
  }
  pieces.push(LIST_END);
  return encoded(200, representation, pieces);
}

function tableOptions(answering: Answering): TableOptions {
  return { ...answering.table, metaVersion: answering.representation.metaVersion, headers: true };
}

/** From pieces of JSON to the body; people who want it indented, or in YAML, get it made for them. */
function encoded(status: number, representation: Representation, pieces: readonly Uint8Array[]): HttpResponse {
  if (representation.format === "cbor") {
    return bytesResponse(status, representation.mediaType, cborOf(Buffer.concat(pieces)));
  }
  if (representation.format === "yaml") {
    const value = parseJson(Buffer.concat(pieces)).value;
    return bytesResponse(status, representation.mediaType, Buffer.from(encodeYaml(value)));
  }
  if (representation.pretty) {
    const value: unknown = JSON.parse(Buffer.concat(pieces).toString());
    return bytesResponse(
      status,
      representation.mediaType,
      Buffer.from(escapeHtml(JSON.stringify(value, undefined, 2))),
    );
  }
  return bytesResponse(status, representation.mediaType, joined(pieces));
}
