import type { ApiObject, Kind } from "../api/kind.ts";
import { formatApiVersion, kubernetesGroup } from "../api/scheme.ts";
import { StatusError } from "../api/status.ts";
import type { HttpResponse } from "../http/message.ts";
import { makeRequest } from "../http/request.ts";
import { readValues } from "../http/value-stream.ts";
import { decodeCbor } from "../schema/cbor/decode.ts";
import { encodeCbor, encodeCborValue } from "../schema/cbor/encode.ts";
import { readCborSequence } from "../schema/cbor/sequence.ts";
import { decode } from "../schema/decode/decode.ts";
import { encodeJson } from "../schema/json/encode.ts";
import { stringifyExact } from "../schema/json/exact-numbers.ts";
import { encodeProtobuf } from "../schema/protobuf/encode.ts";
import { encodeEnvelope } from "../schema/protobuf/envelope.ts";
import { LARGE_BYTES, TimeSlice } from "../std/async/time-slice.ts";
import type {
  Client,
  ClientWatchEvent,
  DeleteQuery,
  ListedResource,
  ListQuery,
  ListResult,
  ObjectName,
  PatchType,
  Transport,
  WatchQuery,
} from "./client.ts";
import { readLines } from "./lines.ts";
import { acceptHeader, isMetadataOnly } from "./metadata-only.ts";
import { hasMediaType, parseStatusError, readAll, readError, readValue } from "./response.ts";

export interface ClientOptions {
  readonly transport: Transport;
  /**
   * Falls back to the Kubernetes name of a group (`coordination.k8s.io`) if the server serves no other; true when
   * absent.
   */
  readonly aliases?: boolean | undefined;
  /** Headers of every request, such as `authorization` for in-process components. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The header `user-agent`; the transport's when absent. */
  readonly userAgent?: string | undefined;
  /** The content type of request bodies, until the server rejects it; JSON when absent. */
  readonly contentType?: ContentType | undefined;
  /** The gate WatchListClient; see `Client`. */
  readonly streamsLists?: boolean | undefined;
  /** Only JSON when absent. */
  readonly cbor?: CborUse | undefined;
}

/** `accept`: responses are in CBOR where the server supports it; `prefer`: bodies that would be JSON are, too. */
export type CborUse = "accept" | "prefer";

/** By the gates ClientsAllowCBOR and ClientsPreferCBOR: the second has no effect without the first. */
export function cborUseOf(isAllowed: boolean, isPreferred: boolean): CborUse | undefined {
  if (!isAllowed) return undefined;
  return isPreferred ? "prefer" : "accept";
}

export type ContentType = (typeof CONTENT_TYPES)[number];

/** In order of preference: after a 415 the next is used. */
const CONTENT_TYPES = [
  "application/vnd.svc.protobuf",
  "application/vnd.kubernetes.protobuf",
  "application/json",
] as const;

export function createClient(options: ClientOptions): Client {
  return new ApiClient(options);
}

/** Of an extension server, which may respond with anything. */
const RESOURCES_BYTES_MAX = 2 * 2 ** 20;

const CBOR = "application/cbor";
type BodyType = ContentType | typeof CBOR;

/** The media types of a body that has no schema. */
interface UntypedBody {
  readonly json: string;
  readonly cbor?: string;
}

const UNTYPED: UntypedBody = { json: "application/json", cbor: CBOR };

const PATCH_TYPES: Readonly<Record<PatchType, UntypedBody>> = {
  json: { json: "application/json-patch+json" },
  merge: { json: "application/merge-patch+json" },
  strategic: { json: "application/strategic-merge-patch+json" },
  apply: { json: "application/apply-patch+yaml", cbor: "application/apply-patch+cbor" },
};

interface ApiRequest {
  readonly method: string;
  readonly kind: Kind;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly untyped?: UntypedBody | undefined;
  /** Encodes the body with the group name and in the type that the server accepts. */
  readonly body?: ((apiVersion: string, type: BodyType) => Uint8Array) | undefined;
  /** The response is a list of objects. */
  readonly isList?: boolean;
  readonly signal?: AbortSignal | undefined;
}

