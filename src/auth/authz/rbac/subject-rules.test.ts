import t from "tap";
import type { RoleRef, Subject } from "../../../api/rbac/policy-rule.ts";
import type { UserInfo } from "../../user.ts";
import type { Policy } from "./bootstrap-policy/policy.ts";
import { SubjectRules } from "./subject-rules.ts";

const rules = [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }];
const viewer: RoleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "viewer" };

function policy(more: Partial<Policy>): Policy {
  const clusterRoles = [{ metadata: { name: "viewer" }, rules }];
  return { clusterRoles, clusterRoleBindings: [], roles: [], roleBindings: [], ...more };
}

function bound(subject: Subject, roleRef = viewer): Policy {
  const metadata = { name: "b", namespace: "shop" };
  return policy({ roleBindings: [{ metadata, subjects: [subject], roleRef }] });
}

const reasons = (source: Policy, user: Partial<UserInfo>, namespace = "shop"): readonly string[] =>
  [...new SubjectRules(source).grantsFor({ name: "eve", uid: "", groups: [], extra: {}, ...user }, namespace)].map(
    ({ by }) => by,
  );

t.test("SubjectRules finds rules of users, groups and service accounts", async (t) => {
  t.same(reasons(bound({ kind: "User", name: "eve" }), {}), [
    'RoleBinding "b/shop" of ClusterRole "viewer" to User "eve"',
  ]);
  t.equal(reasons(bound({ kind: "Group", name: "g" }), { groups: ["f", "g"] }).length, 1);
  t.equal(reasons(bound({ kind: "Group", name: "eve" }), {}).length, 0);
  const account = { name: "system:serviceaccount:shop:till" };
  t.equal(reasons(bound({ kind: "ServiceAccount", name: "till", namespace: "shop" }), account).length, 1);
  t.equal(reasons(bound({ kind: "ServiceAccount", name: "till" }), account).length, 1, "of the binding's namespace");
  t.equal(reasons(bound({ kind: "ServiceAccount", name: "till", namespace: "other" }), account).length, 0);
});

t.test("SubjectRules limits role bindings to their namespace", async (t) => {
  const source = bound({ kind: "User", name: "eve" });
  t.equal(reasons(source, {}, "other").length, 0);
  t.equal(reasons(source, {}, "").length, 0);
  const everywhere = policy({
    clusterRoleBindings: [{ metadata: { name: "b" }, subjects: [{ kind: "User", name: "eve" }], roleRef: viewer }],
  });
  for (const namespace of ["", "shop", "other"]) t.equal(reasons(everywhere, {}, namespace).length, 1);
});

t.test("SubjectRules resolves roles in the binding's namespace, and grants nothing for missing roles", async (t) => {
  const local = { ...viewer, kind: "Role" };
  const binding = bound({ kind: "User", name: "eve" }, local);
  const grantsOf = (source: Policy) => [
    ...new SubjectRules(source).grantsFor({ name: "eve", uid: "", groups: [], extra: {} }, "shop"),
  ];
  t.match(grantsOf(binding), [{ rules: [], missing: 'role.rbac.authorization.k8s.io "viewer"' }]);
  const elsewhere = { metadata: { name: "viewer", namespace: "other" }, rules };
  t.match(grantsOf({ ...binding, roles: [elsewhere] }), [{ rules: [] }]);
  const here = { metadata: { name: "viewer", namespace: "shop" }, rules };
  t.match(reasons({ ...binding, roles: [elsewhere, here] }, {}), [/of Role "viewer"/]);
});

t.test("SubjectRules follows changes of roles and bindings", async (t) => {
  const user = { name: "eve", uid: "", groups: ["g"], extra: {} };
  const subjects = [
    { kind: "Group", name: "g" },
    { kind: "User", name: "eve" },
  ];
  const binding = { metadata: { name: "b", namespace: "shop" }, subjects, roleRef: viewer };
  const role = { metadata: { name: "viewer" }, rules };
  const source = new SubjectRules();
  const found = () => source.grantsFor(user, "shop").map(({ by, missing = "" }) => by || missing);
  t.same(found(), []);
  source.putBinding(binding);
  t.same(found(), ['clusterrole.rbac.authorization.k8s.io "viewer"']);
  source.putRole(role);
  t.same(found(), ['RoleBinding "b/shop" of ClusterRole "viewer" to Group "g"'], "once, by its first subject");
  const other = { ...binding, metadata: { name: "a", namespace: "shop" } };
  source.putBinding(other);
  t.same(
    found().map((by) => by.slice(0, 20)),
    ['RoleBinding "a/shop"', 'RoleBinding "b/shop"'],
    "in the order of names",
  );
  source.deleteBinding(binding);
  source.deleteBinding(binding);
  t.equal(found().length, 1);
  source.deleteBinding(other);
  t.same(found(), []);
  source.putBinding(binding);
  source.deleteRole(role);
  t.same(found(), ['clusterrole.rbac.authorization.k8s.io "viewer"']);
});

t.test("SubjectRules keeps a subject that a binding repeats once, and deletes it with the binding", async (t) => {
  const many = (name: string) => ({
    metadata: { name, namespace: "shop" },
    subjects: Array.from({ length: 8000 }, () => ({ kind: "User", name: "eve" })),
    roleRef: viewer,
  });
  const source = new SubjectRules();
  const bindings = Array.from({ length: 100 }, (_, index) => many(`b${index}`));
  for (const each of bindings) source.putBinding(each);
  const count = () => source.grantsFor({ name: "eve", uid: "", groups: [], extra: {} }, "shop").length;
  t.equal(count(), 100);
  for (const each of bindings.slice(1)) source.deleteBinding(each);
  t.equal(count(), 1);
});
