/** The policies with their bindings, in the order of their names, and those of them that a request may concern. */
import type {
  ValidatingAdmissionPolicyBindingSpec,
  ValidatingAdmissionPolicySpec,
} from "../../api/admissionregistration/validating-admission-policy/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { Scheme } from "../../api/scheme.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { runInSlices, type Steps } from "../../std/async/steps.ts";
import type { AdmissionAttributes, AdmissionRequest } from "../chain/attributes.ts";
import type { ObjectReader } from "../chain/plugin.ts";
import { createRequestMatcher, type RequestMatcher } from "./match-rules.ts";

/** A policy of either kind: the fields that both have. */
export interface Policy extends ApiObject {
  readonly spec?: Pick<ValidatingAdmissionPolicySpec, "paramKind" | "matchConstraints" | "failurePolicy"> | undefined;
}

/** A binding of either kind: the fields that both have. */
export interface Binding extends ApiObject {
  readonly spec?: Pick<ValidatingAdmissionPolicyBindingSpec, "policyName" | "paramRef" | "matchResources"> | undefined;
}

export interface NamedBinding<B extends Binding> {
  readonly name: string;
  readonly binding: B;
}

interface MatchingBinding<B extends Binding> extends NamedBinding<B> {
  /** Undefined when all requests match. */
  readonly matcher: RequestMatcher | undefined;
}

/** A policy that has bindings. `E`: its compiled expressions. */
export interface BoundPolicy<P extends Policy, B extends Binding, E> {
  readonly name: string;
  readonly policy: P;
  readonly bindings: readonly NamedBinding<B>[];
  readonly failsOpen: boolean;
  /** Compiles at the first call, in turns of the event loop. */
  compile(): MaybePromise<E>;
}

/** A policy whose rules match the attributes of a request. */
export interface Candidate<P extends Policy, B extends Binding, E> {
  readonly bound: BoundPolicy<P, B, E>;
  readonly matcher: RequestMatcher;
  /** The bindings whose rules match too. */
  readonly bindings: readonly MatchingBinding<B>[];
}

export interface PolicySourceDeps {
  readonly reader: ObjectReader;
  readonly scheme: Scheme;
}

export class PolicySource<P extends Policy, B extends Binding, E> {
  readonly #policies: Kind<P>;
  readonly #bindings: Kind<B>;
  readonly #compile: (policy: P) => Steps<E>;
  readonly #deps: PolicySourceDeps;
  #versions: readonly [policies: number, bindings: number, kinds: number] = [-1, -1, -1];
  #bound: readonly BoundPolicy<P, B, E>[] = [];
  /** By kind and operation, then by group alias and subresource. */
  #candidates = new WeakMap<Kind, Map<string, readonly Candidate<P, B, E>[]>>();

  constructor(policies: Kind<P>, bindings: Kind<B>, compile: (policy: P) => Steps<E>, deps: PolicySourceDeps) {
    this.#policies = policies;
    this.#bindings = bindings;
    this.#compile = compile;
    this.#deps = deps;
  }

  /** Returns the policies that may apply. Includes all writes that were acknowledged before the call. */
  candidatesFor(request: AdmissionRequest): MaybePromise<readonly Candidate<P, B, E>[]> {
    const { reader, scheme } = this.#deps;
    return andThen(reader.changes(this.#policies, request), (policies) =>
      andThen(reader.changes(this.#bindings, request), (bindings) => {
        const [lastPolicies, lastBindings, lastKinds] = this.#versions;
        if (policies !== lastPolicies || bindings !== lastBindings) {
          return andThen(this.#refresh(request), () => {
            this.#versions = [policies, bindings, scheme.changeCount];
            return this.#lookUp(request);
          });
        }
        if (scheme.changeCount !== lastKinds) {
          this.#candidates = new WeakMap();
          this.#versions = [policies, bindings, scheme.changeCount];
        }
        return this.#bound.length === 0 ? NONE : this.#lookUp(request);
      }),
    );
  }

