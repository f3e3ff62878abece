/** A transport for a kubeconfig, with credentials that are renewed. */
import type { HttpRequest } from "../../http/message.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { Transport } from "../client.ts";
import type { Connector } from "../transport/connector.ts";
import { externalTransport } from "../transport/external-transport.ts";
import { UserCredentials } from "./user-credentials.ts";
import type { WebhookKubeconfig } from "./webhook-kubeconfig.ts";

export interface KubeconfigTransportOptions {
  readonly clock: Clock;
  readonly userAgent?: string | undefined;
  /** Opens connections; they are direct when absent. */
  readonly connector?: Connector | undefined;
}

/** Sends requests to the server; the caller adds the path of its URL. */
export function kubeconfigTransport(
  file: WebhookKubeconfig,
  { clock, userAgent, connector }: KubeconfigTransportOptions,
): Transport & AsyncDisposable {
  const { ca, cert, key, tlsServerName, insecure, proxy } = file;
  const server = new URL(file.server).origin;
  const transport = externalTransport({ server, ca, cert, key, tlsServerName, insecure, proxy, userAgent, connector });
  const credentials = new UserCredentials(file, clock);
  let currentCert = cert;
  const send: Transport = async (request: HttpRequest) => {
    const { authorization, ...pair } = await credentials.get();
    if (pair.cert !== undefined && pair.key !== undefined && pair.cert !== currentCert) {
      currentCert = pair.cert;
      transport.setClientCertificate(pair.cert, pair.key);
    }
    const headers = authorization === undefined ? request.headers : { authorization, ...request.headers };
    const response = await transport({ ...request, headers });
    if (response.status === 401) credentials.invalidate();
    return response;
  };
  return Object.assign(send, {
    async [Symbol.asyncDispose]() {
      credentials[Symbol.dispose]();
      await transport[Symbol.asyncDispose]();
    },
  });
}
