/** What quotas count: the kinds that they name, and what of each is there. */

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

/** As Kubernetes' own clients list. */
const PAGE = 500;

export interface CountedKind {
  /** As much of it as is needed to count. */
  readonly kind: Kind;
  readonly evaluator: Evaluator;
}

export function countedBuiltin(served: readonly Kind[]): readonly CountedKind[] {
  return onePerResource(served).flatMap(counted);
}

/** Those that any of the resources is counted of; definitions are only read where one may be of a custom kind. */
export async function kindsOf(
  resources: readonly string[],
  builtin: readonly CountedKind[],
  client: Client,
  signal: AbortSignal,
): Promise<readonly CountedKind[]> {
  const isWanted = ({ evaluator }: CountedKind): boolean => resources.some((resource) => evaluator.counts(resource));
  const known = builtin.filter(isWanted);
  const isStrange = (resource: string): boolean =>
    /^count\/[^.]+\..+/.test(resource) && !builtin.some(({ evaluator }) => evaluator.counts(resource));
  if (!resources.some(isStrange)) return known;
  const custom = await customContentKinds(client, signal);
  return [...known, ...custom.flatMap(counted).filter(isWanted)];
}

function counted(kind: Kind): readonly CountedKind[] {
  const evaluator = kind.verbs.includes("list") && kind.verbs.includes("watch") ? evaluatorOf(kind) : undefined;
  if (evaluator === undefined) return [];
  return [{ kind: evaluator.isUniform ? metadataOnly(kind) : kind, evaluator }];
}

/** What is used of each resource that a quota limits, where somebody counts it: nothing, too. */
export async function usageOf(
  quota: ResourceQuota,
  kinds: readonly CountedKind[],
  client: Client,
  signal: AbortSignal,
): Promise<ResourceQuantities> {
  const limited = Object.keys(quota.spec?.hard ?? {});
  const scopes = scopesOf(quota);
  let used = NO_RESOURCES;
  for (const { kind, evaluator } of kinds) {
    const own = limited.filter((resource) => evaluator.counts(resource));
    if (own.length === 0) continue;
    used = addResources(used, parseResourceList(Object.fromEntries(own.map((resource) => [resource, "0"]))));
    for await (const item of objectsOf(client, kind, quota.metadata?.namespace ?? "", signal)) {
      if (!scopes.every((scope) => evaluator.matchesScope(scope, item))) continue;
      used = addResources(
        used,
        filterResources(evaluator.usage(item), (resource) => own.includes(resource)),
      );
    }
  }
  return used;
}

/** As the server has them now: a cache that is behind would give away what is used. */
async function* objectsOf(
  client: Client,
  kind: Kind,
  namespace: string,
  signal: AbortSignal,
): AsyncGenerator<ApiObject> {
  let next: string | undefined;
  do {
    const page = await client.list(kind, { namespace, limit: PAGE, continue: next }, signal);
    yield* page.items;
    next = page.continue;
  } while (next !== undefined && next !== "");
}
