/** The CEL environment of match conditions and admission policies, and validation of their expressions. */
import { type CompileResult, compile, describeFailure } from "../../cel/cel.ts";
import { isSameType } from "../../cel/check/unify.ts";
import { createEnvironment, type Environment, type ObjectTypes } from "../../cel/environment.ts";
import { authorizerType, resourceCheckType } from "../../cel/libraries/authorizer.ts";
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
  status: objectType("kubernetes.NamespaceStatus", {
    phase: stringType,
    conditions: listType(
      objectType("kubernetes.NamespaceCondition", {
        status: stringType,
        type: stringType,
        lastTransitionTime: timestampType,
        message: stringType,
        reason: stringType,
      }),
    ),
  }),
});

/** `object`, `oldObject` and `params` are dynamic: their type depends on the request. */
const admissionVariables = {
  object: dynType,
  oldObject: dynType,
  request: requestType,
  namespaceObject: namespaceType,
} as const;

const authorizerVariables = {
  authorizer: authorizerType,
  "authorizer.requestResource": resourceCheckType,
} as const;

export interface AdmissionEnvironmentOptions {
  /** Declares `params`, for policies with a `paramKind`. */
  readonly params?: boolean;
  /** Declares `authorizer`; true when absent. Message expressions have none. */
  readonly authorizer?: boolean;
  /** The expressions are stored already. */
  readonly stored?: boolean;
  /** The type of `variables`, with a field for each variable compiled so far. */
  readonly variables?: ObjectType | undefined;
  /** The types of `object` and `oldObject`, and of `params`, where they are known. */
  readonly types?: { readonly object: Type; readonly params?: Type | undefined } | undefined;
  /** The types of the objects that mutations create. */
  readonly objectTypes?: ObjectTypes | undefined;
}

const environments = new Map<string, Environment>();

export function createAdmissionEnvironment(options: AdmissionEnvironmentOptions = {}): Environment {
  const { params = false, authorizer = true, stored = false, variables, types, objectTypes } = options;
  if (types !== undefined || variables !== undefined || objectTypes !== undefined) return buildEnvironment(options);
  const key = `${params} ${authorizer} ${stored}`;
  let cached = environments.get(key);
  if (cached === undefined) {
    cached = buildEnvironment(options);
    environments.set(key, cached);
  }
  return cached;
}

function buildEnvironment(options: AdmissionEnvironmentOptions): Environment {
  const { params = false, authorizer = true, stored = false, variables, types, objectTypes } = options;
  const { object = dynType, params: paramsType = dynType } = types ?? {};
  return createEnvironment({
    variables: {
      ...admissionVariables,
      ...{ object, oldObject: object },
      ...(authorizer ? authorizerVariables : {}),
      ...(params ? { params: paramsType } : {}),
      ...(variables === undefined ? {} : { variables }),
    },
    nameFormats,
    stored: stored || types !== undefined,
    objectTypes,
  });
}

/** The type of the objects that apply configurations create. */
const APPLY_CONFIGURATION = "Object";
/** The type of an operation of a JSON patch. */
const JSON_PATCH = "JSONPatch";

const jsonPatchFields = objectType(JSON_PATCH, {
  op: stringType,
  path: stringType,
  from: stringType,
  value: dynType,
});
/** In Kubernetes other fields have a type without a name, which no value has. */
const jsonPatchType: ObjectType = { ...jsonPatchFields, field: (name) => jsonPatchFields.field(name) ?? namelessType };
const namelessType = objectType("", {});

/**
 * The types of mutations: `JSONPatch`, `Object`, and `Object.spec.containers` for the objects at that path. Their
 * fields can have any name and type, since the type of the mutated object depends on the request.
 */
export interface MutationTypes {
  readonly objectTypes: ObjectTypes;
  readonly applyConfiguration: Type;
  readonly jsonPatch: Type;
}

export function createMutationTypes(): MutationTypes {
  const types = new Map<string, ObjectType>();
  const objectTypes = (name: string): ObjectType | undefined => {
    if (name === JSON_PATCH) return jsonPatchType;
    if (name !== APPLY_CONFIGURATION && !name.startsWith(`${APPLY_CONFIGURATION}.`)) return undefined;
    let type = types.get(name);
    if (type === undefined) {
      type = { kind: "object", name, field: () => dynType, fieldNames: () => [] };
      types.set(name, type);
    }
    return type;
  };
  const applyConfiguration = objectTypes(APPLY_CONFIGURATION) ?? dynType;
  return { objectTypes, applyConfiguration, jsonPatch: listType(jsonPatchType) };
}

/** `missing` is the error detail for an empty expression. Spaces around the expression do not count. */
export function validateExpression(
  source: string,
  names: Environment,
  results: readonly Type[],
  path: string,
  missing = "",
): readonly FieldError[] {
  return validateExactExpression(source.trim(), names, results, path, missing);
}

/** The same, with the columns of errors counted from the first space. */
export function validateExactExpression(
  source: string,
  names: Environment,
  results: readonly Type[],
  path: string,
  missing = "",
): readonly FieldError[] {
  if (source.trim() === "") return [requiredField(path, missing)];
  return expressionErrors(compile(source, names), source, results, path);
}

/** The name of a type as cel-go's `String` method returns it. */
function goTypeName(type: Type): string {
  switch (type.kind) {
    case "null":
      return "null_type";
    case "timestamp":
    case "duration":
      return `google.protobuf.${type.kind === "timestamp" ? "Timestamp" : "Duration"}`;
    case "list":
      return `list(${goTypeName(type.element)})`;
    case "map":
      return `map(${goTypeName(type.key)}, ${goTypeName(type.value)})`;
    case "opaque":
      return type.parameters.length === 0 ? type.name : `${type.name}(${type.parameters.map(goTypeName).join(", ")})`;
    case "type":
      return type.of === undefined ? "type" : `type(${goTypeName(type.of)})`;
    default:
      return formatType(type);
  }
}

export function expressionErrors(
  compiled: CompileResult,
  source: string,
  results: readonly Type[] | undefined,
  path: string,
): readonly FieldError[] {
  if (compiled.errors !== undefined) {
    const text = describeFailure(compiled, source);
    return [
      compiled.stage === "instantiation"
        ? { type: "InternalError", field: path, detail: text }
        : invalidField(path, source, text),
    ];
  }
  const { resultType } = compiled.program;
  if (results === undefined || results.some((type) => isSameType(type, resultType))) return [];
  const expected = results.length === 1 ? formatType(results[0]!) : `one of [${results.map(goTypeName).join(" ")}]`;
  return [invalidField(path, source, `must evaluate to ${expected} but got ${goTypeName(resultType)}`)];
}
