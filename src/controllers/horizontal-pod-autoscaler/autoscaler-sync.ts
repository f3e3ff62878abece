/** One sync of an autoscaler: reads the target's scale and metrics, and changes the scale within the limits. */
import { horizontalPodAutoscalerKind } from "../../api/autoscaling/horizontal-pod-autoscaler/kind.ts";
import type {
  HorizontalPodAutoscaler,
  HorizontalPodAutoscalerCondition,
  HorizontalPodAutoscalerSpec,
  MetricStatus,
} from "../../api/autoscaling/horizontal-pod-autoscaler/schema.ts";
import type { Scale } from "../../api/autoscaling/scale/schema.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Kind } from "../../api/kind.ts";
import { parseLabelSelector, type Requirement } from "../../api/meta/selectors/selector.ts";
import { parseApiVersion } from "../../api/scheme.ts";
import type { Client } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events/event-recorder.ts";
import { deepEqual } from "../../schema/value/equal.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { AutoscalerOptions } from "../controller-options.ts";
import { objectReference } from "../workload/object-keys.ts";
import { messageOf } from "../workload/pod-control.ts";
import type { Scales } from "../workload/scales.ts";
import { type AutoscalerMetrics, actionOf, type ScalingAction, type ScalingError } from "./autoscaler-metrics.ts";
import { MetricError, type MetricProposal, proposeForMetric } from "./metric-proposals.ts";
import { MetricsClient } from "./metrics-client.ts";
import { type Limited, limitReplicas, type ScalingHistory } from "./scaling-history.ts";

export interface AutoscalerSyncDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly recorder: EventRecorder;
  readonly metrics: AutoscalerMetrics;
  readonly scales: Scales;
  readonly options: AutoscalerOptions;
  readonly history: ScalingHistory;
  /** The pods that the selector matches. */
  readonly podsOf: (requirements: readonly Requirement[]) => readonly Pod[];
  /** Registers the selector; returns the autoscalers that select one of the pods, as `namespace/name`. */
  readonly autoscalersOf: (requirements: readonly Requirement[], pods: readonly Pod[]) => readonly string[];
  readonly signal: AbortSignal;
}

interface Target {
  readonly kind: Kind;
  readonly scale: Scale;
}

/** Errors are in the conditions and events; rejects if the status cannot be written. */
export async function syncAutoscaler(autoscaler: HorizontalPodAutoscaler, deps: AutoscalerSyncDeps): Promise<void> {
  if (autoscaler.spec === undefined) return;
  const { clock, metrics } = deps;
  const began = clock.monotonic();
  const sync = new AutoscalerSync(autoscaler, autoscaler.spec, deps);
  try {
    await sync.run();
  } catch (error) {
    sync.fail("internal");
    throw error;
  } finally {
    metrics.recordReconciliation(sync.action, sync.error, (clock.monotonic() - began) / 1000);
  }
}

/** A failure that the conditions report: nothing is scaled. */
class SyncFailure extends Error {
  readonly kind: ScalingError;

  constructor(message: string, kind: ScalingError) {
    super(message);
    this.kind = kind;
  }
}

class AutoscalerSync {
  readonly #autoscaler: HorizontalPodAutoscaler;
  readonly #spec: HorizontalPodAutoscalerSpec;
  readonly #deps: AutoscalerSyncDeps;
  #conditions: readonly HorizontalPodAutoscalerCondition[];
  #statuses: readonly MetricStatus[] = [];
  #action: ScalingAction = "none";
  #error: ScalingError = "none";

  constructor(autoscaler: HorizontalPodAutoscaler, spec: HorizontalPodAutoscalerSpec, deps: AutoscalerSyncDeps) {
    this.#autoscaler = autoscaler;
    this.#spec = spec;
    this.#deps = deps;
    this.#conditions = autoscaler.status?.conditions ?? [];
  }

  get action(): ScalingAction {
    return this.#action;
  }

  get error(): ScalingError {
    return this.#error;
  }

