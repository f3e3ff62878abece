/** Resolves the service of a webhook to an address that the API server's host can reach. */

import { endpointsKind } from "../../api/core/endpoints/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service, ServicePort } from "../../api/core/service/schema.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import type { Endpoint, EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { notFound, StatusError } from "../../api/status.ts";
import type { FindService } from "../../client/webhook/webhook-client.ts";
import type { HostPort } from "../../client/webhook/webhook-connections.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { ObjectReader } from "../chain/plugin.ts";

export interface ServiceAddressDeps {
  readonly reader: ObjectReader;
  readonly random: RandomSource;
  /** To one of the endpoints instead of the cluster IP, which needs a service proxy on this host. */
  readonly resolveEndpoints: boolean;
}

const SERVICE_NAME = "kubernetes.io/service-name";

export function createServiceResolver({ reader, random, resolveEndpoints }: ServiceAddressDeps): FindService {
  return async ({ namespace, name }, number, signal) => {
    const service = await reader.get(serviceKind, namespace, name, signal);
    if (service === undefined) throw notFound({ group: "", resource: "service", name });
    const { type, externalName, clusterIP = "" } = service.spec ?? {};
    if (type === "ExternalName") return { host: externalName ?? "", port: number };
    const port = (service.spec?.ports ?? []).find((one) => one.port === number);
    if (port === undefined) throw unavailable(`no service port ${number} found for service ${goQuote(name)}`);
    if (!resolveEndpoints && clusterIP !== "None" && clusterIP !== "") return { host: clusterIP, port: number };
    const found = await endpointsOf(reader, service, port, signal);
    const chosen = found[Math.floor(random.fraction() * found.length)];
    if (chosen === undefined) throw unavailable(`no endpoints available for service ${goQuote(name)}`);
    return chosen;
  };
}

async function endpointsOf(
  reader: ObjectReader,
  { metadata }: Service,
  port: ServicePort,
  signal: AbortSignal,
): Promise<readonly HostPort[]> {
  const { namespace = "", name = "" } = metadata ?? {};
  const slices = await reader.list(endpointSliceKind, namespace, signal);
  const own = slices.filter((slice) => slice.metadata?.labels?.[SERVICE_NAME] === name);
  if (own.length > 0) return own.flatMap((slice) => addressesOf(slice, port.name ?? ""));
  const { subsets = [] } = (await reader.get(endpointsKind, namespace, name, signal)) ?? {};
  return subsets.flatMap(({ addresses = [], ports = [] }) => {
    const number = ports.find((one) => (one.name ?? "") === (port.name ?? ""))?.port;
    return number === undefined ? [] : addresses.map(({ ip }) => ({ host: ip, port: number }));
  });
}

function addressesOf({ endpoints = [], ports = [] }: EndpointSlice, portName: string): readonly HostPort[] {
  const number = (ports ?? []).find(({ name = "" }) => name === portName)?.port;
  if (number === undefined) return [];
  const isReady = ({ conditions }: Endpoint): boolean => conditions?.ready !== false;
  return (endpoints ?? [])
    .filter(isReady)
    .flatMap(({ addresses }) => addresses.map((host) => ({ host, port: number })));
}

function unavailable(message: string): StatusError {
  return new StatusError(503, "ServiceUnavailable", message);
}
