/** One request as policies see it: its objects in each version, its namespace, its authorization checks. */
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { Kind } from "../../api/kind.ts";
import type { Authorizer } from "../../auth/user.ts";
import type { Variables } from "../../cel/cel.ts";
import type { Value } from "../../cel/values/value.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { AdmissionAttributes, AdmissionRequest } from "../chain/attributes.ts";
import type { ObjectReader } from "../chain/plugin.ts";
import { AuthorizationChecks } from "../matching/authorization-checks.ts";
import {
  convertObject,
  type EquivalentResource,
  requestedKind,
  requestedResource,
} from "../matching/equivalent-resource.ts";
import { ExpressionRunner } from "../matching/expression-runner.ts";
import { createRequestBindings, namespaceValue, once, type VersionedObjects } from "../matching/request-bindings.ts";
import { namespaceNotFound } from "../matching/selectors.ts";

export interface PolicyRequestDeps {
  readonly reader: ObjectReader;
  readonly authorizer: Authorizer;
}

export class PolicyRequest {
  readonly request: AdmissionRequest;
  readonly runner: ExpressionRunner;
  readonly #checks: AuthorizationChecks;
  readonly #deps: PolicyRequestDeps;
  /** By `GROUP/VERSION`. */
  readonly #bindings = new Map<string, Variables>();
  #requested: EquivalentResource | undefined;
  #namespace: (() => Value) | undefined;

  constructor(
    request: AdmissionRequest,
    deps: PolicyRequestDeps,
    runner = new ExpressionRunner(),
    checks = new AuthorizationChecks(request.user, deps.authorizer),
  ) {
    this.request = request;
    this.runner = runner;
    this.#checks = checks;
    this.#deps = deps;
  }

  get requested(): EquivalentResource {
    this.#requested ??= requestedResource(this.request);
    return this.#requested;
  }

  /** Whether the objects of the request are those of the resource, in its version. */
  isRequested({ kind }: EquivalentResource): boolean {
    return kind === requestedKind(this.request);
  }

  /** A copy for the request with another object. */
  withRequest(request: AdmissionRequest): PolicyRequest {
    return new PolicyRequest(request, this.#deps, this.runner, this.#checks);
  }

  /** The variables, with the objects as of the first call for this version. Rejects if they cannot be converted. */
  bindingsFor(resource: EquivalentResource): MaybePromise<Variables> {
    const key = `${resource.group}/${resource.version}`;
    const known = this.#bindings.get(key);
    if (known !== undefined) return known;
    return andThen(this.#convert(resource), (objects) => {
      const bindings = createRequestBindings(this.request, resource, objects, this.#checks);
      this.#bindings.set(key, bindings);
      return bindings;
    });
  }

  #convert(resource: EquivalentResource): MaybePromise<VersionedObjects> {
    const { request } = this;
    const { object, oldObject } = request;
    if (this.isRequested(resource)) return { object, oldObject };
    // Reading the signal creates it: most requests need none.
    const { requested } = this;
    const { signal } = request;
    const convert = async (one: typeof object) => one && (await convertObject(one, requested, resource, signal));
    return Promise.all([convert(object), convert(oldObject)]).then(([next, old]) => ({ object: next, oldObject: old }));
  }

  /** The value of `namespaceObject`, converted at its first use. Throws or rejects with a 404. */
  namespaceObject(): MaybePromise<Value | (() => Value)> {
    const { namespace } = this.request;
    if (namespace === "" || isNamespace(this.request.kind)) return null;
    if (this.#namespace !== undefined) return this.#namespace;
    return andThen(this.#deps.reader.get(namespaceKind, "", namespace, this.request), (found) => {
      if (found === undefined) throw namespaceNotFound(namespace);
      this.#namespace = once(() => namespaceValue(found));
      return this.#namespace;
    });
  }
}

function isNamespace({ group, plural }: Kind): boolean {
  return group === "" && plural === "namespaces";
}

/**
 * Policies do not apply to policies and bindings, so that a broken one can always be removed, nor to reviews, on which
 * other components of the cluster depend.
 */
const EXCLUDED: ReadonlySet<string> = new Set([
  "admissionregistration.svc.io/validatingadmissionpolicies",
  "admissionregistration.svc.io/validatingadmissionpolicybindings",
  "admissionregistration.svc.io/mutatingadmissionpolicies",
  "admissionregistration.svc.io/mutatingadmissionpolicybindings",
  "authentication.svc.io/selfsubjectreviews",
  "authentication.svc.io/tokenreviews",
  "authorization.svc.io/localsubjectaccessreviews",
  "authorization.svc.io/selfsubjectaccessreviews",
  "authorization.svc.io/selfsubjectrulesreviews",
  "authorization.svc.io/subjectaccessreviews",
]);

export function isPolicyTarget({ kind }: AdmissionAttributes): boolean {
  return !EXCLUDED.has(`${kind.group}/${kind.plural}`);
}
