/** What the author of a pod or of a template is told although nothing is wrong: deprecated, pointless, ambiguous. */
import { child, index, key } from "../../../schema/value/field-path.ts";
import type { ObjectMeta } from "../../meta/object-meta.ts";
import { isFractional } from "../../meta/quantity.ts";
import { ipWarnings } from "../../meta/validation/ip.ts";
import { labelValue } from "../../meta/validation/names.ts";
import type { Container } from "../container/schema.ts";
import { labelDeprecation } from "../node/deprecated-labels.ts";
import type { NodeSelectorTerm } from "../node/selector.ts";
import { volumeWarnings } from "../volume/warnings.ts";
import type { PodAffinity } from "./affinity.ts";
import { containersWithPaths } from "./containers.ts";
import type { PodSpec } from "./schema.ts";

export interface PodWarningOptions {
  /** Templates are warned of AppArmor annotations here; pods when the annotation is turned into the field. */
  readonly template?: boolean;
}

/** `path` is where the spec stands: `spec`, `spec.template.spec`. */
export function podSpecWarnings(
  spec: PodSpec,
  path: string,
  metadata: ObjectMeta = {},
  options: PodWarningOptions = { template: true },
): readonly string[] {
  return [
    ...labelWarnings(spec, path),
    ...annotationWarnings(metadata, annotationsOf(path)),
    ...volumeWarnings(spec.volumes ?? [], child(path, "volumes")),
    ...addressWarnings(spec, path),
    ...pullSecretWarnings(spec, child(path, "imagePullSecrets")),
    ...fractionWarnings(spec.overhead, child(path, "overhead")),
    ...profileWarnings(spec, metadata, annotationsOf(path), options),
    ...containersWithPaths(spec, path).flatMap(({ container, at }) => containerWarnings(container, at)),
    ...portWarnings(spec, path),
    ...affinityWarnings(spec.affinity?.podAffinity, child(path, "affinity.podAffinity")),
    ...affinityWarnings(spec.affinity?.podAntiAffinity, child(path, "affinity.podAntiAffinity")),
    ...graceWarnings(spec, path),
  ];
}

function annotationsOf(path: string): string {
  return child(path.replace(/\.?spec$/, ""), "metadata.annotations");
}

