/** Finds the policies, bindings and parameters that apply to a request. */
import type { Kind } from "../../api/kind.ts";
import type { Scheme } from "../../api/scheme.ts";
import { andThen, forEachInOrder, type MaybePromise } from "../../std/async/maybe-promise.ts";
import { TimeSlice } from "../../std/async/time-slice.ts";
import type { AdmissionRequest } from "../chain/attributes.ts";
import type { ObjectReader } from "../chain/plugin.ts";
import type { EquivalentResource } from "../matching/equivalent-resource.ts";
import { matchRequest, type RequestMatcher } from "./match-rules.ts";
import { ConfigurationError, collectParams, findParamKind, type Param } from "./params.ts";
import type { Binding, BoundPolicy, Candidate, NamedBinding, Policy, PolicySourceDeps } from "./policy-source.ts";

/** A policy with one of its bindings, for one parameter object after the other. */
export interface Invocation<P extends Policy, B extends Binding, E> {
  readonly bound: BoundPolicy<P, B, E>;
  readonly binding: NamedBinding<B>;
  /** In the version that the policy's rule names. */
  readonly resource: EquivalentResource;
  readonly params: readonly Param[];
}

/** A policy or binding that cannot be applied. */
export interface ConfigurationProblem<P extends Policy, B extends Binding, E> {
  readonly bound: BoundPolicy<P, B, E>;
  /** Undefined if the policy itself cannot be applied. */
  readonly binding: NamedBinding<B> | undefined;
  readonly message: string;
}

export type InvocationOrProblem<P extends Policy, B extends Binding, E> =
  | { readonly invocation: Invocation<P, B, E>; readonly problem?: undefined }
  | { readonly invocation?: undefined; readonly problem: ConfigurationProblem<P, B, E> };

/** In the order of the names of policies and their bindings. */
export function findInvocations<P extends Policy, B extends Binding, E>(
  candidates: readonly Candidate<P, B, E>[],
  request: AdmissionRequest,
  deps: PolicySourceDeps,
): MaybePromise<readonly InvocationOrProblem<P, B, E>[]> {
  const found: InvocationOrProblem<P, B, E>[] = [];
  const slice = new TimeSlice();
  const added = forEachInOrder(candidates, (candidate) => {
    const add = () => addInvocations(found, candidate, request, deps);
    return slice.yield()?.then(add) ?? add();
  });
  return andThen(added, () => found);
}

function addInvocations<P extends Policy, B extends Binding, E>(
  found: InvocationOrProblem<P, B, E>[],
  { bound, matcher, bindings }: Candidate<P, B, E>,
  request: AdmissionRequest,
  { reader, scheme }: PolicySourceDeps,
): MaybePromise<void> {
  const matched = attempt(request, () => matchRequest(matcher, request, reader));
  return andThen(matched, ({ value: resource, error }) => {
    if (resource === undefined && error === undefined) return undefined;
    const paramKind = error === undefined ? tryParamKind(bound.policy, scheme) : { error };
    if (paramKind.error !== undefined) {
      found.push({ problem: { bound, binding: undefined, message: `failed to configure policy: ${paramKind.error}` } });
      return undefined;
    }
    return forEachInOrder(bindings, ({ matcher: own, ...binding }) => {
      const params = attempt(request, () => paramsOf(binding.binding, own, paramKind.value, request, reader));
      return andThen(params, ({ value, error: reason }) => {
        if (reason !== undefined) {
          found.push({ problem: { bound, binding, message: `failed to configure binding: ${reason}` } });
        } else if (value !== undefined) {
          found.push({ invocation: { bound, binding, resource: resource as EquivalentResource, params: value } });
        }
      });
    });
  });
}

/** Undefined if the binding does not match the request. */
function paramsOf(
  binding: Binding,
  matcher: RequestMatcher | undefined,
  kind: Kind | undefined,
  request: AdmissionRequest,
  reader: ObjectReader,
): MaybePromise<readonly Param[] | undefined> {
  const collect = () => collectParams(kind, binding.spec?.paramRef, request, reader);
  if (matcher === undefined) return collect();
  return andThen(matchRequest(matcher, request, reader), (resource) =>
    resource === undefined ? undefined : collect(),
  );
}

type Attempt<T> =
  | { readonly value: T; readonly error?: undefined }
  | { readonly value?: undefined; readonly error: string };

function tryParamKind({ spec }: Policy, scheme: Scheme): Attempt<Kind | undefined> {
  try {
    return { value: findParamKind(spec?.paramKind, scheme) };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { error: error.message };
  }
}

/**
 * A missing namespace or a parameter that cannot be read is an error of the configuration, to which the failure policy
 * applies.
 */
function attempt<T>(request: AdmissionRequest, work: () => MaybePromise<T>): MaybePromise<Attempt<T>> {
  const fail = (error: unknown): Attempt<T> => {
    if (!(error instanceof Error) || request.signal.aborted) throw error;
    return { error: error.message };
  };
  try {
    const value = work();
    return value instanceof Promise ? value.then((result) => ({ value: result }), fail) : { value };
  } catch (error) {
    return fail(error);
  }
}
