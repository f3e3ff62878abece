import type { Container } from "../container/schema.ts";
import { setPodSpecDefaults } from "../pod-spec/defaults.ts";
import type { Pod } from "./schema.ts";

/** Sets the defaults of the spec and those that only pods get. */
export function setPodDefaults(pod: Pod): Pod {
  const spec = setPodSpecDefaults(pod.spec ?? { containers: [] });
  const setPodContainerDefaults = (container: Container) =>
    setRequestsFromLimits(setHostPorts(container, spec.hostNetwork === true));
  return {
    ...pod,
    spec: {
      ...spec,
      enableServiceLinks: spec.enableServiceLinks ?? true,
      containers: spec.containers.map(setPodContainerDefaults),
      ...(spec.initContainers === undefined
        ? {}
        : { initContainers: spec.initContainers.map(setPodContainerDefaults) }),
    },
  };
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
