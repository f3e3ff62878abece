import { type FieldError, invalidField, requiredField } from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { dns1123Subdomain, pathSegment } from "../../meta/validation/names.ts";
import type { ParentReference } from "./schema.ts";

export const PARENT = "spec.parentRef";

export function validateParent(parent: ParentReference | undefined): readonly FieldError[] {
  if (parent === undefined) return [requiredField(PARENT)];
  const { group = "", resource = "", name = "", namespace = "" } = parent;
  const segment = (value: string, field: string): readonly FieldError[] =>
    pathSegment(value).map((problem) => invalidField(child(PARENT, field), value, problem));
  return [
    // Services are in the core group, whose name is empty.
    ...(group === "" ? [] : dns1123Subdomain(group)).map((p) => invalidField(child(PARENT, "group"), group, p)),
    ...(resource === "" ? [requiredField(child(PARENT, "resource"))] : segment(resource, "resource")),
    ...(name === "" ? [requiredField(child(PARENT, "name"))] : segment(name, "name")),
    ...segment(namespace, "namespace"),
  ];
}
