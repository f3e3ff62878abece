/** The OpenAPI documents of the served kinds, created on first request and again after the kinds have changed. */

import { createHash, type Hash } from "node:crypto";
import { type Describe, loadDescriptions } from "../../api/descriptions/descriptions.ts";
import { type GroupAliases, groupNames, listedGroupNames } from "../../api/group-aliases.ts";
import type { Kind } from "../../api/kind.ts";
import type { Scheme } from "../../api/scheme.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { negotiate } from "../../http/negotiate.ts";
import { bytesResponse } from "../../http/respond.ts";
import { runInSlices, type Steps } from "../../std/async/steps.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import type { Clock } from "../../std/time/clock.ts";
import { OpenApiDocument } from "./document.ts";
import { encodeGnostic } from "./gnostic-v2.ts";
import { encodeGnosticV3 } from "./gnostic-v3.ts";
import { encodeJson, writeJson } from "./json-steps.ts";
import { mergePart, type OpenApiPart } from "./merge-part.ts";
import { createOpenApiContext } from "./openapi-context.ts";

/** How long clients may cache a document whose hash is in the URL. */
const YEAR_MS = 365 * 24 * 60 * 60 * 1000;
const JSON_TYPE = "application/json";
const V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const V3_PROTOBUF = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

/** The maximum size of the cached bodies of v3 documents: beyond it, only the newest stay. */
const V3_BYTES_MAX = 16 * 2 ** 20;

interface CachedDocument {
  /** The kinds of the document; other kinds need another one. */
  readonly kinds: readonly Kind[];
  /** Of a v3 document in the list of documents, which needs no bodies. */
  etag?: Promise<string>;
  encoded?: Promise<EncodedDocument> | undefined;
  /** The size of the body of a v3 document. */
  bytes?: number | undefined;
}

interface EncodedDocument {
  readonly body: Buffer;
  readonly etag: string;
  /** The document in protobuf, for v3. */
  readonly protobuf: () => Uint8Array;
}

/** The documents of extension servers. */
export interface ExtensionDocuments {
  /** OpenAPI v2; an etag changes with the content. */
  v2(): Promise<readonly (OpenApiPart & { readonly etag: string })[]>;
  /** The URLs of OpenAPI v3 documents by path: `apis/GROUP/VERSION`. */
  v3(): Promise<ReadonlyMap<string, string>>;
}

/** The content of a v3 document: a group version, a group, the list of groups, or the version of the server. */
type DocumentPart =
  | { readonly type: "version"; readonly group: string; readonly version: string }
  | { readonly type: "group"; readonly group: string }
  | { readonly type: "groups" }
  | { readonly type: "product" };

export class OpenApi {
  readonly #scheme: Scheme;
  readonly #aliases: GroupAliases;
  readonly #gitVersion: string;
  readonly #clock: Clock;
  readonly #documents = new Map<string, CachedDocument>();
  readonly #extensions: ExtensionDocuments | undefined;
  readonly #hasEnums: boolean;
  #descriptionsPromise: Promise<Describe> | undefined;