  /** The first error counts. */
  fail(error: ScalingError): void {
    if (this.#error === "none") this.#error = error;
  }

  async run(): Promise<void> {
    const target = await this.#readTarget();
    if (target === undefined) return;
    const { history, clock } = this.#deps;
    const current = target.scale.spec?.replicas ?? 0;
    history.start(current, clock.monotonic());
    let decision: { readonly desired: number; readonly reason: string };
    try {
      decision = await this.#decide(target.scale, current);
    } catch (error) {
      if (!(error instanceof SyncFailure)) throw error;
      this.fail(error.kind);
      await this.#writeStatus(current, this.#autoscaler.status?.desiredReplicas ?? 0, false);
      this.#record("Warning", "FailedComputeMetricsReplicas", error.message);
      return;
    }
    const { desired, reason } = decision;
    if (desired === current) {
      await this.#writeStatus(current, current, false);
      return;
    }
    try {
      const scale = { ...target.scale, spec: { ...target.scale.spec, replicas: desired } };
      await this.#deps.scales.update(target.kind, scale, this.#deps.signal);
    } catch (error) {
      const why = messageOf(error);
      this.fail("internal");
      this.#record("Warning", "FailedRescale", `New size: ${desired}; reason: ${reason}; error: ${why}`);
      const message = `the HPA controller was unable to update the target scale: ${why}`;
      this.#setCondition("AbleToScale", "False", "FailedUpdateScale", message);
      await this.#writeStatus(current, this.#autoscaler.status?.desiredReplicas ?? 0, false);
      return;
    }
    const message = `the HPA controller was able to update the target scale to ${desired}`;
    this.#setCondition("AbleToScale", "True", "SucceededRescale", message);
    this.#action = actionOf(current, desired);
    this.#record("Normal", "SuccessfulRescale", `New size: ${desired}; reason: ${reason}`);
    const { behavior } = this.#spec;
    const rules = desired > current ? behavior?.scaleUp : behavior?.scaleDown;
    if (behavior !== undefined) history.recordScaling(current, desired, rules, clock.monotonic());
    await this.#writeStatus(current, desired, true);
  }

  async #readTarget(): Promise<Target | undefined> {
    const { scales, signal } = this.#deps;
    const { kind: kindName, name, apiVersion = "v1" } = this.#spec.scaleTargetRef;
    try {
      const { group } = parseApiVersion(apiVersion) ?? {};
      if (group === undefined) throw new Error(`unexpected GroupVersion string: ${apiVersion}`);
      const kinds = await scales.kindsOf(apiVersion, kindName, signal);
      if (kinds.length === 0) {
        throw new Error(`no matches for kind ${JSON.stringify(kindName)} in group ${JSON.stringify(group)}`);
      }
      const target = await this.#readScale(kinds, name);
      const message = "the HPA controller was able to get the target's current scale";
      this.#setCondition("AbleToScale", "True", "SucceededGetScale", message);
      return target;
    } catch (error) {
      if (signal.aborted) throw error;
      const why = messageOf(error);
      this.fail("internal");
      this.#record("Warning", "FailedGetScale", why);
      const message = `the HPA controller was unable to get the target's current scale: ${why}`;
      this.#setCondition("AbleToScale", "False", "FailedGetScale", message);
      const { currentReplicas = 0, desiredReplicas = 0, currentMetrics = [] } = this.#autoscaler.status ?? {};
      this.#statuses = currentMetrics;
      await this.#writeStatus(currentReplicas, desiredReplicas, false);
      return undefined;
    }
  }

  /** Tries all versions; rejects with the error of the first. */
  async #readScale(kinds: readonly Kind[], name: string): Promise<Target> {
    const { scales, signal } = this.#deps;
    let first: unknown;
    for (const kind of kinds) {
      try {
        return { kind, scale: await scales.get(kind, { name, namespace: this.#namespace }, signal) };
      } catch (error) {
        first ??= error;
      }
    }
    throw first;
  }

  get #namespace(): string {
    return this.#autoscaler.metadata?.namespace ?? "";
  }

  async #decide(scale: Scale, current: number): Promise<{ readonly desired: number; readonly reason: string }> {
    const { minReplicas: min = 1, maxReplicas: max } = this.#spec;
    if (current === 0 && min !== 0) {
      const message = "scaling is disabled since the replica count of the target is zero";
      this.#setCondition("ScalingActive", "False", "ScalingDisabled", message);
      return { desired: 0, reason: "" };
    }
    if (current > max) return { desired: max, reason: "Current number of replicas above Spec.MaxReplicas" };
    if (current < min) return { desired: min, reason: "Current number of replicas below Spec.MinReplicas" };
    const best = await this.#computeReplicas(scale, current);
    const reason = best.replicas > current ? `${best.name} above target` : "All metrics below target";
    return { desired: this.#limit(current, best.replicas, { min, max }), reason };
  }

  /** The highest proposal. Metrics that fail are ignored, unless that would scale down. */
  async #computeReplicas(scale: Scale, current: number): Promise<Pick<MetricProposal, "replicas" | "name">> {
    const { client, clock, options, podsOf, signal } = this.#deps;
    const selector = scale.status?.selector ?? "";
    const requirements = this.#checkSelector(selector);
    const context = {
      autoscaler: this.#autoscaler,
      namespace: this.#namespace,
      specReplicas: current,
      statusReplicas: scale.status?.replicas ?? 0,
      pods: podsOf(requirements),
      selector,
      metrics: new MetricsClient(client, this.#deps.scales, signal),
      options,
      now: clock.now(),
    };
    const specs = this.#spec.metrics ?? [];
    const errors: MetricError[] = [];
    const statuses: MetricStatus[] = [];
    let best: MetricProposal | undefined;
    for (const spec of specs) {
      const began = clock.monotonic();
      const computed = (action: ScalingAction, error: ScalingError): void =>
        this.#deps.metrics.recordMetricComputation(spec.type, action, error, (clock.monotonic() - began) / 1000);
      try {
        const proposal = await proposeForMetric(spec, context);
        computed(actionOf(current, proposal.replicas), "none");
        statuses.push(proposal.status);
        if (best === undefined || best.replicas === 0 || proposal.replicas > best.replicas) best = proposal;
      } catch (error) {
        if (signal.aborted || !(error instanceof MetricError)) throw error;
        computed("none", errorKindOf(error));
        this.#record("Warning", error.reason, error.message);
        errors.push(error);
        // Kubernetes leaves the status of a failed metric empty.
        statuses.push({ type: "" });
      }
    }
    this.#statuses = statuses;
    const [first] = errors;
    const count = `${errors.length} invalid out of ${specs.length}`;
    const summary = `invalid metrics (${count}), first error is: ${first?.summary}`;
    if (best === undefined || (first !== undefined && best.replicas < current)) {
      const message = `the HPA was unable to compute the replica count: ${first?.message}`;
      this.#setCondition("ScalingActive", "False", first?.reason ?? "", message);
      throw new SyncFailure(summary, first === undefined ? "internal" : errorKindOf(first));
    }
    const message = `the HPA was able to successfully calculate a replica count from ${best.name}`;
    this.#setCondition("ScalingActive", "True", "ValidMetricFound", message);
    return best;
  }

  #checkSelector(selector: string): readonly Requirement[] {
    const fail = (event: string, reason: string, error: string, message: string): never => {
      this.#record("Warning", event, error);
      this.#setCondition("ScalingActive", "False", reason, message);
      throw new SyncFailure(error, "spec");
    };
    if (selector === "") {
      const message = "the HPA target's scale is missing a selector";
      return fail("SelectorRequired", "InvalidSelector", "selector is required", message);
    }
    let requirements: readonly Requirement[];
    try {
      requirements = parseLabelSelector(selector);
    } catch (error) {
      const message = `couldn't convert selector into a corresponding internal selector object: ${messageOf(error)}`;
      return fail("InvalidSelector", "InvalidSelector", message, message);
    }
    const others = this.#deps.autoscalersOf(requirements, this.#deps.podsOf(requirements));
    if (others.length > 1) {
      const message = `pods by selector ${selector} are controlled by multiple HPAs: [${others.join(" ")}]`;
      return fail("AmbiguousSelector", "AmbiguousSelector", message, message);
    }
    return requirements;
  }

