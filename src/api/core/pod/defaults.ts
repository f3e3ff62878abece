import type { FeatureLookup } from "../../../flags/gates.ts";
import type { Container } from "../container/schema.ts";
import { setPodSpecDefaults } from "../pod-spec/defaults.ts";
import { containerLimits, containerRequests } from "../pod-spec/resources.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import { isHugePages, isPodLevelResource } from "../resources/names.ts";
import { filterResources, formatResourceList } from "../resources/quantities.ts";
import type { Pod } from "./schema.ts";

/** Sets the defaults of the spec and those that only pods get. */
export function setPodDefaults(pod: Pod, features?: FeatureLookup): Pod {
  const spec = setPodSpecDefaults(pod.spec ?? { containers: [] });
  const setPodContainerDefaults = (container: Container) =>
    setRequestsFromLimits(setHostPorts(container, spec.hostNetwork === true));
  const defaulted: PodSpec = {
    ...spec,
    enableServiceLinks: spec.enableServiceLinks ?? true,
    containers: spec.containers.map(setPodContainerDefaults),
    ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(setPodContainerDefaults) }),
  };
  return { ...pod, spec: features?.has("PodLevelResources") === true ? setPodLevelDefaults(defaulted) : defaulted };
}

/**
 * Resources of the pod as a whole, where it has any: huge page limits are those of its containers, and requests are
 * those of its containers, or else its limits. Huge pages cannot be overcommitted: requests are always the limits.
 */
function setPodLevelDefaults(spec: PodSpec): PodSpec {
  const { limits: own, requests } = spec.resources ?? {};
  if (Object.keys({ ...own, ...requests }).length === 0) return spec;
  const pages = formatResourceList(filterResources(containerLimits({ spec }), isHugePages));
  const limits = { ...pages, ...own };
  if (Object.keys(limits).length === 0) return spec;
  const isCounted = (name: string): boolean => isPodLevelResource(name) && !isHugePages(name);
  const ofContainers = formatResourceList(filterResources(containerRequests({ spec }), isCounted));
  const ofLimits = Object.fromEntries(Object.entries(limits).filter(([name]) => isPodLevelResource(name)));
  return { ...spec, resources: { ...spec.resources, limits, requests: { ...ofLimits, ...ofContainers, ...requests } } };
}

/** Uses the limit as the request where no request is set. */
function setRequestsFromLimits(container: Container): Container {
  const { limits, requests } = container.resources ?? {};
  if (limits === undefined || Object.keys(limits).length === 0) return container;
  return { ...container, resources: { ...container.resources, requests: { ...limits, ...requests } } };
}

function setHostPorts(container: Container, hostNetwork: boolean): Container {
  if (!hostNetwork || container.ports === undefined) return container;
  return { ...container, ports: container.ports.map((p) => ({ ...p, hostPort: p.hostPort || p.containerPort })) };
}
