/** The `resize` subresource: changes CPU and memory of running containers. */
import { semanticEqual } from "../../../schema/semantic-equal.ts";
import { type FieldError, forbiddenField, invalidField } from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import type { SubresourceStrategy } from "../../kind.ts";
import { compareQuantityTexts } from "../../meta/quantity.ts";
import { type Container, container as containerSchema } from "../container/schema.ts";
import { MIRROR } from "../pod-spec/annotation-validation.ts";
import { hasPodLevelResources } from "../pod-spec/resources.ts";
import { type PodSpec, podSpec } from "../pod-spec/schema.ts";
import { validationOptionsFrom } from "../pod-spec/validation-options.ts";
import type { ResourceList, ResourceRequirements } from "../resources/schema.ts";
import { updatePodGeneration } from "./generation.ts";
import { qosClassOf } from "./qos.ts";
import type { Pod } from "./schema.ts";
import { validatePod } from "./validation.ts";

const LISTS = ["initContainers", "containers"] as const;
const NO_SPEC: PodSpec = { containers: [] };

export const podResizeStrategy: SubresourceStrategy<Pod> = {
  manageableFields: LISTS.flatMap((list) => ["resources", "resizePolicy"].map((member) => ["spec", list, "*", member])),
  prepareForUpdate,
  validateUpdate,
};

/** Keeps added, removed or renamed containers, so that validation rejects them. */
function prepareForUpdate(next: Pod, previous: Pod): Pod {
  const { spec = NO_SPEC } = next;
  const { spec: old = NO_SPEC } = previous;
  if (!LISTS.every((list) => sameNames(spec[list], old[list]))) return next;
  const resized: PodSpec = {
    ...old,
    containers: copyResources(old.containers, spec.containers),
    ...(old.initContainers === undefined
      ? {}
      : { initContainers: copyResources(old.initContainers, spec.initContainers ?? []) }),
  };
  return updatePodGeneration({ ...previous, metadata: subresourceMetadata(next, previous), spec: resized }, previous);
}

/** Takes from the client's metadata only the object's identity and managedFields. */
export function subresourceMetadata(next: Pod, previous: Pod): Pod["metadata"] {
  const { name, namespace, uid, resourceVersion, managedFields } = next.metadata ?? {};
  const kept = { ...previous.metadata, name, namespace, uid, resourceVersion };
  return managedFields === undefined ? kept : { ...kept, managedFields };
}

function sameNames(next: readonly Container[] = [], previous: readonly Container[] = []): boolean {
  return next.length === previous.length && next.every(({ name }, i) => name === previous[i]?.name);
}

function copyResources(previous: readonly Container[], next: readonly Container[]): readonly Container[] {
  return previous.map((container, i) => {
    const { resources, resizePolicy } = next[i] ?? container;
    const { resources: _, resizePolicy: __, ...rest } = container;
    return {
      ...rest,
      ...(resources === undefined ? {} : { resources }),
      ...(resizePolicy === undefined ? {} : { resizePolicy }),
    };
  });
}

function validateUpdate(next: Pod, previous: Pod): readonly FieldError[] {
  const { spec = NO_SPEC } = next;
  const { spec: old = NO_SPEC } = previous;
  // Alone, whatever else is invalid.
  if (hasPodLevelResources(old) || hasPodLevelResources(spec)) {
    return [forbiddenField("", "pods with pod-level resources cannot be resized")];
  }
  if (previous.metadata?.annotations?.[MIRROR] !== undefined) {
    return [forbiddenField("", "static pods cannot be resized")];
  }
  if (old.os?.name === "windows") return [forbiddenField("", "windows pods cannot be resized")];
  const errors: FieldError[] = [...validatePod(next, validationOptionsFrom(previous))];
  if (qosClassOf(spec) !== (previous.status?.qosClass ?? qosClassOf(old))) {
    const detail = "Pod QOS Class may not change as a result of resizing";
    errors.push(invalidField("spec", next.status?.qosClass ?? "", detail));
  }
  if (!canResize(previous)) errors.push(forbiddenField("spec", "Pod running on node without support for resize"));
  const orderErrors = validateOrder(spec, old);
  if (orderErrors.length > 0) return [...errors, ...orderErrors];
  for (const list of LISTS) {
    for (const [i, container] of (spec[list] ?? []).entries()) {
      const before = old[list]?.[i] ?? container;
      if (list === "initContainers" && before.restartPolicy !== "Always") continue;
      errors.push(...validateContainerResize(container, before, child(index(`spec.${list}`, i), "resources")));
    }
  }
  errors.push(...validateOtherResources(spec, old));
  return errors;
}

