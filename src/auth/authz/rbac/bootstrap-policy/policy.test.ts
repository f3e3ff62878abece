import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import type { ApiObject } from "../../../../api/kind.ts";
import type { ClusterRole } from "../../../../api/rbac/cluster-role/schema.ts";
import type { PolicyRule } from "../../../../api/rbac/policy-rule.ts";
import type { RoleBinding } from "../../../../api/rbac/role-binding/schema.ts";
import { svcGroup } from "../../../../api/scheme.ts";
import { parseYaml } from "../../../../schema/yaml/yaml.ts";
import { bootstrapPolicy, bootstrapPolicyWith, bootstrapRules } from "./policy.ts";

const shared = process.env.SVC_SHARED ?? new URL("../../../../../../shared", import.meta.url).pathname;
const folder = `${shared}/oracles/rbac-bootstrap`;

type Compared = Pick<ClusterRole, "metadata" | "rules" | "aggregationRule"> & Partial<Pick<RoleBinding, "subjects">>;

/** Roles of the distribution that the samples come from. */
const FOREIGN = "system:openshift:";

function samples(...names: readonly string[]): readonly Compared[] {
  return names
    .flatMap(
      (name) => (parseYaml(readFileSync(`${folder}/${name}.yaml`, "utf8"))[0]!.value as { items: Compared[] }).items,
    )
    .filter(({ metadata }) => !metadata?.name?.startsWith(FOREIGN));
}

/** A rule in a normal format: sorted lists, one group alias. */
function plain(rule: PolicyRule): string {
  const sort = (list: readonly string[] | undefined) => (list === undefined ? undefined : [...list].sort());
  const { apiGroups, resources, resourceNames, nonResourceURLs, verbs } = rule;
  return JSON.stringify([
    sort(apiGroups?.map(svcGroup)),
    sort(resources),
    sort(resourceNames),
    sort(nonResourceURLs),
    sort(verbs),
  ]);
}

/** Roles of metrics-server, whose API this server has itself. */
const ADDED = ["/system:aggregated-metrics-reader"];

t.test("bootstrapPolicy has the roles of Kubernetes, rule by rule", async (t) => {
  if (!existsSync(folder)) return t.comment("shared/ is not present: roles are left uncompared");
  const name = (object: ApiObject) => `${object.metadata?.namespace ?? ""}/${object.metadata?.name ?? ""}`;
  const ours = new Map([...bootstrapPolicy.clusterRoles, ...bootstrapPolicy.roles].map((role) => [name(role), role]));
  const theirs = samples("cluster-roles", "controller-roles", "namespace-roles");
  t.same([...ours.keys()].sort(), [...theirs.map(name), ...ADDED].sort());
  for (const role of theirs) {
    t.same((ours.get(name(role))?.rules ?? []).map(plain), (role.rules ?? []).map(plain), name(role));
    t.same(ours.get(name(role))?.metadata?.labels, role.metadata?.labels, `labels of ${name(role)}`);
  }
});

/** Rules of other gates than ours. */
const OTHER_GATES = ["/flagz", "/statusz", "clustertrustbundles", "serviceaccounts"];

t.test("bootstrapPolicyWith() adds the rules of gates, as Kubernetes with all of them", async (t) => {
  if (!existsSync(folder)) return t.comment("shared/ is not present: roles are left uncompared");
  const enabled = ["DynamicResourceAllocation", "DRADeviceTaints"];
  const { clusterRoles, clusterRoleBindings } = bootstrapPolicyWith(new Set(enabled));
  const isOther = (rule: PolicyRule): boolean =>
    [...(rule.resources ?? []), ...(rule.nonResourceURLs ?? [])].every((each) => OTHER_GATES.includes(each));
  for (const { metadata, rules } of samples("cluster-roles-featuregates")) {
    const ours = clusterRoles.find((role) => role.metadata?.name === metadata?.name);
    if (ours === undefined) continue;
    const relevant = (all: readonly PolicyRule[]) => all.filter((rule) => !isOther(rule)).map(plain);
    t.same(relevant(ours.rules ?? []), relevant(rules ?? []), metadata?.name ?? "");
  }
  const name = "system:controller:resource-claim-controller";
  t.match(clusterRoleBindings.at(-2), {
    metadata: { name },
    roleRef: { name },
    subjects: [{ name: "resource-claim-controller", namespace: "kube-system" }],
  });
  t.equal(clusterRoles.length, bootstrapPolicy.clusterRoles.length + 2);
  const collector = bootstrapPolicyWith(new Set(["StorageVersionAPI", "APIServerIdentity"])).clusterRoles.at(-1);
  t.equal(collector?.metadata?.name, "system:controller:storage-version-garbage-collector");
});

t.test("bootstrapPolicy has the role of metrics-server, which view, edit and admin aggregate", async (t) => {
  const role = bootstrapPolicy.clusterRoles.find(({ metadata }) => ADDED.includes(`/${metadata?.name}`));
  const to = (name: string) => [`rbac.authorization.k8s.io/aggregate-to-${name}`, "true"] as const;
  t.match(role?.metadata?.labels, Object.fromEntries(["view", "edit", "admin"].map(to)));
  t.same(role?.rules?.map(plain), [
    plain({ apiGroups: ["metrics.k8s.io"], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] }),
  ]);
});

t.test("bootstrapPolicy has the bindings of Kubernetes", async (t) => {
  if (!existsSync(folder)) return t.comment("shared/ is not present: bindings are left uncompared");
  const line = ({ metadata, roleRef, subjects }: RoleBinding): string => {
    const who = (subjects ?? []).map((subject) => `${subject.kind} ${subject.namespace ?? ""}/${subject.name}`);
    return `${metadata?.namespace ?? ""}/${metadata?.name}: ${roleRef.kind} ${roleRef.name} to ${who.join(", ")}`;
  };
  const { clusterRoleBindings, roleBindings } = bootstrapPolicy;
  const theirs = samples("cluster-role-bindings", "controller-role-bindings", "namespace-role-bindings");
  t.same(
    [...clusterRoleBindings, ...roleBindings].map(line).sort(),
    (theirs as readonly RoleBinding[]).map(line).sort(),
  );
});

t.test("bootstrapRules() throws for an unknown role", async (t) => {
  t.ok(bootstrapRules("system:node").length > 0);
  t.throws(() => bootstrapRules("system:nodes"), /system:nodes/);
});
