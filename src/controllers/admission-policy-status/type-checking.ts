/** Checks the types of a policy's expressions against the kinds that it matches. */
import { createAdmissionEnvironment } from "../../api/admissionregistration/expressions.ts";
import type {
  ExpressionWarning,
  ValidatingAdmissionPolicy,
  Variable,
} from "../../api/admissionregistration/validating-admission-policy/schema.ts";
import type { Kind } from "../../api/kind.ts";
import { kubernetesGroup } from "../../api/scheme.ts";
import { celTypeOf } from "../../cel/adapter/schema-type.ts";
import { compile } from "../../cel/cel.ts";
import { renderErrors } from "../../cel/parse/source.ts";
import { dynType, type ObjectType, type Type } from "../../cel/values/types.ts";

/** Of one rule: more kinds would cost too much. */
const KINDS_MAX = 10;

export interface KindLookup {
  /** Undefined if the resource is not served. */
  byResource(group: string, version: string, plural: string): Promise<Kind | undefined>;
  byKind(apiVersion: string, kind: string): Promise<Kind | undefined>;
}

interface CheckedKind {
  /** `apps/v1, Kind=Deployment` */
  readonly name: string;
  readonly type: Type;
}

/** The warnings, with an entry for each expression that does not fit one of the kinds. */
export async function checkTypes(
  { spec = {} }: ValidatingAdmissionPolicy,
  lookup: KindLookup,
): Promise<readonly ExpressionWarning[]> {
  const kinds = await matchedKinds(spec.matchConstraints?.resourceRules ?? [], lookup);
  const { apiVersion = "", kind = "" } = spec.paramKind ?? {};
  const paramKind = spec.paramKind === undefined ? undefined : await lookup.byKind(apiVersion, kind);
  const params = paramKind === undefined ? undefined : typeOf(paramKind);
  const check = (expression: string | undefined, fieldRef: string): readonly ExpressionWarning[] => {
    const text = (expression ?? "").trim();
    if (text === "") return [];
    const warning = kinds.map((each) => checkExpression(text, each, params, spec.variables ?? [])).join("");
    return warning === "" ? [] : [{ fieldRef, warning }];
  };
  return (spec.validations ?? []).flatMap(({ expression, messageExpression }, index) => [
    ...check(expression, `spec.validations[${index}].expression`),
    ...check(messageExpression, `spec.validations[${index}].messageExpression`),
  ]);
}

type ResourceRules = NonNullable<NonNullable<ValidatingAdmissionPolicy["spec"]>["matchConstraints"]>["resourceRules"];

/** Rules with wildcards match too many kinds to check; subresources have kinds of their own. */
async function matchedKinds(rules: NonNullable<ResourceRules>, lookup: KindLookup): Promise<readonly CheckedKind[]> {
  const found = new Map<string, { readonly kind: Kind; readonly key: readonly string[] }>();
  for (const { apiGroups = [], apiVersions = [], resources = [] } of rules) {
    if ([...apiGroups, ...apiVersions].some((text) => text.includes("*"))) continue;
    let count = 0;
    const plain = resources.filter((resource) => !/[*/]/.test(resource));
    for (const group of apiGroups.toSorted()) {
      for (const version of apiVersions.toSorted()) {
        for (const resource of plain.toSorted()) {
          const kind = count < KINDS_MAX ? await lookup.byResource(group, version, resource) : undefined;
          if (kind === undefined) continue;
          count++;
          found.set(nameOf(kind), { kind, key: [kubernetesGroup(kind.group), kind.version, kind.kind] });
        }
      }
    }
  }
  const sorted = [...found].sort(([, a], [, b]) => compareKeys(a.key, b.key));
  return sorted.flatMap(([name, { kind }]) => {
    const type = typeOf(kind);
    return type === undefined ? [] : [{ name, type }];
  });
}

function compareKeys(a: readonly string[], b: readonly string[]): number {
  const index = a.findIndex((part, position) => part !== b[position]);
  if (index === -1) return 0;
  return (a[index] ?? "") < (b[index] ?? "") ? -1 : 1;
}

function nameOf({ group, version, kind }: Kind): string {
  return `${group === "" ? "" : kubernetesGroup(group)}/${version}, Kind=${kind}`;
}

function typeOf(kind: Kind): Type | undefined {
  return celTypeOf(kind.schema, { resourceRoot: true });
}

/** The warning about one kind; empty if the expression fits. */
function checkExpression(
  expression: string,
  { name, type }: CheckedKind,
  params: Type | undefined,
  variables: readonly Variable[],
): string {
  const known = new Map<string, Type>();
  const variablesType: ObjectType = {
    kind: "object",
    name: "kubernetes.variables",
    field: (variable) => known.get(variable),
    fieldNames: () => [...known.keys()],
  };
  const environment = () =>
    createAdmissionEnvironment({
      params: params !== undefined,
      variables: variables.length === 0 ? undefined : variablesType,
      types: { object: type, params },
    });
  for (const variable of variables) {
    // An error is reported where the variable is used.
    const { program } = compile(variable.expression.trim(), environment());
    known.set(variable.name, program?.resultType ?? dynType);
  }
  const compiled = compile(expression, environment());
  if (compiled.program !== undefined || compiled.stage === "instantiation") return "";
  return `${name}: ${renderErrors(compiled.errors, expression)}\n`;
}
