/**
 * Requests to servers other than the API server: webhooks, OpenID Connect issuers, manifest URLs. undici sends them; it
 * is loaded with the first request, because it takes 12 MB of memory that most processes do not need.
 */
import type { Dispatcher } from "undici";
import { joinHeaders } from "../../http/join-headers.ts";
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import type { Transport } from "../client.ts";
import type { Connector } from "./connector.ts";
import { type TlsIdentity, tlsOptions } from "./dial.ts";
import { connectVerified } from "./namesake-issuer.ts";

export interface ExternalTransportOptions extends TlsIdentity {
  /** `https://host:6443`; paths are the requests'. */
  readonly server: string;
  /** `http://user:password@host:port` or `https://…`: requests are tunnelled through it. */
  readonly proxy?: URL | undefined;
  readonly userAgent?: string | undefined;
  /** Opens connections; they are direct when absent. Not used with a proxy. */
  readonly connector?: Connector | undefined;
}

export type ExternalTransport = Transport &
  AsyncDisposable & {
    /** New connections use this client certificate; open ones finish their requests. */
    setClientCertificate(cert: string, key: string): void;
  };

const CONNECT_TIMEOUT_MS = 30_000;

/**
 * HTTP/2 where the server offers it, else HTTP/1.1. Request bodies are held in memory; redirects are not followed. The
 * `rawHeaders` of a request are sent in place of its `headers`.
 */
export function externalTransport(options: ExternalTransportOptions): ExternalTransport {
  const url = new URL(options.server);
  let identity: TlsIdentity = options;
  let dispatcher: Promise<Dispatcher> | undefined;
  const send: Transport = async (request) => {
    request.signal.throwIfAborted();
    dispatcher ??= createDispatcher(url, identity, options);
    return await sendThrough(await dispatcher, url, request, options);
  };
  return Object.assign(send, {
    setClientCertificate(cert: string, key: string) {
      identity = { ...identity, cert, key };
      void dispatcher?.then((previous) => previous.close());
      dispatcher = undefined;
    },
    async [Symbol.asyncDispose]() {
      await (await dispatcher)?.destroy();
    },
  });
}

async function createDispatcher(
  url: URL,
  identity: TlsIdentity,
  { proxy, connector }: Pick<ExternalTransportOptions, "proxy" | "connector">,
): Promise<Dispatcher> {
  const { Agent, ProxyAgent } = await import("undici");
  const { host: _host, port: _port, ...tls } = tlsOptions(url, identity);
  const connect = { ...tls, timeout: CONNECT_TIMEOUT_MS, preferH2: true };
  if (proxy === undefined) {
    const { ca, insecure } = identity;
    const bundle = ca === undefined || insecure === true ? undefined : String(ca);
    return new Agent({ connect: await connectVerified(connector, connect, bundle) });
  }
  return new ProxyAgent({ uri: proxy.href, proxyTunnel: true, requestTls: connect });
}

async function sendThrough(
  dispatcher: Dispatcher,
  url: URL,
  request: HttpRequest,
  { proxy, userAgent }: ExternalTransportOptions,
): Promise<HttpResponse> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request.body) chunks.push(chunk);
  try {
    const { statusCode, headers, body } = await dispatcher.request({
      origin: url.origin,
      method: request.method as Dispatcher.HttpMethod,
      path: `${request.path}${request.query === "" ? "" : `?${request.query}`}`,
      headers: request.rawHeaders?.slice() ?? {
        ...(userAgent === undefined ? {} : { "user-agent": userAgent }),
        ...request.headers,
      },
      body: chunks.length === 0 ? null : Buffer.concat(chunks),
      signal: request.signal,
    });
    return { status: statusCode, headers: joinHeaders(headers), body };
  } catch (cause) {
    if (proxy === undefined || request.signal.aborted) throw cause;
    const why = (cause as Error).message;
    throw new Error(`Cannot reach ${url.host} through the proxy ${proxy.host}: ${why}`, { cause });
  }
}
