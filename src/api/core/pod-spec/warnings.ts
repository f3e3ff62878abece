/** Warnings for pods and templates: deprecated fields, fields without effect, ambiguous settings. */

import { child, index, key } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import type { ObjectMeta } from "../../meta/object-meta.ts";
import { isFractional } from "../../meta/quantity.ts";
import { ipWarnings } from "../../meta/validation/ip.ts";
import { labelValue } from "../../meta/validation/names.ts";
import { takeSendableWarnings } from "../../meta/warning-limits.ts";
import type { Container } from "../container/schema.ts";
import { labelDeprecation } from "../node/deprecated-labels.ts";
import type { NodeSelectorTerm } from "../node/selector.ts";
import { volumeWarnings } from "../volume/warnings.ts";
import type { PodAffinity } from "./affinity.ts";
import { APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD } from "./annotation-validation.ts";
import { type ContainerWithPath, containersWithPaths } from "./containers.ts";
import type { PodSpec } from "./schema.ts";

export interface PodWarningOptions {
  /** Warns about AppArmor annotations of templates here; for pods, `app-armor.ts` does. */
  readonly template?: boolean;
}

/** `path` is the path of the spec: `spec`, `spec.template.spec`. */
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
    ...containersWithPaths(spec, path).flatMap(containerWarnings),
    ...takeSendableWarnings(portWarnings(spec, path)),
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
    const deprecation = labelDeprecation(label);
    if (deprecation !== undefined) warnings.push(`${key(child(path, "nodeSelector"), label)}: ${deprecation}`);
  }
  const { nodeAffinity } = spec.affinity ?? {};
  const at = child(path, "affinity.nodeAffinity");
  const required = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  for (const [i, term] of required.entries()) {
    const terms = child(at, "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    warnings.push(...nodeTermWarnings(term, index(terms, i), false));
  }
  for (const [i, { preference }] of (nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).entries()) {
    const preferredPath = index(child(at, "preferredDuringSchedulingIgnoredDuringExecution"), i);
    warnings.push(...nodeTermWarnings(preference, child(preferredPath, "preference"), true));
  }
  for (const [i, { topologyKey, labelSelector }] of (spec.topologySpreadConstraints ?? []).entries()) {
    const constraint = index(child(path, "topologySpreadConstraints"), i);
    const deprecation = labelDeprecation(topologyKey);
    if (deprecation !== undefined)
      warnings.push(`${child(constraint, "topologyKey")}: ${topologyKey} is ${deprecation}`);
    if (labelSelector === undefined) warnings.push(nullSelectorWarning(constraint));
  }
  return warnings;
}

function nullSelectorWarning(path: string): string {
  return `${child(path, "labelSelector")}: a null labelSelector results in matching no pod`;
}

/** `checkValues`: warns about invalid label values, where validation accepts them. */
export function nodeTermWarnings(term: NodeSelectorTerm, path: string, checkValues: boolean): readonly string[] {
  const warnings: string[] = [];
  for (const [i, { key: label, values = [] }] of (term.matchExpressions ?? []).entries()) {
    const at = index(child(path, "matchExpressions"), i);
    const deprecation = labelDeprecation(label);
    if (deprecation !== undefined) warnings.push(`${child(at, "key")}: ${label} is ${deprecation}`);
    if (!checkValues) continue;
    for (const [valueIndex, value] of values.entries()) {
      const valuePath = index(child(at, "values"), valueIndex);
      warnings.push(...labelValue(value).map((problem) => `${valuePath}: ${value} is invalid, ${problem}`));
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
    if (seen.has(ip)) warnings.push(`${at}: duplicate ip ${goQuote(ip)}`);
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
      .map(({ name, at }) => `${at}: duplicate name ${goQuote(name)}`),
    ...names.filter(({ name }) => name === "").map(({ at }) => `${at}: invalid empty name ""`),
  ];
}

/** Bytes must be integers. */
function fractionWarnings(amounts: Readonly<Record<string, string>> | undefined, path: string): string[] {
  return (["memory", "ephemeral-storage"] as const)
    .filter((name) => isFractional(amounts?.[name]))
    .map((name) => `${key(path, name)}: fractional byte value "${amounts?.[name]}" is invalid, must be an integer`);
}

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
    const annotation = `${SECCOMP_CONTAINER}${container.name}`;
    if (seccompProfile === undefined && annotations[annotation] !== undefined)
      warnings.push(`${key(path, annotation)}: ${seccomp}`);
    const profile = `${APP_ARMOR}${container.name}`;
    const hasProfile = appArmorProfile !== undefined || spec.securityContext?.appArmorProfile !== undefined;
    if (options.template === true && !hasProfile && annotations[profile] !== undefined) {
      warnings.push(appArmorWarning(path, profile));
    }
  }
  return warnings;
}

export function appArmorWarning(annotations: string, name: string): string {
  return `${key(annotations, name)}: deprecated since v1.30; use the "appArmorProfile" field instead`;
}

