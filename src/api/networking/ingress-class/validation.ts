import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  tooLong,
} from "../../../schema/validation/field-error.ts";
import { child } from "../../../schema/value/field-path.ts";
import { validateDomainPrefixedPath } from "../../meta/validation/domain-prefixed-path.ts";
import { dns1123Label, dns1123Subdomain, pathSegment } from "../../meta/validation/names.ts";
import type { IngressClass, IngressClassParametersReference } from "./schema.ts";

const CONTROLLER_MAX_BYTES = 250;

export const CONTROLLER = "spec.controller";

const PARAMETERS = "spec.parameters";

export function validateIngressClass({ spec }: IngressClass): readonly FieldError[] {
  const { controller = "", parameters } = spec ?? {};
  return [...validateController(controller), ...(parameters === undefined ? [] : validateParameters(parameters))];
}

function validateController(controller: string): readonly FieldError[] {
  if (controller === "") return [requiredField(CONTROLLER)];
  const long = Buffer.byteLength(controller) > CONTROLLER_MAX_BYTES;
  return [
    ...(long ? [tooLong(CONTROLLER, CONTROLLER_MAX_BYTES)] : []),
    ...validateDomainPrefixedPath(controller, CONTROLLER),
  ];
}

function validateParameters(parameters: IngressClassParametersReference): readonly FieldError[] {
  const { apiGroup, kind = "", name = "" } = parameters;
  const segment = (value: string, field: string): readonly FieldError[] =>
    value === ""
      ? [requiredField(child(PARAMETERS, field), `${field} is required`)]
      : pathSegment(value).map((problem) => invalidField(child(PARAMETERS, field), value, problem));
  return [
    ...(apiGroup === undefined ? [] : dns1123Subdomain(apiGroup)).map((problem) =>
      invalidField(child(PARAMETERS, "apiGroup"), apiGroup, problem),
    ),
    ...segment(kind, "kind"),
    ...segment(name, "name"),
    ...validateScope(parameters),
  ];
}

function validateScope({ scope, namespace }: IngressClassParametersReference): readonly FieldError[] {
  const at = child(PARAMETERS, "namespace");
  switch (scope) {
    case undefined:
      return [requiredField(child(PARAMETERS, "scope"))];
    case "Namespace":
      return namespace === undefined
        ? [requiredField(at, "`parameters.scope` is set to 'Namespace'")]
        : dns1123Label(namespace).map((problem) => invalidField(at, namespace, problem));
    case "Cluster":
      return namespace === undefined ? [] : [forbiddenField(at, "`parameters.scope` is set to 'Cluster'")];
    default:
      return [notSupported(child(PARAMETERS, "scope"), scope, ["Cluster", "Namespace"])];
  }
}
