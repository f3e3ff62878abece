/** CEL match conditions that select the requests for an authorization webhook. */
import { subjectAccessReviewSpec } from "../../../api/authorization/access-review/schema.ts";
import { nameFormats } from "../../../api/meta/validation/name-formats.ts";
import { toCelValue } from "../../../cel/adapter/json-value.ts";
import { celTypeOf } from "../../../cel/adapter/schema-type.ts";
import { compile, describeFailure, type Program } from "../../../cel/cel.ts";
import { createEnvironment, type Environment } from "../../../cel/environment.ts";
import { formatType, objectType, type Type } from "../../../cel/values/types.ts";
import type { Value } from "../../../cel/values/value.ts";
import { memberOf, membersOf } from "../../../schema/members.ts";
import type { Schema } from "../../../schema/schema.ts";

export type AccessRequest = Readonly<Record<string, unknown>>;

export interface MatchConditions {
  /** Whether all conditions are true. If none is false and some fail, `error` is set. */
  match(request: AccessRequest): { readonly matches: boolean; readonly error?: string };
}

/** The fields of the review; each is a variable, and a field of `request`. */
const FIELDS = ["resourceAttributes", "nonResourceAttributes", "user", "groups", "extra", "uid"] as const;

let environment: Environment | undefined;

function getEnvironment(): Environment {
  environment ??= createEnvironment({
    variables: { request: plainType(subjectAccessReviewSpec), ...plainFields() },
    nameFormats: nameFormats,
  });
  return environment;
}

function plainFields(): Readonly<Record<string, Type>> {
  return Object.fromEntries(FIELDS.map((name) => [name, plainType(schemaOf(name))]));
}

/** Fields keep their names, `namespace` too: elsewhere Kubernetes escapes it as `__namespace__`. */
function plainType(schema: Schema): Type {
  if (schema.type !== "object") return celTypeOf(schema)!;
  const fields = membersOf(schema).map((member) => [member.name, plainType(member.schema)]);
  return objectType(schema.name, Object.fromEntries(fields));
}

function schemaOf(name: string) {
  return memberOf(subjectAccessReviewSpec, name)!.schema;
}

/** Compiles the expression; `problem` is set if it is invalid. */
export function compileCondition(expression: string): { readonly program: Program } | { readonly problem: string } {
  const compiled = compile(expression, getEnvironment());
  const { program } = compiled;
  if (program === undefined) return { problem: describeFailure(compiled, expression) };
  const { resultType } = program;
  return resultType.kind === "bool"
    ? { program }
    : { problem: `must evaluate to bool but got ${formatType(resultType)}` };
}

/** The expressions must be valid. */
export function matchConditions(expressions: readonly string[]): MatchConditions {
  const programs = expressions.map((expression) => {
    const compiled = compileCondition(expression);
    if ("problem" in compiled) throw new Error(`Cannot use the expression ${JSON.stringify(expression)}`);
    return compiled.program;
  });
  return {
    match(request) {
      const variables = variablesOf(request);
      const problems: string[] = [];
      for (const { source, evaluate } of programs) {
        const { value, error } = evaluate(variables);
        if (error !== undefined) problems.push(`expression '${source}' resulted in error: ${error.message}`);
        else if (value !== true) return { matches: false };
      }
      if (problems.length === 0) return { matches: true };
      return { matches: false, error: `cel evaluation error: ${problems.join("; ")}` };
    },
  };
}

function variablesOf(request: AccessRequest): Readonly<Record<string, () => Value>> {
  const alone = FIELDS.filter((name) => request[name] !== undefined).map(
    (name) => [name, () => toCelValue(schemaOf(name), request[name])] as const,
  );
  return { request: () => toCelValue(subjectAccessReviewSpec, request), ...Object.fromEntries(alone) };
}
