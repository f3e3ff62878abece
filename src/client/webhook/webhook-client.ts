/**
 * Calls webhooks that users of the cluster name in objects: posts JSON over HTTPS to a URL or a service, and returns
 * the JSON of the response. Certificates are always verified; redirects are not followed.
 */
import { StatusError } from "../../api/status.ts";
import { parseJsonInSteps } from "../../schema/json/parse.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import { TooManyValuesError } from "../../schema/value/limits.ts";
import { runInSlices } from "../../std/async/steps.ts";
import type { Clock } from "../../std/time/clock.ts";
import { inClientSpan } from "../../tracing/span.ts";
import { type Credentials, UserCredentials } from "../kubeconfig/user-credentials.ts";
import { parseStatusError } from "../response.ts";
import type { Connector } from "../transport/connector.ts";
import { hostOf, portOf } from "../transport/dial.ts";
import { type HostPort, WebhookConnections, type WebhookResponse } from "./webhook-connections.ts";
import { abortText, errorText, responseError } from "./webhook-errors.ts";

/** A client configuration in an object: one of `url` and `service`. */
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

/** Finds the address of a service. Rejects when it has none. */
export type FindService = (service: WebhookService, port: number, signal: AbortSignal) => Promise<HostPort>;

/** Returns how to connect to a webhook; undefined: directly. */
export type FindWebhookConnector = (target: WebhookTarget) => Connector | undefined;

/** Credentials of this server for a webhook: fixed ones, or a source that renews them. */
export type WebhookCredentials = Credentials | UserCredentials;

export interface WebhookClientOptions {
  readonly clock: Clock;
  readonly findService: FindService;
  /** `host:port` → credentials; undefined for a webhook that gets none. */
  readonly credentialsFor?: ((hostPort: string) => WebhookCredentials | undefined) | undefined;
  /** How to connect to a webhook; undefined: directly. */
  readonly connectorFor?: FindWebhookConnector | undefined;
  readonly userAgent: string;
  /** A longer response is an error. */
  readonly responseBytesMax: number;
  /** A response with more members, items and containers of them is an error. */
  readonly responseValuesMax: number;
}

/** The webhook sent no response: the connection or its verification failed, or the time ran out. */
export class WebhookUnreachable extends Error {
  override readonly name = "WebhookUnreachable";
}

export class WebhookClient implements Disposable {
  readonly #options: WebhookClientOptions;
  readonly #connections = new WebhookConnections();

  constructor(options: WebhookClientOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the JSON of the response; the timeout is sent along. Rejects with `WebhookUnreachable`, also for JSON
   * that is nested deeper than requests may be, or with a `StatusError` for an error status.
   */
  async post(target: WebhookTarget, body: string, timeoutMs: number, signal: AbortSignal): Promise<unknown> {
    const timeout = new AbortController();
    const timer = this.#options.clock.timer(timeoutMs, () => {
      timeout.abort(new DOMException(`no response in ${timeoutMs / 1000} s`, "TimeoutError"));
    });
    try {
      return await this.#post(target, body, timeoutMs, AbortSignal.any([signal, timeout.signal]));
    } finally {
      timer.cancel();
    }
  }

  [Symbol.dispose](): void {
    this.#connections[Symbol.dispose]();
  }

  async #post(target: WebhookTarget, body: string, timeoutMs: number, signal: AbortSignal): Promise<unknown> {
    const url = urlOf(target);
    url.searchParams.set("timeout", `${Math.ceil(timeoutMs / 1000)}s`);
    const unreachable = (cause: unknown): WebhookUnreachable => {
      const why = signal.aborted ? abortText(signal) : errorText(cause, url);
      return new WebhookUnreachable(`Post ${goQuote(displayUrl(target, url))}: ${why}`, { cause });
    };
    let response: WebhookResponse;
    try {
      const { service } = target;
      const address =
        service === undefined
          ? { host: hostOf(url), port: portOf(url) }
          : await this.#options.findService(service, portOf(url), signal);
      response = await this.#send(url, address, target, body, signal);
    } catch (cause) {
      throw unreachable(cause);
    }
    try {
      return await readResponse(response, this.#options.responseValuesMax);
    } catch (cause) {
      throw cause instanceof StatusError ? cause : unreachable(cause);
    }
  }

  async #send(
    url: URL,
    address: HostPort,
    target: WebhookTarget,
    body: string,
    signal: AbortSignal,
  ): Promise<WebhookResponse> {
    const { caBundle } = target;
    const { userAgent, responseBytesMax, credentialsFor, connectorFor } = this.#options;
    const connector = connectorFor?.(target);
    const credentials = credentialsFor?.(`${hostOf(url)}:${portOf(url)}`);
    const { authorization, ...pair } =
      credentials instanceof UserCredentials ? await credentials.get() : (credentials ?? {});
    const send = (traceHeaders: Readonly<Record<string, string>>): Promise<WebhookResponse> =>
      this.#connections.post({
        url,
        address,
        identity: { ...pair, ca: caBundle ? Buffer.from(caBundle, "base64").toString("latin1") : undefined },
        headers: {
          "content-type": "application/json",
          accept: "application/json, */*",
          "user-agent": userAgent,
          ...(authorization === undefined ? {} : { authorization }),
          ...traceHeaders,
        },
        body: Buffer.from(body),
        responseBytesMax,
        signal,
        connector,
      });
    const response = await inClientSpan("POST", url.href, send);
    if (response.status === 401 && credentials instanceof UserCredentials) credentials.invalidate();
    return response;
  }
}

const HTTPS_PORT = 443;

function urlOf({ url, service }: WebhookTarget): URL {
  if (service === undefined) return new URL(url ?? "");
  const { namespace, name, path = "/", port = HTTPS_PORT } = service;
  return new URL(path, `https://${name}.${namespace}.svc:${port}`);
}

/** The URL for messages: that of a service always has its port. */
function displayUrl({ service }: WebhookTarget, url: URL): string {
  return service === undefined ? url.href : url.href.replace(url.host, `${url.hostname}:${portOf(url)}`);
}

async function readResponse({ status, body }: WebhookResponse, valuesMax: number): Promise<unknown> {
  const isSuccess = status >= 200 && status <= 299;
  let value: unknown;
  try {
    ({ value } = await runInSlices(parseJsonInSteps(body, valuesMax)));
  } catch (error) {
    if (isSuccess && error instanceof TooManyValuesError)
      throw new Error(`its response has ${error.message}`, { cause: error });
    if (isSuccess) {
      throw new Error(`couldn't get version/kind; json parse error: ${(error as Error).message}`, { cause: error });
    }
  }
  if (isSuccess) return value;
  throw parseStatusError(value) ?? responseError(status, body.toString());
}