class ApiClient implements Client {
  readonly streamsLists: boolean;
  readonly #options: ClientOptions;
  readonly #headers: Readonly<Record<string, string>>;
  /** The names of groups that the server serves, by svc.io name. */
  readonly #groupNames = new Map<string, string>();
  #contentType: ContentType;
  #sendsCbor: boolean;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#contentType = options.contentType ?? "application/json";
    this.#sendsCbor = options.cbor === "prefer";
    this.streamsLists = options.streamsLists ?? false;
    const agent = options.userAgent === undefined ? {} : { "user-agent": options.userAgent };
    this.#headers = { ...agent, ...options.headers };
  }

  async get<T extends ApiObject>(kind: Kind<T>, name: ObjectName, signal?: AbortSignal): Promise<T> {
    const call = { method: "GET", kind: kind as Kind, namespace: name.namespace, name: name.name, signal };
    return this.#object(kind, call);
  }

  async list<T extends ApiObject>(kind: Kind<T>, query: ListQuery = {}, signal?: AbortSignal): Promise<ListResult<T>> {
    const { namespace, ...rest } = query;
    const call = { method: "GET", kind: kind as Kind, namespace, query: rest, isList: true, signal };
    const response = await this.#send(call);
    const values = readValues(response.body);
    if (values !== undefined) return await readListValues(values, localObjectReader(kind));
    const value = (await readValue(response)) as RawList | undefined;
    const items = Array.isArray(value?.items) ? value.items : [];
    return toListResult(value, items, (item) => decodeObject(kind, item));
  }

  async create<T extends ApiObject>(kind: Kind<T>, object: T, signal?: AbortSignal): Promise<T> {
    const namespace = object.metadata?.namespace;
    return this.#object(kind, {
      method: "POST",
      kind: kind as Kind,
      namespace,
      body: bodyEncoder(kind, object),
      signal,
    });
  }

  async update<T extends ApiObject>(kind: Kind<T>, object: T, signal?: AbortSignal): Promise<T> {
    return this.#put(kind, object, undefined, signal);
  }

  async updateStatus<T extends ApiObject>(kind: Kind<T>, object: T, signal?: AbortSignal): Promise<T> {
    return this.#put(kind, object, "status", signal);
  }

  async updateSubresource<T extends ApiObject>(
    kind: Kind<T>,
    object: T,
    subresource: string,
    signal?: AbortSignal,
  ): Promise<T> {
    return this.#put(kind, object, subresource, signal);
  }

  async getSubresource<T extends ApiObject>(
    kind: Kind,
    { namespace, name }: ObjectName,
    subresource: string,
    result: Kind<T>,
    options: {
      readonly query?: Readonly<Record<string, string | undefined>>;
      readonly signal?: AbortSignal | undefined;
    } = {},
  ): Promise<T> {
    return this.#object(result, { method: "GET", kind, namespace, name, subresource, ...options });
  }

  async replaceSubresource<T extends ApiObject>(
    kind: Kind,
    subresource: string,
    object: T,
    result: Kind<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const { name, namespace } = object.metadata ?? {};
    const encode = bodyEncoder(result, object);
    const apiVersion = formatApiVersion(result.group, result.version);
    return this.#object(result, {
      method: "PUT",
      kind,
      namespace,
      name,
      subresource,
      body: (_parentVersion, type) => encode(apiVersion, type),
      signal,
    });
  }

  async patch<T extends ApiObject>(
    kind: Kind<T>,
    name: ObjectName,
    type: PatchType,
    patch: unknown,
    options: {
      readonly subresource?: string;
      readonly query?: { readonly fieldManager: string; readonly force?: boolean };
      readonly signal?: AbortSignal;
    } = {},
  ): Promise<T> {
    return this.#object(kind, {
      method: "PATCH",
      kind: kind as Kind,
      namespace: name.namespace,
      name: name.name,
      untyped: PATCH_TYPES[type],
      body: untypedEncoder(patch),
      ...options,
    });
  }

  async delete<T extends ApiObject>(
    kind: Kind<T>,
    name: ObjectName,
    query: DeleteQuery = {},
    signal?: AbortSignal,
  ): Promise<void> {
    const options = { kind: "DeleteOptions", apiVersion: "v1", ...query };
    const call = {
      method: "DELETE",
      kind: kind as Kind,
      namespace: name.namespace,
      name: name.name,
      untyped: UNTYPED,
      body: untypedEncoder(options),
      signal,
    };
    await readAll((await this.#send(call)).body);
  }

  async deleteCollection(kind: Kind, { namespace, ...query }: ListQuery, signal?: AbortSignal): Promise<void> {
    await readAll((await this.#send({ method: "DELETE", kind, namespace, query, signal })).body);
  }

  async createSubresource(
    kind: Kind,
    name: ObjectName,
    subresource: string,
    body: unknown,
    signal?: AbortSignal,
  ): Promise<unknown> {
    return readValue(
      await this.#send({
        method: "POST",
        kind,
        namespace: name.namespace,
        name: name.name,
        subresource,
        untyped: UNTYPED,
        body: untypedEncoder(body),
        signal,
      }),
    );
  }

  async listResources(groupVersion: string, signal?: AbortSignal): Promise<readonly ListedResource[]> {
    const headers = { accept: "application/json", ...this.#headers };
    const path = `/apis/${groupVersion}`;
    const response = await this.#options.transport(makeRequest({ path, headers, signal }));
    if (response.status !== 200) throw await readError(response);
    const body = await readAll(response.body, RESOURCES_BYTES_MAX);
    const { resources } = JSON.parse(body.toString()) as { readonly resources?: readonly Partial<ListedResource>[] };
    return (resources ?? []).map(({ name = "", kind = "", namespaced = false, verbs = [] }) => {
      return { name, kind, namespaced, verbs };
    });
  }

  async *watch<T extends ApiObject>(
    kind: Kind<T>,
    query: WatchQuery,
    signal: AbortSignal,
  ): AsyncGenerator<ClientWatchEvent<T>> {
    const { namespace, ...rest } = query;
    const call = { method: "GET", kind: kind as Kind, namespace, query: { ...rest, watch: true }, signal };
    const response = await this.#send(call);
    const values = readValues(response.body);
    if (values === undefined) {
      const slice = new TimeSlice();
      for await (const { event, bytes } of readEvents(response)) {
        // To parse a large object, to decode it and to handle it are steps with turns of their own.
        if (bytes > LARGE_BYTES) await slice.end();
        const decoded = toWatchEvent(event, (value) => decodeObject(kind, value));
        if (bytes > LARGE_BYTES) await slice.end();
        yield decoded;
      }
      return;
    }
    const own = localObjectReader(kind);
    for await (const value of values) yield toWatchEvent(value as RawEvent, own);
  }

  #put<T extends ApiObject>(
    kind: Kind<T>,
    object: T,
    subresource: string | undefined,
    signal?: AbortSignal,
  ): Promise<T> {
    const { name, namespace } = object.metadata ?? {};
    if (name === undefined) throw new Error(`Cannot update a ${kind.kind}: it has no name`);
    return this.#object(kind, {
      method: "PUT",
      kind: kind as Kind,
      namespace,
      name,
      subresource,
      body: bodyEncoder(kind, object),
      signal,
    });
  }

  async #object<T extends ApiObject>(kind: Kind<T>, call: ApiRequest): Promise<T> {
    return decodeObject(kind, await readValue(await this.#send(call)));
  }

  /** Resolves with a 2xx response. Retries with the other name of the group if the server does not serve the first. */
  async #send(call: ApiRequest): Promise<HttpResponse> {
    const { group } = call.kind;
    const name = this.#groupNames.get(group);
    const response = await this.#transmit(call, name ?? group);
    if (response.status >= 200 && response.status <= 299) return response;
    const error = await readError(response);
    if (!canMeanMissingGroup(response.status) || name !== undefined || !this.#hasAlias(group)) throw error;
    const served = await this.#discover(call.kind, call.signal);
    if (served === group) throw error;
    const retried = await this.#transmit(call, served);
    if (retried.status >= 200 && retried.status <= 299) return retried;
    throw await readError(retried);
  }

  #hasAlias(group: string): boolean {
    return this.#options.aliases !== false && kubernetesGroup(group) !== group;
  }

  /** Finds the served name of a group: the answer can also mean a missing object or missing permission. */
  async #discover(kind: Kind, signal: AbortSignal | undefined): Promise<string> {
    for (const group of [kind.group, kubernetesGroup(kind.group)]) {
      const path = `/apis/${group}/${kind.version}`;
      const headers = { accept: "application/json", ...this.#headers };
      const response = await this.#options.transport(makeRequest({ path, headers, signal }));
      await readAll(response.body);
      if (response.status === 200) {
        this.#groupNames.set(kind.group, group);
        return group;
      }
      if (!canMeanMissingGroup(response.status)) break;
    }
    return kind.group;
  }

  /** Sends the body again with the next content type when the server rejects the current one. */
  async #transmit(call: ApiRequest, group: string): Promise<HttpResponse> {
    const type = this.#bodyType(call);
    const response = await this.#transmitAs(call, group, type);
    if (response.status !== 415 || call.body === undefined || !this.#avoid(type, call)) return response;
    await readAll(response.body);
    return await this.#transmit(call, group);
  }

  #bodyType({ kind, untyped }: ApiRequest): BodyType {
    const isTyped = untyped === undefined && kind.schema.unstructured !== true;
    const type = isTyped ? this.#contentType : "application/json";
    const mayBeCbor = this.#sendsCbor && (untyped === undefined || untyped.cbor !== undefined);
    return type === "application/json" && mayBeCbor ? CBOR : type;
  }

  /** Later bodies have another type. False if there is none for this one. */
  #avoid(type: BodyType, { untyped }: ApiRequest): boolean {
    if (type === CBOR) {
      this.#sendsCbor = false;
      return true;
    }
    const next = CONTENT_TYPES[CONTENT_TYPES.indexOf(type) + 1];
    if (next === undefined || untyped !== undefined) return false;
    this.#contentType = next;
    return true;
  }

  #transmitAs(call: ApiRequest, group: string, type: BodyType): Promise<HttpResponse> {
    const { kind, untyped, isList } = call;
    const body = call.body?.(formatApiVersion(group, kind.version), type);
    const mediaType = (type === CBOR ? untyped?.cbor : untyped?.json) ?? type;
    const contentType = body === undefined ? {} : { "content-type": mediaType };
    const accept = acceptHeader(kind, isList ? "list" : "object", this.#options.cbor !== undefined);
    return this.#options.transport(
      makeRequest({
        method: call.method,
        path: buildPath(call, group),
        query: buildQuery(call.query ?? {}),
        headers: { accept, ...this.#headers, ...contentType },
        body,
        signal: call.signal,
      }),
    );
  }
}

