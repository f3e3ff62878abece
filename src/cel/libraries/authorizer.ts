/**
 * `authorizer.group('apps').resource('deployments').namespace(ns).check('create').allowed()`: questions to the server's
 * authorizer, which whoever evaluates hands in as the variable `authorizer`.
 */
import { type FunctionDeclaration, functionOf, type Library, method } from "../functions.ts";
import { boolType, opaqueType, stringType, type Type } from "../values/types.ts";
import { fail, Opaque, type Value } from "../values/value.ts";
import type { NameForms } from "./formats.ts";

export interface Question {
  readonly verb: string;
  /** A path that is no resource: `/healthz`. */
  readonly path?: string;
  readonly group?: string;
  readonly resource?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  /** As written; one that cannot be read restricts nothing. */
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
  /** Asked for this account rather than for whoever sent the request. */
  readonly serviceAccount?: { readonly namespace: string; readonly name: string };
}

export interface Answer {
  readonly allowed: boolean;
  readonly reason: string;
  readonly error?: string;
}

/** Must answer at once: expressions do not wait. */
export type Ask = (question: Question) => Answer;

export const authorizerType = opaqueType("kubernetes.authorization.Authorizer");
const pathType = opaqueType("kubernetes.authorization.PathCheck");
const groupType = opaqueType("kubernetes.authorization.GroupCheck");
/** Also the type of the variable `authorizer.requestResource`. */
export const resourceCheckType = opaqueType("kubernetes.authorization.ResourceCheck");
const decisionType = opaqueType("kubernetes.authorization.Decision");

type Asked = Omit<Question, "verb">;

/** A question that is being put together. */
class Check extends Opaque {
  readonly type: Type;
  readonly ask: Ask;
  readonly asked: Asked;

  constructor(type: Type, ask: Ask, asked: Asked) {
    super();
    this.type = type;
    this.ask = ask;
    this.asked = asked;
  }

  override equals(other: Value): boolean {
    return other === this;
  }

  with(part: Asked, type = this.type): Check {
    return new Check(type, this.ask, { ...this.asked, ...part });
  }
}

class Decision extends Opaque {
  readonly type: Type = decisionType;
  readonly answer: Answer;

  constructor(answer: Answer) {
    super();
    this.answer = answer;
  }

  override equals(other: Value): boolean {
    return other === this;
  }
}

/** The value of the variable `authorizer`. */
export function authorizerValue(ask: Ask): Value {
  return new Check(authorizerType, ask, {});
}

/** The value of `authorizer.requestResource`: the resource that the request is for. */
export function resourceCheckValue(ask: Ask, resource: Asked): Value {
  return new Check(resourceCheckType, ask, resource);
}

function notEmpty(text: string, what: string): string {
  return text.trim() === "" ? fail(`${what} must not be empty`) : text;
}

type Part = "subresource" | "namespace" | "name" | "fieldSelector" | "labelSelector";

function part(name: Part, id: string): FunctionDeclaration {
  return functionOf(
    name,
    method(id, [resourceCheckType, stringType], resourceCheckType, (check: Check, text: string) =>
      check.with({ [name]: text }),
    ),
  );
}

function check(asked: Check, verb: string): Decision {
  return new Decision(asked.ask({ ...asked.asked, verb }));
}

export function authorizer(names: NameForms): Library {
  const serviceAccount = (asked: Check, namespace: string, name: string): Check => {
    if (names.dns1123Subdomain(name).length > 0) return fail("Invalid service account name");
    if (names.dns1123Label(namespace).length > 0) return fail("Invalid service account namespace");
    return asked.with({ serviceAccount: { namespace, name } });
  };
  return { functions: [...questions(serviceAccount), ...answers] };
}

type ServiceAccount = (asked: Check, namespace: string, name: string) => Check;

function questions(serviceAccount: ServiceAccount): readonly FunctionDeclaration[] {
  return [
    functionOf(
      "path",
      method("authorizer_path", [authorizerType, stringType], pathType, (asked: Check, path: string) =>
        asked.with({ path: notEmpty(path, "path") }, pathType),
      ),
    ),
    functionOf(
      "group",
      method("authorizer_group", [authorizerType, stringType], groupType, (asked: Check, group: string) =>
        asked.with({ group }, groupType),
      ),
    ),
    functionOf(
      "serviceAccount",
      method("authorizer_serviceaccount", [authorizerType, stringType, stringType], authorizerType, serviceAccount),
    ),
    functionOf(
      "resource",
      method("groupcheck_resource", [groupType, stringType], resourceCheckType, (asked: Check, resource: string) =>
        asked.with({ resource: notEmpty(resource, "resource") }, resourceCheckType),
      ),
    ),
    part("subresource", "resourcecheck_subresource"),
    part("namespace", "resourcecheck_namespace"),
    part("name", "resourcecheck_name"),
    part("fieldSelector", "authorizer_fieldselector"),
    part("labelSelector", "authorizer_labelselector"),
    functionOf(
      "check",
      method("pathcheck_check", [pathType, stringType], decisionType, check),
      method("resourcecheck_check", [resourceCheckType, stringType], decisionType, check),
    ),
  ];
}

const answers: readonly FunctionDeclaration[] = [
  functionOf(
    "allowed",
    method("decision_allowed", [decisionType], boolType, ({ answer }: Decision) => answer.allowed),
  ),
  functionOf(
    "reason",
    method("decision_reason", [decisionType], stringType, ({ answer }: Decision) => answer.reason),
  ),
  functionOf(
    "errored",
    method("decision_errored", [decisionType], boolType, ({ answer }: Decision) => answer.error !== undefined),
  ),
  functionOf(
    "error",
    method("decision_error", [decisionType], stringType, ({ answer }: Decision) => answer.error ?? ""),
  ),
];
