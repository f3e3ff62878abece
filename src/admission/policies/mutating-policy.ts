/** The compiled expressions of a MutatingAdmissionPolicy. */
import {
  createAdmissionEnvironment,
  createMutationTypes,
  expressionErrors,
} from "../../api/admissionregistration/expressions.ts";
import type {
  MutatingAdmissionPolicy,
  Mutation,
} from "../../api/admissionregistration/mutating-admission-policy/schema.ts";
import { PolicyVariables } from "../../api/admissionregistration/policy-variables.ts";
import { compile } from "../../cel/cel.ts";
import type { Steps } from "../../std/async/steps.ts";
import { type CompiledExpression, type CompiledVariable, compiledExpression } from "../matching/evaluation.ts";
import { type MatchConditions, matchConditions } from "../matching/match-conditions.ts";
import { compileVariables } from "./validating-policy.ts";

export interface MutatingPolicyProgram {
  readonly conditions: MatchConditions | undefined;
  readonly variables: readonly CompiledVariable[];
  readonly mutations: readonly CompiledMutation[];
  /** Whether it runs again after later changes of the object. */
  readonly isReinvocable: boolean;
}

export interface CompiledMutation {
  readonly patchType: "ApplyConfiguration" | "JSONPatch";
  readonly expression: CompiledExpression;
}

/** Yields after each expression. */
export function* compileMutatingPolicy({ spec = {} }: MutatingAdmissionPolicy): Steps<MutatingPolicyProgram> {
  const { matchConditions: conditions = [], failurePolicy, mutations = [] } = spec;
  const base = { params: spec.paramKind !== undefined, stored: true };
  const names = new PolicyVariables(base, true);
  const variables = yield* compileVariables(spec.variables, names);
  const compiled: CompiledMutation[] = [];
  for (const mutation of mutations) {
    compiled.push(compileMutation(mutation, names));
    yield;
  }
  return {
    conditions:
      conditions.length === 0
        ? undefined
        : matchConditions(conditions, createAdmissionEnvironment(base), failurePolicy === "Ignore"),
    variables,
    mutations: compiled,
    isReinvocable: spec.reinvocationPolicy === "IfNeeded",
  };
}

function compileMutation(
  { patchType, applyConfiguration, jsonPatch }: Mutation,
  names: PolicyVariables,
): CompiledMutation {
  const types = createMutationTypes();
  const isJsonPatch = patchType === "JSONPatch";
  const source = (isJsonPatch ? jsonPatch : applyConfiguration)?.expression ?? "";
  const compiled = compile(source, names.createEnvironment({ objectTypes: types.objectTypes }));
  const result = isJsonPatch ? types.jsonPatch : types.applyConfiguration;
  const [error] = expressionErrors(compiled, source, [result], "");
  const expression =
    error === undefined
      ? compiledExpression(source, compiled)
      : { source, program: undefined, error: error.detail ?? "" };
  return { patchType: isJsonPatch ? "JSONPatch" : "ApplyConfiguration", expression };
}