function containerWarnings(each: ContainerWithPath): readonly string[] {
  const { container } = each;
  const warnings: string[] = [];
  for (const name of ["memory", "ephemeral-storage"] as const) {
    for (const list of ["limits", "requests"] as const) {
      const amount = container.resources?.[list]?.[name];
      if (amount === undefined) continue;
      warnings.push(...fractionWarnings({ [name]: amount }, child(each.at, `resources.${list}`)));
    }
  }
  return container.env === undefined ? warnings : [...warnings, ...envWarnings(container, child(each.at, "env"))];
}

/** Server-side apply may drop the earlier of two definitions of a variable, unless the later one refers to it. */
function envWarnings({ env = [] }: Container, path: string): string[] {
  const seen = new Set<string>();
  const warnings: string[] = [];
  for (const [i, { name, value = "", valueFrom }] of env.entries()) {
    const reference = `$(${name})`;
    const refersToEarlier = valueFrom === undefined && value !== reference && value.includes(reference);
    if (seen.has(name) && !refersToEarlier) {
      const hides = `hides previous definition of ${goQuote(name)}, which may be dropped when using apply`;
      warnings.push(`${index(path, i)}: ${hides}`);
    }
    seen.add(name);
  }
  return warnings;
}

function* portWarnings(spec: PodSpec, path: string): Generator<string> {
  const seen = new Map<string, SeenPorts>();
  for (const each of containersWithPaths(spec, path)) {
    const { ports: own = [] } = each.container;
    const portsPath = own.length === 0 ? "" : child(each.at, "ports");
    for (const [i, { name = "", containerPort, hostIP = "", hostPort = 0, protocol = "TCP" }] of own.entries()) {
      const portPath = index(portsPath, i);
      if (hostIP !== "" && hostPort === 0) {
        const shown = `{Name:${name} HostPort:0 ContainerPort:${containerPort} Protocol:${protocol} HostIP:${hostIP}}`;
        yield `${portPath}: hostIP set without hostPort: ${shown}`;
      }
      const group = `${containerPort} ${protocol}`;
      const ports = seen.get(group) ?? new SeenPorts();
      seen.set(group, ports);
      for (const other of ports.overlapping(hostPort, hostIP)) {
        const isEqual = other.hostIP === hostIP && other.hostPort === hostPort;
        if (isEqual) yield `${portPath}: duplicate port definition with ${other.at}`;
        else if (hostPort === 0 || other.hostPort === 0)
          yield `${portPath}: overlapping port definition with ${other.at}`;
        else yield `${portPath}: dangerously ambiguous port definition with ${other.at}`;
      }
      ports.add({ at: portPath, hostPort, hostIP });
    }
  }
}

interface SeenPort {
  readonly at: string;
  readonly hostPort: number;
  readonly hostIP: string;
}

/** The ports of one number and protocol. */
class SeenPorts {
  readonly #all: SeenPort[] = [];
  /** By host port and address, and by host port alone; indexes in the list of all. */
  readonly #indexes = new Map<string, number[]>();

  add(port: SeenPort): void {
    const { hostPort, hostIP } = port;
    for (const key of [`${hostPort}`, `${hostPort} ${hostIP}`]) {
      const indexes = this.#indexes.get(key) ?? [];
      this.#indexes.set(key, indexes);
      indexes.push(this.#all.length);
    }
    this.#all.push(port);
  }

  /**
   * The ports that equal this one, or that have no host port or no address where this one has, or the reverse; in their
   * order. Each of them causes a warning.
   */
  overlapping(hostPort: number, hostIP: string): readonly SeenPort[] {
    if (hostPort === 0) return this.#all;
    const sameHostPort =
      hostIP === ""
        ? this.#at(`${hostPort}`)
        : [`${hostPort} `, `${hostPort} ${hostIP}`].flatMap((key) => this.#at(key));
    return [...this.#at("0"), ...sameHostPort].sort((a, b) => a - b).map((at) => this.#all[at]!);
  }

  #at(key: string): readonly number[] {
    return this.#indexes.get(key) ?? [];
  }
}

function affinityWarnings(affinity: PodAffinity | undefined, path: string): string[] {
  const required = child(path, "requiredDuringSchedulingIgnoredDuringExecution");
  const preferred = child(path, "preferredDuringSchedulingIgnoredDuringExecution");
  return [
    ...(affinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []).flatMap((term, i) =>
      term.labelSelector === undefined ? [nullSelectorWarning(index(required, i))] : [],
    ),
    ...(affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).flatMap(({ podAffinityTerm }, i) =>
      podAffinityTerm.labelSelector === undefined
        ? [nullSelectorWarning(`${index(preferred, i)}.podAffinityTerm`)]
        : [],
    ),
  ];
}

function graceWarnings({ terminationGracePeriodSeconds }: PodSpec, path: string): string[] {
  if (terminationGracePeriodSeconds === undefined || terminationGracePeriodSeconds >= 0) return [];
  const field = child(path, "terminationGracePeriodSeconds");
  return [`${field}: must be >= 0; negative values are invalid and will be treated as 1`];
}
