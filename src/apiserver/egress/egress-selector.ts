/** Opens connections of the server to parts of the cluster as `--egress-selector-config-file` says. */
import type { Duplex } from "node:stream";
import type { Connector } from "../../client/transport/connector.ts";
import type { MetricRegistry } from "../../std/metrics/metrics.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { EgressConfiguration, EgressConnection, EgressName } from "./configuration.ts";
import { createEgressMetrics, type EgressMetrics } from "./egress-metrics.ts";
import { connectToProxy, type FirstSender, tunnelThrough } from "./http-connect.ts";

/**
 * Undefined for direct connections. `firstSender` is the end that sends first: the client in TLS and HTTP/1.1; either
 * end in HTTP/2 without TLS, as gRPC uses it.
 */
export type FindConnector = (name: EgressName, firstSender?: FirstSender) => Connector | undefined;

export interface EgressSelectorDeps {
  readonly clock: Clock;
  readonly metrics: MetricRegistry;
}

export function createEgressSelector(
  { connections }: EgressConfiguration,
  { clock, metrics: registry }: EgressSelectorDeps,
): FindConnector {
  const metrics = createEgressMetrics(registry);
  const createConnectors = (firstSender: FirstSender): ReadonlyMap<EgressName, Connector | undefined> =>
    new Map(
      [...connections].map(([name, connection]) => [name, createConnector(connection, firstSender, clock, metrics)]),
    );
  const connectors = { client: createConnectors("client"), any: createConnectors("any") };
  return (name, firstSender = "client") => connectors[firstSender].get(name);
}

/** A stage of a connection: first to the proxy, then through it. */
interface Stages<P> {
  readonly transport: "tcp" | "uds";
  readonly connect: () => Promise<P>;
  readonly proxy: (connected: P, target: string) => Promise<Duplex>;
}

function createConnector(
  connection: EgressConnection,
  firstSender: FirstSender,
  clock: Clock,
  metrics: EgressMetrics,
): Connector | undefined {
  switch (connection.protocol) {
    case "direct":
      return undefined;
    case "http_connect": {
      const { proxy } = connection;
      return measured(connection.protocol, clock, metrics, {
        transport: proxy.kind === "unix" ? "uds" : "tcp",
        connect: () => connectToProxy(proxy, clock),
        proxy: (socket, target) => tunnelThrough(socket, proxy, { target, firstSender }, clock),
      });
    }
    case "grpc": {
      // gRPC takes memory that few servers need.
      const load = () => import("./konnectivity.ts");
      return measured(connection.protocol, clock, metrics, {
        transport: "uds",
        connect: async () => await (await load()).connectToKonnectivity(connection.path, clock),
        proxy: async (client, target) => await (await load()).dialThrough(client, target, clock),
      });
    }
  }
}

function measured<P>(protocol: string, clock: Clock, metrics: EgressMetrics, stages: Stages<P>): Connector {
  const { transport, connect, proxy } = stages;
  const attempt = async <R>(stage: string, work: Promise<R>): Promise<R> => {
    try {
      return await work;
    } catch (error) {
      metrics.failures.with(protocol, transport, stage).inc();
      throw error;
    }
  };
  return async (host, port) => {
    const start = clock.monotonic();
    metrics.starts.with(protocol, transport).inc();
    const connected = await attempt("connect", connect());
    const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    const socket = await attempt("proxy", proxy(connected, target));
    metrics.seconds.with(protocol, transport).observe((clock.monotonic() - start) / 1000);
    return socket;
  };
}
