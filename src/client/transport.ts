import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import type { Transport } from "./client.ts";

export interface TransportOptions {
  /** `https://host:6443`, perhaps with a path in front of the API. */
  readonly server: string;
  /** PEM. The system's authorities when absent. */
  readonly ca?: string | Buffer | undefined;
  /** PEM, with `key`: the client certificate. */
  readonly cert?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  /** Bearer token; a function is asked before every request. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
  /** The name the server's certificate must carry; the host's when absent. */
  readonly tlsServerName?: string | undefined;
  readonly userAgent?: string | undefined;
  readonly clock?: Clock | undefined;
  readonly log?: Logger | undefined;
}

export interface NetworkTransport extends AsyncDisposable {
  /** The `Handler`: sends the request, resolves when the answer's headers are in. */
  readonly send: Transport;
  /** New connections use this client certificate; the open one is left to finish its requests. */
  setClientCertificate(cert: string | Buffer, key: string | Buffer): void;
}

/** HTTP/2 (HTTP/1.1 where the server knows nothing else) over one connection that is made again when it breaks. */
export declare function networkTransport(options: TransportOptions): Transport & NetworkTransport;
