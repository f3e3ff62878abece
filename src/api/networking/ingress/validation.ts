/** Rules for the hosts, paths and backends of an ingress. */

import { list } from "../../../schema/define.ts";
import {
  errorsMax,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { goStruct } from "../../../schema/validation/go-syntax.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { parseIp } from "../../../std/net/ip.ts";
import type { TypedLocalObjectReference } from "../../core/references/object-reference.ts";
import { ipWarnings, validateLegacyIp } from "../../meta/validation/ip.ts";
import {
  dns1035Label,
  dns1123Subdomain,
  pathSegment,
  portName,
  portNumber,
  wildcardSubdomain,
} from "../../meta/validation/names.ts";
import {
  type HTTPIngressPath,
  type Ingress,
  type IngressBackend,
  type IngressRule,
  type IngressServiceBackend,
  type IngressTLS,
  ingressRule,
} from "./schema.ts";

export const CLASS_ANNOTATION = "kubernetes.io/ingress.class";
const PATH_TYPES = ["Exact", "ImplementationSpecific", "Prefix"];
const BAD_SEQUENCES = ["//", "/./", "/../", "%2f", "%2F"];
const BAD_ENDINGS = ["/..", "/."];
const NO_NAME = "must be a DNS name, not an IP address";

export function validateIngress(ingress: Ingress, previous?: Ingress): readonly FieldError[] {
  const { spec } = ingress;
  const { defaultBackend, rules = [], tls = [], ingressClassName } = spec ?? {};
  const errors: FieldError[] = [];
  if (rules.length === 0 && defaultBackend === undefined) {
    errors.push(
      invalidField(
        "spec",
        goStruct(list(ingressRule), undefined),
        "either `defaultBackend` or `rules` must be specified",
      ),
    );
  }
  if (defaultBackend !== undefined) errors.push(...validateBackend(defaultBackend, "spec.defaultBackend"));
  // Exempts errors that the stored ingress has already.
  const exemptWildcards = (previous?.spec?.rules ?? []).some(isBadWildcardRule);
  const exemptSecrets = (previous?.spec?.tls ?? []).some(
    ({ secretName = "" }) => secretProblems(secretName).length > 0,
  );
  for (const [i, rule] of rules.entries()) {
    if (errors.length >= errorsMax) break;
    const at = index("spec.rules", i);
    errors.push(...validateHost(rule.host ?? "", child(at, "host")));
    if (!(exemptWildcards && isWildcard(rule))) errors.push(...validateRule(rule, at));
  }
  errors.push(...validateEach(tls, (one, i) => validateTls(one, index("spec.tls", i), exemptSecrets)));
  const nameProblems = ingressClassName === undefined ? [] : dns1123Subdomain(ingressClassName);
  errors.push(...nameProblems.map((problem) => invalidField("spec.ingressClassName", ingressClassName, problem)));
  return previous === undefined ? [...errors, ...validateClassAnnotation(ingress)] : errors;
}

function validateClassAnnotation({ metadata, spec }: Ingress): readonly FieldError[] {
  const annotation = metadata?.annotations?.[CLASS_ANNOTATION];
  const name = spec?.ingressClassName;
  if (annotation === undefined || name === undefined || annotation === name) return [];
  const detail = "must match `ingressClassName` when both are specified";
  return [invalidField(`annotations.${CLASS_ANNOTATION}`, annotation, detail)];
}

function isWildcard({ host }: IngressRule): boolean {
  return host?.includes("*") === true;
}

function isBadWildcardRule(rule: IngressRule): boolean {
  return isWildcard(rule) && validateRule(rule, "").length > 0;
}

/** An empty host matches all hosts. */
function validateHost(host: string, path: string): readonly FieldError[] {
  if (host === "") return [];
  const problems = [
    ...(parseIp(host) === undefined ? [] : [NO_NAME]),
    ...(host.includes("*") ? wildcardSubdomain(host) : dns1123Subdomain(host)),
  ];
  return problems.map((problem) => invalidField(path, host, problem));
}

function validateRule({ http }: IngressRule, path: string): readonly FieldError[] {
  if (http === undefined) return [];
  const at = child(child(path, "http"), "paths");
  if (http.paths.length === 0) return [requiredField(at)];
  return validateEach(http.paths, (one, i) => validatePath(one, index(at, i)));
}

function validatePath(path: HTTPIngressPath, at: string): readonly FieldError[] {
  const { pathType, path: text = "", backend } = path;
  if (pathType === undefined) return [requiredField(child(at, "pathType"), "pathType must be specified")];
  return [...validatePathText(pathType, text, at), ...validateBackend(backend, child(at, "backend"))];
}

function validatePathText(pathType: string, text: string, at: string): readonly FieldError[] {
  const wrong = (detail: string): FieldError => invalidField(child(at, "path"), text, detail);
  const relative = text.startsWith("/") ? [] : [wrong("must be an absolute path")];
  switch (pathType) {
    case "Exact":
    case "Prefix":
      return [
        ...relative,
        ...BAD_SEQUENCES.filter((bad) => text.includes(bad)).map((bad) => wrong(`must not contain '${bad}'`)),
        ...BAD_ENDINGS.filter((bad) => text.endsWith(bad)).map((bad) => wrong(`cannot end with '${bad}'`)),
      ];
    case "ImplementationSpecific":
      return text === "" ? [] : relative;
    default:
      return [notSupported(child(at, "pathType"), pathType, PATH_TYPES)];
  }
}

function validateBackend({ service, resource }: IngressBackend, path: string): readonly FieldError[] {
  if (resource !== undefined && service !== undefined) {
    return [invalidField(path, "", "cannot set both resource and service backends")];
  }
  if (resource !== undefined) return validateResource(resource, child(path, "resource"));
  if (service !== undefined) return validateService(service, path);
  return [invalidField(path, "", "resource or service backend is required")];
}

function validateResource(resource: TypedLocalObjectReference, path: string): readonly FieldError[] {
  const { apiGroup, kind = "", name = "" } = resource;
  const segment = (value: string, field: string): readonly FieldError[] =>
    value === ""
      ? [requiredField(child(path, field), `${field} is required`)]
      : pathSegment(value).map((problem) => invalidField(child(path, field), value, problem));
  return [
    ...(apiGroup === undefined ? [] : dns1123Subdomain(apiGroup)).map((problem) =>
      invalidField(child(path, "apiGroup"), apiGroup, problem),
    ),
    ...segment(kind, "kind"),
    ...segment(name, "name"),
  ];
}

function validateService({ name, port }: IngressServiceBackend, path: string): readonly FieldError[] {
  const at = child(path, "service");
  return [
    ...(name === ""
      ? [requiredField(child(at, "name"))]
      : dns1035Label(name).map((problem) => invalidField(child(at, "name"), name, problem))),
    ...validateServicePort(port ?? {}, path),
  ];
}

function validateServicePort(port: NonNullable<IngressServiceBackend["port"]>, path: string): readonly FieldError[] {
  const { name = "", number = 0 } = port;
  const at = child(child(path, "service"), "port");
  if (name !== "" && number !== 0) return [invalidField(path, "", "cannot set both port name & port number")];
  if (name !== "") return portName(name).map((problem) => invalidField(child(at, "name"), name, problem));
  if (number !== 0) return portNumber(number).map((problem) => invalidField(child(at, "number"), number, problem));
  return [requiredField(path, "port name or number is required")];
}

function validateTls(
  { hosts = [], secretName = "" }: IngressTLS,
  path: string,
  exempt: boolean,
): readonly FieldError[] {
  const errors = validateEach(hosts, (host, i) => {
    const problems = host.includes("*") ? wildcardSubdomain(host) : dns1123Subdomain(host);
    return problems.map((problem) => invalidField(index(child(path, "hosts"), i), host, problem));
  });
  if (exempt) return errors;
  const problems = secretProblems(secretName);
  return [...errors, ...problems.map((problem) => invalidField(child(path, "secretName"), secretName, problem))];
}

function secretProblems(name: string): readonly string[] {
  return name === "" ? [] : dns1123Subdomain(name);
}

const STATUS = "status.loadBalancer.ingress";

/** Accepts addresses of the stored status. */
export function validateIngressStatus(next: Ingress, previous: Ingress): readonly FieldError[] {
  const before = new Set((previous.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip));
  return validateEach(next.status?.loadBalancer?.ingress ?? [], ({ ip = "", hostname = "" }, i) => {
    const at = index(STATUS, i);
    const problems =
      hostname === "" ? [] : [...dns1123Subdomain(hostname), ...(parseIp(hostname) === undefined ? [] : [NO_NAME])];
    return [
      ...(ip === "" || before.has(ip) ? [] : validateLegacyIp(ip, child(at, "ip"))),
      ...problems.map((problem) => invalidField(child(at, "hostname"), hostname, problem)),
    ];
  });
}

export function ingressWarnings({ metadata, spec }: Ingress, previous: Ingress | undefined): readonly string[] {
  const marked = metadata?.annotations?.[CLASS_ANNOTATION] !== undefined && spec?.ingressClassName === undefined;
  return marked && previous === undefined
    ? [`annotation "${CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead`]
    : [];
}

export function ingressStatusWarnings({ status }: Ingress): readonly string[] {
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip = "" }, i) =>
    ipWarnings(ip, child(index(STATUS, i), "ip")),
  );
}
