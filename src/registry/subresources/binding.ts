import type { Binding } from "../../api/core/binding/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import { conflict, StatusError } from "../../api/status.ts";
import {
  errorsMax,
  type FieldError,
  notSupported,
  renderFieldError,
  requiredField,
} from "../../schema/validation/field-error.ts";
import { goQuote } from "../../schema/value/go-quote.ts";
import type { Registry } from "../registry.ts";
import type { Scope } from "../scope.ts";
import { runValidatingAdmission } from "../write/admission.ts";
import { guaranteedUpdate } from "../write/guaranteed-update.ts";
import { metadataOf } from "../write/object-metadata.ts";
import type { WriteOptions } from "../write/request.ts";

/** Assigns the pod to a node. Throws a 409 when it is already assigned. */
export async function bind(
  pods: Registry<Pod>,
  scope: Scope,
  name: string,
  binding: Binding,
  options: WriteOptions<Pod> = {},
): Promise<void> {
  const errors = validateBinding(binding);
  if (errors.length > 0) {
    // Kubernetes answers 500 for an invalid binding.
    const texts = errors.slice(0, errorsMax).map((error) => `${error.field}: ${renderFieldError(error)}`);
    throw new StatusError(500, "", texts.length === 1 ? `${texts[0]}` : `[${texts.join(", ")}]`);
  }
  await runValidatingAdmission({ options }, binding, undefined);
  const { uid, resourceVersion } = metadataOf(binding);
  const preconditions =
    uid || resourceVersion ? { uid: uid || undefined, resourceVersion: resourceVersion || undefined } : undefined;
  const request = { registry: pods, scope, name, options: { ...options, preconditions } };
  await guaranteedUpdate(request, (pod) => assignPod(pods, pod, binding));
}

function assignPod(pods: Registry<Pod>, pod: Pod, binding: Binding): Pod {
  const name = metadataOf(pod).name ?? "";
  const fail = (why: string): never => {
    throw conflict({ group: "", resource: "pods/binding", name }, why);
  };
  if (pod.spec === undefined) return fail(`pod ${name} has no spec`);
  if (metadataOf(pod).deletionTimestamp !== undefined)
    fail(`pod ${name} is being deleted, cannot be assigned to a host`);
  if (pod.spec.nodeName) fail(`pod ${name} is already assigned to node ${goQuote(pod.spec.nodeName)}`);
  if ((pod.spec.schedulingGates ?? []).length > 0) fail(`pod ${name} has non-empty .spec.schedulingGates`);
  const labels = pods.deps.bindingLabels === true ? { ...metadataOf(pod).labels, ...metadataOf(binding).labels } : {};
  const annotations = { ...metadataOf(pod).annotations, ...metadataOf(binding).annotations };
  const conditions = (pod.status?.conditions ?? []).filter((condition) => condition.type !== "PodScheduled");
  const scheduled = { type: "PodScheduled", status: "True", lastTransitionTime: pods.timestamp() };
  return {
    ...pod,
    metadata: {
      ...pod.metadata,
      ...(Object.keys(labels).length === 0 ? {} : { labels }),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    },
    spec: { ...pod.spec, nodeName: binding.target.name },
    status: { ...pod.status, conditions: [...conditions, scheduled] },
  };
}

function validateBinding(binding: Binding): readonly FieldError[] {
  const errors: FieldError[] = [];
  const { kind = "", name = "" } = binding.target ?? {};
  if (kind !== "" && kind !== "Node") errors.push(notSupported("target.kind", kind, ["Node", "<empty>"]));
  if (name === "") errors.push(requiredField("target.name"));
  return errors;
}
