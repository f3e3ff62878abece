import type { Container } from "../container/schema.ts";
import { setPodSpecDefaults } from "../pod-spec/defaults.ts";
import { containerRequests } from "../pod-spec/resources.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import { isPodLevelResource } from "../resources/names.ts";
import { filterResources, formatResourceList } from "../resources/quantities.ts";
import type { Pod } from "./schema.ts";

/** Sets the defaults of the spec and those that only pods get. */
export function setPodDefaults(pod: Pod): Pod {
  const spec = setPodSpecDefaults(pod.spec ?? { containers: [] });
  const setPodContainerDefaults = (container: Container) =>
    setRequestsFromLimits(setHostPorts(container, spec.hostNetwork === true));
  return {
    ...pod,
    spec: setPodRequests({
      ...spec,
      enableServiceLinks: spec.enableServiceLinks ?? true,
      containers: spec.containers.map(setPodContainerDefaults),
      ...(spec.initContainers === undefined
        ? {}
        : { initContainers: spec.initContainers.map(setPodContainerDefaults) }),
    }),
  };
}

/** Requests of the pod as a whole: where it has limits, those of its containers, or else its limits. */
function setPodRequests(spec: PodSpec): PodSpec {
  const { limits = {}, requests } = spec.resources ?? {};
  if (Object.keys(limits).length === 0) return spec;
  const ofContainers = formatResourceList(filterResources(containerRequests({ spec }), isPodLevelResource));
  const ofLimits = Object.fromEntries(Object.entries(limits).filter(([name]) => isPodLevelResource(name)));
  return { ...spec, resources: { ...spec.resources, requests: { ...ofLimits, ...ofContainers, ...requests } } };
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
