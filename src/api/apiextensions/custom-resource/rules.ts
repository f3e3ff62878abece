/** The expressions of `x-kubernetes-validations`, compiled for the schema that has them. */
import { celTypeOf } from "../../../cel/adapter/schema-type.ts";
import { type CompileResult, compile, describeFailure, type Program } from "../../../cel/cel.ts";
import { createEnvironment } from "../../../cel/environment.ts";
import { optionalType, type Type } from "../../../cel/values/types.ts";
import type { Schema } from "../../../schema/schema.ts";
import type { ValidationRule } from "../../../schema/validation/rules.ts";
import { nameFormats } from "../../meta/validation/name-formats.ts";

export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Absent for a rule without an expression, and where `error` is set. */
  readonly program?: Program;
  readonly error?: string;
  /** A transition rule: it refers to `oldSelf` and does not apply to new values. */
  readonly usesOldSelf: boolean;
  readonly message?: Program;
  readonly messageError?: string;
}

export interface RuleCompileOptions {
  /** The schema is that of a whole resource. */
  readonly resourceRoot?: boolean;
  /** Whether the expression is stored already, so that it may use features of a newer CEL version. */
  readonly isStoredExpression?: (expression: string) => boolean;
}

/** In the order of the schema. Undefined when the type of the values is unknown, so that rules cannot be compiled. */
export function compileRules(schema: Schema, options: RuleCompileOptions = {}): readonly CompiledRule[] | undefined {
  const rules = schema.rules?.validations ?? [];
  const self = celTypeOf(schema, { resourceRoot: options.resourceRoot === true });
  return self === undefined ? undefined : rules.map((rule) => compileRule(rule, self, options));
}

function compileRule(
  rule: ValidationRule,
  self: Type,
  { isStoredExpression = () => true }: RuleCompileOptions,
): CompiledRule {
  if (rule.rule.trim() === "") return { rule, usesOldSelf: false };
  const oldSelf = rule.optionalOldSelf === true ? optionalType(self) : self;
  const compileExpression = (source: string): CompileResult =>
    compile(
      source,
      createEnvironment({ variables: { self, oldSelf }, nameFormats: nameFormats, stored: isStoredExpression(source) }),
    );
  const compiled = compileExpression(rule.rule);
  const { program } = compiled;
  if (program === undefined) return { rule, usesOldSelf: false, error: describeFailure(compiled, rule.rule) };
  if (program.resultType.kind !== "bool") {
    return { rule, usesOldSelf: false, error: "cel expression must evaluate to a bool" };
  }
  const common = { rule, program, usesOldSelf: program.uses("oldSelf") };
  const expression = rule.messageExpression ?? "";
  return expression === "" ? common : { ...common, ...messageOf(compileExpression(expression), expression) };
}

function messageOf(compiled: CompileResult, source: string): Pick<CompiledRule, "message" | "messageError"> {
  const { program } = compiled;
  if (program === undefined) {
    return { messageError: `messageExpression ${describeFailure(compiled, source).replace(/^program /, "")}` };
  }
  return program.resultType.kind === "string"
    ? { message: program }
    : { messageError: "messageExpression must evaluate to a string" };
}