function labelWarnings(spec: PodSpec, path: string): string[] {
  const warnings: string[] = [];
  for (const label of Object.keys(spec.nodeSelector ?? {})) {
    const renamed = labelDeprecation(label);
    if (renamed !== undefined) warnings.push(`${key(child(path, "nodeSelector"), label)}: ${renamed}`);
  }
  const { nodeAffinity } = spec.affinity ?? {};
  const at = child(path, "affinity.nodeAffinity");
  const demanded = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  for (const [i, term] of demanded.entries()) {
    const terms = child(at, "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    warnings.push(...nodeTermWarnings(term, index(terms, i), false));
  }
  for (const [i, { preference }] of (nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const wish = index(child(at, "preferredDuringSchedulingIgnoredDuringExecution"), i);
    warnings.push(...nodeTermWarnings(preference, child(wish, "preference"), true));
  }
  for (const [i, { topologyKey, labelSelector }] of (spec.topologySpreadConstraints ?? []).entries()) {
    const constraint = index(child(path, "topologySpreadConstraints"), i);
    const renamed = labelDeprecation(topologyKey);
    if (renamed !== undefined) warnings.push(`${child(constraint, "topologyKey")}: ${topologyKey} is ${renamed}`);
    if (labelSelector === undefined) warnings.push(nullSelector(constraint));
  }
  return warnings;
}

function nullSelector(path: string): string {
  return `${child(path, "labelSelector")}: a null labelSelector results in matching no pod`;
}

/** Values are only looked at where validation lets bad ones pass: `checkValues`. */
export function nodeTermWarnings(term: NodeSelectorTerm, path: string, checkValues: boolean): readonly string[] {
  const warnings: string[] = [];
  for (const [i, { key: label, values = [] }] of (term.matchExpressions ?? []).entries()) {
    const at = index(child(path, "matchExpressions"), i);
    const renamed = labelDeprecation(label);
    if (renamed !== undefined) warnings.push(`${child(at, "key")}: ${label} is ${renamed}`);
    if (!checkValues) continue;
    for (const [place, value] of values.entries()) {
      const where = index(child(at, "values"), place);
      warnings.push(...labelValue(value).map((problem) => `${where}: ${value} is invalid, ${problem}`));
    }
  }
  return warnings;
}

const removedAnnotations: Readonly<Record<string, string>> = {
  "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
  "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
  "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
};

function annotationWarnings({ annotations = {} }: ObjectMeta, path: string): string[] {
  return Object.entries(removedAnnotations)
    .filter(([name]) => annotations[name] !== undefined)
    .map(([name, why]) => `${key(path, name)}: ${why}`);
}

function addressWarnings(spec: PodSpec, path: string): string[] {
  const warnings: string[] = [];
  const seen = new Set<string>();
  const aliases = (spec.hostAliases ?? []).map(({ ip }, i) => ({
    ip,
    at: child(index(child(path, "hostAliases"), i), "ip"),
  }));
  for (const { ip, at } of aliases) {
    if (seen.has(ip)) warnings.push(`${at}: duplicate ip ${JSON.stringify(ip)}`);
    seen.add(ip);
  }
  for (const { ip, at } of aliases) warnings.push(...ipWarnings(ip, at));
  const servers = child(path, "dnsConfig.nameservers");
  for (const [i, server] of (spec.dnsConfig?.nameservers ?? []).entries()) {
    warnings.push(...ipWarnings(server, index(servers, i)));
  }
  return warnings;
}

function pullSecretWarnings({ imagePullSecrets = [] }: PodSpec, path: string): string[] {
  const names = imagePullSecrets.map(({ name = "" }, i) => ({ name, at: child(index(path, i), "name") }));
  const seen = new Set<string>();
  return [
    ...names
      .filter(({ name }) => seen.size === seen.add(name).size)
      .map(({ name, at }) => `${at}: duplicate name ${JSON.stringify(name)}`),
    ...names.filter(({ name }) => name === "").map(({ at }) => `${at}: invalid empty name ""`),
  ];
}

/** Bytes cannot be divided. */
function fractionWarnings(amounts: Readonly<Record<string, string>> | undefined, path: string): string[] {
  return (["memory", "ephemeral-storage"] as const)
    .filter((name) => isFractional(amounts?.[name]))
    .map((name) => `${key(path, name)}: fractional byte value "${amounts?.[name]}" is invalid, must be an integer`);
}

const SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/";

function profileWarnings(
  spec: PodSpec,
  { annotations = {} }: ObjectMeta,
  path: string,
  options: PodWarningOptions,
): string[] {
  const warnings: string[] = [];
  const seccomp = 'non-functional in v1.27+; use the "seccompProfile" field instead';
  if (spec.securityContext?.seccompProfile === undefined && annotations[SECCOMP_POD] !== undefined) {
    warnings.push(`${key(path, SECCOMP_POD)}: ${seccomp}`);
  }
  for (const { container } of containersWithPaths(spec, "")) {
    const { seccompProfile, appArmorProfile } = container.securityContext ?? {};
    const old = `${SECCOMP_CONTAINER}${container.name}`;
    if (seccompProfile === undefined && annotations[old] !== undefined) warnings.push(`${key(path, old)}: ${seccomp}`);
    const profile = `${APP_ARMOR}${container.name}`;
    const confined = appArmorProfile !== undefined || spec.securityContext?.appArmorProfile !== undefined;
    if (options.template === true && !confined && annotations[profile] !== undefined) {
      warnings.push(appArmorWarning(path, profile));
    }
  }
  return warnings;
}

export function appArmorWarning(annotations: string, name: string): string {
  return `${key(annotations, name)}: deprecated since v1.30; use the "appArmorProfile" field instead`;
}

function containerWarnings(container: Container, path: string): string[] {
  const warnings: string[] = [];
  for (const name of ["memory", "ephemeral-storage"] as const) {
    for (const list of ["limits", "requests"] as const) {
      const amount = container.resources?.[list]?.[name];
      if (amount === undefined) continue;
      warnings.push(...fractionWarnings({ [name]: amount }, child(path, `resources.${list}`)));
    }
  }
  return [...warnings, ...envWarnings(container, child(path, "env"))];
}

/** A later definition that does not build on the earlier one may vanish when the object is applied. */
function envWarnings({ env = [] }: Container, path: string): string[] {
  const seen = new Set<string>();
  const warnings: string[] = [];
  for (const [i, { name, value = "", valueFrom }] of env.entries()) {
    const reference = `$(${name})`;
    const builds = valueFrom === undefined && value !== reference && value.includes(reference);
    if (seen.has(name) && !builds) {
      const hides = `hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`;
      warnings.push(`${index(path, i)}: ${hides}`);
    }
    seen.add(name);
  }
  return warnings;
}

type Port = NonNullable<Container["ports"]>[number];

function portWarnings(spec: PodSpec, path: string): string[] {
  const warnings: string[] = [];
  const taken: { readonly port: Port; readonly at: string }[] = [];
  for (const { container, at } of containersWithPaths(spec, path)) {
    for (const [i, port] of (container.ports ?? []).entries()) {
      const here = index(child(at, "ports"), i);
      const { hostIP = "", hostPort = 0, protocol = "TCP" } = port;
      if (hostIP !== "" && hostPort === 0) {
        const shown = `{Name:${port.name ?? ""} HostPort:0 ContainerPort:${port.containerPort} Protocol:${protocol} HostIP:${hostIP}}`;
        warnings.push(`${here}: hostIP set without hostPort: ${shown}`);
      }
      for (const other of taken) {
        if (other.port.containerPort !== port.containerPort || (other.port.protocol ?? "TCP") !== protocol) continue;
        const [otherIp, otherPort] = [other.port.hostIP ?? "", other.port.hostPort ?? 0];
        if (otherIp === hostIP && otherPort === hostPort) {
          warnings.push(`${here}: duplicate port definition with ${other.at}`);
        } else if (hostPort === 0 || otherPort === 0) {
          warnings.push(`${here}: overlapping port definition with ${other.at}`);
        } else if (hostPort === otherPort && (hostIP === "") !== (otherIp === "")) {
          warnings.push(`${here}: dangerously ambiguous port definition with ${other.at}`);
        }
      }
      taken.push({ port, at: here });
    }
  }
  return warnings;
}

function affinityWarnings(affinity: PodAffinity | undefined, path: string): string[] {
  const required = child(path, "requiredDuringSchedulingIgnoredDuringExecution");
  const preferred = child(path, "preferredDuringSchedulingIgnoredDuringExecution");
  return [
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).flatMap((term, i) =>
      term.labelSelector === undefined ? [nullSelector(index(required, i))] : [],
    ),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap(({ podAffinityTerm }, i) =>
      podAffinityTerm.labelSelector === undefined ? [nullSelector(`${index(preferred, i)}.podAffinityTerm`)] : [],
    ),
  ];
}

function graceWarnings({ terminationGracePeriodSeconds }: PodSpec, path: string): string[] {
  if (terminationGracePeriodSeconds === undefined || terminationGracePeriodSeconds >= 0) return [];
  const field = child(path, "terminationGracePeriodSeconds");
  return [`${field}: must be >= 0; negative values are invalid and will be treated as 1`];
}
