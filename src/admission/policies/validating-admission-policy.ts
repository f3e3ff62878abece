/** `ValidatingAdmissionPolicy`: rejects, warns about or annotates requests by the policies of the cluster. */
import { validatingAdmissionPolicyKind } from "../../api/admissionregistration/validating-admission-policy/kind.ts";
import type {
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from "../../api/admissionregistration/validating-admission-policy/schema.ts";
import { validatingAdmissionPolicyBindingKind } from "../../api/admissionregistration/validating-admission-policy-binding/kind.ts";
import { forbidden, StatusError } from "../../api/status.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import { escapeHtml } from "../../schema/json/html-escape.ts";
import { andThen, forEachInOrder, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import { type AdmissionRequest, subjectOf } from "../chain/attributes.ts";
import type { PluginDeps } from "../chain/factory.ts";
import type { AdmissionPlugin } from "../chain/plugin.ts";
import type { MatchResult } from "../matching/match-conditions.ts";
import { findInvocations, type Invocation } from "./invocations.ts";
import { errorTypeOf, PolicyMetrics } from "./metrics.ts";
import { paramValue } from "./params.ts";
import { isPolicyTarget, PolicyRequest } from "./policy-request.ts";
import { type BoundPolicy, PolicySource } from "./policy-source.ts";
import {
  compileValidatingPolicy,
  type Decision,
  evaluateValidatingPolicy,
  type PolicyResult,
  type ValidatingPolicyProgram,
} from "./validating-policy.ts";

const NAME = "ValidatingAdmissionPolicy";
const FAILURE_ANNOTATION = "validation.policy.admission.k8s.io/validation_failure";
const ANNOTATION_BYTES_MAX = 10 * 1024;

type P = ValidatingAdmissionPolicy;
type B = ValidatingAdmissionPolicyBinding;
type E = ValidatingPolicyProgram;
type Source = PolicySource<P, B, E>;

export function validatingAdmissionPolicy(deps: PluginDeps): AdmissionPlugin {
  const metrics = new PolicyMetrics(deps.metrics, "validating", ["enforcement_action"]);
  const source: Source = new PolicySource<P, B, E>(
    validatingAdmissionPolicyKind,
    validatingAdmissionPolicyBindingKind,
    compileValidatingPolicy,
    deps,
  );
  return {
    name: NAME,
    handles: isPolicyTarget,
    validate: (request) =>
      andThen(source.candidatesFor(request), (candidates) =>
        candidates.length === 0 ? undefined : new Dispatch(request, deps, metrics).run(candidates),
      ),
  };
}

interface Denial {
  readonly policy: string;
  readonly binding: string | undefined;
  readonly message: string;
  readonly reason: string;
}

type Candidates = Awaited<ReturnType<Source["candidatesFor"]>>;

/** The policies of one request. */
class Dispatch {
  readonly #request: AdmissionRequest;
  readonly #policyRequest: PolicyRequest;
  readonly #deps: PluginDeps;
  readonly #metrics: PolicyMetrics;
  readonly #slice = new TimeSlice();
  readonly #denials: Denial[] = [];
  /** The values of audit annotations, by key. Bindings and parameters can have different ones. */
  readonly #annotations = new Map<string, Set<string>>();

  constructor(request: AdmissionRequest, deps: PluginDeps, metrics: PolicyMetrics) {
    this.#request = request;
    this.#policyRequest = new PolicyRequest(request, deps);
    this.#deps = deps;
    this.#metrics = metrics;
  }

  /** Throws or rejects with the error of the first denial. */
  run(candidates: Candidates): MaybePromise<void> {
    return andThen(findInvocations(candidates, this.#request, this.#deps), (found) => {
      const done = forEachInOrder(found, ({ invocation, problem }) => {
        if (problem === undefined) return this.#invoke(invocation);
        if (!problem.bound.failsOpen) this.#deny(problem.bound, problem.binding?.name, problem.message);
        return undefined;
      });
      return andThen(done, () => this.#end());
    });
  }

  #end(): void {
    for (const [key, values] of this.#annotations) {
      this.#request.annotate(key, [...values].join(", "));
    }
    const [denial] = this.#denials;
    if (denial !== undefined) throw denialError(this.#request, denial);
  }

  #deny(
    { name }: Pick<BoundPolicy<P, B, E>, "name">,
    binding: string | undefined,
    message: string,
    reason = "Invalid",
  ) {
    this.#denials.push({ policy: name, binding, message, reason });
  }

  #invoke(invocation: Invocation<P, B, E>): MaybePromise<void> {
    if (invocation.params.length === 0) return;
    const { resource, bound, binding } = invocation;
    return andThen(this.#policyRequest.namespaceObject(), (namespaceObject) => {
      const evaluate = (values: Awaited<ReturnType<PolicyRequest["bindingsFor"]>>): MaybePromise<void> => {
        return forEachInOrder(invocation.params, (param) => {
          const params = () => paramValue(param, bound.policy.spec?.paramKind);
          const run = () => this.#evaluate(invocation, { ...values, namespaceObject, params });
          return this.#slice.yield()?.then(run) ?? run();
        });
      };
      const values = this.#policyRequest.bindingsFor(resource);
      if (!(values instanceof Promise)) return evaluate(values);
      return values.then(evaluate, (error: unknown) => {
        if (!(error instanceof Error) || this.#request.signal.aborted) throw error;
        if (bound.failsOpen) return;
        const reason = `failed to configure binding: failed to convert object version: ${error.message}`;
        this.#deny(bound, binding.name, reason);
      });
    });
  }

  #evaluate(
    invocation: Invocation<P, B, E>,
    bindings: Parameters<typeof evaluateValidatingPolicy>[1],
  ): MaybePromise<void> {
    return andThen(compileAll(invocation.bound), (compiled) => this.#evaluateCompiled(invocation, compiled, bindings));
  }

  #evaluateCompiled(
    invocation: Invocation<P, B, E>,
    compiled: E,
    bindings: Parameters<typeof evaluateValidatingPolicy>[1],
  ): MaybePromise<void> {
    const { clock } = this.#deps;
    const start = clock.monotonic();
    const result = evaluateValidatingPolicy(compiled, bindings, this.#policyRequest.runner);
    return andThen(result, (done) => this.#record(invocation, done, clock.monotonic() - start));
  }

  #record({ bound, binding }: Invocation<P, B, E>, result: PolicyResult, milliseconds: number): void {
    if (result.conditions !== undefined) this.#observeConditions(bound.name, result.conditions, milliseconds);
    for (const [index, decision] of result.decisions.entries()) {
      if (decision.outcome !== "admit") this.#enforce(bound, binding, decision, index, milliseconds);
    }
    for (const { key, value } of result.annotations) {
      const name = `${bound.name}/${key}`;
      const values = this.#annotations.get(name) ?? new Set();
      this.#annotations.set(name, values.add(cutAnnotation(value)));
    }
    for (const message of bound.failsOpen ? [] : result.annotationErrors) {
      this.#deny(bound, binding.name, message);
      this.#metrics.observe(milliseconds, bound.name, binding.name, errorTypeOf(message), "deny");
    }
  }

  #enforce(
    bound: BoundPolicy<P, B, E>,
    { name, binding }: Invocation<P, B, E>["binding"],
    decision: Exclude<Decision, { readonly outcome: "admit" }>,
    index: number,
    milliseconds: number,
  ): void {
    const { message } = decision;
    const observe = (action: string): void =>
      this.#metrics.observe(milliseconds, bound.name, name, errorTypeOf(message), action);
    if (decision.outcome === "error" && bound.failsOpen) {
      observe("allow");
      return;
    }
    const { validationActions = [], policyName = "" } = binding.spec ?? {};
    for (const action of validationActions) {
      if (action === "Deny") {
        this.#deny(bound, name, message, decision.outcome === "deny" ? decision.reason : undefined);
        observe("deny");
      } else if (action === "Warn") {
        this.#request.warn(`Validation failed for ${NAME} '${bound.name}' with binding '${name}': ${message}`);
        observe("warn");
      } else if (action === "Audit") {
        const failure = { message, policy: policyName, binding: name, expressionIndex: index, validationActions };
        this.#request.annotate(FAILURE_ANNOTATION, escapeHtml(stringifyExact([failure])));
        observe("audit");
      }
    }
  }

  #observeConditions(name: string, { matches, error, failedOpen }: MatchResult, milliseconds: number): void {
    this.#metrics.conditions.observe(
      { name, kind: "policy", type: "validate", operation: this.#request.operation },
      error !== undefined || failedOpen === true ? "failed" : matches ? "matched" : "excluded",
      milliseconds,
    );
  }
}

