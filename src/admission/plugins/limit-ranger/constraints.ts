/** The three constraints of limit ranges, each with what is wrong in Kubernetes' words. */
import type { ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import { formatQuantity, quantityMilliValue, quantityNanos } from "../../../api/meta/quantity.ts";

export interface Constrained {
  /** `Container`, `Pod`, `PersistentVolumeClaim` */
  readonly type: string;
  /** The resource and how much of it the range says. */
  readonly bound: readonly [string, string];
  readonly requests: ResourceQuantities;
  readonly limits: ResourceQuantities;
}

/** Undefined when all is well; so with the others. */
export function minimumOf({ type, bound: [name, least], requests, limits }: Constrained): string | undefined {
  const [request, limit, enforced] = [requests.get(name), limits.get(name), quantityNanos(least)];
  const rule = `minimum ${name} usage per ${type} is ${least}`;
  if (request === undefined) return `${rule}.  No request is specified`;
  if (request.nanos < enforced) return `${rule}, but request is ${formatQuantity(request)}`;
  if (limit !== undefined && limit.nanos < enforced) return `${rule}, but limit is ${formatQuantity(limit)}`;
  return undefined;
}

export function maximumOf(constrained: Constrained): string | undefined {
  const { type, bound, requests, limits } = constrained;
  const [name, most] = bound;
  const limit = limits.get(name);
  const rule = `maximum ${name} usage per ${type} is ${most}`;
  if (limit === undefined) return `${rule}.  No limit is specified`;
  if (limit.nanos > quantityNanos(most)) return `${rule}, but limit is ${formatQuantity(limit)}`;
  return requests.has(name) ? requestMaximumOf(constrained) : undefined;
}

/** For what knows no limits. */
export function requestMaximumOf({ type, bound: [name, most], requests }: Constrained): string | undefined {
  const request = requests.get(name);
  const rule = `maximum ${name} usage per ${type} is ${most}`;
  if (request === undefined) return `${rule}.  No request is specified`;
  if (request.nanos > quantityNanos(most)) return `${rule}, but request is ${formatQuantity(request)}`;
  return undefined;
}

export function ratioOf({ type, bound: [name, most], requests, limits }: Constrained): string | undefined {
  const [request, limit] = [requests.get(name), limits.get(name)];
  const rule = `${name} max limit to request ratio per ${type} is ${most}`;
  if (request === undefined || request.nanos === 0n) {
    return `${rule}, but no request is specified or request is 0`;
  }
  if (limit === undefined || limit.nanos === 0n) return `${rule}, but no limit is specified or limit is 0`;
  const ratio = quantityMilliValue(limit) / quantityMilliValue(request);
  return ratio * 1e9 > Number(quantityNanos(most)) ? `${rule}, but provided ratio is ${ratio.toFixed(6)}` : undefined;
}