  constructor(
    scheme: Scheme,
    aliases: GroupAliases,
    gitVersion: string,
    clock: Clock,
    extensions?: ExtensionDocuments | undefined,
    hasEnums = true,
  ) {
    this.#extensions = extensions;
    this.#hasEnums = hasEnums;
    this.#clock = clock;
    this.#scheme = scheme;
    this.#aliases = aliases;
    this.#gitVersion = gitVersion;
    // Without this the documents of deleted definitions would stay until the next request.
    scheme.onChange(() => this.#prune());
  }

  /** `/openapi/v2`, in JSON or in protobuf for older clients. */
  async v2(accept: string | undefined, ifNoneMatch: string | undefined): Promise<HttpResponse> {
    const mediaType = negotiateDocument(accept, V2_PROTOBUF);
    if (mediaType === undefined) return emptyResponse(406);
    const describe = await this.#descriptions();
    const kinds = this.#scheme.kinds().map((kind) => this.#scheme.published(kind));
    const specs = (await this.#extensions?.v2()) ?? [];
    const key = `v2 ${mediaType}${specs.map(({ etag }) => ` ${etag}`).join("")}`;
    const document = this.#document(key, kinds);
    document.encoded ??= this.#droppedOnError(document, encodeDocument(this.#v2(kinds, specs, describe, mediaType)));
    this.#dropOtherMerges(mediaType, key);
    const encoded = await document.encoded;
    return documentResponse(mediaType, encoded.body, encoded.etag, ifNoneMatch);
  }

  /** `/openapi/v3`: the URLs of the documents of all group versions. */
  async root(ifNoneMatch: string | undefined): Promise<HttpResponse> {
    const describe = await this.#descriptions();
    const paths: Record<string, { readonly serverRelativeURL: string }> = {};
    const slice = new TimeSlice();
    for (const [path, part] of this.#parts(true)) {
      const etag = await this.#v3Etag(path, part, describe);
      const hash = encodeURIComponent(etag.slice(1, -1));
      paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` };
      await slice.yield();
    }
    for (const [path, url] of (await this.#extensions?.v3()) ?? []) paths[path] = { serverRelativeURL: url };
    const body = Buffer.from(JSON.stringify({ paths }));
    return documentResponse(JSON_TYPE, body, etagOf(body), ifNoneMatch);
  }

  /**
   * `path` is `api/v1` or `apis/GROUP/VERSION`. A request with an outdated hash is redirected to the current one; a
   * response to the current hash may be cached for a year.
   */
  async v3(path: string, hash: string | null, headers: HttpRequest["headers"]): Promise<HttpResponse> {
    const part = this.#parts().get(path);
    if (part === undefined) return emptyResponse(404);
    const mediaType = negotiateDocument(headers.accept, V3_PROTOBUF);
    if (mediaType === undefined) return emptyResponse(406);
    const encoded = await this.#v3(path, part, await this.#descriptions());
    const { etag } = encoded;
    const current = etag.slice(1, -1);
    if (hash !== null && hash !== "" && hash !== current) {
      const location = `/openapi/v3/${path}?hash=${encodeURIComponent(current)}`;
      return { status: 301, headers: { "content-type": mediaType, etag, location }, body: new Uint8Array() };
    }
    const body = mediaType === JSON_TYPE ? encoded.body : encoded.protobuf();
    const response = documentResponse(mediaType, body, etag, headers["if-none-match"]);
    if (hash !== current) return response;
    const expires = new Date(this.#clock.now() + YEAR_MS).toUTCString();
    return { ...response, headers: { ...response.headers, "cache-control": "public, immutable", expires } };
  }

  /** Drops the documents with former ones of extension servers. */
  #dropOtherMerges(mediaType: string, key: string): void {
    for (const other of this.#documents.keys()) {
      if (other !== key && other.startsWith(`v2 ${mediaType}`)) this.#documents.delete(other);
    }
  }

  #descriptions(): Promise<Describe> {
    this.#descriptionsPromise ??= loadDescriptions();
    return this.#descriptionsPromise;
  }

  *#v2(kinds: readonly Kind[], specs: readonly OpenApiPart[], describe: Describe, mediaType: string): Steps<Buffer> {
    const namesOf = (kind: Pick<Kind, "group" | "definedGroup">) => listedGroupNames(kind, this.#aliases);
    const context = { ...createOpenApiContext(kinds, namesOf, describe), hasEnums: this.#hasEnums };
    yield;
    const document = new OpenApiDocument(2, context);
    document.addGroup("");
    document.addGroups();
    document.addProduct();
    for (const part of this.#parts(true).values()) {
      if (part.type === "version") document.addKinds(this.#kindsOf(part), part.group, part.version);
      else if (part.type === "group" && part.group !== "") document.addGroup(part.group);
      yield;
    }
    const json = { paths: {}, definitions: {}, ...document.json(this.#gitVersion) };
    yield;
    for (const spec of specs) {
      yield* mergePart(json, spec);
    }
    return mediaType === V2_PROTOBUF ? Buffer.from(encodeGnostic(json)) : yield* encodeJson(json, 2);
  }

  async #v3(path: string, part: DocumentPart, describe: Describe): Promise<EncodedDocument> {
    const kinds = this.#kindsOf(part);
    const key = `v3 ${path}`;
    const document = this.#document(key, kinds);
    if (document.encoded !== undefined) return await document.encoded;
    const json = this.#v3Document(part, kinds, describe);
    document.encoded = this.#droppedOnError(document, encodeDocument(encodeSteps(json, 3)));
    const encoded = await document.encoded;
    document.bytes = encoded.body.length;
    if (this.#documents.get(key) === document) this.#keepNewest(key, document);
    return encoded;
  }

  /** Computes the ETag without a body, since a list of hundreds of documents is read for one of them. */
  async #v3Etag(path: string, part: DocumentPart, describe: Describe): Promise<string> {
    const kinds = this.#kindsOf(part);
    const document = this.#document(`v3 ${path}`, kinds);
    if (document.encoded !== undefined) return (await document.encoded).etag;
    const json = this.#v3Document(part, kinds, describe);
    document.etag ??= this.#droppedOnError(document, Promise.resolve(runInSlices(hashSteps(json, 3))));
    return await document.etag;
  }

  *#v3Document(part: DocumentPart, kinds: readonly Kind[], describe: Describe): Steps<object> {
    const namesOf = (kind: Pick<Kind, "group" | "definedGroup">): readonly string[] => this.#groupNames(kind, part);
    const isCustom = kinds.length > 0 && kinds.every(({ custom }) => custom === true);
    const published = isCustom ? kinds : this.#scheme.kinds();
    const context = { ...createOpenApiContext(published, namesOf, describe), hasEnums: this.#hasEnums };
    const document = new OpenApiDocument(3, context);
    yield;
    if (part.type === "version") document.addKinds(kinds, part.group, part.version);
    else if (part.type === "group") document.addGroup(part.group);
    else if (part.type === "groups") document.addGroups();
    else document.addProduct();
    yield;
    return document.json(this.#gitVersion);
  }

  /**
   * The names of a group in the document: of the document's domain, or the listed names when the document's group has
   * no alias.
   */
  #groupNames(kind: Pick<Kind, "group" | "definedGroup">, part: DocumentPart): readonly string[] {
    const names = groupNames(kind.group, this.#aliases);
    const own = "group" in part ? groupDomain(part.group) : undefined;
    if (own === undefined) return listedGroupNames(kind, this.#aliases);
    return names.length === 1 ? names : names.filter((name) => groupDomain(name) === own);
  }

  /** Those of a group version; other documents contain none. */
  #kindsOf(part: DocumentPart): readonly Kind[] {
    if (part.type !== "version") return [];
    const { group, version } = part;
    return this.#scheme
      .kinds()
      .filter((kind) => kind.version === version && groupNames(kind.group, this.#aliases).includes(group))
      .map((kind) => this.#scheme.published(kind));
  }

  /** By path under `/openapi/v3/`. `listed`: without those that only the other name of their group has. */
  #parts(listed = false): ReadonlyMap<string, DocumentPart> {
    const parts = new Map<string, DocumentPart>([
      ["api", { type: "group", group: "" }],
      ["apis", { type: "groups" }],
      ["version", { type: "product" }],
    ]);
    for (const kind of this.#scheme.kinds()) {
      const { version } = kind;
      for (const group of listed ? listedGroupNames(kind, this.#aliases) : groupNames(kind.group, this.#aliases)) {
        if (group !== "") parts.set(`apis/${group}`, { type: "group", group });
        parts.set(group === "" ? `api/${version}` : `apis/${group}/${version}`, { type: "version", group, version });
      }
    }
    return parts;
  }

  /** The cached document of these kinds, or a new one, which replaces that of other kinds. */
  #document(key: string, kinds: readonly Kind[]): CachedDocument {
    const cached = this.#documents.get(key);
    if (cached !== undefined && isSameKinds(cached.kinds, kinds)) return cached;
    const document: CachedDocument = { kinds };
    this.#documents.set(key, document);
    return document;
  }

  #droppedOnError<T>(document: CachedDocument, result: Promise<T>): Promise<T> {
    result.catch(() => {
      for (const [key, other] of this.#documents) if (other === document) this.#documents.delete(key);
    });
    return result;
  }

  #keepNewest(key: string, document: CachedDocument): void {
    this.#documents.delete(key);
    this.#documents.set(key, document);
    let bytes = 0;
    for (const other of [...this.#documents.values()].reverse()) {
      bytes += other.bytes ?? 0;
      if (bytes <= V3_BYTES_MAX || other.bytes === undefined || other === document) continue;
      other.encoded = undefined;
      other.bytes = undefined;
    }
  }

  /** Drops the documents of kinds and groups that are not served any more. */
  #prune(): void {
    if (this.#documents.size === 0) return;
    const kinds = new Set(this.#scheme.kinds());
    const keys = new Set([...this.#parts().keys()].map((path) => `v3 ${path}`));
    for (const [key, document] of this.#documents) {
      const isServed = (key.startsWith("v2 ") || keys.has(key)) && document.kinds.every((kind) => kinds.has(kind));
      if (!isServed) this.#documents.delete(key);
    }
  }
}

async function encodeDocument(steps: Steps<Buffer>): Promise<EncodedDocument> {
  const body = await runInSlices(steps);
  let protobuf: Uint8Array | undefined;
  return { body, etag: etagOf(body), protobuf: () => (protobuf ??= encodeGnosticV3(JSON.parse(body.toString()))) };
}

function* encodeSteps(document: Steps<object>, depth: number): Steps<Buffer> {
  return yield* encodeJson(yield* document, depth);
}

/** The ETag of the value as JSON. */
function* hashSteps(document: Steps<object>, depth: number): Steps<string> {
  const hash = createHash("sha512");
  yield* writeJson(yield* document, depth, (chunk) => void hash.update(chunk));
  return quotedHash(hash);
}

function isSameKinds(a: readonly Kind[], b: readonly Kind[]): boolean {
  return a.length === b.length && a.every((kind, index) => kind === b[index]);
}

/** `k8s.io` of `node.k8s.io`; undefined for `apps`, which has no alias. */
function groupDomain(group: string): string | undefined {
  return /(?:k8s|svc)\.io$/.exec(group)?.[0];
}

/** Undefined when no media type is acceptable. Clients send the protobuf type with an invalid `@`. */
function negotiateDocument(accept: string | undefined, protobuf: string): string | undefined {
  const offers = [{ mediaType: JSON_TYPE }, { mediaType: protobuf }];
  return negotiate(accept?.replaceAll("@v1.0", ".v1.0"), offers)?.offer.mediaType;
}

/** An error without a body, as in Kubernetes. */
function emptyResponse(status: number): HttpResponse {
  return { status, headers: {}, body: new Uint8Array() };
}

function etagOf(body: Uint8Array): string {
  return quotedHash(createHash("sha512").update(body));
}

function quotedHash(hash: Hash): string {
  return `"${hash.digest("hex").toUpperCase()}"`;
}

function documentResponse(
  mediaType: string,
  body: Uint8Array,
  etag: string,
  ifNoneMatch: string | undefined,
): HttpResponse {
  const headers = { etag, vary: "Accept-Encoding, Accept" };
  if (ifNoneMatch === etag) return { status: 304, headers, body: new Uint8Array() };
  return bytesResponse(200, mediaType, body, headers);
}
