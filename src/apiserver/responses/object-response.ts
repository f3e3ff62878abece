/** Responses in the negotiated representation. JSON responses join the cached bytes of objects. */
import { internalType } from "../../api/group-version-kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { RequestAudit } from "../../audit/request-audit.ts";
import { HttpError } from "../../http/http-error.ts";
import { JoinedChunks } from "../../http/joined-chunks.ts";
import type { HttpResponse } from "../../http/message.ts";
import { bytesResponse } from "../../http/respond.ts";
import { bodyLength } from "../../http/server/write-body.ts";
import type { ListPage } from "../../registry/list.ts";
import { parseExact, stringifyExact } from "../../schema/json/exact-numbers.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import { yamlChunks } from "../../schema/yaml/yaml-chunks.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { inLayer } from "../../tracing/span.ts";
import { encodeCborList, encodeCborObject, jsonToCbor } from "./cbor.ts";
import { indentedListChunks, yamlListChunks } from "./converted-list.ts";
import {
  encodeProtobufList,
  encodeProtobufMetadata,
  encodeProtobufMetadataList,
  encodeProtobufObject,
  type ListMetadata,
  protobufListParts,
} from "./protobuf.ts";
import type { Representation } from "./representation.ts";
import { wrongMetadataKind } from "./status-response.ts";
import { encodePartialMetadata, encodeTable, type Row, type TableOptions, tableChunks } from "./table.ts";
import { encodeObject, type TypeMeta, typeMetaPrefix } from "./type-meta.ts";
import { pageWithoutManagedFields, rowWithoutManagedFields } from "./without-managed-fields.ts";

const NEWLINE = Buffer.from("\n");
const COMMA = Buffer.from(",");
const LIST_END = Buffer.from("]}\n");

export interface ResponseOptions {
  readonly typeMeta: TypeMeta;
  readonly representation: Representation;
  readonly table: Omit<TableOptions, "metaVersion" | "headers">;
  /** Set when the response is recorded. */
  readonly audit?: RequestAudit | undefined;
  /** Whether objects are encoded without their managed fields. */
  readonly omitManagedFields?: boolean;
}

/** Encodes a response; if it is recorded, as JSON as well. */
function encodeMeasured(
  { audit, ...options }: ResponseOptions,
  encode: (options: ResponseOptions) => HttpResponse,
): HttpResponse {
  const { representation } = options;
  const layer = representation.as === "object" ? "serialize" : "transform";
  if (audit === undefined) return inLayer(layer, () => encode(options));
  const asJson = { ...representation, format: "json" as const, pretty: false, mediaType: "application/json" };
  const { omitManagedFields } = audit.decision;
  // Encoded when the event is written, after the response.
  audit.setResponse(() => readJsonBody(encode({ ...options, representation: asJson, omitManagedFields }).body));
  return inLayer(layer, () => encode(options));
}

/** Undefined for a body that is too large to be recorded. */
async function readJsonBody(body: HttpResponse["body"]): Promise<string | undefined> {
  if (body instanceof Uint8Array) return Buffer.from(body).toString();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > RECORDED_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The largest response that is recorded, since an event is written as a whole. */
const RECORDED_BYTES_MAX = 10 * 2 ** 20;

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
  return encodeMeasured(responseOptions, (options) => encodeObjectResponse(status, kind, row, options));
}