interface RawList {
  readonly metadata?: { readonly resourceVersion?: unknown; readonly continue?: unknown };
  readonly items?: unknown;
}

function buildPath(call: ApiRequest, group: string): string {
  const { kind, namespace, name, subresource } = call;
  const parts = group === "" ? ["", "api", kind.version] : ["", "apis", group, kind.version];
  if (kind.namespaced && namespace !== undefined && namespace !== "") parts.push("namespaces", segment(namespace));
  parts.push(kind.plural);
  if (name !== undefined) parts.push(segment(name));
  if (subresource !== undefined) parts.push(subresource);
  return parts.join("/");
}

/** Encodes a name, which must not change the path. */
function segment(name: string): string {
  if (name === "" || name === "." || name === "..") throw new Error(`Cannot use ${JSON.stringify(name)} as a name`);
  return encodeURIComponent(name);
}

function buildQuery(query: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") params.set(name, String(value));
  }
  return params.toString();
}

function bodyEncoder<T extends ApiObject>(kind: Kind<T>, object: T): NonNullable<ApiRequest["body"]> {
  return (apiVersion, bodyType) => {
    const type = { kind: kind.kind, apiVersion };
    if (bodyType === "application/json") return encodeJson(kind.schema, { ...object, ...type });
    if (bodyType === CBOR) return encodeCbor(kind.schema, { ...object, ...type });
    const magic = bodyType === "application/vnd.svc.protobuf" ? "svc" : "k8s";
    return encodeEnvelope(magic, type, encodeProtobuf(kind.schema, object));
  };
}

