/** Sets the condition Available of the API services of extension servers, as Kubernetes' availability controller. */
import { apiServiceKind } from "../../api/apiregistration/api-service/kind.ts";
import type { APIService } from "../../api/apiregistration/api-service/schema.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import { endpointSliceKind } from "../../api/discovery/endpoint-slice/kind.ts";
import type { Registries } from "../../registry/registries.ts";
import { guaranteedUpdate } from "../../registry/write/guaranteed-update.ts";
import { ignoreConflict, systemScope } from "./ensure.ts";

/** The port of an API service that specifies none. */
const DEFAULT_PORT = 443;

export async function reconcileApiServiceAvailability(registries: Registries, signal: AbortSignal): Promise<void> {
  const registry = registries.of(apiServiceKind);
  const scope = { ...systemScope("", signal), group: registry.kind.group };
  const { items } = await registry.objects.list(registry.prefix(scope));
  for (const { metadata, spec } of items.filter((each) => each.spec?.service !== undefined)) {
    const unavailability = await findUnavailability(registries, spec?.service);
    const next = (current: APIService): APIService =>
      withAvailableCondition(current, unavailability, registry.timestamp());
    const found = items.find((each) => each.metadata === metadata);
    if (found !== undefined && next(found) !== found) {
      await ignoreConflict(guaranteedUpdate({ registry, scope, name: metadata?.name ?? "", options: {} }, next));
    }
  }
}

interface Unavailability {
  readonly reason: string;
  readonly message: string;
}

async function findUnavailability(
  registries: Registries,
  service: NonNullable<APIService["spec"]>["service"],
): Promise<Unavailability> {
  const { namespace = "", name = "", port = DEFAULT_PORT } = service ?? {};
  const where = `service/${name} in ${JSON.stringify(namespace)}`;
  const services = registries.of(serviceKind).objects;
  const found = await services.get(services.key(namespace, name));
  if (found === undefined) return { reason: "ServiceNotFound", message: `${where} is not present` };
  if (found.spec?.type === "ClusterIP") {
    const servicePort = found.spec.ports?.find((each) => each.port === port);
    if (servicePort === undefined) {
      return { reason: "ServicePortError", message: `${where} is not listening on port ${port}` };
    }
    const slices = registries.of(endpointSliceKind).objects;
    const { items } = await slices.list(slices.prefix(namespace));
    const own = items.filter(({ metadata }) => metadata?.labels?.["kubernetes.io/service-name"] === name);
    if (own.length === 0) {
      return { reason: "EndpointsNotFound", message: `cannot find endpointslices for ${where}` };
    }
    const hasEndpoint = own.some(({ endpoints, ports }) => {
      const ready = endpoints?.some(({ conditions }) => conditions?.ready !== false) === true;
      return ready && ports?.some((each) => (each.name ?? "") === (servicePort.name ?? "")) === true;
    });
    if (!hasEndpoint) {
      const message = `endpointslices for ${where} have no addresses with port name ${JSON.stringify(servicePort.name ?? "")}`;
      return { reason: "MissingEndpoints", message };
    }
  }
  const message = `failing or missing response from ${where}: this server sends no requests to extension servers`;
  return { reason: "FailedDiscoveryCheck", message };
}

/** Returns the same object when the condition is up to date. */
function withAvailableCondition(
  service: APIService,
  { reason, message }: Unavailability,
  lastTransitionTime: string,
): APIService {
  const conditions = service.status?.conditions ?? [];
  const found = conditions.find(({ type }) => type === "Available");
  if (found?.status === "False" && found.reason === reason && found.message === message) return service;
  const since = found?.status === "False" ? found.lastTransitionTime : lastTransitionTime;
  const available = { type: "Available", status: "False", lastTransitionTime: since, reason, message };
  const others = conditions.filter(({ type }) => type !== "Available");
  return { ...service, status: { ...service.status, conditions: [...others, available] } };
}