  #refresh(request: AdmissionRequest): MaybePromise<void> {
    const { reader } = this.#deps;
    return andThen(reader.list(this.#policies, "", request), (policies) =>
      andThen(reader.list(this.#bindings, "", request), (bindings) => {
        this.#bound = this.#bind(policies, bindings);
        this.#candidates = new WeakMap();
      }),
    );
  }

  #bind(policies: readonly P[], bindings: readonly B[]): readonly BoundPolicy<P, B, E>[] {
    const before = new Map(this.#bound.map((bound) => [bound.name, bound]));
    const byPolicy = Map.groupBy(bindings, ({ spec }) => spec?.policyName ?? "");
    return policies.toSorted(compareNames).flatMap((policy) => {
      const name = nameOf(policy);
      const own = byPolicy.get(name);
      if (own === undefined) return [];
      const last = before.get(name);
      const isSame = last !== undefined && isSameVersion(last.policy, policy);
      const sorted = own.toSorted(compareNames).map((binding) => ({ name: nameOf(binding), binding }));
      return [isSame ? new LazyPolicy(policy, sorted, () => last.compile()) : this.#create(policy, sorted)];
    });
  }

  #create(policy: P, bindings: readonly NamedBinding<B>[]): BoundPolicy<P, B, E> {
    return new LazyPolicy(policy, bindings, () => runInSlices(this.#compile(policy)));
  }

  #lookUp(request: AdmissionRequest): readonly Candidate<P, B, E>[] {
    const { kind, group, operation, subresource } = request;
    let byAttributes = this.#candidates.get(kind);
    if (byAttributes === undefined) {
      byAttributes = new Map();
      this.#candidates.set(kind, byAttributes);
    }
    const key = `${operation} ${group} ${subresource}`;
    let found = byAttributes.get(key);
    if (found === undefined) {
      found = this.#bound.flatMap((bound) => this.#candidateOf(bound, request));
      byAttributes.set(key, found);
    }
    return found;
  }

  #candidateOf(bound: BoundPolicy<P, B, E>, attributes: AdmissionAttributes): readonly Candidate<P, B, E>[] {
    const { scheme } = this.#deps;
    const matcher = createRequestMatcher(bound.policy.spec?.matchConstraints ?? {}, attributes, scheme);
    if (matcher === undefined) return [];
    const bindings: MatchingBinding<B>[] = [];
    for (const { name, binding } of bound.bindings) {
      const { matchResources } = binding.spec ?? {};
      const own = matchResources && createRequestMatcher(matchResources, attributes, scheme);
      if (matchResources === undefined || own !== undefined) bindings.push({ name, binding, matcher: own });
    }
    return [{ bound, matcher, bindings }];
  }
}

const NONE: readonly never[] = [];

class LazyPolicy<P extends Policy, B extends Binding, E> implements BoundPolicy<P, B, E> {
  readonly name: string;
  readonly policy: P;
  readonly bindings: readonly NamedBinding<B>[];
  readonly failsOpen: boolean;
  readonly #compile: () => MaybePromise<E>;
  #compiled: MaybePromise<E> | undefined;

  constructor(policy: P, bindings: readonly NamedBinding<B>[], compile: () => MaybePromise<E>) {
    this.name = nameOf(policy);
    this.policy = policy;
    this.bindings = bindings;
    this.failsOpen = policy.spec?.failurePolicy === "Ignore";
    this.#compile = compile;
  }

  /** Requests that arrive meanwhile wait for the same compilation. */
  compile(): MaybePromise<E> {
    this.#compiled ??= andThen(this.#compile(), (compiled) => {
      this.#compiled = compiled;
      return compiled;
    });
    return this.#compiled;
  }
}

function nameOf({ metadata }: ApiObject): string {
  return metadata?.name ?? "";
}

function compareNames(a: ApiObject, b: ApiObject): number {
  return nameOf(a) < nameOf(b) ? -1 : 1;
}

function isSameVersion(a: ApiObject, b: ApiObject): boolean {
  return a === b || (a.metadata?.uid === b.metadata?.uid && a.metadata?.generation === b.metadata?.generation);
}
