import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { joinHeaders } from "../../http/join-headers.ts";
import type { HttpResponse } from "../../http/message.ts";
import { hostOf, portOf, type TlsIdentity, tlsOptions } from "./dial.ts";
import type { OutgoingRequest, Upstream } from "./upstream.ts";

/** HTTP/1.1, with a connection for each concurrent request: for `http://` and for servers without HTTP/2. */
export class H1Upstream implements Upstream {
  readonly #agent: HttpAgent | HttpsAgent;
  readonly #url: URL;
  readonly #secure: ReturnType<typeof tlsOptions> | undefined;
  #retired = false;
  #destroyed = false;

  constructor(url: URL, identity: TlsIdentity) {
    this.#url = url;
    this.#secure = url.protocol === "https:" ? tlsOptions(url, identity) : undefined;
    this.#agent = this.#secure === undefined ? new HttpAgent({ keepAlive: true }) : new HttpsAgent({ keepAlive: true });
  }

  get usable(): boolean {
    return !this.#retired;
  }

  get alive(): boolean {
    return !this.#destroyed;
  }

  send(outgoing: OutgoingRequest): Promise<HttpResponse> {
    const { method, target, headers, body, signal } = outgoing;
    const options = {
      host: hostOf(this.#url),
      port: portOf(this.#url),
      method,
      path: target,
      headers: { ...headers, host: this.#url.host, ...(body.length > 0 ? { "content-length": body.length } : {}) },
      agent: this.#agent,
      signal,
    };
    return new Promise((resolve, reject) => {
      const request =
        this.#secure === undefined
          ? httpRequest(options)
          : httpsRequest({ ...this.#secure, ...options, agent: this.#agent });
      request.once("error", (error) => reject(signal.aborted ? signal.reason : error));
      request.once("response", (incoming) => {
        incoming.on("error", () => {});
        resolve({ status: incoming.statusCode ?? 0, headers: joinHeaders(incoming.headers), body: incoming });
      });
      request.end(body);
    });
  }

  retire(): void {
    this.#retired = true;
  }

  destroy(): void {
    this.#retired = true;
    this.#destroyed = true;
    this.#agent.destroy();
  }
}
