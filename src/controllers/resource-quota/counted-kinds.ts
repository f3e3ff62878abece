/** The kinds that quotas count, and the calculation of their usage. */

import type { Evaluator } from "../../admission/plugins/resource-quota/evaluator.ts";
import { evaluatorOf } from "../../admission/plugins/resource-quota/evaluators.ts";
import { scopesOf } from "../../admission/plugins/resource-quota/scopes.ts";
import type { ResourceQuota } from "../../api/core/resource-quota/schema.ts";
import {
  addResources,
  filterResources,
  NO_RESOURCES,
  parseResourceList,
  type ResourceQuantities,
} from "../../api/core/resources/quantities.ts";
import { type ApiObject, type Kind, onePerResource } from "../../api/kind.ts";
import type { Client } from "../../client/client.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import { customContentKinds } from "../namespace/content-kinds.ts";

/** The page size of Kubernetes' clients. */
const PAGE_SIZE = 500;

export interface CountedKind {
  /** The kind, or its metadata only, as the evaluator needs. */
  readonly kind: Kind;
  readonly evaluator: Evaluator;
}

export function countedBuiltinKinds(served: readonly Kind[]): readonly CountedKind[] {
  return onePerResource(served).flatMap(toCountedKinds);
}

/** The kinds that the resources count. CRDs are only listed if a resource may be of a custom kind. */
export async function findCountedKinds(
  resources: readonly string[],
  builtin: readonly CountedKind[],
  client: Client,
  signal: AbortSignal,
): Promise<readonly CountedKind[]> {
  const isNeeded = ({ evaluator }: CountedKind): boolean => resources.some((resource) => evaluator.counts(resource));
  const matching = builtin.filter(isNeeded);
  const mayBeCustom = (resource: string): boolean =>
    /^count\/[^.]+\..+/.test(resource) && !builtin.some(({ evaluator }) => evaluator.counts(resource));
  if (!resources.some(mayBeCustom)) return matching;
  const custom = await customContentKinds(client, signal);
  return [...matching, ...custom.flatMap(toCountedKinds).filter(isNeeded)];
}

function toCountedKinds(kind: Kind): readonly CountedKind[] {
  const evaluator = kind.verbs.includes("list") && kind.verbs.includes("watch") ? evaluatorOf(kind) : undefined;
  if (evaluator === undefined) return [];
  return [{ kind: evaluator.isUniform ? metadataOnly(kind) : kind, evaluator }];
}

export interface CalculatedUsage {
  readonly used: ResourceQuantities;
  /** Why resources are left out: their kinds cannot be listed. Undefined if all are counted. */
  readonly failure: { readonly error: unknown } | undefined;
}

/** The usage of each limited resource that has an evaluator, also if it is zero. */
export async function calculateUsage(
  quota: ResourceQuota,
  kinds: readonly CountedKind[],
  client: Client,
  signal: AbortSignal,
): Promise<CalculatedUsage> {
  const limited = Object.keys(quota.spec?.hard ?? {});
  const scopes = scopesOf(quota);
  const left = new Set<string>();
  let failure: CalculatedUsage["failure"];
  let used = NO_RESOURCES;
  for (const { kind, evaluator } of kinds) {
    const resources = limited.filter((resource) => evaluator.counts(resource));
    if (resources.length === 0) continue;
    used = addResources(used, parseResourceList(Object.fromEntries(resources.map((resource) => [resource, "0"]))));
    try {
      for await (const item of listObjects(client, kind, quota.metadata?.namespace ?? "", signal)) {
        if (!scopes.every((scope) => evaluator.matchesScope(scope, item))) continue;
        used = addResources(
          used,
          filterResources(evaluator.usage(item), (resource) => resources.includes(resource)),
        );
      }
    } catch (error) {
      signal.throwIfAborted();
      failure ??= { error };
      for (const resource of resources) left.add(resource);
    }
  }
  return { used: filterResources(used, (resource) => !left.has(resource)), failure };
}

/** Lists from the server: a stale cache would understate the usage. */
async function* listObjects(
  client: Client,
  kind: Kind,
  namespace: string,
  signal: AbortSignal,
): AsyncGenerator<ApiObject> {
  let next: string | undefined;
  do {
    const page = await client.list(kind, { namespace, limit: PAGE_SIZE, continue: next }, signal);
    yield* page.items;
    next = page.continue;
  } while (next !== undefined && next !== "");
}
