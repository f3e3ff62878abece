/** Registers the API services of built-in group versions at start, as Kubernetes' autoregistration. */

import { apiServiceKind } from "../../api/apiregistration/api-service/kind.ts";
import type { APIService } from "../../api/apiregistration/api-service/schema.ts";
import { type GroupAliases, listedGroupNames } from "../../api/group-aliases.ts";
import { nodeMetricsKind } from "../../api/metrics/kinds.ts";
import { kubernetesGroup, type Scheme, svcGroup } from "../../api/scheme.ts";
import { MASTERS } from "../../auth/user.ts";
import { create } from "../../registry/create.ts";
import { remove } from "../../registry/delete.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Scope } from "../../registry/scope.ts";
import { update } from "../../registry/update.ts";
import { ignoreConflict } from "../control-plane/ensure.ts";
import type { VersionPriority } from "./merge-groups.ts";

/** Kubernetes' label of API services that the server manages; others are not changed. */
export const AUTOMANAGED_LABEL = "kube-aggregator.kubernetes.io/automanaged";
const ON_START = "onstart";
/** As in Kubernetes. */
const FIELD_MANAGER = "kube-apiserver";

/** Kubernetes' priorities of groups and of versions within a group. */
const priorities: Readonly<
  Record<string, { readonly group: number; readonly versions: Readonly<Record<string, number>> }>
> = {
  "": { group: 18_000, versions: { v1: 1 } },
  apps: { group: 17_800, versions: { v1: 15 } },
  "events.k8s.io": { group: 17_750, versions: { v1: 15, v1beta1: 5 } },
  "authentication.k8s.io": { group: 17_700, versions: { v1: 15, v1beta1: 9, v1alpha1: 1 } },
  "authorization.k8s.io": { group: 17_600, versions: { v1: 15 } },
  autoscaling: { group: 17_500, versions: { v2: 30, v1: 15 } },
  batch: { group: 17_400, versions: { v1: 15 } },
  "certificates.k8s.io": { group: 17_300, versions: { v1: 15, v1beta1: 9, v1alpha1: 1 } },
  "networking.k8s.io": { group: 17_200, versions: { v1: 15, v1beta1: 9 } },
  policy: { group: 17_100, versions: { v1: 15 } },
  "rbac.authorization.k8s.io": { group: 17_000, versions: { v1: 15 } },
  "storage.k8s.io": { group: 16_800, versions: { v1: 15, v1beta1: 9, v1alpha1: 1 } },
  "admissionregistration.k8s.io": { group: 16_700, versions: { v1: 15, v1beta1: 12, v1alpha1: 9 } },
  "apiextensions.k8s.io": { group: 16_700, versions: { v1: 15 } },
  "scheduling.k8s.io": { group: 16_600, versions: { v1: 15 } },
  "coordination.k8s.io": { group: 16_500, versions: { v1: 15, v1beta1: 13, v1alpha2: 12 } },
  "node.k8s.io": { group: 16_300, versions: { v1: 15 } },
  "discovery.k8s.io": { group: 16_200, versions: { v1: 15 } },
  "resource.k8s.io": { group: 16_200, versions: { v1beta2: 15, v1beta1: 9, v1alpha3: 1 } },
  "flowcontrol.apiserver.k8s.io": { group: 16_100, versions: { v1: 21 } },
  "internal.apiserver.k8s.io": { group: 16_000, versions: { v1alpha1: 9 } },
  "storagemigration.k8s.io": { group: 15_800, versions: { v1alpha1: 9 } },
  // As in metrics-server's manifest.
  "metrics.k8s.io": { group: 100, versions: { v1beta1: 100 } },
};

/** Kubernetes' priorities of the API services of custom resources: lower ones than those of built-in groups. */
export const CUSTOM_PRIORITIES = { groupPriorityMinimum: 1000, versionPriority: 100 };

/** The priority of a group version that this server serves. */
export function priorityOf({ group, version }: { readonly group: string; readonly version: string }): VersionPriority {
  // Its own group comes first, as in kube-aggregator.
  if (svcGroup(group) === apiServiceKind.group) return { group: Number.POSITIVE_INFINITY, version: 0 };
  const found = priorities[kubernetesGroup(group)];
  const { groupPriorityMinimum, versionPriority } = CUSTOM_PRIORITIES;
  return { group: found?.group ?? groupPriorityMinimum, version: found?.versions[version] ?? versionPriority };
}

