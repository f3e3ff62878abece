/** The tracer of `--tracing-config-file`. */
import { hostname } from "node:os";
import type { Connector } from "../../client/transport/connector.ts";
import type { Tracer, TracerDeps } from "../../tracing/tracer.ts";
import { readFlagFile } from "../config/flag-file.ts";
import { serverIdentity } from "../control-plane/identity-lease.ts";

export interface OpenTracerDeps extends Omit<TracerDeps, "resource"> {
  /** How to connect to the collector; undefined: directly. */
  readonly connector: Connector | undefined;
  readonly resources: AsyncDisposableStack;
}

/** Imported only if traces are exported. Throws an error with file, line and field of each mistake. */
export async function openTracer(path: string, { connector, resources, ...deps }: OpenTracerDeps): Promise<Tracer> {
  const [{ Tracer, DEFAULT_ENDPOINT }, { parseTracingConfiguration }] = await Promise.all([
    import("../../tracing/tracer.ts"),
    import("../config/tracing-file.ts"),
  ]);
  const config = parseTracingConfiguration(path, await readFlagFile("--tracing-config-file", path));
  const { endpoint = DEFAULT_ENDPOINT } = config;
  const resource = { "service.name": "apiserver", "service.instance.id": serverIdentity(hostname()) };
  const forwarded = connector && (await forward(endpoint, connector, resources));
  return resources.use(new Tracer({ ...config, endpoint: forwarded ?? endpoint }, { ...deps, resource }));
}

const OTLP_PORT = 4317;

/** A local socket that leads through the proxy; undefined for a collector at a socket of this host. */
async function forward(
  endpoint: string,
  connector: Connector,
  resources: AsyncDisposableStack,
): Promise<string | undefined> {
  const [, host, port] = /^(?:dns:(?:\/\/[^/]*\/)?)?(\[[^\]]*\]|[^:/]+)(?::(\d+))?$/.exec(endpoint) ?? [];
  if (host === undefined) return undefined;
  const { LocalForwarder } = await import("../../client/transport/local-forwarder.ts");
  const address = host.replace(/^\[(.*)\]$/, "$1");
  const forwarder = resources.use(await LocalForwarder.open(connector, address, Number(port ?? OTLP_PORT)));
  return `unix:${forwarder.path}`;
}
