import type { Clock } from "../std/clock.ts";
import type { Logger } from "../std/log.ts";
import type { Handler } from "./message.ts";

/** Certificates and keys are PEM text. */
export interface TlsOptions {
  /** Leaf first, then intermediates. */
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /** The authorities named to clients that are asked for a certificate. Verifying is the authenticator's business. */
  readonly ca?: string | Buffer | undefined;
  /** Ask for a client certificate; a client without one, or with a bad one, is still let in. */
  readonly requestCert?: boolean | undefined;
  /** TLSv1.2 when absent. */
  readonly minVersion?: "TLSv1" | "TLSv1.1" | "TLSv1.2" | "TLSv1.3" | undefined;
  /** OpenSSL's names, separated by colons; Node's default when absent. */
  readonly ciphers?: string | undefined;
}

export interface ListenOptions {
  readonly handler: Handler;
  readonly log: Logger;
  readonly clock?: Clock | undefined;
  /** All addresses when absent. */
  readonly host?: string | undefined;
  /** 0 or absent: any free port. */
  readonly port?: number | undefined;
  /** A Unix socket instead of host and port; mode 0600. A stale one is replaced. */
  readonly socketPath?: string | undefined;
  /** HTTP/2 and HTTP/1.1 by ALPN; without it plain HTTP/1.1. */
  readonly tls?: TlsOptions | undefined;
  readonly limits?: Partial<ListenLimits> | undefined;
}

export interface ListenLimits {
  /** All header names and values of a request together. */
  readonly headerBytes: number;
  /** From the first byte of a connection or request to the end of its headers. */
  readonly headerTimeoutMs: number;
  /** A connection without a request in flight is closed after this. */
  readonly idleTimeoutMs: number;
  /** Concurrent requests on one HTTP/2 connection. */
  readonly streamsPerConnection: number;
}

export interface Listener extends AsyncDisposable {
  /** The address bound, or the socket's path. */
  readonly address: string;
  /** 0 for a Unix socket. */
  readonly port: number;
  /**
   * Stops: no new connections or requests (GOAWAY), waits up to `graceMs` (default 0) for requests in flight, then
   * aborts what is left. Resolves when every connection is gone.
   */
  close(graceMs?: number): Promise<void>;
  /** New connections use the new certificate; open ones stay. Throws, and changes nothing, when key and certificate disagree. */
  reloadTls(tls: Pick<TlsOptions, "cert" | "key" | "ca">): void;
}

export declare function listen(options: ListenOptions): Promise<Listener>;
