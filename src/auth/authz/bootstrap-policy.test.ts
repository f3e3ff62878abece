import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { svcGroup } from "../../api/scheme.ts";
import { parseYaml } from "../../schema/yaml.ts";
import { bootstrapBindings, bootstrapRoles } from "./bootstrap-policy.ts";
import type { PolicyRule } from "./rbac.ts";

interface Document {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly rules?: readonly PolicyRule[] | null;
    readonly roleRef?: { readonly name: string };
    readonly subjects?: readonly { readonly kind: string; readonly name: string }[];
  }[];
}

const shared = process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname;
const folder = `${shared}/oracles/rbac-bootstrap`;

function read(name: string): Document {
  return parseYaml(readFileSync(`${folder}/${name}.yaml`, "utf8"))[0]!.value as Document;
}

function ours(rule: PolicyRule): object {
  const { apiGroups, resources, resourceNames, nonResourceURLs, verbs } = rule;
  const sorted = (list: readonly string[] | undefined) => (list === undefined ? undefined : [...list].sort());
  return {
    apiGroups: sorted(apiGroups?.map(svcGroup)),
    resources: sorted(resources),
    resourceNames: sorted(resourceNames),
    nonResourceURLs: sorted(nonResourceURLs),
    verbs: sorted(verbs),
  };
}

t.test("bootstrapRoles and bootstrapBindings are those of Kubernetes, rule by rule", async (t) => {
  if (!existsSync(folder)) {
    console.log("# shared/ is not present: 2 checks left out");
    return;
  }
  const roles = new Map(read("cluster-roles").items.map((role) => [role.metadata.name, role.rules ?? []]));
  for (const [name, rules] of Object.entries(bootstrapRoles)) {
    t.strictSame(rules.map(ours), roles.get(name)?.map(ours), name);
  }
  const bindings = new Map(read("cluster-role-bindings").items.map((binding) => [binding.metadata.name, binding]));
  for (const { name, role, subjects } of bootstrapBindings) {
    const expected = bindings.get(name);
    t.equal(role, expected?.roleRef?.name);
    t.strictSame(
      subjects,
      expected?.subjects?.map(({ kind, name }) => ({ kind, name })),
      name,
    );
  }
});

t.test("bootstrapBindings name roles that there are", async (t) => {
  for (const { role } of bootstrapBindings) t.ok(Object.hasOwn(bootstrapRoles, role), role);
});