function untypedEncoder(value: unknown): NonNullable<ApiRequest["body"]> {
  return (_apiVersion, type) => (type === CBOR ? encodeCborValue(value) : Buffer.from(stringifyExact(value)));
}

/** Objects have their kind and the apiVersion of this program, which list items lack on the wire. */
function decodeObject<T extends ApiObject>(kind: Kind<T>, value: unknown): T {
  const decoded = decode(kind.schema, value, { unknownFields: "drop" });
  const first = decoded.errors[0];
  if (first !== undefined) {
    throw new StatusError(500, "InternalError", `Cannot decode a ${kind.kind} of the server: ${first.message}`);
  }
  return { ...(decoded.value as T), kind: kind.kind, apiVersion: formatApiVersion(kind.group, kind.version) };
}

/** Objects of a server in this process are those of its cache: they lack only kind and apiVersion. */
function localObjectReader<T extends ApiObject>(kind: Kind<T>): (value: unknown) => T {
  const type = { kind: kind.kind, apiVersion: formatApiVersion(kind.group, kind.version) };
  if (!isMetadataOnly(kind)) return (value) => ({ ...(value as T), ...type });
  return (value) => ({ metadata: (value as T).metadata, ...type }) as T;
}

function toListResult<T>(
  list: RawList | undefined,
  items: readonly unknown[],
  read: (value: unknown) => T,
): ListResult<T> {
  const next = text(list?.metadata?.continue);
  return {
    items: items.map(read),
    resourceVersion: text(list?.metadata?.resourceVersion),
    ...(next === "" ? {} : { continue: next }),
  };
}

