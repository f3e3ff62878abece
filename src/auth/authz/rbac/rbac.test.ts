import t from "tap";
import type { PolicyRule } from "../../../api/rbac/policy-rule.ts";
import { type Attributes, MASTERS, type UserInfo } from "../../user.ts";
import { bootstrapPolicy } from "./bootstrap-policy/policy.ts";
import { rbacAuthorizer, ruleAllows } from "./rbac.ts";
import { SubjectRules } from "./subject-rules.ts";

const eve: UserInfo = { name: "eve", uid: "", groups: [], extra: {} };

function resource(verb: string, what: string, more: Partial<Attributes> = {}): Attributes {
  const [name = "", subresource = ""] = what.split("/");
  const base = { user: eve, verb, isResourceRequest: true, namespace: "default", apiGroup: "", apiVersion: "v1" };
  return { ...base, resource: name, subresource, name: "", path: "/", ...more };
}

function path(verb: string, at: string, user = eve): Attributes {
  return { ...resource(verb, ""), user, isResourceRequest: false, path: at };
}

const cases: readonly (readonly [PolicyRule, Attributes, boolean])[] = [
  [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }, resource("get", "pods"), true],
  [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }, resource("list", "pods"), false],
  [{ verbs: ["get"], apiGroups: [""], resources: ["pods"] }, resource("get", "pods/log"), false],
  [{ verbs: ["get"], apiGroups: [""], resources: ["pods/log"] }, resource("get", "pods/log"), true],
  [{ verbs: ["get"], apiGroups: [""], resources: ["pods/log"] }, resource("get", "pods"), false],
  [{ verbs: ["get"], apiGroups: [""], resources: ["*/log"] }, resource("get", "pods/log"), true],
  [{ verbs: ["get"], apiGroups: [""], resources: ["*/log"] }, resource("get", "pods"), false],
  [{ verbs: ["get"], apiGroups: [""], resources: ["pods/*"] }, resource("get", "pods/log"), false],
  [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }, resource("nod", "pods/log", { apiGroup: "x" }), true],
  [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }, path("get", "/healthz"), false],
  [{ verbs: ["get"], resources: ["pods"] }, resource("get", "pods"), false],
  [
    { verbs: ["get"], apiGroups: ["events.svc.io"], resources: ["events"] },
    resource("get", "events", { apiGroup: "events.k8s.io" }),
    true,
  ],
  [
    { verbs: ["get"], apiGroups: ["events.k8s.io"], resources: ["events"] },
    resource("get", "events", { apiGroup: "events.svc.io" }),
    true,
  ],
  [
    { verbs: ["get"], apiGroups: ["events.k8s.io"], resources: ["events"] },
    resource("get", "events", { apiGroup: "events.example.com" }),
    false,
  ],
  [
    { verbs: ["get"], apiGroups: [""], resources: ["pods"], resourceNames: ["a"] },
    resource("get", "pods", { name: "a" }),
    true,
  ],
  [
    { verbs: ["get"], apiGroups: [""], resources: ["pods"], resourceNames: ["a"] },
    resource("get", "pods", { name: "b" }),
    false,
  ],
  [{ verbs: ["get"], apiGroups: [""], resources: ["pods"], resourceNames: ["a"] }, resource("get", "pods"), false],
  [{ verbs: ["get"], nonResourceURLs: ["/apis/*"] }, path("get", "/apis/x/y"), true],
  [{ verbs: ["get"], nonResourceURLs: ["/apis/*"] }, path("get", "/apis"), false],
  [{ verbs: ["get"], nonResourceURLs: ["/apis*"] }, path("get", "/apis"), true],
  [{ verbs: ["get"], nonResourceURLs: ["*"] }, path("get", "/anything"), true],
  [{ verbs: ["get"], nonResourceURLs: ["/a*b"] }, path("get", "/axb"), false],
  [{ verbs: ["get"], nonResourceURLs: ["/healthz"] }, path("post", "/healthz"), false],
  [{ verbs: ["get"], nonResourceURLs: ["*"] }, resource("get", "pods"), false],
];

t.test("ruleAllows() matches groups, resources, names and paths as Kubernetes does", async (t) => {
  for (const [rule, attributes, expected] of cases) {
    t.equal(ruleAllows(rule, attributes), expected, `${JSON.stringify(rule)} ${attributes.verb} ${attributes.path}`);
  }
});

t.test(
  "rbacAuthorizer() with the bootstrap policy allows discovery for all users and scheduling for the scheduler",
  async (t) => {
    const rbac = rbacAuthorizer(new SubjectRules(bootstrapPolicy));
    const decide = async (attributes: Attributes) => (await rbac.authorize(attributes)).decision;
    const admin = { ...eve, groups: [MASTERS] };
    const known = { ...eve, groups: ["system:authenticated"] };
    const unknown = { ...eve, groups: ["system:unauthenticated"] };
    const scheduler = { ...eve, name: "system:kube-scheduler", groups: ["system:authenticated"] };
    t.equal(await decide(resource("deletecollection", "secrets", { user: admin })), "allow");
    t.equal(await decide(path("delete", "/x", admin)), "allow");
    t.equal(await decide(path("get", "/apis/apps/v1", known)), "allow");
    t.equal(await decide(path("get", "/apis/apps/v1", unknown)), "no-opinion");
    t.equal(await decide(path("get", "/livez", unknown)), "allow");
    t.equal(await decide(resource("list", "pods", { user: known })), "no-opinion");
    const review = { user: known, apiGroup: "authorization.k8s.io" };
    t.equal(await decide(resource("create", "selfsubjectaccessreviews", review)), "allow");
    t.equal(await decide(resource("create", "pods/binding", { user: scheduler })), "allow");
    t.equal(await decide(resource("list", "secrets", { user: scheduler })), "no-opinion");
    t.equal(await decide(resource("update", "persistentvolumes", { user: scheduler })), "allow");
    const { reason } = await rbac.authorize(path("get", "/api", known));
    t.equal(
      reason,
      'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"',
    );
  },
);

t.test("rbacAuthorizer().rulesFor() lists all rules, and the roles that are missing", async (t) => {
  const subjects = [{ kind: "User", name: eve.name, apiGroup: "rbac.authorization.k8s.io" }];
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "gone" };
  const clusterRoleBindings = [{ metadata: { name: "b" }, subjects, roleRef }];
  const rbac = rbacAuthorizer(new SubjectRules({ clusterRoles: [], roles: [], roleBindings: [], clusterRoleBindings }));
  t.same(rbac.rulesFor?.(eve, "default"), {
    rules: [],
    incomplete: false,
    error: 'clusterrole.rbac.authorization.k8s.io "gone" not found',
  });
});
