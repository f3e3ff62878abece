/** A whole API server in memory for tests, which call its handler. */
import type { ApiServerDeps } from "../../apiserver/assembly/server-base.ts";
import type { ApiServerConfig } from "../../apiserver/config/config.ts";
import { defaultConfig } from "../../apiserver/config/default-config.ts";
import { createApiServer } from "../../apiserver/server.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { HttpResponse } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { createMemoryStore } from "../../storage/memory.ts";
import type { Revision } from "../../storage/store.ts";
import { FakeClock } from "../std/fake-clock.ts";

export interface RequestOptions {
  readonly body?: unknown;
  /** The body in parts, in place of `body`. */
  readonly stream?: AsyncIterable<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: `admin`, a member of system:masters. */
  readonly user?: string;
  readonly signal?: AbortSignal;
}

export interface TestResponse {
  readonly status: number;
  readonly headers: HttpResponse["headers"];
  readonly text: string;
  readonly bytes: Buffer;
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every kind
  readonly json: any;
}

export interface TestServer extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly parts: Awaited<ReturnType<typeof createApiServer>>;
  /** Compacts the store's history before a revision. */
  compact(revision: number): Promise<void>;
  /** Sends a request such as `GET /api/v1/pods?limit=1`. */
  send(line: string, options?: RequestOptions): Promise<TestResponse>;
  /** Sends a request whose response is streamed. */
  open(line: string, options?: RequestOptions): Promise<HttpResponse>;
}

/** Settings of feature gates. */
export function configWithGates(gates: Readonly<Record<string, boolean>>): Pick<ApiServerConfig, "observability"> {
  const { observability } = defaultConfig;
  const features = observability.features.map((gate) => ({ ...gate, enabled: gates[gate.name] ?? gate.enabled }));
  return { observability: { ...observability, features } };
}

export async function startTestServer(
  config: Partial<ApiServerConfig> = {},
  more: Partial<ApiServerDeps> = {},
  address = "192.0.2.1:6443",
): Promise<TestServer> {
  const clock = new FakeClock();
  const store = more.store ?? createMemoryStore({ clock });
  const deps = { clock, log: silentLogger, random: seededRandom(1), ...more, store };
  const parts = await createApiServer({ ...defaultConfig, ...config }, deps, () => address);
  parts.readiness.markStarted();
  const tokens = new Map<string, string>();
  const tokenOf = (name: string): string => {
    let token = tokens.get(name);
    if (token === undefined) {
      const admin = name === "admin";
      const user: UserInfo = { name, uid: admin ? "1" : "", groups: admin ? ["system:masters"] : [], extra: {} };
      token = parts.server.loopbackToken(user);
      tokens.set(name, token);
    }
    return token;
  };
  const open = async (
    line: string,
    { body, stream, headers, user = "admin", signal }: RequestOptions = {},
  ): Promise<HttpResponse> => {
    const [method = "GET", target = "/"] = line.split(" ");
    const [path = "", query = ""] = target.split("?");
    const sent = body === undefined ? {} : { body: encodeBody(body) };
    const length = sent.body === undefined ? {} : { "content-length": String(Buffer.byteLength(sent.body)) };
    const authorization = user === "" ? {} : { authorization: `Bearer ${tokenOf(user)}` };
    const all = { "content-type": "application/json", ...length, ...authorization, ...headers };
    const request = makeRequest({ method, path, query, headers: all, signal, ...sent });
    return await parts.server.handler(stream === undefined ? request : { ...request, body: stream });
  };
  return {
    clock,
    parts,
    open,
    compact: async (revision) => await store.compact(revision as Revision),
    send: async (line, options) => await readResponse(await open(line, options)),
    [Symbol.asyncDispose]: () => parts.server[Symbol.asyncDispose](),
  };
}

function encodeBody(body: unknown): Uint8Array | string {
  return typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
}

/** Reads a response to its end. */
export async function readResponse({ status, headers, body }: HttpResponse): Promise<TestResponse> {
  const chunks: Uint8Array[] = [];
  if (body instanceof Uint8Array) chunks.push(body);
  else for await (const chunk of body) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  return {
    status,
    headers,
    bytes,
    text: bytes.toString(),
    get json() {
      return JSON.parse(bytes.toString());
    },
  };
}

/** The first `count` lines of a stream, as JSON. */
export async function readLines(response: HttpResponse, count: number): Promise<unknown[]> {
  const found: unknown[] = [];
  let text = "";
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n")) {
      found.push(JSON.parse(text.slice(0, end)));
      text = text.slice(end + 1);
    }
    if (found.length >= count) break;
  }
  return found;
}