/** Of a server in this process: the head of the list, then its objects. */
async function readListValues<T>(values: AsyncIterable<unknown>, read: (value: unknown) => T): Promise<ListResult<T>> {
  let head: RawList | undefined;
  const items: unknown[] = [];
  for await (const value of values) {
    if (head === undefined) head = value as RawList;
    else items.push(value);
  }
  return toListResult(head, items, read);
}

/** The annotation of the bookmark after the objects that a watch begins with. */
/** Servers authorize requests before they look for the group: clients with few permissions get a 403. */
function canMeanMissingGroup(status: number): boolean {
  return status === 404 || status === 403;
}

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

interface RawBookmark {
  readonly metadata?: {
    readonly resourceVersion?: unknown;
    readonly annotations?: Readonly<Record<string, unknown>>;
  };
}

interface RawEvent {
  readonly type?: unknown;
  readonly object?: unknown;
}

interface ReceivedEvent {
  readonly event: RawEvent;
  /** Approximately. */
  readonly bytes: number;
}

async function* readEvents(response: HttpResponse): AsyncGenerator<ReceivedEvent> {
  const body = toAsyncIterable(response.body);
  if (!hasMediaType(response, "application/cbor-seq")) {
    for await (const line of readLines(body)) yield { event: parseEvent(() => JSON.parse(line)), bytes: line.length };
    return;
  }
  for await (const item of readCborSequence(body))
    yield { event: parseEvent(() => decodeCbor(item)), bytes: item.length };
}

function parseEvent(parse: () => unknown): RawEvent {
  try {
    return parse() as RawEvent;
  } catch (cause) {
    throw new StatusError(500, "InternalError", `Cannot read a watch event: ${(cause as Error).message}`, { cause });
  }
}

function toWatchEvent<T>({ type, object }: RawEvent, read: (object: unknown) => T): ClientWatchEvent<T> {
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, object: read(object) };
    case "BOOKMARK": {
      const metadata = (object as RawBookmark | null)?.metadata;
      const initialEventsEnd = metadata?.annotations?.[INITIAL_EVENTS_END] === "true";
      return { type, resourceVersion: text(metadata?.resourceVersion), ...(initialEventsEnd && { initialEventsEnd }) };
    }
    case "ERROR":
      throw parseStatusError(object) ?? new StatusError(500, "InternalError", "the watch failed without a reason");
    default:
      throw new StatusError(500, "InternalError", `Cannot read a watch event of type ${JSON.stringify(type)}`);
  }
}

function toAsyncIterable(body: HttpResponse["body"]): AsyncIterable<Uint8Array> {
  if (Symbol.asyncIterator in body) return body;
  return iterate(body instanceof Uint8Array ? [body] : body);
}

async function* iterate(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
