/** Namespaces, owners, quotas, cluster roles, policies and ranges of addresses. */
import { validatingAdmissionPolicyKind } from "../../../api/admissionregistration/validating-admission-policy/kind.ts";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import { namespaceKind } from "../../../api/core/namespace/kind.ts";
import { resourceQuotaKind } from "../../../api/core/resource-quota/kind.ts";
import { serviceAccountKind } from "../../../api/core/service-account/kind.ts";
import { serviceCIDRKind } from "../../../api/networking/service-cidr/kind.ts";
import { clusterRoleKind } from "../../../api/rbac/cluster-role/kind.ts";
import type { Scene, Story } from "./story.ts";

const QUOTA = "count/configmaps";
const policies = ["Background", "Foreground", "Orphan"] as const;

async function createFamily({ client, namespace }: Scene, name: string): Promise<void> {
  const owner = await client.create(configMapKind, { metadata: { name, namespace } });
  const { uid = "" } = owner.metadata ?? {};
  const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name, uid, blockOwnerDeletion: true }];
  for (const index of [1, 2, 3]) {
    await client.create(configMapKind, { metadata: { name: `${name}-${index}`, namespace, ownerReferences } });
  }
}

export const namespacesStory: Story = {
  title: "namespaces, owners and a quota",
  controllers: ["garbage-collector", "namespace", "resourcequota", "root-ca-certificate-publisher", "serviceaccount"],
  embedded: [],
  async play(scene) {
    const { client, namespace } = scene;
    const other = `${namespace}-other`;
    const exists = async (name: string): Promise<boolean> =>
      (await client.list(namespaceKind)).items.some(({ metadata }) => metadata?.name === name);
    const maps = async (within: string) =>
      (await client.list(configMapKind, { namespace: within })).items
        .map(({ metadata }) => `${metadata?.name} ${metadata?.ownerReferences?.length ?? 0}`)
        .sort();
    const read = async () => {
      const accounts = (await client.list(serviceAccountKind, { namespace: other })).items;
      const quota = await client.get(resourceQuotaKind, { name: "q", namespace });
      return {
        maps: await maps(namespace),
        other: (await exists(other)) ? [...(await maps(other)), ...accounts.map(({ metadata }) => metadata?.name)] : [],
        used: quota.status?.used?.[QUOTA],
      };
    };
    const isCounted = async (): Promise<boolean> =>
      (await read()).used === String((await client.list(configMapKind, { namespace })).items.length);
    await client.create(namespaceKind, { metadata: { name: other } });
    await client.create(resourceQuotaKind, { metadata: { name: "q", namespace }, spec: { hard: { [QUOTA]: "50" } } });
    for (const policy of policies) await createFamily(scene, policy.toLowerCase());
    await scene.step(read, async () => (await isCounted()) && (await read()).other.length === 2);
    for (const propagationPolicy of policies) {
      await client.delete(configMapKind, { name: propagationPolicy.toLowerCase(), namespace }, { propagationPolicy });
    }
    await client.delete(namespaceKind, { name: other });
    await scene.step(
      read,
      async () => (await isCounted()) && !(await exists(other)) && (await maps(namespace)).length === 4,
    );
  },
};

export const clusterStory: Story = {
  title: "aggregated roles, checked policies and ranges of addresses",
  controllers: ["clusterrole-aggregation", "service-cidr-controller", "validatingadmissionpolicy-status-controller"],
  async play(scene) {
    const { client, namespace: name } = scene;
    const label = { [name]: "yes" };
    const addRole = (suffix: string) =>
      client.create(clusterRoleKind, {
        metadata: { name: `${name}-${suffix}`, labels: label },
        rules: [{ verbs: ["get"], apiGroups: [""], resources: [suffix] }],
      });
    const read = async () => {
      const role = await client.get(clusterRoleKind, { name });
      const policy = await client.get(validatingAdmissionPolicyKind, { name });
      const range = (await client.list(serviceCIDRKind)).items.find(({ metadata }) => metadata?.name === name);
      return {
        resources: (role.rules ?? []).flatMap(({ resources = [] }) => resources),
        warnings: policy.status?.typeChecking?.expressionWarnings?.map(({ fieldRef }) => fieldRef),
        observed: policy.status?.observedGeneration === policy.metadata?.generation,
        range: range?.status?.conditions?.map(({ type, status }) => `${type} ${status}`),
        finalizers: range?.metadata?.finalizers,
      };
    };
    await client.create(clusterRoleKind, {
      metadata: { name },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: label }] },
      rules: [],
    });
    await addRole("pods");
    await addRole("secrets");
    const resourceRules = [
      { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE" as const], resources: ["pods"] },
    ];
    await client.create(validatingAdmissionPolicyKind, {
      metadata: { name },
      spec: { matchConstraints: { resourceRules }, validations: [{ expression: "object.spec.nothing == 1" }] },
    });
    await client.create(serviceCIDRKind, { metadata: { name }, spec: { cidrs: ["10.99.0.0/24"] } });
    const isObserved = async (): Promise<boolean> => (await read()).observed;
    await scene.step(read, isObserved);
    await client.delete(clusterRoleKind, { name: `${name}-secrets` });
    await client.patch(validatingAdmissionPolicyKind, { name }, "merge", {
      spec: { validations: [{ expression: "object.spec.hostNetwork == true" }] },
    });
    await client.delete(serviceCIDRKind, { name });
    const isGone = async (): Promise<boolean> => (await read()).range === undefined;
    await scene.step(read, async () => (await isObserved()) && (await isGone()));
    await client.delete(validatingAdmissionPolicyKind, { name });
  },
};
