/** The pages of the proxy over HTTP: health and metrics. */
import { createServer } from "node:http";
import { metricsResponse } from "../../http/metrics/metrics-page.ts";
import { explainAddressInUse } from "../../http/server/address-in-use.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { HealthPath } from "../proxy-metrics.ts";
import type { ServiceProxy } from "../service-proxy.ts";

export interface Page {
  readonly status: number;
  readonly type: string;
  readonly body: string | Uint8Array;
}

export type Pages = Readonly<Record<string, (accept: string | undefined) => Page>>;

type ProxyHealth = Pick<ServiceProxy, "isHealthy" | "isNodeEligible" | "lastUpdated">;

/**
 * As kube-proxy's: load balancers of clouds read the status code of `/healthz`, which fails on a node that is about to
 * be deleted. `/livez` does not: a restart would not help.
 */
export function healthPages(
  proxy: ProxyHealth,
  clock: Clock,
  onAnswer: (path: HealthPath, status: number) => void,
): Pages {
  const page = (path: HealthPath, isOk: boolean): Page => {
    const now = clock.now();
    const { isHealthy, isNodeEligible, lastUpdated } = proxy;
    const status = isOk ? 200 : 503;
    const families = [...lastUpdated].map(([family, time]) => [
      family,
      { lastUpdated: formatTime(time), healthy: isHealthy },
    ]);
    const body = {
      // While all is well nothing is outdated, however long ago the rules were written.
      lastUpdated: formatTime(isOk ? now : Math.max(0, ...lastUpdated.values())),
      currentTime: formatTime(now),
      ...(path === "/healthz" && { nodeEligible: isNodeEligible }),
      healthy: isHealthy,
      ...(families.length > 0 && { status: Object.fromEntries(families) as object }),
    };
    onAnswer(path, status);
    return { status, type: "application/json", body: JSON.stringify(body) };
  };
  return {
    "/healthz": () => page("/healthz", proxy.isHealthy && proxy.isNodeEligible),
    "/livez": () => page("/livez", proxy.isHealthy),
  };
}

function formatTime(time: number): string {
  return new Date(time).toISOString();
}

const PLAIN_TEXT = "text/plain; charset=utf-8";

export function metricsPages(metrics: MetricRegistry): Pages {
  return {
    "/metrics": (accept) => {
      const { body, headers } = metricsResponse([metrics], accept);
      const type = headers["content-type"] ?? "text/plain";
      return { status: 200, type: String(type), body: body instanceof Uint8Array ? body : "" };
    },
    "/healthz": () => ({ status: 200, type: PLAIN_TEXT, body: "ok" }),
    "/proxyMode": () => ({ status: 200, type: PLAIN_TEXT, body: "nftables" }),
  };
}

const REQUEST_MS = 10_000;

/** Rejects with a message for the operator. */
export async function servePages(
  flag: string,
  { host, port }: { readonly host: string; readonly port: number },
  pages: Pages,
): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (request, response) => {
    const [path = ""] = (request.url ?? "").split("?");
    const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
    const { status, type, body } = page?.(request.headers.accept) ?? {
      status: 404,
      type: PLAIN_TEXT,
      body: "404 page not found\n",
    };
    response.writeHead(status, {
      "Content-Type": type,
      "Content-Length": Buffer.byteLength(body),
      "X-Content-Type-Options": "nosniff",
    });
    response.end(body);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(port, host, resolve);
  await explainAddressInUse(flag, promise);
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
