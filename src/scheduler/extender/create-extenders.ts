/** The extenders of the configuration, with their connections. */
import { readFileSync } from "node:fs";
import type { Transport } from "../../client/client.ts";
import { networkTransport } from "../../client/transport/transport.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ExtenderConfiguration, ExtenderTlsConfiguration } from "../config/configuration.ts";
import type { Extender } from "./extender.ts";
import { createHttpExtender } from "./http-extender.ts";

export interface CreateExtendersDeps {
  readonly clock: Clock;
  readonly extenderTransport?: ((urlPrefix: string) => Transport) | undefined;
}

/** Disposing closes the connections. */
export async function createExtenders(
  configurations: readonly ExtenderConfiguration[],
  { clock, extenderTransport }: CreateExtendersDeps,
): Promise<AsyncDisposable & { readonly list: readonly Extender[] }> {
  await using connections = new AsyncDisposableStack();
  const list = configurations.map((config) => {
    const { urlPrefix, tlsConfig, httpTimeoutMs } = config;
    const connect = (): Transport => connections.use(networkTransport({ server: urlPrefix, ...readTls(tlsConfig) }));
    const transport = extenderTransport?.(urlPrefix) ?? connect();
    return createHttpExtender({ ...config, timeoutMs: httpTimeoutMs }, transport, clock);
  });
  const open = connections.move();
  return { list, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

function readTls(tls: ExtenderTlsConfiguration = {}) {
  const { insecure, serverName, certFile, keyFile, caFile, certData, keyData, caData } = tls;
  return {
    insecure,
    tlsServerName: serverName,
    cert: readPem(certData, certFile),
    key: readPem(keyData, keyFile),
    ca: readPem(caData, caFile),
  };
}

/** Data takes precedence over a file. */
function readPem(data: string | undefined, file: string | undefined): Buffer | undefined {
  if (data) return Buffer.from(data, "base64");
  return file ? readFileSync(file) : undefined;
}
