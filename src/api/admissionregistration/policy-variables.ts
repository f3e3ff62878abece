/** The CEL variables of a policy, which its other expressions use as `variables.NAME`. */
import { type CompileResult, compile } from "../../cel/cel.ts";
import type { Environment } from "../../cel/environment.ts";
import { dynType, type ObjectType, type Type } from "../../cel/values/types.ts";
import {
  type FieldError,
  invalidField,
  requiredField,
  validateEachInSteps,
} from "../../schema/validation/field-error.ts";
import { child, index } from "../../schema/value/field-path.ts";
import type { Steps } from "../../std/async/steps.ts";
import { type AdmissionEnvironmentOptions, createAdmissionEnvironment, expressionErrors } from "./expressions.ts";
import type { Variable } from "./validating-admission-policy/schema.ts";

const IDENTIFIER = /^[_a-zA-Z][_a-zA-Z0-9]*$/;
const RESERVED: ReadonlySet<string> = new Set([
  ...["true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"],
  ...["let", "loop", "package", "namespace", "return", "var", "void", "while"],
]);

type ExpressionOptions = Pick<AdmissionEnvironmentOptions, "authorizer" | "objectTypes">;

/** The types of the variables compiled so far. Each may refer to those before it, and other expressions to all. */
export class PolicyVariables {
  readonly #base: Pick<AdmissionEnvironmentOptions, "params" | "stored">;
  readonly #types = new Map<string, Type>();
  readonly #type: ObjectType;
  #areDeclared: boolean;

  /** `alwaysDeclared`: the name `variables` is known although there are none. */
  constructor(base: Pick<AdmissionEnvironmentOptions, "params" | "stored">, alwaysDeclared: boolean) {
    this.#base = base;
    this.#areDeclared = alwaysDeclared;
    this.#type = {
      kind: "object",
      name: "kubernetes.variables",
      field: (name) => this.#types.get(name),
      fieldNames: () => [...this.#types.keys()],
    };
  }

  /** The environment of an expression that may use the variables declared so far. */
  createEnvironment(options: ExpressionOptions = {}): Environment {
    const variables = this.#areDeclared ? this.#type : undefined;
    return createAdmissionEnvironment({ ...this.#base, ...options, variables });
  }

  /** Compiles the expression of a variable and declares it. One that does not compile is dynamic. */
  compile({ name, expression }: Variable): CompileResult {
    this.#areDeclared = true;
    const compiled = compile(expression, this.createEnvironment());
    this.#types.set(name, compiled.program?.resultType ?? dynType);
    return compiled;
  }

  /** Declares the variables of a policy that is written. */
  *validate(variables: readonly Variable[], path: string): Steps<readonly FieldError[]> {
    this.#areDeclared ||= variables.length > 0;
    return yield* validateEachInSteps(variables, (variable, i) => {
      const at = index(path, i);
      return [
        ...validateName(variable.name, child(at, "name")),
        ...this.#validateExpression(variable, child(at, "expression")),
      ];
    });
  }

  #validateExpression(variable: Variable, path: string): readonly FieldError[] {
    const { expression } = variable;
    if (expression.trim() === "") return [requiredField(path, "expression is not specified")];
    return expressionErrors(this.compile(variable), expression, undefined, path);
  }
}

function validateName(name: string, path: string): readonly FieldError[] {
  if (name.trim() === "") return [requiredField(path, "name is not specified")];
  const isValid = IDENTIFIER.test(name) && !RESERVED.has(name);
  return isValid ? [] : [invalidField(path, name, "name is not a valid CEL identifier")];
}