/** Whether Kubernetes 1.33 has the group, under any alias, and its version, whether or not this build implements it. */
export function isKubernetesApi(group: string, version?: string): boolean {
  const priority = priorities[kubernetesGroup(group)];
  return priority !== undefined && (version === undefined || priority.versions[version] !== undefined);
}

/** Versions whose types Kubernetes 1.33 still has, although it serves none of their resources. */
const RETIRED_VERSIONS: ReadonlySet<string> = new Set(
  [
    "admission.k8s.io: v1 v1beta1; apps: v1beta1 v1beta2; authentication.k8s.io: v1alpha1 v1beta1",
    "authorization.k8s.io: v1beta1; autoscaling: v2beta1 v2beta2; batch: v1beta1; coordination.k8s.io: v1beta1",
    "discovery.k8s.io: v1beta1; events.k8s.io: v1beta1; extensions: v1beta1",
    "flowcontrol.apiserver.k8s.io: v1beta1 v1beta2 v1beta3; imagepolicy.k8s.io: v1alpha1",
    "networking.k8s.io: v1alpha1; node.k8s.io: v1alpha1 v1beta1; policy: v1beta1",
    "rbac.authorization.k8s.io: v1alpha1 v1beta1; scheduling.k8s.io: v1alpha1 v1beta1",
  ]
    .flatMap((line) => line.split("; "))
    .flatMap((row) => {
      const [group = "", versions = ""] = row.split(": ");
      return versions.split(" ").map((version) => `${group}/${version}`);
    }),
);

/** Whether Kubernetes 1.33 accepts the version in `--runtime-config` although it serves nothing of it. */
export function isRetiredVersion(group: string, version: string): boolean {
  return RETIRED_VERSIONS.has(`${kubernetesGroup(group)}/${version}`);
}

/** Throws when the store does not answer. */
export async function registerLocalApiServices(
  registries: Registries,
  aliases: GroupAliases,
  signal: AbortSignal,
): Promise<void> {
  const registry = registries.of(apiServiceKind);
  const user = { name: "system:apiserver", uid: "", groups: [MASTERS], extra: {} };
  const scope: Scope = { namespace: "", group: kubernetesGroup(registry.kind.group), user, signal };
  const { items } = await registry.objects.list(registry.prefix(scope));
  const found = new Map(items.map((item) => [item.metadata?.name ?? "", item]));
  const served = localApiServices(registries.scheme, aliases);
  const ensureApiService = async (wanted: APIService): Promise<void> => {
    const name = wanted.metadata?.name ?? "";
    const existing = found.get(name);
    if (existing === undefined) await ignoreConflict(create(registry, scope, wanted, { fieldManager: FIELD_MANAGER }));
    else if (isManaged(existing) && !isOfExtensionServer(existing)) {
      await ignoreConflict(
        update(registry, scope, name, { ...existing, spec: wanted.spec }, { fieldManager: FIELD_MANAGER }),
      );
    }
  };
  const unserved = items.filter((item) => isManaged(item) && !served.has(item.metadata?.name ?? ""));
  await Promise.all([
    ...[...served.values()].map(ensureApiService),
    ...unserved.map(({ metadata }) => ignoreConflict(remove(registry, scope, metadata?.name ?? ""))),
  ]);
}

function isManaged({ metadata }: APIService): boolean {
  return metadata?.labels?.[AUTOMANAGED_LABEL] === ON_START;
}

/** The manifest of metrics-server replaces the server's own API service, which must not undo that. */
function isOfExtensionServer({ spec }: APIService): boolean {
  return svcGroup(spec?.group ?? "") === nodeMetricsKind.group && spec?.service !== undefined;
}

function localApiServices(scheme: Scheme, aliases: GroupAliases): ReadonlyMap<string, APIService> {
  const apis = new Map<string, APIService>();
  for (const kind of scheme.kinds()) {
    const rank = priorities[kubernetesGroup(kind.group)];
    const versionPriority = rank?.versions[kind.version];
    if (rank === undefined || versionPriority === undefined) continue;
    for (const group of listedGroupNames(kind, aliases)) {
      const name = `${kind.version}.${group}`;
      const spec = { group, version: kind.version, groupPriorityMinimum: rank.group, versionPriority };
      apis.set(name, { metadata: { name, labels: { [AUTOMANAGED_LABEL]: ON_START } }, spec });
    }
  }
  return apis;
}
