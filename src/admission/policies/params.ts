/** The parameter objects of a binding. */
import type { ParamKind, ParamRef } from "../../api/admissionregistration/validating-admission-policy/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { matchesLabels, requirementsOf } from "../../api/meta/selectors/selector.ts";
import { parseApiVersion, type Scheme } from "../../api/scheme.ts";
import type { Value } from "../../cel/values/value.ts";
import { andThen, type MaybePromise } from "../../std/async/maybe-promise.ts";
import type { AdmissionRequest } from "../chain/attributes.ts";
import type { ObjectReader } from "../chain/plugin.ts";
import { identifiedValue } from "../matching/request-bindings.ts";

/** A policy or a binding cannot be used. The message is that of Kubernetes. */
export class ConfigurationError extends Error {}

/** A parameter object; undefined for a policy or a binding without parameters. */
export type Param = { readonly kind: Kind; readonly object: ApiObject } | undefined;

const NO_PARAMS: readonly Param[] = [undefined];

/** The kind of the parameters; undefined for a policy without. Throws a `ConfigurationError`. */
export function findParamKind(paramKind: ParamKind | undefined, scheme: Scheme): Kind | undefined {
  if (paramKind === undefined) return undefined;
  const { apiVersion = "", kind = "" } = paramKind;
  const { group = "", version = "" } = parseApiVersion(apiVersion) ?? {};
  const found = scheme.byKind(group, version, kind);
  if (found?.verbs.includes("list") === true) return found;
  throw new ConfigurationError(`failed to find resource referenced by paramKind: '${group}/${version}, Kind=${kind}'`);
}

/**
 * One element for each evaluation of the policy; none if there are no parameters and the binding allows that. Throws or
 * rejects with a `ConfigurationError`.
 */
export function collectParams(
  kind: Kind | undefined,
  ref: ParamRef | undefined,
  request: AdmissionRequest,
  reader: ObjectReader,
): MaybePromise<readonly Param[]> {
  if (kind === undefined || ref === undefined) return NO_PARAMS;
  const namespace = paramNamespace(kind, ref, request);
  const { name = "", selector, parameterNotFoundAction } = ref;
  const found =
    name === ""
      ? listParams(kind, namespace, selector ?? {}, request, reader)
      : andThen(reader.get(kind, namespace, name, request), (object) => (object === undefined ? [] : [object]));
  return andThen(found, (objects) => {
    if (objects.length === 0 && parameterNotFoundAction === "Deny") {
      throw new ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction");
    }
    return objects.map((object) => ({ kind, object }));
  });
}

function paramNamespace(kind: Kind, ref: ParamRef, request: AdmissionRequest): string {
  const { namespace = "" } = ref;
  if (!kind.namespaced) {
    if (namespace === "") return "";
    throw new ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
  }
  if (namespace !== "" || request.namespace !== "") return namespace || request.namespace;
  throw new ConfigurationError(
    "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
  );
}

function listParams(
  kind: Kind,
  namespace: string,
  selector: NonNullable<ParamRef["selector"]>,
  request: AdmissionRequest,
  reader: ObjectReader,
): MaybePromise<readonly ApiObject[]> {
  const requirements = requirementsOf(selector);
  return andThen(reader.list(kind, namespace, request), (objects) =>
    objects.filter(({ metadata }) => matchesLabels(requirements, metadata?.labels)),
  );
}

export function paramValue(param: Param, paramKind: ParamKind | undefined): Value {
  if (param === undefined) return null;
  const { apiVersion = "", kind = "" } = paramKind ?? {};
  return identifiedValue(param.kind.schema, param.object, apiVersion, kind);
}
