/** Rules for nodes: taints, pod CIDRs, capacity and allocatable resources. */

import { list, object, optional, pointer } from "../../../schema/define.ts";
import { canonicalJson } from "../../../schema/json/canonical-json.ts";
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { parseCidr } from "../../../std/net/ip.ts";
import { ownerReference } from "../../meta/object-meta.ts";
import { validateLegacyCidr } from "../../meta/validation/ip.ts";
import { decodeAnnotation, internalTypeProblem } from "../../meta/validation/json-annotation.ts";
import { labelValue, qualifiedName, validateName } from "../../meta/validation/names.ts";
import { repeatedIndexes } from "../../meta/validation/repeated.ts";
import { validateResourceQuantity } from "../resources/validation.ts";
import { type Node, type Taint, taint } from "./schema.ts";

const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

export function validateNode(node: Node): readonly FieldError[] {
  return [
    ...validateNodeAnnotations(node.metadata?.annotations ?? {}),
    ...validateTaints(node.spec?.taints ?? []),
    ...validateResources(node),
    ...validateCidrs(node.spec?.podCIDRs ?? []),
  ];
}

const TAINTS = "scheduler.alpha.kubernetes.io/taints";
const AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods";
const podSignature = object("core/v1.PodSignature", { podController: pointer(1, ownerReference) });
const avoidPods = object("core/v1.AvoidPods", {
  preferAvoidPods: optional(
    1,
    list(object("core/v1.PreferAvoidPodsEntry", { podSignature: optional(1, podSignature) })),
  ),
});

/** Annotations that preceded fields; nothing else interprets them. */
function validateNodeAnnotations(annotations: Readonly<Record<string, string>>): readonly FieldError[] {
  const path = "metadata.annotations";
  const { [TAINTS]: taintsText, [AVOID_PODS]: avoidText } = annotations;
  const errors: FieldError[] = [];
  if (taintsText) {
    const decoded = decodeAnnotation(list(taint), taintsText);
    if ("problem" in decoded) errors.push(invalidField(path, TAINTS, internalTypeProblem(decoded.problem)));
    else errors.push(...validateTaints(decoded.value ?? [], child(path, TAINTS)));
  }
  if (!avoidText) return errors;
  const decoded = decodeAnnotation(avoidPods, avoidText);
  if ("problem" in decoded) return [...errors, invalidField(child(path, "AvoidPods"), AVOID_PODS, decoded.problem)];
  const entries = decoded.value?.preferAvoidPods ?? [];
  return [
    ...errors,
    ...validateEach(entries, (entry, i) => {
      const at = child(index(child(path, AVOID_PODS), i), "PodSignature");
      const controller = entry.podSignature?.podController;
      if (controller === undefined) return [requiredField(at)];
      if (controller.controller === true) return [];
      return [invalidField(child(at, "PodController.Controller"), false, "must point to a controller")];
    }),
  ];
}

/** Kubernetes reports errors of taints under `metadata`. */
function validateTaints(taints: readonly Taint[], path = "metadata.taints"): readonly FieldError[] {
  const seen = new Set<string>();
  return validateEach(taints, (taint, i) => {
    const at = index(path, i);
    const { key, value = "" } = taint;
    const effect: string = taint.effect;
    const problems = labelValue(value);
    const pair = `${key}:${effect}`;
    const twice = seen.has(pair);
    seen.add(pair);
    return [
      ...validateName(child(at, "key"), key, qualifiedName),
      ...(problems.length === 0 ? [] : [invalidField(child(at, "value"), value, problems.join(";"))]),
      ...validateEffect(effect, child(at, "effect")),
      ...(twice ? [{ ...duplicateField(at, taint), detail: "taints must be unique by key and effect pair" }] : []),
    ];
  });
}

function validateEffect(effect: string, path: string): readonly FieldError[] {
  if (EFFECTS.includes(effect)) return [];
  return [effect === "" ? requiredField(path) : notSupported(path, effect, EFFECTS)];
}

function validateResources({ status }: Node): readonly FieldError[] {
  return (["capacity", "allocatable"] as const).flatMap((list) =>
    validateEach(Object.entries(status?.[list] ?? {}), ([name, amount]) =>
      validateResourceQuantity(name, amount, child(`status.${list}`, name)),
    ),
  );
}

/** At most one CIDR of each IP family. */
function validateCidrs(cidrs: readonly string[]): readonly FieldError[] {
  const path = "spec.podCIDRs";
  const cidrErrors = validateEach(cidrs, (cidr, i) => validateLegacyCidr(cidr, index(path, i)));
  if (cidrs.length < 2) return cidrErrors;
  const families = cidrs.map((cidr) => parseCidr(cidr)?.family);
  const unread = families.indexOf(undefined);
  const dual = unread < 0 && new Set(families).size === 2 && cidrs.length === 2;
  const why = `invalid CIDR[${unread}]: <nil> (invalid CIDR address: ${cidrs[unread]})`;
  const detail = `invalid PodCIDRs. failed to check with dual stack with error:${why}`;
  return [
    ...cidrErrors,
    ...(unread < 0 ? [] : [{ type: "InternalError", field: path, detail } as const]),
    ...(dual ? [] : [invalidField(path, cidrs, "may specify no more than one CIDR for each IP family")]),
    ...validateEach(repeatedIndexes(cidrs), (i) => [duplicateField(index(path, i), cidrs[i])]),
  ];
}

/** Rules for updates of nodes and of their status. */
export function validateNodeUpdate(next: Node, previous: Node): readonly FieldError[] {
  const { externalID = "" } = previous.spec ?? {};
  return [
    ...validateNodeAnnotations(next.metadata?.annotations ?? {}),
    ...validateResources(next),
    ...validateAddresses(next),
    ...validateAssignedFields(next, previous),
    ...validateTaints(next.spec?.taints ?? []),
    ...(externalID === (next.spec?.externalID ?? "") ? [] : [forbiddenField("spec.externalID", "may not be updated")]),
  ];
}

function validateAddresses({ status }: Node): readonly FieldError[] {
  const addresses = status?.addresses ?? [];
  const seen = new Set<string>();
  return validateEach(addresses, (address, i) =>
    seen.size === seen.add(canonicalJson(address)).size ? [duplicateField(index("status.addresses", i), address)] : [],
  );
}

/** Fields that are immutable once they are set. */
function validateAssignedFields({ spec: next }: Node, { spec: previous }: Node): readonly FieldError[] {
  const errors: FieldError[] = [];
  const { podCIDRs = [], providerID = "" } = previous ?? {};
  const now = next?.podCIDRs ?? [];
  // One for each that differs, as in Kubernetes.
  const changes = podCIDRs.length === now.length ? podCIDRs.filter((cidr, i) => cidr !== now[i]) : podCIDRs.slice(0, 1);
  for (const _ of changes) {
    errors.push(forbiddenField("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'));
  }
  if (providerID !== "" && providerID !== (next?.providerID ?? "")) {
    errors.push(forbiddenField("spec.providerID", 'node updates may not change providerID except from "" to valid'));
  }
  return errors;
}
