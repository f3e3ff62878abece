/** The constraints of a LimitRange. Each function returns Kubernetes' message for a violation, or undefined. */
import type { ResourceQuantities } from "../../../api/core/resources/quantities.ts";
import { formatQuantity, quantityMilliValue, quantityNanos } from "../../../api/meta/quantity.ts";

export interface ConstraintInput {
  /** `Container`, `Pod`, `PersistentVolumeClaim` */
  readonly type: string;
  /** The resource and the quantity of the constraint. */
  readonly constraint: readonly [string, string];
  readonly requests: ResourceQuantities;
  readonly limits: ResourceQuantities;
}

export function checkMinimum({ type, constraint: [name, min], requests, limits }: ConstraintInput): string | undefined {
  const [request, limit, enforced] = [requests.get(name), limits.get(name), quantityNanos(min)];
  const rule = `minimum ${name} usage per ${type} is ${min}`;
  if (request === undefined) return `${rule}.  No request is specified`;
  if (request.nanos < enforced) return `${rule}, but request is ${formatQuantity(request)}`;
  if (limit !== undefined && limit.nanos < enforced) return `${rule}, but limit is ${formatQuantity(limit)}`;
  return undefined;
}

export function checkMaximum(constrained: ConstraintInput): string | undefined {
  const { type, constraint, requests, limits } = constrained;
  const [name, max] = constraint;
  const limit = limits.get(name);
  const rule = `maximum ${name} usage per ${type} is ${max}`;
  if (limit === undefined) return `${rule}.  No limit is specified`;
  if (limit.nanos > quantityNanos(max)) return `${rule}, but limit is ${formatQuantity(limit)}`;
  return requests.has(name) ? checkRequestMaximum(constrained) : undefined;
}

/** For claims, which have no limits. */
export function checkRequestMaximum({ type, constraint: [name, max], requests }: ConstraintInput): string | undefined {
  const request = requests.get(name);
  const rule = `maximum ${name} usage per ${type} is ${max}`;
  if (request === undefined) return `${rule}.  No request is specified`;
  if (request.nanos > quantityNanos(max)) return `${rule}, but request is ${formatQuantity(request)}`;
  return undefined;
}

export function checkRatio({ type, constraint: [name, max], requests, limits }: ConstraintInput): string | undefined {
  const [request, limit] = [requests.get(name), limits.get(name)];
  const rule = `${name} max limit to request ratio per ${type} is ${max}`;
  if (request === undefined || request.nanos === 0n) {
    return `${rule}, but no request is specified or request is 0`;
  }
  if (limit === undefined || limit.nanos === 0n) return `${rule}, but no limit is specified or limit is 0`;
  const ratio = quantityMilliValue(limit) / quantityMilliValue(request);
  return ratio * 1e9 > Number(quantityNanos(max)) ? `${rule}, but provided ratio is ${ratio.toFixed(6)}` : undefined;
}
