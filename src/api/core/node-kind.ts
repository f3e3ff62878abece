import { isIP } from "node:net";
import type { FieldError } from "../../schema/field-error.ts";
import { duplicateField, forbiddenField, invalidField, requiredField } from "../../schema/field-error.ts";
import { index } from "../../schema/field-path.ts";
import { allVerbs, type Kind, type Strategy } from "../kind.ts";
import { labelValue, qualifiedName } from "../meta/names.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type Node, node } from "./node.ts";
import { nodeColumns } from "./node-columns.ts";

/** Kubernetes names faults of taints under `metadata`. */
function validateTaints(taints: NonNullable<NonNullable<Node["spec"]>["taints"]>): readonly FieldError[] {
  const seen = new Set<string>();
  return taints.flatMap((taint, i) => {
    const at = index("metadata.taints", i);
    const pair = `${taint.key}:${taint.effect}`;
    const twice = taint.effect && seen.has(pair) ? [duplicateField(at, taint)] : [];
    seen.add(pair);
    return [
      ...qualifiedName(taint.key).map((problem) => invalidField(`${at}.key`, taint.key, problem)),
      ...labelValue(taint.value ?? "").map((problem) => invalidField(`${at}.value`, taint.value, problem)),
      ...(taint.effect ? [] : [requiredField(`${at}.effect`)]),
      ...twice,
    ];
  });
}

const cidrForm = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

function isCidr(text: string): boolean {
  const [address = "", bits = "", ...rest] = text.split("/");
  const family = isIP(address);
  return family !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

function validate(object: Node): readonly FieldError[] {
  const cidrs = object.spec?.podCIDRs ?? (object.spec?.podCIDR ? [object.spec.podCIDR] : []);
  return [
    ...validateTaints(object.spec?.taints ?? []),
    ...cidrs.flatMap((cidr, i) => (isCidr(cidr) ? [] : [invalidField(index("spec.podCIDRs", i), cidr, cidrForm)])),
  ];
}

function validateUpdate(next: Node, previous: Node): readonly FieldError[] {
  const errors: FieldError[] = [];
  const immutable = 'node updates may not change podCIDR except from "" to valid';
  if (previous.spec?.podCIDR && next.spec?.podCIDR !== previous.spec.podCIDR) {
    errors.push(forbiddenField("spec.podCIDRs", immutable));
  }
  if (previous.spec?.providerID && next.spec?.providerID !== previous.spec.providerID) {
    errors.push(forbiddenField("spec.providerID", 'node updates may not change providerID except from "" to valid'));
  }
  return errors;
}

const strategy: Strategy<Node> = {
  setDefaults: (object) =>
    object.status?.capacity === undefined || object.status.allocatable !== undefined
      ? object
      : { ...object, status: { ...object.status, allocatable: object.status.capacity } },
  prepareForUpdate: keepStatus,
  validate,
  validateUpdate,
};

export const nodeKind: Kind<Node> = {
  group: "",
  version: "v1",
  kind: "Node",
  listKind: "NodeList",
  plural: "nodes",
  singular: "node",
  shortNames: ["no"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("Node")],
  // Kubernetes keeps nodes under their first name, so that a store can be handed over.
  storageName: "minions",
  schema: node,
  columns: nodeColumns,
  selectableFields: { "spec.unschedulable": (object) => String(object.spec?.unschedulable ?? false) },
  strategy,
};