/** Each byte of a character that is cut in the middle becomes U+FFFD, as in the JSON of Go. */
export function cutAnnotation(value: string): string {
  if (value.length * 3 <= ANNOTATION_BYTES_MAX) return value;
  const bytes = Buffer.from(value);
  if (bytes.length <= ANNOTATION_BYTES_MAX) return value;
  let end = ANNOTATION_BYTES_MAX;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString("utf8", 0, end) + "\ufffd".repeat(ANNOTATION_BYTES_MAX - end);
}

function compileAll(bound: BoundPolicy<P, B, E>): MaybePromise<E> {
  return andThen(bound.compile(), (compiled) => andThen(compiled.conditions?.compile(), () => compiled));
}

const CODES: Readonly<Record<string, number>> = {
  Unauthorized: 401,
  Forbidden: 403,
  RequestEntityTooLarge: 413,
  Invalid: 422,
};

function denialError(request: AdmissionRequest, { policy, binding, message, reason }: Denial): StatusError {
  const subject = binding === undefined ? `'${policy}'` : `'${policy}' with binding '${binding}'`;
  const text = `${NAME} ${subject} denied request: ${message}`;
  const { status } = forbidden(subjectOf(request), text);
  const details = { ...status.details, causes: [{ message: text }] };
  return new StatusError(CODES[reason] ?? 422, reason, status.message ?? text, { details });
}
