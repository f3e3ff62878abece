/** The kinds that quotas count, and the calculation of their usage. */

import type { Evaluator } from "../../admission/plugins/resource-quota/evaluator.ts";
import { evaluatorOf } from "../../admission/plugins/resource-quota/evaluators.ts";
import { scopesOf } from "../../admission/plugins/resource-quota/scopes.ts";
import type { ResourceQuota } from "../../api/core/resource-quota/schema.ts";
import { filterResources, type ResourceQuantities } from "../../api/core/resources/quantities.ts";
import { type ApiObject, type Kind, onePerResource } from "../../api/kind.ts";
import { addQuantities, type Quantity } from "../../api/meta/quantity.ts";
import type { Client } from "../../client/client.ts";
import { metadataOnly } from "../../client/metadata-only.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { customContentKinds } from "../namespace/content-kinds.ts";

const ZERO: Quantity = { nanos: 0n, format: "DecimalSI" };
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
  const slice = new TimeSlice();
  const unknown = new Set(resources.filter((resource) => /^count\/[^.]+\..+/.test(resource)));
  const counting = async (kinds: readonly CountedKind[]): Promise<readonly CountedKind[]> => {
    const matching: CountedKind[] = [];
    for (const counted of kinds) {
      // A quota may limit thousands of resources, each of which is compared with each kind.
      if (slice.isOver) await slice.end();
      const counts = resources.filter((resource) => counted.evaluator.counts(resource));
      if (counts.length > 0) matching.push(counted);
      for (const resource of counts) unknown.delete(resource);
    }
    return matching;
  };
  const matching = await counting(builtin);
  if (unknown.size === 0) return matching;
  const custom = await customContentKinds(client, signal);
  return [...matching, ...(await counting(custom.flatMap(toCountedKinds)))];
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
  // Changed in place: a quota may limit thousands of resources, and count thousands of objects.
  const used = new Map<string, Quantity>();
  const slice = new TimeSlice();
  for (const { kind, evaluator } of kinds) {
    if (slice.isOver) await slice.end();
    const resources = new Set(limited.filter((resource) => evaluator.counts(resource)));
    if (resources.size === 0) continue;
    for (const resource of resources) if (!used.has(resource)) used.set(resource, ZERO);
    try {
      for await (const item of listObjects(client, kind, quota.metadata?.namespace ?? "", signal)) {
        if (slice.isOver) await slice.end();
        if (!scopes.every((scope) => evaluator.matchesScope(scope, item))) continue;
        for (const [resource, amount] of evaluator.usage(item)) {
          if (resources.has(resource)) used.set(resource, addQuantities(used.get(resource) ?? ZERO, amount));
        }
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
