/**
 * Webhooks that the cluster's users name in objects: JSON posted over HTTPS to a URL or a service, and the JSON that
 * comes back. Certificates are always verified; redirects are not followed.
 */
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { isIP } from "node:net";
import { StatusError } from "../../api/status.ts";
import { parseJson } from "../../schema/json/parse.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type Credentials, CredentialSource } from "../kubeconfig/credential-source.ts";
import { parseStatusError } from "../response.ts";
import { hostname, port, tlsOptions } from "../transport/dial.ts";

/** As objects name it: one of `url` and `service`. */
export interface WebhookTarget {
  readonly url?: string | undefined;
  readonly service?: WebhookService | undefined;
  /** Base64 of PEM; the system's authorities when absent. */
  readonly caBundle?: string | undefined;
}

export interface WebhookService {
  readonly namespace: string;
  readonly name: string;
  readonly path?: string | undefined;
  readonly port?: number | undefined;
}

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Where a service is reached now. Rejects where nowhere. */
export type FindService = (service: WebhookService, port: number, signal: AbortSignal) => Promise<HostPort>;

/** How this server proves to a webhook who it is: what is known, or what is found out each time. */
export type WebhookCredentials = Credentials | CredentialSource;

export interface WebhookClientOptions {
  readonly clock: Clock;
  readonly findService: FindService;
  /** `host:port` → credentials; none when it answers undefined. */
  readonly credentialsFor?: ((hostPort: string) => WebhookCredentials | undefined) | undefined;
  readonly userAgent: string;
  /** A longer answer is none. */
  readonly responseBytesMax: number;
}

/** Connections to one webhook, and in all; requests beyond wait. Idle ones are closed after a while. */
const CONNECTIONS_MAX = 64;
const CONNECTIONS_TOTAL_MAX = 512;
const CONNECTIONS_IDLE_MAX = 8;
const IDLE_MS = 90_000;

/** The webhook did not answer: nothing listens, it is not who it should be, it took too long. */
export class WebhookUnreachable extends Error {
  override readonly name = "Unreached";
}

export class WebhookClient implements Disposable {
  readonly #options: WebhookClientOptions;
  readonly #agent = new HttpsAgent({
    keepAlive: true,
    maxSockets: CONNECTIONS_MAX,
    maxTotalSockets: CONNECTIONS_TOTAL_MAX,
    maxFreeSockets: CONNECTIONS_IDLE_MAX,
    timeout: IDLE_MS,
  });

  constructor(options: WebhookClientOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the JSON that the webhook answers, which is told how long it may take. Rejects with `Unreached`, also
   * for JSON that is deeper than requests may be, or with a `StatusError` for an answer that is an error.
   */
  async post(target: WebhookTarget, body: string, timeoutMs: number, signal: AbortSignal): Promise<unknown> {
    const late = new AbortController();
    const timer = this.#options.clock.timer(timeoutMs, () => {
      late.abort(new DOMException(`no answer in ${timeoutMs / 1000} s`, "TimeoutError"));
    });
    try {
      return await this.#post(target, body, timeoutMs, AbortSignal.any([signal, late.signal]));
    } finally {
      timer.cancel();
    }
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  async #post(target: WebhookTarget, body: string, timeoutMs: number, signal: AbortSignal): Promise<unknown> {
    const url = urlOf(target);
    url.searchParams.set("timeout", `${Math.ceil(timeoutMs / 1000)}s`);
    const failed = (why: unknown): WebhookUnreachable =>
      new WebhookUnreachable(
        `Post ${goQuote(shownUrl(target, url))}: ${signal.aborted ? abortText(signal) : textOf(why, url)}`,
        {
          cause: why,
        },
      );
    let at: HostPort;
    try {
      const { service } = target;
      at = service === undefined ? own(url) : await this.#options.findService(service, port(url), signal);
    } catch (error) {
      throw failed(error);
    }
    for (let attempt = 1; ; attempt++) {
      try {
        return readAnswer(await this.#send(url, at, target, body, signal));
      } catch (error) {
        if (error instanceof StatusError) throw error;
        // A connection that lay idle may have been closed just now.
        if (error instanceof Stale && attempt === 1 && !signal.aborted) continue;
        throw failed(error instanceof Stale ? error.cause : error);
      }
    }
  }

  async #send(url: URL, at: HostPort, target: WebhookTarget, body: string, signal: AbortSignal): Promise<Sent> {
    const { userAgent, responseBytesMax: answerBytesMax, credentialsFor } = this.#options;
    const credentials = credentialsFor?.(`${hostname(url)}:${port(url)}`);
    const { authorization, ...identity } =
      credentials instanceof CredentialSource ? await credentials.get() : (credentials ?? {});
    const ca = target.caBundle ? Buffer.from(target.caBundle, "base64") : undefined;
    const bytes = Buffer.from(body);
    const request = httpsRequest({
      ...tlsOptions(url, { ...identity, ca }),
      host: at.host,
      port: at.port,
      method: "POST",
      path: `${url.pathname}${url.search}`,
      headers: {
        host: url.host,
        "content-type": "application/json",
        "content-length": bytes.length,
        accept: "application/json, */*",
        "user-agent": userAgent,
        ...(authorization === undefined ? {} : { authorization }),
      },
      agent: this.#agent,
      signal,
    });
    const sent = await new Promise<Sent>((resolve, reject) => {
      request.once("error", (error: NodeJS.ErrnoException) => {
        const isStale = request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
        reject(isStale ? new Stale("the connection was closed", { cause: error }) : error);
      });
      request.once("response", (incoming) => {
        const pieces: Buffer[] = [];
        let length = 0;
        incoming.on("data", (piece: Buffer) => {
          pieces.push(piece);
          length += piece.length;
          if (length > answerBytesMax) request.destroy(new Error(`its answer is longer than ${answerBytesMax} bytes`));
        });
        incoming.once("error", reject);
        incoming.once("end", () => resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(pieces) }));
      });
      request.end(bytes);
    });
    if (sent.status === 401 && credentials instanceof CredentialSource) credentials.invalidate();
    return sent;
  }
}

