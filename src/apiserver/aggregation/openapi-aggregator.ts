/**
 * The OpenAPI documents of extension servers. They are requested with the first request of a client and cached; once
 * they are older than a minute, a request gets the cached ones and starts a conditional request for newer ones.
 */
import { createHash } from "node:crypto";
import type { UserInfo } from "../../auth/user.ts";
import { parseJsonInSteps } from "../../schema/json/parse.ts";
import { countValues } from "../../schema/value/check-values.ts";
import { storedValuesMax, valuesMax } from "../../schema/value/limits.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { runInSlices, type Steps } from "../../std/async/steps.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { writeJson } from "../openapi/json-steps.ts";
import type { JsonObject, OpenApiPart } from "../openapi/merge-part.ts";
import type { DocumentRequest } from "./discovery-manager.ts";
import type { ExtensionResponse } from "./extension-request.ts";
import type { AggregatorMetrics } from "./metrics.ts";
import { convertToV3, selectGroupVersion } from "./openapi-spec.ts";
import type { ExtensionApi } from "./registered-api.ts";

export interface OpenApiAggregatorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: AggregatorMetrics;
  /** The APIs of extension servers, by descending priority. */
  readonly apis: () => readonly ExtensionApi[];
  readonly request: (api: ExtensionApi, request: DocumentRequest, signal: AbortSignal) => Promise<ExtensionResponse>;
  readonly signal: AbortSignal;
}

/** An OpenAPI v2 document of a group version; the etag changes with its content. */
export interface ExtensionSpec extends OpenApiPart {
  readonly etag: string;
}

/** Where the OpenAPI v3 document of a group version is. */
interface V3Location {
  /** The hash in the URL of the extension server's document, or of the converted document. */
  readonly url: string;
  /** The server has OpenAPI v2 only. */
  readonly isConverted: boolean;
}

interface Cached<T> {
  value: T | undefined;
  /** On the monotonic clock. */
  readAt: number;
  reading: Promise<void> | undefined;
}

interface CachedDocuments {
  readonly v2: Cached<ExtensionSpec>;
  readonly v3: Cached<V3Location>;
  bytes: number;
  values: number;
  serverEtag: string | undefined;
}

const REFRESH_MS = 60_000;
const TIMEOUT_MS = 10_000;
/** How long a client waits for documents that are not cached. */
const FIRST_READ_MS = 5000;
/** Longer documents are left out. */
const DOCUMENT_BYTES_MAX = 4 * 2 ** 20;
/** All cached documents; further ones are left out. */
const CACHED_BYTES_MAX = 16 * 2 ** 20;
const CACHED_VALUES_MAX = 500_000;
const USER: UserInfo = { name: "system:aggregator", uid: "", groups: [], extra: {} };

export class OpenApiAggregator {
  readonly #deps: OpenApiAggregatorDeps;
  /** By the name of the API service. */
  readonly #documents = new Map<string, CachedDocuments>();

  constructor(deps: OpenApiAggregatorDeps) {
    this.#deps = deps;
  }

  /** The OpenAPI v2 documents of available extension servers, by descending priority. */
  async v2(): Promise<readonly ExtensionSpec[]> {
    return await this.#read("v2", (api) => this.#readV2(api));
  }

  /** The URLs of OpenAPI v3 documents, by path: `apis/GROUP/VERSION`. */
  async v3(): Promise<ReadonlyMap<string, string>> {
    const locations = await this.#read("v3", (api) => this.#readV3(api));
    return new Map(locations.map(({ url }) => [url.slice("/openapi/v3/".length).split("?")[0] ?? "", url]));
  }

  /** The converted OpenAPI v3 document of an API whose server has OpenAPI v2 only. */
  convertedV3(api: ExtensionApi): Steps<JsonObject> | undefined {
    const { v2, v3 } = this.#documents.get(api.name) ?? {};
    return v3?.value?.isConverted === true && v2?.value !== undefined ? convertToV3(v2.value) : undefined;
  }

  /** Drops the documents of a deleted or changed API service. */
  forget(name: string, reason: "update" | "delete"): void {
    if (this.#documents.delete(name)) this.#deps.metrics.countRegeneration(name, reason, 0);
  }

  async #read<V extends "v2" | "v3">(
    version: V,
    read: (api: ExtensionApi) => Promise<void>,
  ): Promise<readonly NonNullable<CachedDocuments[V]["value"]>[]> {
    const { clock, log, signal } = this.#deps;
    const available = this.#deps.apis().filter(({ isAvailable }) => isAvailable);
    const first: Promise<void>[] = [];
    for (const api of available) {
      const cached = this.#cachedOf(api)[version];
      const isFirst = cached.readAt === Number.NEGATIVE_INFINITY;
      if (cached.reading === undefined && clock.monotonic() - cached.readAt >= REFRESH_MS) {
        cached.reading = read(api)
          .catch((error: unknown) => {
            const [name, reason] = [api.name, String(error)];
            if (!signal.aborted) log.v(2)?.info("Cannot read an OpenAPI document", { name, version, error: reason });
          })
          .finally(() => {
            cached.readAt = clock.monotonic();
            cached.reading = undefined;
          });
      }
      if (isFirst && cached.reading !== undefined) first.push(cached.reading);
    }
    if (first.length > 0) await this.#waitBriefly(Promise.all(first));
    return available.flatMap((api) => {
      const value = this.#documents.get(api.name)?.[version].value as CachedDocuments[V]["value"];
      return value === undefined ? [] : [value];
    });
  }

