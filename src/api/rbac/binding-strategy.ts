/** The strategy that RoleBinding and ClusterRoleBinding share. */
import {
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../schema/validation/field-error.ts";
import { goStruct } from "../../schema/validation/go-syntax.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { child, index } from "../../schema/value/field-path.ts";
import { ageColumn, column, nameColumn, wideColumn } from "../columns/columns.ts";
import type { ApiObject, Column, Strategy } from "../kind.ts";
import { dns1123Subdomain, pathSegment, validateName } from "../meta/validation/names.ts";
import { svcGroup } from "../scheme.ts";
import { type RoleRef, roleRef as roleRefSchema, type Subject } from "./policy-rule.ts";

interface Binding extends ApiObject {
  readonly subjects?: readonly Subject[] | undefined;
  readonly roleRef: RoleRef;
}

const GROUP = "rbac.authorization.k8s.io";
const SUBJECT_KINDS = ["ServiceAccount", "User", "Group"];

/**
 * Sets the default API group of a subject: the core group for service accounts, this group for users and groups. Both
 * aliases of this group are accepted.
 */
function setGroupDefault(subject: Subject): Subject {
  if (subject.apiGroup || (subject.kind !== "User" && subject.kind !== "Group")) return subject;
  return { ...subject, apiGroup: GROUP };
}

function isGroup(group: string | undefined): boolean {
  return svcGroup(group ?? "") === svcGroup(GROUP);
}

function validateRoleRef({ apiGroup, kind, name }: RoleRef, roles: readonly string[]): readonly FieldError[] {
  return [
    ...(isGroup(apiGroup) ? [] : [notSupported("roleRef.apiGroup", apiGroup, [GROUP])]),
    ...(roles.includes(kind) ? [] : [notSupported("roleRef.kind", kind, roles)]),
    ...(name === "" ? [requiredField("roleRef.name")] : validateName("roleRef.name", name, pathSegment)),
  ];
}

function validateSubject(subject: Subject, path: string, namespaced: boolean): readonly FieldError[] {
  const { kind, name, apiGroup = "", namespace = "" } = subject;
  const [at, group] = [child(path, "name"), child(path, "apiGroup")];
  const errors: FieldError[] = name === "" ? [requiredField(at)] : [];
  if (!SUBJECT_KINDS.includes(kind)) return [...errors, notSupported(child(path, "kind"), kind, SUBJECT_KINDS)];
  if (kind !== "ServiceAccount")
    return isGroup(apiGroup) ? errors : [...errors, notSupported(group, apiGroup, [GROUP])];
  return [
    ...errors,
    ...(name === "" ? [] : validateName(at, name, dns1123Subdomain)),
    ...(apiGroup === "" ? [] : [notSupported(group, apiGroup, [""])]),
    ...(namespaced || namespace !== "" ? [] : [requiredField(child(path, "namespace"))]),
  ];
}

/** `roles` are the kinds of roles that may be bound. */
export function createBindingStrategy<T extends Binding>(roles: readonly string[], namespaced: boolean): Strategy<T> {
  return {
    setDefaults: (object) => ({
      ...object,
      roleRef: { ...object.roleRef, apiGroup: object.roleRef.apiGroup || GROUP },
      ...(object.subjects === undefined ? {} : { subjects: object.subjects.map(setGroupDefault) }),
    }),
    validate: ({ roleRef, subjects = [] }) => [
      ...validateRoleRef(roleRef, roles),
      ...validateEach(subjects, (subject, i) => validateSubject(subject, index("subjects", i), namespaced)),
    ],
    allowCreateOnUpdate: true,
    // The role is immutable, because the permission to bind was checked against it.
    validateUpdate: (next, previous) =>
      deepEqual(next.roleRef, previous.roleRef)
        ? []
        : [invalidField("roleRef", goStruct(roleRefSchema, next.roleRef), "cannot change roleRef")],
  };
}

function subjectsOf({ subjects = [] }: Binding, kind: string): readonly Subject[] {
  return subjects.filter((subject) => subject.kind === kind);
}

export const bindingColumns: readonly Column<Binding>[] = [
  nameColumn,
  column("Role", ({ roleRef }) => `${roleRef.kind}/${roleRef.name}`),
  ageColumn,
  wideColumn("Users", (object) => namesOf(subjectsOf(object, "User"))),
  wideColumn("Groups", (object) => namesOf(subjectsOf(object, "Group"))),
  wideColumn("ServiceAccounts", (object) =>
    subjectsOf(object, "ServiceAccount")
      .map(({ namespace = "", name }) => `${namespace}/${name}`)
      .join(", "),
  ),
];

function namesOf(subjects: readonly Subject[]): string {
  return subjects.map(({ name }) => name).join(", ");
}
