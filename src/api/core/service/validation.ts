/** Rules for services, except for ports and IPs, which have files of their own. */
import { defaultFeatures } from "../../../flags/gate-tables/default-features.ts";
import type { FeatureLookup } from "../../../flags/gates.ts";
import {
  type FieldError,
  forbiddenField,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index, key } from "../../../schema/value/field-path.ts";
import { parseIp } from "../../../std/net/ip.ts";
import {
  cidrWarnings,
  ipWarnings,
  validateLegacyCidr,
  validateLegacyIp,
  validateNonSpecialIp,
} from "../../meta/validation/ip.ts";
import { dns1123Subdomain, portNumber, qualifiedName } from "../../meta/validation/names.ts";
import { validateLabels } from "../../meta/validation/object-meta.ts";
import { validateIpFields, validateIpFieldsUpdate } from "./ip-validation.ts";
import { requirePorts, validatePorts, validateUniquePorts } from "./port-validation.ts";
import type { Service, ServiceSpec } from "./schema.ts";
import { isExternallyAccessible, isHeadless, needsHealthCheck, specOf } from "./types.ts";

const TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const ONLY_LOAD_BALANCER = "may only be used when `type` is 'LoadBalancer'";
const SOURCE_RANGES_ANNOTATION = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE = "service.kubernetes.io/topology-mode";
const AFFINITY_SECONDS_MAX = 86_400;

export function validateService(
  service: Service,
  previous?: Service,
  features: FeatureLookup = defaultFeatures,
): readonly FieldError[] {
  const spec = specOf(service);
  const old = previous === undefined ? {} : specOf(previous);
  return [
    ...validateTopologyAnnotations(service),
    ...requirePorts(spec),
    ...validateTypeFields(spec),
    ...validatePorts(spec),
    ...validateLabels(spec.selector, "spec.selector"),
    ...validateAffinity(spec),
    ...validateIpFields(spec, old),
    ...validateExternalIPs(spec, old),
    ...validateType(spec.type),
    ...validateUniquePorts(spec),
    ...validateSourceRanges(service, old),
    ...validateLoadBalancer(spec),
    ...validateExternalTraffic(spec),
    ...validateInternalTraffic(spec),
    ...validateDistribution(spec, old, features.has("PreferSameTrafficDistribution")),
  ];
}

export function validateServiceUpdate(next: Service, previous: Service): readonly FieldError[] {
  const [spec, old] = [specOf(next), specOf(previous)];
  const both = spec.type === "LoadBalancer" && old.type === "LoadBalancer";
  const errors = [...validateIpFieldsUpdate(next, previous)];
  if (both && spec.loadBalancerClass !== old.loadBalancerClass) {
    errors.push(invalidField("spec.loadBalancerClass", spec.loadBalancerClass, "may not change once set"));
  }
  // An update reports its errors a second time.
  errors.push(...validateLoadBalancerClass(spec));
  const checked = needsHealthCheck(spec) && needsHealthCheck(old);
  if (checked && spec.healthCheckNodePort !== old.healthCheckNodePort) {
    errors.push(forbiddenField("spec.healthCheckNodePort", "field is immutable"));
  }
  return errors;
}

function validateTopologyAnnotations({ metadata }: Service): readonly FieldError[] {
  const { [TOPOLOGY_HINTS]: hints, [TOPOLOGY_MODE]: mode } = metadata?.annotations ?? {};
  if (hints === undefined || mode === undefined || hints === mode) return [];
  const detail = `must match annotations[${TOPOLOGY_HINTS}] when both are specified`;
  return [invalidField(key("metadata.annotations", TOPOLOGY_MODE), mode, detail)];
}

function validateType(type = ""): readonly FieldError[] {
  if (type === "") return [requiredField("spec.type")];
  return TYPES.includes(type) ? [] : [notSupported("spec.type", type, TYPES)];
}

function validateTypeFields(spec: ServiceSpec): readonly FieldError[] {
  const { type } = spec;
  if (type === "ExternalName") return validateExternalName(spec);
  if ((type === "LoadBalancer" || type === "NodePort") && isHeadless(spec)) {
    return [invalidField("spec.clusterIPs[0]", "None", `may not be set to 'None' for ${type} services`)];
  }
  return [];
}

function validateExternalName(spec: ServiceSpec): readonly FieldError[] {
  const { clusterIPs = [], ipFamilies = [], ipFamilyPolicy, externalName = "" } = spec;
  const forbidden = (field: string): FieldError =>
    forbiddenField(child("spec", field), "may not be set for ExternalName services");
  // A trailing dot marks the name as fully qualified.
  const name = externalName.replace(/\.$/, "");
  return [
    ...(clusterIPs.length > 0 ? [forbidden("clusterIPs")] : []),
    ...(ipFamilies.length > 0 ? [forbidden("ipFamilies")] : []),
    ...(ipFamilyPolicy === undefined ? [] : [forbidden("ipFamilyPolicy")]),
    ...(name === ""
      ? [requiredField("spec.externalName")]
      : dns1123Subdomain(name).map((problem) => invalidField("spec.externalName", name, problem))),
  ];
}

