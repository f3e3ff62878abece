/** Sets ipFamilyPolicy and ipFamilies of a service, from its spec and the families of the cluster. */

import { validateIpFields } from "../../api/core/service/ip-validation.ts";
import type { Service, ServiceSpec } from "../../api/core/service/schema.ts";
import { HEADLESS, isHeadless, sameClusterIPs, sameStrings, specOf } from "../../api/core/service/types.ts";
import { type FieldError, invalidField } from "../../schema/validation/field-error.ts";
import { index } from "../../schema/value/field-path.ts";
import { type IpFamily, parseIp } from "../../std/net/ip.ts";

/** The first is the default. */
export type ClusterFamilies = readonly [IpFamily] | readonly [IpFamily, IpFamily];

export interface FamilyResult {
  readonly service: Service;
  /** Empty when the service has its policy and families. */
  readonly errors: readonly FieldError[];
}

const POLICY = "spec.ipFamilyPolicy";

/**
 * A service changes between one and two families only when its spec changes: the policy, or addresses or families with
 * it. `PreferDualStack` sets two families where the cluster has two.
 */
export function setIpFamilies(next: Service, previous: Service | undefined, cluster: ClusterFamilies): FamilyResult {
  const spec = specOf(next);
  const old = previous === undefined ? undefined : specOf(previous);
  if (spec.type === "ExternalName" || keepsPreferDualStack(spec, old)) return { service: next, errors: [] };
  const decided: ServiceSpec = { ...spec, ipFamilyPolicy: spec.ipFamilyPolicy ?? defaultPolicy(spec, old) };
  const failed = (errors: readonly FieldError[]): FamilyResult => ({ service: next, errors });
  const malformed = validateIpFields(decided, old);
  if (malformed.length > 0) return failed(malformed);
  const released = old === undefined ? decided : trimForDowngrade(decided, old);
  const policyErrors = [
    ...(old === undefined ? [] : validateDowngrade(released, old)),
    ...validateSingleStack(released),
  ];
  const { families, errors } = inferFamilies(released, cluster);
  if (policyErrors.length + errors.length > 0) return failed([...policyErrors, ...errors]);
  const inferredSpec: ServiceSpec = { ...released, ...(families.length > 0 ? { ipFamilies: families } : {}) };
  // Endpoints of a headless service without selector may be of families that the cluster does not have.
  if (inferredSpec.clusterIP === HEADLESS && isEmpty(inferredSpec.selector))
    return { service: fillFamilies(next, inferredSpec, cluster, 2), errors: [] };
  const missing = validateConfigured(inferredSpec, cluster);
  return missing.length > 0
    ? failed(missing)
    : { service: fillFamilies(next, inferredSpec, cluster, cluster.length), errors: [] };
}

function isEmpty(map: Readonly<Record<string, string>> | undefined): boolean {
  return Object.keys(map ?? {}).length === 0;
}

/** Whether a PreferDualStack service is unchanged: it keeps its families when those of the cluster change. */
export function keepsPreferDualStack(spec: ServiceSpec, old: ServiceSpec | undefined): boolean {
  if (old === undefined || spec.type !== old.type) return false;
  const prefers =
    spec.ipFamilyPolicy === "PreferDualStack" && (old.ipFamilyPolicy ?? "PreferDualStack") === "PreferDualStack";
  return prefers && sameClusterIPs(spec, old) && sameStrings(spec.ipFamilies, old.ipFamilies);
}

/** The policy of a service without one. */
function defaultPolicy(spec: ServiceSpec, old: ServiceSpec | undefined): NonNullable<ServiceSpec["ipFamilyPolicy"]> {
  if (old?.ipFamilyPolicy !== undefined) return old.ipFamilyPolicy;
  return spec.clusterIP === HEADLESS && isEmpty(spec.selector) ? "RequireDualStack" : "SingleStack";
}

