import { type FieldError, invalidField, requiredField } from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child } from "../../../schema/value/field-path.ts";
import { column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { ipProblems } from "../../meta/validation/ip.ts";
import { dns1123Subdomain, pathSegment } from "../../meta/validation/names.ts";
import { type IPAddress, ipAddress, type ParentReference } from "./schema.ts";

const PARENT = "spec.parentRef";

function validateParent(parent: ParentReference | undefined): readonly FieldError[] {
  if (parent === undefined) return [requiredField(PARENT)];
  const { group = "", resource = "", name = "", namespace = "" } = parent;
  const segment = (value: string, field: string): readonly FieldError[] =>
    pathSegment(value).map((problem) => invalidField(child(PARENT, field), value, problem));
  return [
    // Services are of the group without a name.
    ...(group === "" ? [] : dns1123Subdomain(group)).map((p) => invalidField(child(PARENT, "group"), group, p)),
    ...(resource === "" ? [requiredField(child(PARENT, "resource"))] : segment(resource, "resource")),
    ...(name === "" ? [requiredField(child(PARENT, "name"))] : segment(name, "name")),
    ...segment(namespace, "namespace"),
  ];
}

const ipAddressStrategy: Strategy<IPAddress> = {
  validate: (object) => validateParent(object.spec?.parentRef),
  validateUpdate: (next, previous) => {
    const { parentRef } = next.spec ?? {};
    // No name can be generated that is an address.
    const { generateName = "" } = next.metadata ?? {};
    const problems = generateName === "" ? [] : ipProblems(generateName);
    return [
      ...problems.map((problem) => invalidField("metadata.generateName", generateName, problem)),
      ...(deepEqual(parentRef, previous.spec?.parentRef)
        ? []
        : [invalidField(PARENT, parentRef, "field is immutable")]),
    ];
  },
};

/** `services.default/web`, and what is not said stays out. */
function parentText({ group, resource = "", namespace, name = "" }: ParentReference): string {
  const type = group ? `${resource}.${group}` : resource;
  return [type, namespace, name].filter((part) => part).join("/");
}

export const ipAddressKind: Kind<IPAddress> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "IPAddress",
  listKind: "IPAddressList",
  plural: "ipaddresses",
  singular: "ipaddress",
  shortNames: ["ip"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "ipaddresses",
  since: "1.33",
  storageVersion: "v1beta1",
  schema: ipAddress,
  nameFormat: ipProblems,
  columns: [
    nameColumn,
    column(
      "ParentRef",
      ({ spec }) => (spec?.parentRef === undefined ? "<none>" : parentText(spec.parentRef)),
      "What the address belongs to.",
    ),
  ],
  selectableFields: {},
  strategy: ipAddressStrategy,
};
