/**
 * `authorizer.group('apps').resource('deployments').namespace(ns).check('create').allowed()`: requests to the server's
 * authorizer, which the caller passes as the variable `authorizer`.
 */
import { type FunctionDeclaration, functionOf, type Library, method } from "../functions.ts";
import { boolType, opaqueType, stringType, type Type } from "../values/types.ts";
import { fail, Opaque, type Value } from "../values/value.ts";
import type { NameFormats } from "./formats.ts";

export interface CheckAttributes {
  readonly verb: string;
  /** A non-resource path: `/healthz`. */
  readonly path?: string;
  readonly group?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** Unparsed; an invalid selector is ignored. */
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  /** The check is for this account instead of the user of the request. */
  readonly serviceAccount?: { readonly namespace: string; readonly name: string };
}

export interface AuthorizationDecision {
  readonly allowed: boolean;
  readonly reason: string;
  readonly error?: string;
}

/** Synchronous, since CEL evaluation is. */
export type Authorize = (question: CheckAttributes) => AuthorizationDecision;

export const authorizerType = opaqueType("kubernetes.authorization.Authorizer");
const pathType = opaqueType("kubernetes.authorization.PathCheck");
const groupType = opaqueType("kubernetes.authorization.GroupCheck");
/** Also the type of the variable `authorizer.requestResource`. */
export const resourceCheckType = opaqueType("kubernetes.authorization.ResourceCheck");
const decisionType = opaqueType("kubernetes.authorization.Decision");

type PartialAttributes = Omit<CheckAttributes, "verb">;

/** The builder of a check. */
class AuthorizerCheck extends Opaque {
  readonly type: Type;
  readonly authorize: Authorize;
  readonly attributes: PartialAttributes;

  constructor(type: Type, authorize: Authorize, attributes: PartialAttributes) {
    super();
    this.type = type;
    this.authorize = authorize;
    this.attributes = attributes;
  }

  override equals(other: Value): boolean {
    return other === this;
  }

  with(part: PartialAttributes, type = this.type): AuthorizerCheck {
    return new AuthorizerCheck(type, this.authorize, { ...this.attributes, ...part });
  }
}

class Decision extends Opaque {
  readonly type: Type = decisionType;
  readonly decision: AuthorizationDecision;

  constructor(answer: AuthorizationDecision) {
    super();
    this.decision = answer;
  }

  override equals(other: Value): boolean {
    return other === this;
  }
}

/** The value of the variable `authorizer`. */
export function authorizerValue(authorize: Authorize): Value {
  return new AuthorizerCheck(authorizerType, authorize, {});
}

/** The value of `authorizer.requestResource`: the resource of the request. */
export function resourceCheckValue(authorize: Authorize, resource: PartialAttributes): Value {
  return new AuthorizerCheck(resourceCheckType, authorize, resource);
}

function requireNotEmpty(text: string, what: string): string {
  return text.trim() === "" ? fail(`${what} must not be empty`) : text;
}

type Part = "subresource" | "namespace" | "name" | "fieldSelector" | "labelSelector";

function partFunction(name: Part, id: string): FunctionDeclaration {
  return functionOf(
    name,
    method(id, [resourceCheckType, stringType], resourceCheckType, (check: AuthorizerCheck, text: string) =>
      check.with({ [name]: text }),
    ),
  );
}

function check(check: AuthorizerCheck, verb: string): Decision {
  return new Decision(check.authorize({ ...check.attributes, verb }));
}

export function authorizer(names: NameFormats): Library {
  const serviceAccount = (check: AuthorizerCheck, namespace: string, name: string): AuthorizerCheck => {
    if (names.dns1123Subdomain(name).length > 0) return fail("Invalid service account name");
    if (names.dns1123Label(namespace).length > 0) return fail("Invalid service account namespace");
    return check.with({ serviceAccount: { namespace, name } });
  };
  return { functions: [...checkFunctions(serviceAccount), ...decisionFunctions] };
}

type ServiceAccount = (check: AuthorizerCheck, namespace: string, name: string) => AuthorizerCheck;

function checkFunctions(serviceAccount: ServiceAccount): readonly FunctionDeclaration[] {
  return [
    functionOf(
      "path",
      method("authorizer_path", [authorizerType, stringType], pathType, (check: AuthorizerCheck, path: string) =>
        check.with({ path: requireNotEmpty(path, "path") }, pathType),
      ),
    ),
    functionOf(
      "group",
      method("authorizer_group", [authorizerType, stringType], groupType, (check: AuthorizerCheck, group: string) =>
        check.with({ group }, groupType),
      ),
    ),
    functionOf(
      "serviceAccount",
      method("authorizer_serviceaccount", [authorizerType, stringType, stringType], authorizerType, serviceAccount),
    ),
    functionOf(
      "resource",
      method(
        "groupcheck_resource",
        [groupType, stringType],
        resourceCheckType,
        (check: AuthorizerCheck, resource: string) =>
          check.with({ resource: requireNotEmpty(resource, "resource") }, resourceCheckType),
      ),
    ),
    partFunction("subresource", "resourcecheck_subresource"),
    partFunction("namespace", "resourcecheck_namespace"),
    partFunction("name", "resourcecheck_name"),
    partFunction("fieldSelector", "authorizer_fieldselector"),
    partFunction("labelSelector", "authorizer_labelselector"),
    functionOf(
      "check",
      method("pathcheck_check", [pathType, stringType], decisionType, check),
      method("resourcecheck_check", [resourceCheckType, stringType], decisionType, check),
    ),
  ];
}

const decisionFunctions: readonly FunctionDeclaration[] = [
  functionOf(
    "allowed",
    method("decision_allowed", [decisionType], boolType, ({ decision: answer }: Decision) => answer.allowed),
  ),
  functionOf(
    "reason",
    method("decision_reason", [decisionType], stringType, ({ decision: answer }: Decision) => answer.reason),
  ),
  functionOf(
    "errored",
    method(
      "decision_errored",
      [decisionType],
      boolType,
      ({ decision: answer }: Decision) => answer.error !== undefined,
    ),
  ),
  functionOf(
    "error",
    method("decision_error", [decisionType], stringType, ({ decision: answer }: Decision) => answer.error ?? ""),
  ),
];