function validateAffinity({ sessionAffinity, sessionAffinityConfig }: ServiceSpec): readonly FieldError[] {
  const at = "spec.sessionAffinityConfig";
  switch (sessionAffinity) {
    case undefined:
      return [requiredField("spec.sessionAffinity")];
    case "None":
      return sessionAffinityConfig === undefined
        ? []
        : [forbiddenField(at, "must not be set when session affinity is None")];
    case "ClientIP": {
      const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds;
      if (seconds === undefined) return [requiredField(at, "when session affinity type is ClientIP")];
      const detail = `must be greater than 0 and less than ${AFFINITY_SECONDS_MAX}`;
      const fits = seconds > 0 && seconds <= AFFINITY_SECONDS_MAX;
      return fits ? [] : [invalidField(`${at}.clientIP.timeoutSeconds`, seconds, detail)];
    }
    default:
      return [notSupported("spec.sessionAffinity", sessionAffinity, ["ClientIP", "None"])];
  }
}

/** Accepts addresses of the stored object. */
function validateExternalIPs({ externalIPs = [] }: ServiceSpec, old: ServiceSpec): readonly FieldError[] {
  const before = new Set(old.externalIPs);
  return validateEach(externalIPs, (ip, i) => {
    const at = index("spec.externalIPs", i);
    const errors = before.has(ip) ? [] : validateLegacyIp(ip, at);
    return errors.length > 0 ? errors : validateNonSpecialIp(ip, at);
  });
}

function validateSourceRanges({ metadata, spec }: Service, old: ServiceSpec): readonly FieldError[] {
  const { type, loadBalancerSourceRanges } = spec ?? {};
  const forbidden = (path: string) => (type === "LoadBalancer" ? [] : [forbiddenField(path, ONLY_LOAD_BALANCER)]);
  if (loadBalancerSourceRanges !== undefined && loadBalancerSourceRanges.length > 0) {
    // The field name as in Kubernetes' messages.
    const path = "spec.LoadBalancerSourceRanges";
    const before = new Set(old.loadBalancerSourceRanges);
    const errors = validateEach(loadBalancerSourceRanges, (range, i) =>
      before.has(range) ? [] : validateLegacyCidr(range.trim(), index(path, i)),
    );
    return [...forbidden(path), ...errors];
  }
  const annotation = metadata?.annotations?.[SOURCE_RANGES_ANNOTATION];
  if (annotation === undefined) return [];
  const path = key("metadata.annotations", SOURCE_RANGES_ANNOTATION);
  const ranges = annotation.trim() === "" ? [] : annotation.split(",").map((range) => range.trim());
  return [...forbidden(path), ...validateEach(ranges, (range) => validateLegacyCidr(range, path))];
}

function validateLoadBalancer(spec: ServiceSpec): readonly FieldError[] {
  const { type, allocateLoadBalancerNodePorts } = spec;
  return [
    ...(type === "LoadBalancer" || allocateLoadBalancerNodePorts === undefined
      ? []
      : [forbiddenField("spec.allocateLoadBalancerNodePorts", ONLY_LOAD_BALANCER)]),
    ...validateLoadBalancerClass(spec),
  ];
}

function validateLoadBalancerClass({ type, loadBalancerClass }: ServiceSpec): readonly FieldError[] {
  const at = "spec.loadBalancerClass";
  if (loadBalancerClass === undefined) return [];
  if (type !== "LoadBalancer") return [forbiddenField(at, ONLY_LOAD_BALANCER)];
  return qualifiedName(loadBalancerClass).map((problem) => invalidField(at, loadBalancerClass, problem));
}

const POLICIES: readonly string[] = ["Cluster", "Local"];

function validateExternalTraffic(spec: ServiceSpec): readonly FieldError[] {
  const { externalTrafficPolicy = "" } = spec;
  const at = "spec.externalTrafficPolicy";
  const errors: FieldError[] = [];
  if (!isExternallyAccessible(spec)) {
    const detail = "may only be set for externally-accessible services";
    if (externalTrafficPolicy !== "") errors.push(invalidField(at, externalTrafficPolicy, detail));
  } else if ((externalTrafficPolicy as string) === "") errors.push(requiredField(at));
  else if (!POLICIES.includes(externalTrafficPolicy)) errors.push(notSupported(at, externalTrafficPolicy, POLICIES));
  return [...errors, ...validateHealthCheck(spec)];
}