/** Rejects changes of anything but CPU and memory of containers and sidecars. */
function validateOtherResources(next: PodSpec, previous: PodSpec): readonly FieldError[] {
  const forbid = (detail: string): FieldError => forbiddenField("spec", detail);
  const differs = (now: Container, before: Container | undefined): boolean =>
    !semanticEqual(containerSchema, now, before);
  const masked = maskComputeResources(next, previous);
  const errors = [
    ...masked.containers
      .filter((container, i) => differs(container, previous.containers[i]))
      .map(() => forbid("only cpu and memory resources are mutable")),
    ...(masked.initContainers ?? [])
      .filter((container, i) => differs(container, previous.initContainers?.[i]))
      .map(({ restartPolicy }) =>
        forbid(
          restartPolicy === "Always"
            ? "only cpu and memory resources for sidecar containers are mutable"
            : "resources for non-sidecar init containers are immutable",
        ),
      ),
  ];
  if (errors.length > 0 || semanticEqual(podSpec, masked, previous)) return errors;
  return [forbid("only cpu and memory resources are mutable")];
}

/** A kubelet that supports resize reports the resources of running containers. */
function canResize({ status }: Pod): boolean {
  const running = (status?.containerStatuses ?? []).find(({ state }) => state?.running !== undefined);
  return running === undefined || running.resources !== undefined;
}

function validateOrder(next: PodSpec, previous: PodSpec): readonly FieldError[] {
  return (["containers", "initContainers"] as const).flatMap((list) => {
    const [now, before] = [next[list] ?? [], previous[list] ?? []];
    const field = `spec.${list}`;
    if (now.length !== before.length) {
      return [forbiddenField(field, `${list} may not be added or removed on resize`)];
    }
    if (sameNames(now, before)) return [];
    return [forbiddenField(field, `${list} may not be renamed or reordered on resize`)];
  });
}

function validateContainerResize(next: Container, previous: Container, path: string): readonly FieldError[] {
  const errors: FieldError[] = [];
  for (const [list, what] of [["requests", "resource requests"] as const, ["limits", "resource limits"] as const]) {
    const kept = next.resources?.[list] ?? {};
    if (Object.keys(previous.resources?.[list] ?? {}).some((name) => kept[name] === undefined)) {
      errors.push(forbiddenField(child(path, list), `${what} cannot be removed`));
    }
  }
  const policy = next.resizePolicy?.find(({ resourceName }) => resourceName === "memory");
  const limit = next.resources?.limits?.memory;
  if (limit === undefined || policy?.restartPolicy === "RestartContainer") return errors;
  const before = previous.resources?.limits?.memory;
  const verb = before === undefined ? "added" : compareQuantityTexts(limit, before) < 0 ? "decreased" : "";
  if (verb === "") return errors;
  const detail = `memory limits cannot be ${verb} unless resizePolicy is RestartContainer`;
  return [...errors, forbiddenField(`${child(path, "limits")}[memory]`, detail)];
}

/**
 * Returns `next` with the CPU and memory of `previous`; any difference that remains is invalid. Containers without a
 * list of requests or limits are skipped, as in Kubernetes.
 */
function maskComputeResources(next: PodSpec, previous: PodSpec): PodSpec {
  const mask = (container: Container, old: Container | undefined): Container => ({
    ...container,
    resources: maskedResources(container, old),
  });
  return {
    ...next,
    containers: next.containers.map((container, i) => mask(container, previous.containers[i])),
    ...(next.initContainers === undefined
      ? {}
      : {
          initContainers: next.initContainers.map((container, i) =>
            container.restartPolicy === "Always" ? mask(container, previous.initContainers?.[i]) : container,
          ),
        }),
  };
}

function maskedResources(next: Container, previous: Container | undefined): ResourceRequirements {
  const of = (list: "limits" | "requests"): { readonly [L in "limits" | "requests"]?: ResourceList } => {
    const before = previous?.resources?.[list];
    if (before === undefined) return {};
    const { cpu: _, memory: __, ...others } = next.resources?.[list] ?? {};
    const { cpu, memory } = before;
    return {
      [list]: { ...others, ...(cpu === undefined ? {} : { cpu }), ...(memory === undefined ? {} : { memory }) },
    };
  };
  return { ...next.resources, limits: {}, requests: {}, ...of("limits"), ...of("requests") };
}
