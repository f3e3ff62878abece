/**
 * Health checks of load balancers: at the node port of each service with local external traffic, whether this node has
 * endpoints of it. A load balancer sends packets only to nodes that have.
 */
import { createServer, type Server } from "node:http";
import type { Logger } from "../std/log/logger.ts";

export interface HealthCheck {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  /** On this node. */
  readonly endpoints: number;
}

interface RunningCheck {
  readonly server: Server;
  check: HealthCheck;
}

/** How long a request may take: there is nothing to wait for. */
const REQUEST_MS = 5_000;

export class HealthChecks implements AsyncDisposable {
  readonly #isHealthy: () => boolean;
  readonly #log: Logger;
  readonly #onError: (check: HealthCheck, error: Error) => void;
  /** By port; bounded by the number of services. */
  readonly #running = new Map<number, RunningCheck>();

  constructor(log: Logger, isHealthy: () => boolean, onError: (check: HealthCheck, error: Error) => void) {
    this.#log = log;
    this.#isHealthy = isHealthy;
    this.#onError = onError;
  }

  /** Replaces all checks. */
  set(checks: readonly HealthCheck[]): void {
    const wanted = new Map(checks.map((check) => [check.port, check]));
    for (const [port, running] of this.#running) {
      if (wanted.has(port)) continue;
      this.#running.delete(port);
      closeServer(running.server).catch((error) => this.#log.warn("Cannot close health check", { port, error }));
    }
    for (const [port, check] of wanted) {
      const running = this.#running.get(port);
      if (running === undefined) this.#open(check);
      else running.check = check;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const servers = [...this.#running.values()].map(({ server }) => server);
    this.#running.clear();
    await Promise.all(servers.map(closeServer));
  }

  #open(check: HealthCheck): void {
    const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS }, (_request, response) => {
      const { namespace, name, endpoints } = this.#running.get(check.port)?.check ?? check;
      const serviceProxyHealthy = this.#isHealthy();
      // As kube-proxy formats it, to the byte.
      const body = JSON.stringify(
        { service: { namespace, name }, localEndpoints: endpoints, serviceProxyHealthy },
        undefined,
        "\t",
      );
      response.writeHead(endpoints > 0 && serviceProxyHealthy ? 200 : 503, {
        "Content-Type": "application/json",
        "Content-Length": Buffer.byteLength(body),
        "X-Content-Type-Options": "nosniff",
        "X-Load-Balancing-Endpoint-Weight": String(endpoints),
      });
      response.end(body);
    });
    server.on("error", (error) => this.#onError(check, error));
    server.listen(check.port);
    this.#running.set(check.port, { server, check });
  }
}

async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  server.closeAllConnections();
  await promise;
}