function encodeObjectResponse<T extends ApiObject>(
  status: number,
  kind: Kind<T>,
  found: Row<T>,
  responseOptions: ResponseOptions,
): HttpResponse {
  const { typeMeta, representation, omitManagedFields } = responseOptions;
  const row = omitManagedFields === true ? rowWithoutManagedFields(kind, found) : found;
  checkMetadataKind(kind as Kind, responseOptions, false);
  if (representation.as === "table") {
    const { resourceVersion } = row.object.metadata ?? {};
    const metadata = resourceVersion ? { resourceVersion } : {};
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
  const bytes = inLayer("serialize", () => encodeObject(kind, object));
  return objectResponse(status, kind, { object, bytes }, responseOptions);
}

export function listResponse<T extends ApiObject>(
  kind: Kind<T>,
  page: ListPage<T>,
  responseOptions: ResponseOptions,
): HttpResponse {
  return encodeMeasured(responseOptions, (options) => encodeListResponse(kind, page, options));
}

function encodeListResponse<T extends ApiObject>(
  kind: Kind<T>,
  found: ListPage<T>,
  responseOptions: ResponseOptions,
): HttpResponse {
  const { representation, omitManagedFields } = responseOptions;
  const page = omitManagedFields === true ? pageWithoutManagedFields(kind, found) : found;
  checkMetadataKind(kind as Kind, responseOptions, true);
  const metadata: ListMetadata = {
    resourceVersion: String(page.revision),
    ...(page.continue === undefined ? {} : { continue: page.continue }),
    ...(page.remaining === undefined ? {} : { remainingItemCount: page.remaining }),
  };
  const listTypeMeta = { kind: kind.listKind, apiVersion: responseOptions.typeMeta.apiVersion };
  const listBytes = page.items.reduce((bytes, { size }) => bytes + size, 0);
  if (representation.as === "table") {
    const rows = tableChunks(kind, responseOptions.typeMeta, metadata, page.items, tableOptions(responseOptions));
    if (representation.format === "json" && !representation.pretty && isLongTable(kind, page, listBytes)) {
      const body = new JoinedChunks(withNewline(rows));
      return { ...bytesResponse(200, representation.mediaType, body), finite: true };
    }
    return encodeJson(200, representation, [...withNewline(rows)]);
  }
  if (representation.as === "metadata" && representation.format === "protobuf") {
    const { mediaType, magic, metaVersion } = representation;
    return bytesResponse(200, mediaType, encodeProtobufMetadataList(magic, metaVersion, metadata, page.items));
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
    const { magic, mediaType } = representation;
    if (listBytes >= STREAMED_BYTES_MIN) {
      const body = new JoinedChunks(protobufListParts(magic, listTypeMeta, kind, metadata, page.items));
      return { ...bytesResponse(200, mediaType, body), finite: true };
    }
    const objects = page.items.map(({ object }) => object);
    return bytesResponse(200, mediaType, encodeProtobufList(magic, listTypeMeta, kind, metadata, objects));
  }
  const isJson = representation.format === "json" && !representation.pretty;
  if (representation.format === "cbor") {
    if (listBytes > CONVERTED_BYTES_MAX) throw tooLargeToConvert(listBytes);
    const objects = page.items.map(({ object }) => object);
    const body = encodeCborList(kind, listTypeMeta, responseOptions.typeMeta, metadata, objects);
    return bytesResponse(200, representation.mediaType, body);
  }
  // Lists of custom resources have an empty `continue`, and items with apiVersion and kind.
  const listMetadata = kind.custom === true ? { continue: "", ...metadata } : metadata;
  const itemTypeMeta = kind.custom === true ? responseOptions.typeMeta : undefined;
  if (!isJson && listBytes >= STREAMED_BYTES_MIN) {
    const listHead = { ...listTypeMeta, metadata: listMetadata };
    const items = encodeItems(page.items, itemTypeMeta, listBytes);
    const convert = representation.format === "yaml" ? yamlListChunks : indentedListChunks;
    const body = new JoinedChunks(convert(listHead, items));
    return { ...bytesResponse(200, representation.mediaType, body), finite: true };
  }
  const head = Buffer.from(`"metadata":${JSON.stringify(listMetadata)},"items":[`);
  const chunks = jsonListChunks([typeMetaPrefix(listTypeMeta), head], page.items, itemTypeMeta, listBytes);
  if (isJson && listBytes >= STREAMED_BYTES_MIN) {
    const body = new JoinedChunks(chunks, () => listValues({ metadata: listMetadata }, page.items));
    return { ...bytesResponse(200, representation.mediaType, body), finite: true };
  }
  return encodeJson(200, representation, [...chunks]);
}

function isLongTable<T extends ApiObject>(kind: Kind<T>, page: ListPage<T>, listBytes: number): boolean {
  return listBytes >= STREAMED_BYTES_MIN || page.items.length * kind.columns.length > CELLS_MAX;
}

/** A cell of a custom resource can take as long as encoding a hundred others. */
const CELLS_MAX = 1000;

function* withNewline(chunks: Iterable<Uint8Array>): Generator<Uint8Array> {
  yield* chunks;
  yield NEWLINE;
}

/** Stored bytes from which a list is encoded while it is sent, so that it is never in memory as a whole. */
const STREAMED_BYTES_MIN = 2 ** 17;
/** The largest list in CBOR, which needs all of it in memory. */
const CONVERTED_BYTES_MAX = 32 * 2 ** 20;

/** `itemTypeMeta` is set for custom resources, whose items have apiVersion and kind. */
function* jsonListChunks<T extends ApiObject>(
  head: readonly Uint8Array[],
  items: ListPage<T>["items"],
  itemTypeMeta: TypeMeta | undefined,
  listBytes: number,
): Generator<Uint8Array> {
  yield* head;
  let isFirst = true;
  for (const item of items) {
    if (!isFirst) yield COMMA;
    isFirst = false;
    const bytes = item.encodeForList(listBytes);
    if (itemTypeMeta === undefined) yield bytes;
    else {
      yield typeMetaPrefix(itemTypeMeta);
      yield bytes.subarray(1);
    }
  }
  yield LIST_END;
}

/** For a reader in the same process: the head of the list, then its objects without kind and apiVersion. */
async function* listValues<T extends ApiObject>(head: object, items: ListPage<T>["items"]): AsyncGenerator<unknown> {
  yield head;
  const slice = new TimeSlice();
  for (const item of items) {
    yield item.object;
    if (slice.isOver) await slice.end();
  }
}

function* encodeItems<T extends ApiObject>(
  items: ListPage<T>["items"],
  itemTypeMeta: TypeMeta | undefined,
  listBytes: number,
): Generator<Uint8Array> {
  for (const item of items) {
    const bytes = item.encodeForList(listBytes);
    yield itemTypeMeta === undefined ? bytes : Buffer.concat([typeMetaPrefix(itemTypeMeta), bytes.subarray(1)]);
  }
}

function tooLargeToConvert(listBytes: number): HttpError {
  const what = `the list has ${listBytes} bytes as stored`;
  const how = "request pages with limit, or JSON or protobuf";
  return new HttpError(413, "RequestEntityTooLarge", `${what}, which is too large for this representation: ${how}`);
}

function tableOptions(responseOptions: ResponseOptions): TableOptions {
  return { ...responseOptions.table, metaVersion: responseOptions.representation.metaVersion, headers: true };
}

function* yamlBuffers(value: object): Generator<Uint8Array> {
  for (const chunk of yamlChunks(value)) yield Buffer.from(chunk);
}

/** Encodes JSON chunks as the body: unchanged, indented, or converted to YAML or CBOR. */
function encodeJson(status: number, representation: Representation, chunks: readonly Uint8Array[]): HttpResponse {
  if (representation.format === "cbor") {
    return bytesResponse(status, representation.mediaType, jsonToCbor(Buffer.concat(chunks)));
  }
  if (representation.format === "yaml") {
    const bytes = Buffer.concat(chunks);
    const { value } = parseJson(bytes);
    if (bytes.length < STREAMED_BYTES_MIN) {
      return bytesResponse(status, representation.mediaType, Buffer.from(encodeYaml(value)));
    }
    const body = new JoinedChunks(yamlBuffers(value as object));
    return { ...bytesResponse(status, representation.mediaType, body), finite: true };
  }
  if (representation.pretty) {
    const value: unknown = parseExact(Buffer.concat(chunks).toString());
    return bytesResponse(status, representation.mediaType, Buffer.from(escapeHtml(stringifyExact(value, 2))));
  }
  const length = bodyLength(chunks) ?? 0;
  const body = length <= SMALL_BYTES ? [Buffer.concat(chunks, length)] : chunks;
  return bytesResponse(status, representation.mediaType, body);
}

/** One write to a connection. */
const SMALL_BYTES = 32 * 1024;
