/** Connections as their files describe them, with credentials that stay fresh. */
import { readFile } from "node:fs/promises";
import type { HttpRequest } from "../http/message.ts";
import type { Clock } from "../std/clock.ts";
import type { Transport } from "./client.ts";
import type { ConnectionFile } from "./connection-file.ts";
import { type ExecCredential, ExecCredentials } from "./exec-credentials.ts";
import { type NetworkTransport, networkTransport } from "./transport.ts";

export interface ConnectionOptions {
  readonly clock: Clock;
  readonly userAgent?: string | undefined;
}

/** As client-go: what files hold is read again no more often. */
const FRESH_MS = 60_000;

/** To the server itself: a path that the file names in front of others is the caller's to send. */
export function connectionTo(
  file: ConnectionFile,
  { clock, userAgent }: ConnectionOptions,
): Transport & AsyncDisposable {
  const { ca, cert, key, tlsServerName, insecure, proxy } = file;
  const server = new URL(file.server).origin;
  const transport = networkTransport({ server, ca, cert, key, tlsServerName, insecure, proxy, clock, userAgent });
  const credentials = new Credentials(file, transport, clock);
  const send: Transport = async (request: HttpRequest) => {
    const { authorization, made } = await credentials.fresh();
    const headers = authorization === undefined ? request.headers : { authorization, ...request.headers };
    const answer = await transport({ ...request, headers });
    if (answer.status === 401 && made !== undefined) credentials.refused(made);
    return answer;
  };
  return Object.assign(send, {
    async [Symbol.asyncDispose]() {
      credentials[Symbol.dispose]();
      await transport[Symbol.asyncDispose]();
    },
  });
}

interface Fresh {
  readonly authorization: string | undefined;
  /** What a program told, where one was asked. */
  readonly made?: ExecCredential;
}

class Credentials implements Disposable {
  readonly #file: ConnectionFile;
  readonly #transport: NetworkTransport;
  readonly #clock: Clock;
  readonly #exec: ExecCredentials | undefined;
  #token: string | undefined;
  /** The client certificate in use. */
  #cert: string | undefined;
  /** On the monotonic clock. */
  #readAt: number;

  constructor(file: ConnectionFile, transport: NetworkTransport, clock: Clock) {
    this.#file = file;
    this.#transport = transport;
    this.#clock = clock;
    this.#exec = file.exec === undefined ? undefined : new ExecCredentials(file.exec, clock);
    this.#token = file.token;
    this.#cert = file.cert;
    this.#readAt = clock.monotonic();
  }

  async fresh(): Promise<Fresh> {
    const { basic } = this.#file;
    await this.#readAgain();
    if (this.#token !== undefined) return { authorization: `Bearer ${this.#token}` };
    if (basic !== undefined) {
      const pair = Buffer.from(`${basic.username}:${basic.password}`).toString("base64");
      return { authorization: `Basic ${pair}` };
    }
    const made = await this.#exec?.get();
    if (made === undefined) return { authorization: undefined };
    if (made.pair !== undefined) this.#show(made.pair.cert, made.pair.key);
    return { authorization: made.token === undefined ? undefined : `Bearer ${made.token}`, made };
  }

  refused(made: ExecCredential): void {
    this.#exec?.refused(made);
  }

  [Symbol.dispose](): void {
    this.#exec?.[Symbol.dispose]();
  }

  /** What cannot be read now stays what it was. */
  async #readAgain(): Promise<void> {
    const { tokenFile, pairFiles } = this.#file;
    if (tokenFile === undefined && pairFiles === undefined) return;
    const now = this.#clock.monotonic();
    if (now < this.#readAt + FRESH_MS) return;
    this.#readAt = now;
    const read = async (path: string): Promise<string> => (await readFile(path, "utf8").catch(() => "")).trim();
    if (tokenFile !== undefined) this.#token = (await read(tokenFile)) || this.#token;
    if (pairFiles === undefined) return;
    const [cert, key] = await Promise.all([read(pairFiles.cert), read(pairFiles.key)]);
    if (cert !== "" && key !== "") this.#show(cert, key);
  }

  #show(cert: string, key: string): void {
    if (cert.trim() === this.#cert?.trim()) return;
    this.#cert = cert;
    this.#transport.setClientCertificate(cert, key);
  }
}
