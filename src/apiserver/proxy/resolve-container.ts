import type { Pod } from "../../api/core/pod/schema.ts";
import { badRequest } from "../../api/status.ts";

/** Throws Kubernetes' 400 when the pod has no such container, or several and none is named. */
export function resolveContainer({ metadata, spec }: Pod, requested: string): string {
  const name = metadata?.name ?? "";
  const { containers = [], initContainers = [], ephemeralContainers = [] } = spec ?? {};
  const names = [...initContainers, ...containers, ...ephemeralContainers].map((container) => container.name);
  if (requested !== "") {
    if (!names.includes(requested)) throw badRequest(`container ${requested} is not valid for pod ${name}`);
    return requested;
  }
  const [only] = containers;
  if (containers.length === 1 && only !== undefined) return only.name;
  const choice = containers.length === 0 ? "" : `, choose one of: [${names.join(" ")}]`;
  throw badRequest(`a container name must be specified for pod ${name}${choice}`);
}