  #limit(current: number, proposed: number, limits: { readonly min: number; readonly max: number }): number {
    const { history, clock, options } = this.#deps;
    const { scaleUp, scaleDown } = this.#spec.behavior ?? {};
    const now = clock.monotonic();
    let stable: Limited;
    let limited: Limited;
    if (this.#spec.behavior === undefined) {
      stable = history.stabilize(proposed, options.downscaleStabilizationMs, now);
      limited = limitReplicas(current, stable.replicas, limits);
    } else {
      const down = scaleDown?.stabilizationWindowSeconds;
      const windows = {
        up: (scaleUp?.stabilizationWindowSeconds ?? 0) * 1000,
        down: down === undefined ? options.downscaleStabilizationMs : down * 1000,
      };
      stable = history.stabilizeBoth(current, proposed, windows, now);
      const rules = { up: scaleUp ?? {}, down: scaleDown ?? {} };
      limited = history.limitByPolicies(current, stable.replicas, limits, rules, now);
    }
    this.#setCondition("AbleToScale", "True", stable.reason, stable.message);
    const isLimited = limited.replicas !== stable.replicas;
    this.#setCondition("ScalingLimited", isLimited ? "True" : "False", limited.reason, limited.message);
    return limited.replicas;
  }

  #setCondition(type: string, status: "True" | "False", reason: string, message: string): void {
    const index = this.#conditions.findIndex((condition) => condition.type === type);
    const old = this.#conditions[index];
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : formatTime(this.#deps.clock.now());
    const next = { type, status, lastTransitionTime, reason, message };
    this.#conditions = old === undefined ? [...this.#conditions, next] : this.#conditions.with(index, next);
  }

  #record(type: "Normal" | "Warning", reason: string, message: string): void {
    this.#deps.recorder.record(objectReference(this.#autoscaler), type, reason, message);
  }

  async #writeStatus(currentReplicas: number, desiredReplicas: number, isRescaled: boolean): Promise<void> {
    const { client, clock, signal } = this.#deps;
    const { status } = this.#autoscaler;
    const next = {
      lastScaleTime: isRescaled ? formatTime(clock.now()) : status?.lastScaleTime,
      currentReplicas,
      desiredReplicas,
      currentMetrics: this.#statuses.length === 0 ? undefined : this.#statuses,
      conditions: this.#conditions,
    };
    const normalize = ({ currentReplicas = 0, currentMetrics, ...rest }: Partial<typeof next>) => ({
      ...rest,
      currentReplicas,
      currentMetrics: currentMetrics ?? [],
    });
    if (status !== undefined && deepEqual(normalize(next), normalize(status as Partial<typeof next>))) return;
    try {
      await client.updateStatus(horizontalPodAutoscalerKind, { ...this.#autoscaler, status: next }, signal);
    } catch (error) {
      if (!signal.aborted) this.#record("Warning", "FailedUpdateStatus", messageOf(error));
      throw error;
    }
  }
}

function errorKindOf({ reason }: MetricError): ScalingError {
  return reason === "InvalidMetricSourceType" ? "spec" : "internal";
}
