/** `MutatingAdmissionPolicy`: changes objects by the policies of the cluster before they are stored. */
import {
  mutatingAdmissionPolicyBindingKind,
  mutatingAdmissionPolicyKind,
} from "../../api/admissionregistration/mutating-admission-policy/kinds.ts";
import type {
  MutatingAdmissionPolicy,
  MutatingAdmissionPolicyBinding,
} from "../../api/admissionregistration/mutating-admission-policy/schema.ts";
import type { ApiObject } from "../../api/kind.ts";
import { forbidden, StatusError } from "../../api/status.ts";
import type { Variables } from "../../cel/cel.ts";
import { PER_RESOURCE_COST_MAX } from "../../cel/cost/limits.ts";
import type { Value } from "../../cel/values/value.ts";
import { semanticEqual } from "../../schema/semantic-equal.ts";
import { andThen } from "../../std/async/maybe-promise.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { type AdmissionRequest, copyWithObject, subjectOf } from "../chain/attributes.ts";
import type { PluginDeps } from "../chain/factory.ts";
import type { AdmissionPlugin } from "../chain/plugin.ts";
import { convertObject, type EquivalentResource } from "../matching/equivalent-resource.ts";
import { type CompiledExpression, Evaluation } from "../matching/evaluation.ts";
import type { MatchConditions } from "../matching/match-conditions.ts";
import { findInvocations, type Invocation } from "./invocations.ts";
import { errorTypeOf, PolicyMetrics } from "./metrics.ts";
import { compileMutatingPolicy, type MutatingPolicyProgram } from "./mutating-policy.ts";
import { type Param, paramValue } from "./params.ts";
import { applyConfiguration, applyPatch, MutationError } from "./patches.ts";
import { isPolicyTarget, PolicyRequest } from "./policy-request.ts";
import { PolicySource } from "./policy-source.ts";
import { PolicyReinvocation } from "./reinvocation.ts";

const NAME = "MutatingAdmissionPolicy";

type P = MutatingAdmissionPolicy;
type B = MutatingAdmissionPolicyBinding;
type E = MutatingPolicyProgram;
type Source = PolicySource<P, B, E>;

export function mutatingAdmissionPolicy(deps: PluginDeps): AdmissionPlugin {
  const metrics = new PolicyMetrics(deps.metrics, "mutating", []);
  const source: Source = new PolicySource<P, B, E>(
    mutatingAdmissionPolicyKind,
    mutatingAdmissionPolicyBindingKind,
    compileMutatingPolicy,
    deps,
  );
  return {
    name: NAME,
    handles: isPolicyTarget,
    mutate: (request) =>
      andThen(source.candidatesFor(request), (candidates) =>
        candidates.length === 0 ? undefined : new Dispatch(request, deps, metrics).run(candidates),
      ),
  };
}

interface Failure {
  readonly message: string;
  /** Absent for errors of the configuration. */
  readonly reason?: "Invalid";
}

type Candidates = Awaited<ReturnType<Source["candidatesFor"]>>;

/** The policies of one request, each of which gets the object that the previous one left. */
class Dispatch {
  readonly #original: AdmissionRequest;
  readonly #deps: PluginDeps;
  readonly #metrics: PolicyMetrics;
  readonly #reinvocation: PolicyReinvocation;
  readonly #failures: Failure[] = [];
  #current: PolicyRequest;
  #isMutated = false;

  constructor(request: AdmissionRequest, deps: PluginDeps, metrics: PolicyMetrics) {
    this.#original = request;
    this.#deps = deps;
    this.#metrics = metrics;
    this.#current = new PolicyRequest(request, deps);
    this.#reinvocation = PolicyReinvocation.of(request, NAME);
  }

