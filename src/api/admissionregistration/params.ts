/** The table columns of policies and bindings that show their parameters. */
import type { ParamKind, ParamRef } from "./validating-admission-policy/schema.ts";

const UNSET = "<unset>";

export function formatParamKind(paramKind: ParamKind | undefined): string {
  if (paramKind === undefined) return UNSET;
  const { apiVersion = "", kind = "" } = paramKind;
  return `${apiVersion}/${kind}`;
}

export function formatParamRef(ref: ParamRef | undefined): string {
  if (ref === undefined) return UNSET;
  const { namespace = "", name = "*" } = ref;
  return namespace === "" ? name : `${namespace}/${name}`;
}
