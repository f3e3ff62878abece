/**
 * Allocated and actual resources of a pod's containers. They differ from the spec while the node cannot allocate, or
 * has not applied yet, the resources of a new version.
 */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ResourceRequirements } from "../../../api/core/resources/schema.ts";
import { allContainers, appContainers, initContainers } from "../pod-fields.ts";
import type { WaitingReason } from "../status/container-status.ts";
import { parseResource } from "./pod-resources.ts";

/** The resources that can change in place. */
const RESIZABLE_RESOURCES = ["cpu", "memory"] as const;

export class ResourceAllocation {
  /** Why the node does not allocate the requested resources: `Deferred`, `Infeasible`. */
  pending: WaitingReason | undefined;
  /** The error of the last attempt to apply the allocated resources. */
  problem: string | undefined;
  /** The pod's cgroup does not have the limits of the allocated resources yet. */
  isPodLimitOutdated = false;
  /** By container. */
  readonly #allocated = new Map<string, ResourceRequirements>();
  readonly #actual = new Map<string, ResourceRequirements>();
  #cached: { readonly of: Pod; readonly allocated: Pod } | undefined;

  /** Reads the allocated and actual resources that an agent before this one wrote to the status. */
  constructor({ status }: Pod) {
    for (const each of [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]) {
      if (each.containerID === undefined || each.resources === undefined) continue;
      const { limits, requests = {} } = each.resources;
      // Without the gate InPlacePodVerticalScalingAllocatedStatus the API server drops allocatedResources.
      this.#allocated.set(each.name, { ...(limits && { limits }), requests: each.allocatedResources ?? requests });
      this.#actual.set(each.name, each.resources);
    }
  }

  /** The pod with the allocated resources. */
  applyTo(pod: Pod): Pod {
    if (pod.spec === undefined) return pod;
    if (this.#cached?.of === pod) return this.#cached.allocated;
    const changed = allContainers(pod).some(({ spec }) => this.#isPending(spec));
    const allocated = changed ? { ...pod, spec: { ...pod.spec, ...this.#containers(pod) } } : pod;
    this.#cached = { of: pod, allocated };
    return allocated;
  }

  /** Keeps the resources of the version before allocated until `allocate`. */
  keepAllocation(before: Pod): void {
    for (const { spec } of allContainers(before)) {
      if (!this.#allocated.has(spec.name)) this.#allocated.set(spec.name, spec.resources ?? {});
    }
    this.#cached = undefined;
  }

  /** Allocates all resources that the pod requests. */
  allocate(pod: Pod): void {
    this.isPodLimitOutdated = true;
    for (const { spec } of allContainers(pod)) this.#allocated.set(spec.name, spec.resources ?? {});
    this.#cached = undefined;
  }

  /** The containers of the version whose resources differ from the allocated ones. */
  listPending(pod: Pod): readonly Container[] {
    return allContainers(pod).flatMap(({ spec }) => (this.#isPending(spec) ? [spec] : []));
  }

  /** Whether the version's resources differ from the allocated ones. */
  needsResize(pod: Pod): boolean {
    return allContainers(pod).some(({ spec }) => this.#isPending(spec));
  }

  /** The container was started, or updated, with the resources of its spec. */
  setActual(container: Container): void {
    this.#actual.set(container.name, container.resources ?? {});
  }

  /** The container's resources; undefined if it has not run. */
  getActual(name: string): ResourceRequirements | undefined {
    return this.#actual.get(name);
  }

  /**
   * How the running container, with its allocated resources, must be changed. One whose resources an agent before this
   * one did not report, as with InPlacePodVerticalScaling=false, is updated with them, in place.
   */
  requiredResize(container: Container): "none" | "in place" | "restart" {
    const actual = this.#actual.get(container.name);
    const changed = RESIZABLE_RESOURCES.filter(
      (name) => !isSameQuantity(actual ?? {}, container.resources ?? {}, name),
    );
    if (changed.length === 0) return "none";
    if (actual === undefined) return "in place";
    const restart = (container.resizePolicy ?? []).some(
      (policy) => policy.restartPolicy === "RestartContainer" && changed.some((name) => name === policy.resourceName),
    );
    return restart ? "restart" : "in place";
  }

  #isPending(container: Container): boolean {
    const allocated = this.#allocated.get(container.name);
    return (
      allocated !== undefined &&
      RESIZABLE_RESOURCES.some((name) => !isSameQuantity(allocated, container.resources ?? {}, name))
    );
  }

  #containers(pod: Pod): Pick<NonNullable<Pod["spec"]>, "containers" | "initContainers"> {
    const withAllocated = (container: Container): Container => {
      const resources = this.#allocated.get(container.name);
      return resources === undefined || !this.#isPending(container) ? container : { ...container, resources };
    };
    const inits = initContainers(pod);
    return {
      containers: appContainers(pod).map(withAllocated),
      ...(inits.length === 0 ? {} : { initContainers: inits.map(withAllocated) }),
    };
  }
}

function isSameQuantity(a: ResourceRequirements, b: ResourceRequirements, name: string): boolean {
  return (["requests", "limits"] as const).every(
    (side) => parseResource(name, a[side]?.[name]) === parseResource(name, b[side]?.[name]),
  );
}
