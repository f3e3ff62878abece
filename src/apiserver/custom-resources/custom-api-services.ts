/** The API services of custom resources: one for each served group version, as in Kubernetes. */

import { apiServiceKind } from "../../api/apiregistration/api-service/kind.ts";
import type { APIService } from "../../api/apiregistration/api-service/schema.ts";
import { type GroupAliases, listedGroupNames } from "../../api/group-aliases.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { create } from "../../registry/create.ts";
import { remove } from "../../registry/delete.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Scope } from "../../registry/scope.ts";
import { ignoreConflict } from "../control-plane/ensure.ts";
import { AUTOMANAGED_LABEL, CUSTOM_PRIORITIES } from "../discovery/local-api-services.ts";

const AUTOMANAGED = "true";

/** Creates missing API services and deletes those of group versions that are not served any more. */
export async function syncCustomApiServices(
  registries: Registries,
  aliases: GroupAliases,
  user: Scope,
  fieldManager: string,
): Promise<void> {
  const scope = { ...user, group: kubernetesGroup(apiServiceKind.group) };
  const registry = registries.of(apiServiceKind);
  const cache = await registry.freshCache(scope);
  const existing = cache.list(registry.objects.prefix()).items.map(({ object }) => object);
  const names = new Set(existing.map(({ metadata }) => metadata?.name ?? ""));
  const wanted = customApiServices(registries, aliases);
  for (const [name, service] of wanted) {
    if (!names.has(name)) await ignoreConflict(create(registry, scope, service, { fieldManager }));
  }
  for (const { metadata } of existing) {
    const { name = "", labels } = metadata ?? {};
    if (labels?.[AUTOMANAGED_LABEL] === AUTOMANAGED && !wanted.has(name))
      await ignoreConflict(remove(registry, scope, name));
  }
}

function customApiServices({ scheme }: Registries, aliases: GroupAliases): ReadonlyMap<string, APIService> {
  const apis = new Map<string, APIService>();
  for (const kind of scheme.kinds()) {
    if (kind.custom !== true) continue;
    for (const group of listedGroupNames(kind, aliases)) {
      const name = `${kind.version}.${group}`;
      const spec = { group, version: kind.version, ...CUSTOM_PRIORITIES };
      apis.set(name, { metadata: { name, labels: { [AUTOMANAGED_LABEL]: AUTOMANAGED } }, spec });
    }
  }
  return apis;
}
