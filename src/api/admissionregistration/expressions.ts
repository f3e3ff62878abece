/** The CEL environment of match conditions and admission policies, and validation of their expressions. */
import { type CompileResult, compile } from "../../cel/cel.ts";
import { createEnvironment, type Environment } from "../../cel/environment.ts";
import { authorizerType, resourceCheckType } from "../../cel/libraries/authorizer.ts";
import { renderErrors } from "../../cel/parse/source.ts";
import {
  boolType,
  dynType,
  formatType,
  listType,
  mapType,
  type ObjectType,
  objectType,
  stringType,
  type Type,
  timestampType,
} from "../../cel/values/types.ts";
import { type FieldError, invalidField, requiredField } from "../../schema/validation/field-error.ts";
import { nameFormats } from "../meta/validation/name-formats.ts";

const groupVersion = { group: stringType, version: stringType };
const kindType = objectType("kubernetes.GroupVersionKind", { ...groupVersion, kind: stringType });
const resourceType = objectType("kubernetes.GroupVersionResource", { ...groupVersion, resource: stringType });
const userInfoType = objectType("kubernetes.UserInfo", {
  username: stringType,
  uid: stringType,
  groups: listType(stringType),
  extra: mapType(stringType, listType(stringType)),
});

const requestType = objectType("kubernetes.AdmissionRequest", {
  kind: kindType,
  resource: resourceType,
  subResource: stringType,
  requestKind: kindType,
  requestResource: resourceType,
  requestSubResource: stringType,
  name: stringType,
  namespace: stringType,
  operation: stringType,
  userInfo: userInfoType,
  dryRun: boolType,
  options: dynType,
});

const namespaceType = objectType("kubernetes.Namespace", {
  metadata: objectType("kubernetes.NamespaceMetadata", {
    name: stringType,
    generateName: stringType,
    namespace: stringType,
    labels: mapType(stringType, stringType),
    annotations: mapType(stringType, stringType),
    UID: stringType,
    creationTimestamp: timestampType,
    deletionGracePeriodSeconds: { kind: "int" },
    deletionTimestamp: timestampType,
    generation: { kind: "int" },
    resourceVersion: stringType,
    finalizers: listType(stringType),
  }),
  spec: objectType("kubernetes.NamespaceSpec", { finalizers: listType(stringType) }),
  status: objectType("kubernetes.NamespaceStatus", { phase: stringType }),
});

/** `object`, `oldObject` and `params` are dynamic: their type depends on the request. */
const admissionVariables = {
  object: dynType,
  oldObject: dynType,
  request: requestType,
  namespaceObject: namespaceType,
  authorizer: authorizerType,
  "authorizer.requestResource": resourceCheckType,
} as const;

export interface AdmissionEnvironmentOptions {
  /** Declares `params`, for policies with a `paramKind`. */
  readonly params?: boolean;
  /** The type of `variables`, with a field for each variable compiled so far. */
  readonly variables?: ObjectType | undefined;
  /** The types of `object` and `oldObject`, and of `params`, where they are known. */
  readonly types?: { readonly object: Type; readonly params?: Type | undefined } | undefined;
}

const environments = new Map<boolean, Environment>();

export function createAdmissionEnvironment({
  params = false,
  variables,
  types,
}: AdmissionEnvironmentOptions = {}): Environment {
  const names = { ...admissionVariables, ...(params ? { params: dynType } : {}) };
  if (types !== undefined) {
    const { object, params: paramsType = dynType } = types;
    const typed = { ...names, object, oldObject: object, ...(params ? { params: paramsType } : {}) };
    const all = variables === undefined ? typed : { ...typed, variables };
    return createEnvironment({ variables: all, nameFormats, stored: true });
  }
  if (variables !== undefined) return createEnvironment({ variables: { ...names, variables }, nameFormats });
  let cached = environments.get(params);
  if (cached === undefined) {
    cached = createEnvironment({ variables: names, nameFormats });
    environments.set(params, cached);
  }
  return cached;
}

/** `missing` is the error detail for an empty expression. */
export function validateExpression(
  source: string,
  names: Environment,
  results: readonly Type[],
  path: string,
  missing = "",
): readonly FieldError[] {
  const text = source.trim();
  if (text === "") return [requiredField(path, missing)];
  return expressionErrors(compile(text, names), text, results, path);
}

function goTypeName(type: Type): string {
  return type.kind === "null" ? "null_type" : formatType(type);
}

export function expressionErrors(
  compiled: CompileResult,
  source: string,
  results: readonly Type[] | undefined,
  path: string,
): readonly FieldError[] {
  if (compiled.errors !== undefined) {
    return [invalidField(path, source, `compilation failed: ${renderErrors(compiled.errors, source)}`)];
  }
  const { resultType } = compiled.program;
  if (results === undefined || results.some((type) => type.kind === resultType.kind || resultType.kind === "dyn")) {
    return [];
  }
  const expected = results.length === 1 ? formatType(results[0]!) : `one of [${results.map(goTypeName).join(" ")}]`;
  return [invalidField(path, source, `must evaluate to ${expected} but got ${formatType(resultType)}`)];
}