  /** Returns the mutated object, undefined if nothing changed it. Rejects with the errors of all policies. */
  async run(candidates: Candidates): Promise<ApiObject | undefined> {
    const found = await findInvocations(candidates, this.#original, this.#deps);
    for (const { problem } of found) {
      if (problem === undefined || problem.bound.failsOpen) continue;
      this.#fail(problem.bound.name, problem.binding?.name, problem.message);
    }
    const invocations = found.flatMap(({ invocation }) => invocation ?? []);
    if (invocations.length > 0) await this.#invokeAll(invocations);
    const [failure] = this.#failures;
    if (failure !== undefined) throw denialError(this.#original, failure, this.#failures);
    return this.#isMutated ? this.#current.request.object : undefined;
  }

  #fail(policy: string, binding: string | undefined, message: string, reason?: "Invalid"): void {
    const subject = binding === undefined ? `'${policy}'` : `'${policy}' with binding '${binding}'`;
    const text = `policy ${subject} denied request: ${message}`;
    this.#failures.push({ message: text, ...(reason === undefined ? {} : { reason }) });
  }

  async #invokeAll(invocations: readonly Invocation<P, B, E>[]): Promise<void> {
    const reinvocation = this.#reinvocation;
    reinvocation.begin(this.#original);
    const namespaceObject = await this.#current.namespaceObject();
    const slice = new TimeSlice();
    for (const invocation of invocations) {
      for (const param of invocation.params) {
        await slice.yield();
        await this.#invoke(invocation, param, namespaceObject);
      }
    }
    if (this.#isMutated) reinvocation.recordChange();
    reinvocation.end(this.#current.request.object);
  }

  async #invoke(invocation: Invocation<P, B, E>, param: Param, namespaceObject: Value | (() => Value)): Promise<void> {
    const { bound, binding, resource } = invocation;
    const compiled = await bound.compile();
    const params = { namespaceObject, params: () => paramValue(param, bound.policy.spec?.paramKind) };
    if (compiled.conditions !== undefined && !(await this.#matches(invocation, compiled.conditions, params))) return;
    const key = [bound.name, binding.name, param?.object.metadata?.namespace, param?.object.metadata?.name].join("\0");
    if (!this.#reinvocation.isDue(key)) return;
    const before = this.#current.request.object;
    for (const mutation of compiled.mutations) {
      const { object } = this.#current.request;
      if (object === undefined) break;
      const start = this.#deps.clock.monotonic();
      const observe = (error: string): void =>
        this.#metrics.observe(this.#deps.clock.monotonic() - start, bound.name, binding.name, error);
      try {
        const { patchType, expression } = mutation;
        const patch = await this.#evaluate(expression, resource, params, compiled);
        const apply = patchType === "JSONPatch" ? applyPatch : applyConfiguration;
        await this.#replace((versioned) => apply(resource, versioned, patch, this.#deps.scheme), resource);
        observe("no_error");
      } catch (error) {
        if (!(error instanceof MutationError)) throw error;
        observe(errorTypeOf(error.message));
        if (!bound.failsOpen) this.#fail(bound.name, binding.name, error.message, "Invalid");
      }
    }
    if (!semanticEqual(this.#original.objectKind.schema, before, this.#current.request.object)) {
      this.#reinvocation.recordChange();
    }
    if (compiled.isReinvocable) this.#reinvocation.recordInvocation(key);
  }

  async #matches(
    { bound, binding, resource }: Invocation<P, B, E>,
    conditions: MatchConditions,
    params: Variables,
  ): Promise<boolean> {
    const { clock } = this.#deps;
    await conditions.compile();
    const start = clock.monotonic();
    const bindings = { ...(await this.#current.bindingsFor(resource)), ...params, namespaceObject: null };
    const { matches, error, failedOpen = false } = await conditions.match(bindings, this.#current.runner);
    this.#metrics.conditions.observe(
      { name: bound.name, kind: "policy", type: "validate", operation: this.#original.operation },
      error !== undefined || failedOpen ? "failed" : matches ? "matched" : "excluded",
      clock.monotonic() - start,
    );
    if (error !== undefined) this.#fail(bound.name, binding.name, error, "Invalid");
    return matches;
  }

  /** Rejects with a `MutationError`. */
  async #evaluate(
    expression: CompiledExpression,
    resource: EquivalentResource,
    params: Variables,
    { variables }: MutatingPolicyProgram,
  ): Promise<Value> {
    if (expression.program === undefined) throw new MutationError(expression.error);
    const bindings = { ...(await this.#current.bindingsFor(resource)), ...params };
    const evaluation = new Evaluation(bindings, variables, PER_RESOURCE_COST_MAX);
    const { value, error } = await evaluation.evaluate(expression, this.#current.runner);
    if (error !== undefined) throw new MutationError(error);
    return value;
  }

  /** Replaces the object by what `mutate` makes of it in the version of the policy; undefined leaves it. */
  async #replace(mutate: (object: ApiObject) => ApiObject | undefined, resource: EquivalentResource): Promise<void> {
    const { request, requested } = this.#current;
    const { object } = request;
    if (object === undefined) return;
    const isSame = this.#current.isRequested(resource);
    const next = mutate(isSame ? object : await convertObject(object, requested, resource, request.signal));
    if (next === undefined) return;
    const converted = isSame ? next : await convertObject(next, resource, requested, request.signal);
    this.#isMutated = true;
    this.#current = this.#current.withRequest(copyWithObject(request, converted));
  }
}

/** As in Kubernetes, the code is that of Forbidden whatever the reason is. */
function denialError(request: AdmissionRequest, first: Failure, all: readonly Failure[]): StatusError {
  const { status } = forbidden(subjectOf(request), "");
  const details = { ...status.details, causes: all.map(({ message }) => ({ message })) };
  return new StatusError(403, first.reason ?? "Forbidden", first.message, { details });
}