/** Removes the secondary address and family when only the policy changes to SingleStack. */
function trimForDowngrade(spec: ServiceSpec, old: ServiceSpec): ServiceSpec {
  if (spec.ipFamilyPolicy !== "SingleStack") return spec;
  const { clusterIPs = [], ipFamilies = [] } = spec;
  return {
    ...spec,
    ...(sameClusterIPs(spec, old) && clusterIPs.length > 1 ? { clusterIPs: clusterIPs.slice(0, 1) } : {}),
    ...(sameStrings(ipFamilies, old.ipFamilies) && ipFamilies.length > 1 ? { ipFamilies: ipFamilies.slice(0, 1) } : {}),
  };
}

function validateDowngrade(spec: ServiceSpec, old: ServiceSpec): readonly FieldError[] {
  const { ipFamilyPolicy } = spec;
  if (ipFamilyPolicy === "SingleStack") return [];
  const reduced = (now: readonly string[] = [], before: readonly string[] = []): boolean =>
    now.length > 0 && now.length < before.length && sameStrings(now, before.slice(0, now.length));
  const wrong = (what: string): FieldError =>
    invalidField(POLICY, ipFamilyPolicy, `must be 'SingleStack' to release the secondary ${what}`);
  return [
    ...(reduced(spec.clusterIPs, old.clusterIPs) ? [wrong("cluster IP")] : []),
    ...(reduced(spec.ipFamilies, old.ipFamilies) ? [wrong("IP family")] : []),
  ];
}

function validateSingleStack({ ipFamilyPolicy, clusterIPs = [], ipFamilies = [] }: ServiceSpec): readonly FieldError[] {
  if (ipFamilyPolicy !== "SingleStack") return [];
  const wrong = (what: string): FieldError => {
    const detail = `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`;
    return invalidField(POLICY, ipFamilyPolicy, detail);
  };
  return [
    ...(clusterIPs.length === 2 ? [wrong("cluster IPs")] : []),
    ...(ipFamilies.length === 2 ? [wrong("IP families")] : []),
  ];
}

/** Infers families that are not specified from the addresses. */
function inferFamilies(spec: ServiceSpec, cluster: ClusterFamilies) {
  const families: IpFamily[] = [...(spec.ipFamilies ?? [])];
  const errors: FieldError[] = [];
  const addresses = isHeadless(spec) ? [] : (spec.clusterIPs ?? []);
  for (const [i, ip] of addresses.entries()) {
    const family = parseIp(ip)?.family;
    if (i < families.length || family === undefined) continue;
    if (cluster.includes(family)) families.push(family);
    else {
      const detail = `${family} is not configured on this cluster`;
      errors.push(invalidField(index("spec.clusterIPs", i), spec.clusterIPs, detail));
    }
  }
  return { families, errors };
}

function validateConfigured({ ipFamilyPolicy, ipFamilies = [] }: ServiceSpec, cluster: ClusterFamilies): FieldError[] {
  const errors = ipFamilies.flatMap((family, i) =>
    cluster.includes(family)
      ? []
      : [invalidField(index("spec.ipFamilies", i), family, "not configured on this cluster")],
  );
  if (ipFamilyPolicy !== "RequireDualStack" || cluster.length === 2) return errors;
  return [invalidField(POLICY, ipFamilyPolicy, "this cluster is not configured for dual-stack services"), ...errors];
}

/** Sets up to `familiesMax` families: by default the cluster's first, and the other one where the policy has two. */
function fillFamilies(next: Service, spec: ServiceSpec, cluster: ClusterFamilies, familiesMax: number): Service {
  const named = spec.ipFamilies ?? [];
  const [first] = named.length > 0 ? named : cluster;
  const other: IpFamily = first === "IPv4" ? "IPv6" : "IPv4";
  const single = spec.ipFamilyPolicy === "SingleStack" || named.length > 1 || familiesMax < 2;
  const ipFamilies = single ? (named.length > 0 ? named : [first]) : [first, other];
  return { ...next, spec: { ...spec, ipFamilies } } as Service;
}
