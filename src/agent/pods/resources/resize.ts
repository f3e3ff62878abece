/** Resizes the containers of a running pod in place: allocates the resources, then applies them in a safe order. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import type { ObservedContainer } from "../../runtime/observation.ts";
import type { PodContext } from "../pod-context.ts";
import { allContainers, isStatic } from "../pod-fields.ts";
import { backoffKey, latestRun } from "../worker/plan.ts";
import { makeContainerResources, mayUseSwap } from "./container-resources.ts";
import { parseNanos } from "./quantities.ts";

/** Allocates the resources of the newest version, if the node has them, and applies them to running containers. */
export async function resizePod(pod: PodContext): Promise<void> {
  if (pod.services.settings.inPlaceResize === false) return;
  const { resources } = pod.memory;
  const { pending, problem } = resources;
  if (!resources.needsResize(pod.desired)) {
    resources.pending = undefined;
  } else {
    const infeasible = findInfeasibility(pod);
    resources.pending =
      infeasible === undefined
        ? await pod.services.admission.resize(pod.desired)
        : { reason: "Infeasible", message: infeasible };
    if (resources.pending === undefined) {
      // A container that waits for its restart may run with the new resources.
      for (const spec of resources.listPending(pod.desired)) pod.memory.backoff.reset(backoffKey(spec));
      resources.allocate(pod.desired);
    }
  }
  const due = findContainerResizes(pod);
  if (due.length > 0 || resources.isPodLimitOutdated) await tryActuate(pod, due);
  else resources.problem = undefined;
  const isChanged = resources.problem !== problem || !deepEqual(resources.pending, pending);
  // The observation publishes the status.
  if (due.length > 0 || isChanged) await pod.refresh();
}

/** Why no node resizes the pod in place; undefined when one may. */
function findInfeasibility({ pod, desired, memory, services }: PodContext): string | undefined {
  if (isStatic(desired)) return "In-place resize of static-pods is not supported";
  const before = new Map(allContainers(pod).map(({ spec }) => [spec.name, spec]));
  const isRefused = memory.resources.listPending(desired).some((spec) => {
    const allocated = before.get(spec.name);
    if (allocated === undefined || isSameRequest(spec, allocated, "memory")) return false;
    const restarts = (allocated.resizePolicy ?? []).find(({ resourceName }) => resourceName === "memory");
    if (restarts?.restartPolicy === "RestartContainer") return false;
    const { cpu: settings } = services.settings;
    return mayUseSwap(desired, spec, settings) || mayUseSwap(pod, allocated, settings);
  });
  return isRefused ? "In-place resize of containers with swap is not supported." : undefined;
}

function isSameRequest(a: Container, b: Container, name: string): boolean {
  return parseNanos(a.resources?.requests?.[name]) === parseNanos(b.resources?.requests?.[name]);
}

async function tryActuate(pod: PodContext, due: readonly ContainerResize[]): Promise<void> {
  const { resources } = pod.memory;
  // Publishes the status with the resize in progress before its end.
  if (due.length > 0) await pod.refresh();
  try {
    await actuate(pod, due);
    resources.problem = undefined;
  } catch (error) {
    pod.signal.throwIfAborted();
    resources.problem = error instanceof Error ? error.message : String(error);
    pod.log.info("Failed to resize pod", { error: resources.problem });
  }
}

/** Whether a running container does not have its allocated resources yet. */
export function isResizeInProgress(pod: PodContext): boolean {
  return findContainerResizes(pod).length > 0;
}

interface ContainerResize {
  readonly spec: Container;
  readonly container: ObservedContainer;
  readonly how: "in place" | "restart";
}

function findContainerResizes({ pod, observation, memory }: PodContext): readonly ContainerResize[] {
  if (isStatic(pod)) return [];
  return allContainers(pod).flatMap(({ spec }) => {
    const container = latestRun(observation, spec.name);
    const how = memory.resources.requiredResize(spec);
    return how === "none" || container?.state !== "running" ? [] : [{ spec, container, how }];
  });
}

/** The pod's cgroup always has enough for its containers: it grows before them and shrinks after them. */
async function actuate(pod: PodContext, changes: readonly ContainerResize[]): Promise<void> {
  const { services, memory, signal } = pod;
  const { cpu, memoryCapacityBytes } = services.settings;
  memory.resources.isPodLimitOutdated = true;
  if (changes.length > 0) await services.cgroups.apply(pod.pod, withActualResources(pod));
  for (const { spec, container, how } of changes) {
    // A container that restarts gets its resources then.
    if (how === "restart") continue;
    const linux = makeContainerResources(pod.pod, spec, cpu, memoryCapacityBytes);
    await services.runtime.updateContainerResources({ containerId: container.id, linux }, signal);
    memory.resources.setActual(spec);
  }
  await services.cgroups.apply(pod.pod, withActualResources(pod));
  memory.resources.isPodLimitOutdated = changes.some(({ how }) => how === "restart");
}

/** The pod with the resources that its running containers have now. */
function withActualResources({ pod, memory, observation }: PodContext): Pod {
  if (pod.spec === undefined) return pod;
  const withActual = (container: Container): Container => {
    const resources = memory.resources.getActual(container.name);
    const isRunning = latestRun(observation, container.name)?.state === "running";
    return resources === undefined || !isRunning ? container : { ...container, resources };
  };
  const { containers, initContainers } = pod.spec;
  const inits = initContainers === undefined ? {} : { initContainers: initContainers.map(withActual) };
  return { ...pod, spec: { ...pod.spec, containers: containers.map(withActual), ...inits } };
}
