import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { svcGroup } from "../../api/scheme.ts";
import { parseYaml } from "../../schema/yaml.ts";
import type { PolicyRule } from "../user.ts";
import { bootstrapBindings, bootstrapRoles } from "./bootstrap-policy.ts";

interface Document {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly rules?: readonly PolicyRule[] | null;
    readonly roleRef?: { readonly name: string };
    readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
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

/** Rules of ours that Kubernetes has not, by role: each has its reason beside it in the policy. */
const extra: Readonly<Record<string, readonly object[]>> = {
  "system:controller:namespace-controller": [
    ours({ apiGroups: [""], resources: ["namespaces/status"], verbs: ["patch"] }),
  ],
};

t.test("bootstrapRoles and bootstrapBindings are those of Kubernetes, rule by rule", async (t) => {
  if (!existsSync(folder)) {
    console.log("# shared/ is not present: 2 checks left out");
    return;
  }
  const roles = new Map(
    ["cluster-roles", "controller-roles"].flatMap((name) => read(name).items).map((role) => [role.metadata.name, role]),
  );
  for (const [name, rules] of Object.entries(bootstrapRoles)) {
    const known = extra[name]?.map((rule) => JSON.stringify(rule)) ?? [];
    const compared = rules.map(ours).filter((rule) => !known.includes(JSON.stringify(rule)));
    t.strictSame(compared, roles.get(name)?.rules?.map(ours), name);
    t.equal(rules.length - compared.length, known.length, name);
  }
  const bindings = new Map(
    ["cluster-role-bindings", "controller-role-bindings"]
      .flatMap((name) => read(name).items)
      .map((binding) => [binding.metadata.name, binding]),
  );
  for (const { name, role, subjects } of bootstrapBindings) {
    const expected = bindings.get(name);
    t.equal(role, expected?.roleRef?.name);
    t.strictSame(subjects.map(who), expected?.subjects?.map(who), name);
  }
});

function who({
  kind,
  name,
  namespace,
}: {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}): string {
  return kind === "ServiceAccount" ? `User system:serviceaccount:${namespace}:${name}` : `${kind} ${name}`;
}

t.test("bootstrapBindings name roles that there are", async (t) => {
  for (const { role } of bootstrapBindings) t.ok(Object.hasOwn(bootstrapRoles, role), role);
});
