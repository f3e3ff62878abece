/** Limits of scaling: stabilization by recent recommendations, and the rates of scaling policies. */
import type { HPAScalingRules } from "../../api/autoscaling/horizontal-pod-autoscaler/schema.ts";

/** Without policies a scale up at most doubles the replicas, or goes to four. */
const SCALE_UP_FACTOR = 2;
const SCALE_UP_MINIMUM = 4;
const WITHIN_RANGE = "the desired count is within the acceptable range";
const TOO_FAST_UP = "the desired replica count is increasing faster than the maximum scale rate";
const TOO_FAST_DOWN = "the desired replica count is decreasing faster than the maximum scale rate";
const TOO_MANY = "the desired replica count is more than the maximum replica count";
const TOO_FEW = "the desired replica count is less than the minimum replica count";
const WERE_HIGHER = "recent recommendations were higher than current one, applying the highest recent recommendation";
const WERE_LOWER = "recent recommendations were lower than current one, applying the lowest recent recommendation";

interface Sample {
  readonly value: number;
  /** On the monotonic clock. */
  readonly at: number;
}

export interface Limits {
  readonly min: number;
  readonly max: number;
}

/** A number of replicas, and the reason and message of a condition about it. */
export interface Limited {
  readonly replicas: number;
  readonly reason: string;
  readonly message: string;
}

/** Of one autoscaler. Bounded: samples that no rule uses any more are dropped. */
export class ScalingHistory {
  #recommendations: readonly Sample[] = [];
  #scaleUps: readonly Sample[] = [];
  #scaleDowns: readonly Sample[] = [];

  /** The current replicas of an autoscaler that has no recommendation yet. */
  start(replicas: number, now: number): void {
    if (this.#recommendations.length === 0) this.#recommendations = [{ value: replicas, at: now }];
  }

  recordScaling(from: number, to: number, rules: HPAScalingRules | undefined, now: number): void {
    const longest = Math.max(0, ...(rules?.policies ?? []).map(({ periodSeconds }) => periodSeconds * 1000));
    const sample = { value: Math.abs(to - from), at: now };
    const keep = (samples: readonly Sample[]) => [...samples.filter(({ at }) => at >= now - longest), sample];
    if (to > from) this.#scaleUps = keep(this.#scaleUps);
    else this.#scaleDowns = keep(this.#scaleDowns);
  }

  /** The highest recommendation of the window. */
  stabilize(desired: number, windowMs: number, now: number): Limited {
    const recent = this.#recommendations.filter(({ at }) => at >= now - windowMs);
    const replicas = Math.max(desired, ...recent.map(({ value }) => value));
    this.#recommendations = [...recent, { value: desired, at: now }];
    return replicas === desired ? ready(replicas) : { replicas, reason: "ScaleDownStabilized", message: WERE_HIGHER };
  }

  /** A scale up uses the lowest recommendation of its window, a scale down the highest of its own. */
  stabilizeBoth(current: number, desired: number, windows: { up: number; down: number }, now: number): Limited {
    const since = (windowMs: number): readonly number[] =>
      this.#recommendations.filter(({ at }) => at > now - windowMs).map(({ value }) => value);
    const up = Math.min(desired, ...since(windows.up));
    const down = Math.max(desired, ...since(windows.down));
    const replicas = Math.min(Math.max(current, up), down);
    const oldest = now - Math.max(windows.up, windows.down);
    this.#recommendations = [...this.#recommendations.filter(({ at }) => at >= oldest), { value: desired, at: now }];
    if (replicas === desired) return ready(replicas);
    return desired >= current
      ? { replicas, reason: "ScaleUpStabilized", message: WERE_LOWER }
      : { replicas, reason: "ScaleDownStabilized", message: WERE_HIGHER };
  }

  /** Applies the policies of the direction. */
  limitByPolicies(
    current: number,
    desired: number,
    { min, max }: Limits,
    rules: { readonly up: HPAScalingRules; readonly down: HPAScalingRules },
    now: number,
  ): Limited {
    if (desired > current) {
      const limit = Math.max(current, this.#scaleUpLimit(current, rules.up, now));
      const allowed = Math.min(max, limit);
      if (desired > allowed) {
        return max > limit
          ? { replicas: allowed, reason: "ScaleUpLimit", message: TOO_FAST_UP }
          : { replicas: allowed, reason: "TooManyReplicas", message: TOO_MANY };
      }
    } else if (desired < current) {
      const limit = Math.min(current, this.#scaleDownLimit(current, rules.down, now));
      const allowed = Math.max(min, limit);
      if (desired < allowed) {
        return min < limit
          ? { replicas: allowed, reason: "ScaleDownLimit", message: TOO_FAST_DOWN }
          : { replicas: allowed, reason: "TooFewReplicas", message: TOO_FEW };
      }
    }
    return { replicas: desired, reason: "DesiredWithinRange", message: WITHIN_RANGE };
  }

  #scaleUpLimit(current: number, { selectPolicy, policies = [] }: HPAScalingRules, now: number): number {
    if (selectPolicy === "Disabled") return current;
    const proposals = policies.map(({ type, value, periodSeconds }) => {
      const start =
        current -
        this.#changedBy(this.#scaleUps, periodSeconds, now) +
        this.#changedBy(this.#scaleDowns, periodSeconds, now);
      return type === "Pods" ? start + value : Math.ceil(start * (1 + value / 100));
    });
    return selectPolicy === "Min" ? Math.min(...proposals) : Math.max(...proposals);
  }

  #scaleDownLimit(current: number, { selectPolicy, policies = [] }: HPAScalingRules, now: number): number {
    if (selectPolicy === "Disabled") return current;
    const proposals = policies.map(({ type, value, periodSeconds }) => {
      const start =
        current +
        this.#changedBy(this.#scaleDowns, periodSeconds, now) -
        this.#changedBy(this.#scaleUps, periodSeconds, now);
      return type === "Pods" ? start - value : Math.trunc(start * (1 - value / 100));
    });
    return selectPolicy === "Min" ? Math.max(...proposals) : Math.min(...proposals);
  }

  #changedBy(samples: readonly Sample[], periodSeconds: number, now: number): number {
    return samples.filter(({ at }) => at > now - periodSeconds * 1000).reduce((sum, { value }) => sum + value, 0);
  }
}

function ready(replicas: number): Limited {
  return { replicas, reason: "ReadyForNewScale", message: "recommended size matches current size" };
}

/** The limits of an autoscaler without a behavior. */
export function limitReplicas(current: number, desired: number, { min, max }: Limits): Limited {
  const scaleUpLimit = Math.max(SCALE_UP_FACTOR * current, SCALE_UP_MINIMUM);
  if (desired < min) return { replicas: min, reason: "TooFewReplicas", message: TOO_FEW };
  if (desired > Math.min(max, scaleUpLimit)) {
    return max > scaleUpLimit
      ? { replicas: scaleUpLimit, reason: "ScaleUpLimit", message: TOO_FAST_UP }
      : { replicas: max, reason: "TooManyReplicas", message: TOO_MANY };
  }
  return { replicas: desired, reason: "DesiredWithinRange", message: WITHIN_RANGE };
}
