/** A client of the API server for JSON without schemas. */

import { readLines } from "../../../client/lines.ts";
import { readAll } from "../../../client/response.ts";
import { type NetworkTransport, networkTransport } from "../../../client/transport/transport.ts";
import type { HttpResponse } from "../../../http/message.ts";
import type { ApiJson } from "./cases.ts";

export interface ApiResponse {
  readonly code: number;
  readonly body: unknown;
}

export interface ApiEvent {
  readonly type: string;
  readonly object: ApiJson;
}

interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

export class RawApiClient implements AsyncDisposable {
  readonly #transport: NetworkTransport;

  constructor(server: string, ca: string, token: string) {
    this.#transport = networkTransport({ server, ca, token });
  }

  async send(method: string, path: string, body?: unknown, type = "application/json"): Promise<ApiResponse> {
    const { status, body: answer } = await this.#request(method, path, body, type, new AbortController().signal);
    const text = (await readAll(answer)).toString("utf8");
    return { code: status, body: text === "" ? undefined : JSON.parse(text) };
  }

  /** Throws when the status is not 2xx. */
  async expect(method: string, path: string, body?: unknown, type?: string): Promise<unknown> {
    const { code, body: answer } = await this.send(method, path, body, type);
    if (code > 299) throw new Error(`${method} ${path}: ${code} ${JSON.stringify(answer)}`);
    return answer;
  }

  /** `/api/v1/namespaces/default/configmaps`, as the server's discovery describes the kind. */
  async collectionPath(apiVersion: string, kind: string, namespace: string): Promise<string> {
    const base = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { resources } = (await this.expect("GET", base)) as { readonly resources: readonly ApiResource[] };
    const found = resources.find((each) => each.kind === kind && !each.name.includes("/"));
    if (found === undefined) throw new Error(`The server has no ${apiVersion} ${kind}`);
    return found.namespaced ? `${base}/namespaces/${namespace}/${found.name}` : `${base}/${found.name}`;
  }

  /** The API version of a kind that a step names alone. */
  async apiVersionOf(kind: string): Promise<string> {
    const { groups } = (await this.expect("GET", "/apis")) as {
      readonly groups: readonly { readonly preferredVersion: { readonly groupVersion: string } }[];
    };
    for (const apiVersion of ["v1", ...groups.map(({ preferredVersion }) => preferredVersion.groupVersion)]) {
      const path = await this.collectionPath(apiVersion, kind, "").catch(() => undefined);
      if (path !== undefined) return apiVersion;
    }
    throw new Error(`The server has no ${kind}`);
  }

  /** Watches until the signal aborts. */
  async *watch(path: string, query: string, signal: AbortSignal): AsyncGenerator<ApiEvent> {
    const response = await this.#request("GET", `${path}?watch=true${query}`, undefined, "", signal);
    try {
      for await (const line of readLines(response.body as AsyncIterable<Uint8Array>))
        yield JSON.parse(line) as ApiEvent;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #request(method: string, target: string, body: unknown, type: string, signal: AbortSignal): Promise<HttpResponse> {
    const [path = "", query = ""] = target.split("?");
    const bytes = body === undefined ? [] : [Buffer.from(JSON.stringify(body))];
    return this.#transport({
      method,
      path,
      query,
      headers: { accept: "application/json", ...(body === undefined ? {} : { "content-type": type }) },
      body: (async function* () {
        yield* bytes;
      })(),
      peer: { protocol: "local", address: "", port: 0, encrypted: true, certificates: [] },
      signal,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport[Symbol.asyncDispose]();
  }
}