  async #waitBriefly(reading: Promise<unknown>): Promise<void> {
    const { clock } = this.#deps;
    const limit = new AbortController();
    await Promise.race([reading, clock.sleep(FIRST_READ_MS, limit.signal).catch(() => {})]);
    limit.abort();
  }

  #cachedOf({ name }: ExtensionApi): CachedDocuments {
    let documents = this.#documents.get(name);
    if (documents === undefined) {
      const readAt = Number.NEGATIVE_INFINITY;
      const empty = { value: undefined, readAt, reading: undefined };
      documents = { v2: { ...empty }, v3: { ...empty }, bytes: 0, values: 0, serverEtag: undefined };
      this.#documents.set(name, documents);
    }
    return documents;
  }

  async #readV2(api: ExtensionApi): Promise<void> {
    const { clock, metrics } = this.#deps;
    const documents = this.#cachedOf(api);
    const began = clock.monotonic();
    const { serverEtag } = documents;
    const response = await this.#request(
      api,
      "/openapi/v2",
      serverEtag === undefined ? {} : { "if-none-match": serverEtag },
    );
    if (response.status === 304) return;
    if (response.status === 404) {
      documents.v2.value = undefined;
      [documents.bytes, documents.values] = [0, 0];
      return;
    }
    if (response.status !== 200) throw new Error(`failed to retrieve openAPI spec, http error: ${response.status}`);
    const { spec, bytes } = await runInSlices(readSpec(response.body, api));
    documents.serverEtag = response.headers.etag;
    if (documents.v2.value?.etag === spec.etag) return;
    const reason = documents.v2.value === undefined ? "add" : "update";
    this.#store(documents, spec, bytes);
    metrics.countRegeneration(api.name, reason, (clock.monotonic() - began) / 1000);
  }

  #store(documents: CachedDocuments, spec: ExtensionSpec, bytes: number): void {
    const values = countValues(spec, storedValuesMax);
    const total = { bytes, values };
    for (const other of this.#documents.values()) {
      if (other === documents) continue;
      total.bytes += other.bytes;
      total.values += other.values;
    }
    const what = "the OpenAPI documents of extension servers";
    if (total.bytes > CACHED_BYTES_MAX) throw new Error(`${what} are longer than ${CACHED_BYTES_MAX} bytes together`);
    if (total.values > CACHED_VALUES_MAX)
      throw new Error(`${what} have more than ${CACHED_VALUES_MAX} values together`);
    documents.v2.value = spec;
    documents.bytes = bytes;
    documents.values = values;
  }

  async #readV3(api: ExtensionApi): Promise<void> {
    const { v3, v2 } = this.#cachedOf(api);
    const path = `apis/${api.group}/${api.version}`;
    const response = await this.#request(api, "/openapi/v3", {});
    if (response.status === 404) {
      await this.#readV2(api);
      const { etag } = v2.value ?? {};
      v3.value = etag === undefined ? undefined : { url: `/openapi/v3/${path}?hash=${etag}`, isConverted: true };
      return;
    }
    if (response.status !== 200) throw new Error(`failed to retrieve OpenAPI v3, http error: ${response.status}`);
    const { value } = await runInSlices(parseJsonInSteps(response.body, valuesMax));
    const { paths } = isPlainObject(value) ? value : {};
    const entry = isPlainObject(paths) ? paths[path] : undefined;
    const url = isPlainObject(entry) ? entry.serverRelativeURL : undefined;
    // A server may only describe the group version that it is registered for.
    const isOwn = typeof url === "string" && (url === `/openapi/v3/${path}` || url.startsWith(`/openapi/v3/${path}?`));
    v3.value = isOwn ? { url, isConverted: false } : undefined;
  }

  async #request(
    api: ExtensionApi,
    path: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<ExtensionResponse> {
    const limits = { timeoutMs: TIMEOUT_MS, bytesMax: DOCUMENT_BYTES_MAX };
    const all = { accept: "application/json", ...headers };
    return await this.#deps.request(api, { path, user: USER, headers: all, ...limits }, this.#deps.signal);
  }
}

/** The part of the group version, with a hash of its content, and the bytes of its JSON. */
function* readSpec(
  body: Buffer,
  { group, version }: ExtensionApi,
): Steps<{ readonly spec: ExtensionSpec; readonly bytes: number }> {
  const { value } = yield* parseJsonInSteps(body, storedValuesMax);
  const part = yield* selectGroupVersion(value, group, version);
  const hash = createHash("sha256");
  let bytes = 0;
  yield* writeJson(part, 2, (text) => {
    hash.update(text);
    bytes += text.length;
  });
  return { spec: { ...part, etag: hash.digest("hex") }, bytes };
}
