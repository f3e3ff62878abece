import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  tooLong,
} from "../../../schema/validation/field-error.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { child } from "../../../schema/value/field-path.ts";
import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind, type Strategy } from "../../kind.ts";
import { validateDomainPrefixedPath } from "../../meta/validation/domain-prefixed-path.ts";
import { dns1123Label, dns1123Subdomain, pathSegment } from "../../meta/validation/names.ts";
import { setFirstGeneration, updateGeneration } from "../../strategy.ts";
import { type IngressClass, type IngressClassParametersReference, ingressClass } from "./schema.ts";

const CONTROLLER_MAX_BYTES = 250;
const CONTROLLER = "spec.controller";
const PARAMETERS = "spec.parameters";

function validateIngressClass({ spec }: IngressClass): readonly FieldError[] {
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

function setIngressClassDefaults(object: IngressClass): IngressClass {
  const { spec } = object;
  if (spec?.parameters === undefined || spec.parameters.scope !== undefined) return object;
  return { ...object, spec: { ...spec, parameters: { ...spec.parameters, scope: "Cluster" } } };
}

const ingressClassStrategy: Strategy<IngressClass> = {
  setDefaults: setIngressClassDefaults,
  prepareForCreate: setFirstGeneration,
  prepareForUpdate: (next, previous) => updateGeneration(next, previous, !deepEqual(next.spec, previous.spec)),
  validate: validateIngressClass,
  validateUpdate: (next, previous) => {
    const { controller = "" } = next.spec ?? {};
    const same = controller === (previous.spec?.controller ?? "");
    return same ? [] : [invalidField(CONTROLLER, controller, "field is immutable")];
  },
};

function parametersText({ spec }: IngressClass): string {
  if (spec?.parameters === undefined) return "<none>";
  const { apiGroup, kind, name } = spec.parameters;
  return `${apiGroup ? `${kind}.${apiGroup}` : kind}/${name}`;
}

export const ingressClassKind: Kind<IngressClass> = {
  group: "networking.svc.io",
  version: "v1",
  kind: "IngressClass",
  listKind: "IngressClassList",
  plural: "ingressclasses",
  singular: "ingressclass",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "ingressclasses",
  schema: ingressClass,
  columns: [
    nameColumn,
    column("Controller", ({ spec }) => spec?.controller ?? "", "Who serves ingresses of the class."),
    column("Parameters", parametersText, "What the controller is told beside."),
    ageColumn,
  ],
  selectableFields: {},
  strategy: ingressClassStrategy,
};
