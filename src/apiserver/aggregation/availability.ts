/** Whether the service of an API service exists and its server responds: the condition Available. */
import type { UserInfo } from "../../auth/user.ts";
import { MASTERS } from "../../auth/user.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { Clock } from "../../std/time/clock.ts";
import { describeFailure } from "./connection-error.ts";
import type { ExtensionConnections } from "./connections.ts";
import { ExtensionTimeout, getFromExtension } from "./extension-request.ts";
import { type ExtensionApi, pathOf } from "./registered-api.ts";
import { addressesOf, formatHostPort, type HostPort, type ServiceResolver, servicePort } from "./service-resolver.ts";

export interface Availability {
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

export interface AvailabilityDeps {
  readonly resolver: Pick<ServiceResolver, "service" | "endpoints" | "resolve">;
  readonly connections: ExtensionConnections;
  readonly clock: Clock;
}

/** Requests of one check: the server is available when one of them succeeds. */
const ATTEMPTS = 5;
const TIMEOUT_MS = 5000;
const CHECKER: UserInfo = { name: "system:kube-aggregator", uid: "", groups: [MASTERS], extra: {} };
const TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";

export async function checkAvailability(
  api: ExtensionApi,
  deps: AvailabilityDeps,
  signal: AbortSignal,
): Promise<Availability> {
  return (await findServiceFailure(api, deps)) ?? (await findDiscoveryFailure(api, deps, signal)) ?? PASSED;
}

const PASSED: Availability = { status: "True", reason: "Passed", message: "all checks passed" };

async function findServiceFailure(
  { service }: ExtensionApi,
  { resolver }: AvailabilityDeps,
): Promise<Availability | undefined> {
  const { namespace, name, port: number } = service;
  const where = `service/${name} in ${goQuote(namespace)}`;
  const unavailable = (reason: string, message: string): Availability => ({ status: "False", reason, message });
  const found = await resolver.service(service);
  if (found === undefined) return unavailable("ServiceNotFound", `${where} is not present`);
  if ((found.spec?.type ?? "ClusterIP") !== "ClusterIP") return undefined;
  const port = servicePort(found, number);
  if (port === undefined) return unavailable("ServicePortError", `${where} is not listening on port ${number}`);
  const endpoints = await resolver.endpoints(service);
  if (endpoints === undefined) return unavailable("EndpointsNotFound", `cannot find endpoints for ${where}`);
  const portName = port.name ?? "";
  if (addressesOf(endpoints, portName).length > 0) return undefined;
  const message = `endpoints for ${where} have no addresses with port name ${goQuote(portName)}`;
  return unavailable("MissingEndpoints", message);
}

/** Requests the discovery of the group version, which every extension server has. */
async function findDiscoveryFailure(
  api: ExtensionApi,
  deps: AvailabilityDeps,
  signal: AbortSignal,
): Promise<Availability | undefined> {
  const rest = new AbortController();
  const attempts = Array.from({ length: ATTEMPTS }, () =>
    tryDiscovery(api, deps, AbortSignal.any([signal, rest.signal])),
  );
  try {
    await Promise.any(attempts);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    const { errors } = error as AggregateError;
    return { status: "False", reason: "FailedDiscoveryCheck", message: (errors.at(-1) as Error).message };
  } finally {
    rest.abort();
  }
}

async function tryDiscovery(api: ExtensionApi, deps: AvailabilityDeps, signal: AbortSignal): Promise<void> {
  const address = await deps.resolver.resolve(api.service);
  const path = pathOf(api);
  const url = `https://${formatHostPort(address)}${path}`;
  const failed = (why: string): Error => new Error(`failing or missing response from ${url}: ${why}`);
  const status = await requestStatus(address, path, deps, signal).catch((error: unknown) => {
    const why = error instanceof ExtensionTimeout ? TIMED_OUT : describeFailure(error, new URL(url));
    throw failed(`Get ${goQuote(url)}: ${why}`);
  });
  if (status < 200 || status > 299) throw failed(`bad status from ${url}: ${status}`);
}

async function requestStatus(
  address: HostPort,
  path: string,
  { connections, clock }: AvailabilityDeps,
  signal: AbortSignal,
): Promise<number> {
  const request = { address, path, agent: connections.checkAgent(), user: CHECKER, bytesMax: 0 };
  const { status } = await getFromExtension({ ...request, timeoutMs: TIMEOUT_MS, signal }, clock);
  return status;
}
