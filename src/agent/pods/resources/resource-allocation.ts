/**
 * What a pod's containers are granted and what they have: other than the spec says while the node cannot, or did not
 * yet, give what a new version asks for.
 */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ResourceRequirements } from "../../../api/core/resources/schema.ts";
import { allContainers, appContainers, initContainers } from "../pod-fields.ts";
import type { WaitingReason } from "../status/container-status.ts";
import { parseResource } from "./pod-resources.ts";

/** Nothing else changes in place. */
const RESIZABLE_RESOURCES = ["cpu", "memory"] as const;

export class ResourceAllocation {
  /** Why the node does not give what is asked for: `Deferred`, `Infeasible`. */
  pending: WaitingReason | undefined;
  /** What went wrong with giving it. */
  problem: string | undefined;
  /** By container. */
  readonly #granted = new Map<string, ResourceRequirements>();
  readonly #actual = new Map<string, ResourceRequirements>();
  #view: { readonly of: Pod; readonly granted: Pod } | undefined;

  /** An agent before this one wrote down in the status what containers were granted and have. */
  constructor({ status }: Pod) {
    for (const each of [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]) {
      if (each.containerID === undefined || each.resources === undefined) continue;
      const { limits } = each.resources;
      this.#granted.set(each.name, { ...(limits && { limits }), requests: each.allocatedResources ?? {} });
      this.#actual.set(each.name, each.resources);
    }
  }

  /** The pod as far as it is granted. */
  applyTo(pod: Pod): Pod {
    if (pod.spec === undefined) return pod;
    if (this.#view?.of === pod) return this.#view.granted;
    const changed = allContainers(pod).some(({ spec }) => this.#isHeld(spec));
    const granted = changed ? { ...pod, spec: { ...pod.spec, ...this.#containers(pod) } } : pod;
    this.#view = { of: pod, granted };
    return granted;
  }

  /** A new version came: until it is granted, what containers have been granted stays. */
  keepAllocation(before: Pod): void {
    for (const { spec } of allContainers(before)) {
      if (!this.#granted.has(spec.name)) this.#granted.set(spec.name, spec.resources ?? {});
    }
    this.#view = undefined;
  }

  /** From now on the pod has all that it asks for. */
  allocate(pod: Pod): void {
    for (const { spec } of allContainers(pod)) this.#granted.set(spec.name, spec.resources ?? {});
    this.#view = undefined;
  }

  /** Whether the version asks for something else than is granted. */
  needsResize(pod: Pod): boolean {
    return allContainers(pod).some(({ spec }) => this.#isHeld(spec));
  }

  /** The container was started, or changed, with what its spec says. */
  setActual(container: Container): void {
    this.#actual.set(container.name, container.resources ?? {});
  }

  /** What the container has; undefined for one that has not run. */
  getActual(name: string): ResourceRequirements | undefined {
    return this.#actual.get(name);
  }

  /** Whether the container, as granted, has yet to be changed: where it runs, or by starting it again. */
  requiredResize(container: Container): "none" | "in place" | "restart" {
    const actual = this.#actual.get(container.name);
    if (actual === undefined) return "none";
    const changed = RESIZABLE_RESOURCES.filter((name) => !isSameQuantity(actual, container.resources ?? {}, name));
    if (changed.length === 0) return "none";
    const restart = (container.resizePolicy ?? []).some(
      (policy) => policy.restartPolicy === "RestartContainer" && changed.some((name) => name === policy.resourceName),
    );
    return restart ? "restart" : "in place";
  }

  #isHeld(container: Container): boolean {
    const granted = this.#granted.get(container.name);
    return (
      granted !== undefined &&
      RESIZABLE_RESOURCES.some((name) => !isSameQuantity(granted, container.resources ?? {}, name))
    );
  }

  #containers(pod: Pod): Pick<NonNullable<Pod["spec"]>, "containers" | "initContainers"> {
    const asGranted = (container: Container): Container => {
      const granted = this.#granted.get(container.name);
      return granted === undefined || !this.#isHeld(container) ? container : { ...container, resources: granted };
    };
    const inits = initContainers(pod);
    return {
      containers: appContainers(pod).map(asGranted),
      ...(inits.length === 0 ? {} : { initContainers: inits.map(asGranted) }),
    };
  }
}

function isSameQuantity(a: ResourceRequirements, b: ResourceRequirements, name: string): boolean {
  return (["requests", "limits"] as const).every(
    (side) => parseResource(name, a[side]?.[name]) === parseResource(name, b[side]?.[name]),
  );
}
