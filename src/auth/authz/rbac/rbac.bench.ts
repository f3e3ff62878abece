/** Run by `make bench`: the CPU time of an authorization among 1,000 roles and bindings. */
import type { Attributes, UserInfo } from "../../user.ts";
import { bootstrapPolicy } from "./bootstrap-policy/policy.ts";
import { rbacAuthorizer } from "./rbac.ts";
import { SubjectRules } from "./subject-rules.ts";

const COUNT = 1000;
const CALLS = 200_000;
const apiGroup = "rbac.authorization.svc.io";

const names = Array.from({ length: COUNT }, (_, index) => `r${index}`);
const authorizer = rbacAuthorizer(
  new SubjectRules({
    ...bootstrapPolicy,
    roles: [
      ...bootstrapPolicy.roles,
      ...names.map((name) => ({
        metadata: { name, namespace: "ns" },
        rules: [{ verbs: ["get", "list"], apiGroups: [""], resources: ["pods", "services"] }],
      })),
    ],
    roleBindings: [
      ...bootstrapPolicy.roleBindings,
      ...names.map((name, index) => ({
        metadata: { name, namespace: "ns" },
        roleRef: { apiGroup, kind: "Role", name },
        subjects: [{ kind: "User", apiGroup, name: index % 10 === 0 ? "busy" : `user-${index}` }],
      })),
    ],
  }),
);

const user = (name: string): UserInfo => ({ name, uid: "", groups: ["system:authenticated"], extra: {} });
const attributesOf = (name: string, resource: string): Attributes => {
  const target = { namespace: "ns", apiGroup: "", apiVersion: "v1", resource, subresource: "", name: "x", path: "" };
  return { user: user(name), verb: "get", isResourceRequest: true, ...target };
};

await measure("allowed", attributesOf("user-555", "pods"));
await measure("denied", attributesOf("user-555", "secrets"));
await measure("denied, with 100 bindings of the user", attributesOf("busy", "secrets"));

/** The best of five rounds, after a warm-up. */
async function measure(what: string, attributes: Attributes): Promise<void> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 6; round++) {
    const before = process.cpuUsage();
    for (let call = 0; call < CALLS; call++) await authorizer.authorize(attributes);
    const { user: userTime, system } = process.cpuUsage(before);
    if (round > 0) best = Math.min(best, (userTime + system) / CALLS);
  }
  const figures = {
    bench: "authorization",
    what,
    roles: COUNT,
    bindings: COUNT,
    cpuMicroseconds: Number(best.toFixed(2)),
  };
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}
