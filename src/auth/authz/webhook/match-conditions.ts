/** Expressions that say which questions a webhook is asked. */
import { subjectAccessReviewSpec } from "../../../api/authorization/access-review/schema.ts";
import { nameFormats } from "../../../api/meta/validation/name-formats.ts";
import { toCelValue } from "../../../cel/adapter/json-value.ts";
import { celTypeOf } from "../../../cel/adapter/schema-type.ts";
import { compile, type Program } from "../../../cel/cel.ts";
import { type Environment, createEnvironment } from "../../../cel/environment.ts";
import { renderErrors } from "../../../cel/parse/source.ts";
import { boolType, objectType, type Type } from "../../../cel/values/types.ts";
import type { Value } from "../../../cel/values/value.ts";
import { memberOf, membersOf } from "../../../schema/members.ts";
import type { Schema } from "../../../schema/schema.ts";

export type AccessRequest = Readonly<Record<string, unknown>>;

export interface MatchConditions {
  /** Whether all hold. When none is false and some fail, what went wrong. */
  match(request: AccessRequest): { readonly matches: boolean; readonly error?: string };
}

/** Of the question; each can be named alone, or as a member of `request`. */
const MEMBERS = ["resourceAttributes", "nonResourceAttributes", "user", "groups", "extra", "uid"] as const;

let known: Environment | undefined;

function names(): Environment {
  known ??= createEnvironment({
    variables: { request: plainType(subjectAccessReviewSpec), ...plainFields() },
    nameFormats: nameFormats,
  });
  return known;
}

function plainFields(): Readonly<Record<string, Type>> {
  return Object.fromEntries(MEMBERS.map((name) => [name, plainType(schemaOf(name))]));
}

/** Members keep their names, `namespace` too: elsewhere Kubernetes spells that `__namespace__`. */
function plainType(schema: Schema): Type {
  if (schema.type !== "object") return celTypeOf(schema)!;
  const fields = membersOf(schema).map((member) => [member.name, plainType(member.schema)]);
  return objectType(schema.name, Object.fromEntries(fields));
}

function schemaOf(name: string) {
  return memberOf(subjectAccessReviewSpec, name)!.schema;
}

/** The program, or what is wrong with the expression. */
export function compileCondition(expression: string): { readonly program: Program } | { readonly problem: string } {
  const { program, errors } = compile(expression, names(), { result: boolType });
  return program === undefined ? { problem: renderErrors(errors, expression) } : { program };
}

/** The expressions have been checked. */
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
  const alone = MEMBERS.filter((name) => request[name] !== undefined).map(
    (name) => [name, () => toCelValue(schemaOf(name), request[name])] as const,
  );
  return { request: () => toCelValue(subjectAccessReviewSpec, request), ...Object.fromEntries(alone) };
}
