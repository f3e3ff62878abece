import type { FieldError } from "../../schema/field-error.ts";
import { forbiddenField, invalidField, requiredField } from "../../schema/field-error.ts";
import { index } from "../../schema/field-path.ts";
import { allVerbs, type Kind, type Strategy } from "../kind.ts";
import { labelValue, qualifiedName } from "../meta/names.ts";
import { keepStatus, onlyStatus } from "../strategy.ts";
import { type Node, node } from "./node.ts";
import { nodeColumns } from "./node-columns.ts";

function validate(object: Node): readonly FieldError[] {
  return (object.spec?.taints ?? []).flatMap((taint, i) => {
    const at = index("spec.taints", i);
    return [
      ...(taint.key
        ? qualifiedName(taint.key).map((p) => invalidField(`${at}.key`, taint.key, p))
        : [requiredField(`${at}.key`)]),
      ...labelValue(taint.value ?? "").map((p) => invalidField(`${at}.value`, taint.value, p)),
    ];
  });
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
  prepareForStatusUpdate: onlyStatus,
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
  subresources: [{ name: "status", kind: "Node", verbs: ["get", "patch", "update"] }],
  // Kubernetes keeps nodes under their first name, so that a store can be handed over.
  storageName: "minions",
  schema: node,
  columns: nodeColumns,
  selectableFields: { "spec.unschedulable": (object) => String(object.spec?.unschedulable ?? false) },
  strategy,
};