interface Sent {
  readonly status: number;
  readonly body: Buffer;
}

/** A request that an old connection took with it. */
class Stale extends Error {
  override readonly name = "Stale";
}

const HTTPS_PORT = 443;

function urlOf({ url, service }: WebhookTarget): URL {
  if (service === undefined) return new URL(url ?? "");
  const { namespace, name, path = "/", port = HTTPS_PORT } = service;
  return new URL(path, `https://${name}.${namespace}.svc:${port}`);
}

/** Of a service the port is always told. */
function shownUrl({ service }: WebhookTarget, url: URL): string {
  return service === undefined ? url.href : url.href.replace(url.host, `${url.hostname}:${port(url)}`);
}

function own(url: URL): HostPort {
  return { host: hostname(url), port: port(url) };
}

function readAnswer({ status, body }: Sent): unknown {
  let value: unknown;
  try {
    value = parseJson(body).value;
  } catch (error) {
    if (status >= 200 && status <= 299) {
      throw new Error(`couldn't get version/kind; json parse error: ${(error as Error).message}`, { cause: error });
    }
  }
  if (status >= 200 && status <= 299) return value;
  throw parseStatusError(value) ?? answeredError(status, body.toString());
}

const TEXT_MAX = 1024;

/** What Kubernetes' clients make of an answer that does not say itself what it means. */
const WORDS: Readonly<Record<number, readonly [reason: string, message: string]>> = {
  400: ["BadRequest", "the server rejected our request for an unknown reason"],
  401: ["Unauthorized", "the server has asked for the client to provide credentials"],
  403: ["Forbidden", "the server does not allow access to the requested resource"],
  404: ["NotFound", "the server could not find the requested resource"],
  405: ["MethodNotAllowed", "the server does not allow this method on the requested resource"],
  429: ["TooManyRequests", "the server has received too many requests and has asked us to try again later"],
  503: ["ServiceUnavailable", "the server is currently unable to handle the request"],
  504: [
    "Timeout",
    "the server was unable to return a response in the time allotted, but may still be processing the request",
  ],
};

function answeredError(status: number, text: string): StatusError {
  const known = WORDS[status];
  if (known !== undefined) return new StatusError(status, known[0], known[1]);
  const quoted = goQuote(text.trim().slice(0, TEXT_MAX) || "unknown");
  if (status >= 500) {
    const message = `an error on the server (${quoted}) has prevented the request from succeeding`;
    return new StatusError(status, "InternalError", message);
  }
  const isMoved = status >= 300 && status <= 399;
  const why = isMoved
    ? "redirects are not followed"
    : "the server responded with the status code but did not return more information";
  return new StatusError(status, "Unknown", `the server answered with code ${status}: ${why}`);
}

function abortText({ reason }: AbortSignal): string {
  return reason instanceof DOMException && reason.name === "TimeoutError"
    ? "context deadline exceeded"
    : "context canceled";
}

const UNKNOWN_AUTHORITY: ReadonlySet<string> = new Set([
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
]);

/** In the words of Go's libraries, by which people look such failures up. */
function textOf(why: unknown, url: URL): string {
  const error = why as NodeJS.ErrnoException & { readonly address?: string; readonly port?: number };
  const { code = "" } = error;
  const at = `${isIP(error.address ?? "") === 6 ? `[${error.address}]` : error.address}:${error.port}`;
  if (UNKNOWN_AUTHORITY.has(code)) {
    return "tls: failed to verify certificate: x509: certificate signed by unknown authority";
  }
  switch (code) {
    case "ECONNREFUSED":
      return `dial tcp ${at}: connect: connection refused`;
    case "EHOSTUNREACH":
      return `dial tcp ${at}: connect: no route to host`;
    case "ENETUNREACH":
      return `dial tcp ${at}: connect: network is unreachable`;
    case "ETIMEDOUT":
      return `dial tcp ${at}: connect: connection timed out`;
    case "ENOTFOUND":
      return `dial tcp: lookup ${hostname(url)}: no such host`;
    case "ECONNRESET":
      return "EOF";
    case "CERT_HAS_EXPIRED":
    case "CERT_NOT_YET_VALID":
      return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid";
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `tls: failed to verify certificate: x509: certificate is not valid for ${hostname(url)}`;
    default:
      return error.message;
  }
}