function validateHealthCheck(spec: ServiceSpec): readonly FieldError[] {
  const { healthCheckNodePort = 0 } = spec;
  const at = "spec.healthCheckNodePort";
  if (!needsHealthCheck(spec)) {
    const detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    return healthCheckNodePort === 0 ? [] : [invalidField(at, healthCheckNodePort, detail)];
  }
  if (healthCheckNodePort === 0) return [requiredField(at)];
  return portNumber(healthCheckNodePort).map((problem) => invalidField(at, healthCheckNodePort, problem));
}

function validateInternalTraffic(spec: ServiceSpec): readonly FieldError[] {
  const { type, internalTrafficPolicy } = spec;
  const at = "spec.internalTrafficPolicy";
  const errors: FieldError[] = [];
  if (internalTrafficPolicy === undefined) {
    if (type === "ClusterIP" || type === "NodePort" || type === "LoadBalancer") errors.push(requiredField(at));
  } else if (!POLICIES.includes(internalTrafficPolicy)) errors.push(notSupported(at, internalTrafficPolicy, POLICIES));
  return errors;
}

/** The stored value is always valid. */
function validateDistribution(
  { trafficDistribution: value }: ServiceSpec,
  { trafficDistribution: old }: Partial<ServiceSpec>,
  allowsSame: boolean,
): readonly FieldError[] {
  if (value === undefined || value === old) return [];
  const choices = allowsSame ? ["PreferClose", "PreferSameNode", "PreferSameZone"] : ["PreferClose"];
  return choices.includes(value) ? [] : [notSupported("spec.trafficDistribution", value, choices)];
}

const POINTS = "status.loadBalancer.ingress";

export function validateServiceStatus(next: Service, previous: Service): readonly FieldError[] {
  const ingress = next.status?.loadBalancer?.ingress ?? [];
  if (specOf(next).type !== "LoadBalancer" && ingress.length > 0) {
    return [forbiddenField(POINTS, "may only be used when `spec.type` is 'LoadBalancer'")];
  }
  const before = new Set((previous.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip));
  return validateEach(ingress, ({ ip = "", ipMode, hostname = "" }, i) => {
    const at = index(POINTS, i);
    const problems = hostname === "" ? [] : [...dns1123Subdomain(hostname)];
    if (parseIp(hostname) !== undefined) problems.push("must be a DNS name, not an IP address");
    return [
      ...(ip === "" || before.has(ip) ? [] : validateLegacyIp(ip, child(at, "ip"))),
      ...validateIpMode(ip, ipMode, child(at, "ipMode")),
      ...problems.map((problem) => invalidField(child(at, "hostname"), hostname, problem)),
    ];
  });
}

function validateIpMode(ip: string, mode: string | undefined, path: string): readonly FieldError[] {
  if (mode === undefined) return ip === "" ? [] : [requiredField(path, "must be specified when `ip` is set")];
  if (ip === "") return [forbiddenField(path, "may not be specified when `ip` is not set")];
  const modes = ["Proxy", "VIP"];
  return modes.includes(mode) ? [] : [notSupported(path, mode, modes)];
}

export function serviceWarnings(service: Service): readonly string[] {
  const spec = specOf(service);
  const { clusterIPs = [], externalIPs = [], loadBalancerIP = "", loadBalancerSourceRanges = [] } = spec;
  const { type, externalName = "" } = spec;
  const warnings: string[] = [];
  if (service.metadata?.annotations?.[TOPOLOGY_HINTS] !== undefined) {
    warnings.push(`annotation ${TOPOLOGY_HINTS} is deprecated, please use ${TOPOLOGY_MODE} instead`);
  }
  for (const [i, ip] of clusterIPs.entries()) warnings.push(...ipWarnings(ip, index("spec.clusterIPs", i)));
  for (const [i, ip] of externalIPs.entries()) warnings.push(...ipWarnings(ip, index("spec.externalIPs", i)));
  warnings.push(...ipWarnings(loadBalancerIP, "spec.loadBalancerIP"));
  for (const [i, range] of loadBalancerSourceRanges.entries()) {
    warnings.push(...cidrWarnings(range, index("spec.loadBalancerSourceRanges", i)));
  }
  if (type === "ExternalName" && externalIPs.length > 0) {
    warnings.push('spec.externalIPs is ignored when spec.type is "ExternalName"');
  }
  if (type !== "ExternalName" && externalName !== "") {
    warnings.push('spec.externalName is ignored when spec.type is not "ExternalName"');
  }
  return warnings;
}

export function serviceStatusWarnings({ status }: Service): readonly string[] {
  return (status?.loadBalancer?.ingress ?? []).flatMap(({ ip = "" }, i) =>
    ipWarnings(ip, child(index(POINTS, i), "ip")),
  );
}
