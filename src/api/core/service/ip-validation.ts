/** Rules for cluster IPs and IP families. Both allocation and validation apply them. */
import {
  duplicateField,
  type FieldError,
  invalidField,
  notSupported,
  requiredField,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { index } from "../../../schema/value/field-path.ts";
import { parseIp } from "../../../std/net/ip.ts";
import { validateLegacyIp } from "../../meta/validation/ip.ts";
import { repeatedIndexes } from "../../meta/validation/repeated.ts";
import type { Service, ServiceSpec } from "./schema.ts";
import { HEADLESS, isHeadless, specOf } from "./types.ts";

const IPS = "spec.clusterIPs";
const FAMILIES = "spec.ipFamilies";
const POLICY = "spec.ipFamilyPolicy";
const KNOWN_FAMILIES = ["IPv4", "IPv6"];
const POLICIES = ["PreferDualStack", "RequireDualStack", "SingleStack"];

export function validateIpFields(spec: ServiceSpec, previous?: ServiceSpec): readonly FieldError[] {
  if (spec.type === "ExternalName") return [];
  const { clusterIPs = [] } = spec;
  const errors = [...validatePrimary(spec), ...validateFamilies(spec), ...validatePolicy(spec)];
  const malformed = validateAddresses(clusterIPs, previous?.clusterIPs ?? []);
  errors.push(...malformed);
  if (clusterIPs.length > 2) errors.push(invalidField(IPS, clusterIPs, "may only hold up to 2 values"));
  if (malformed.length > 0) return errors;
  const families = clusterIPs.map((ip) => parseIp(ip)?.family);
  if (clusterIPs.length > 1 && !(families.includes("IPv4") && families.includes("IPv6"))) {
    errors.push(invalidField(IPS, clusterIPs, "may specify no more than one IP for each IP family"));
  }
  return isHeadless(spec) ? errors : [...errors, ...validateMatch(spec)];
}

/** `clusterIP` is the first of `clusterIPs`. */
function validatePrimary({ clusterIP = "", clusterIPs = [] }: ServiceSpec): readonly FieldError[] {
  if (clusterIP === "") {
    return clusterIPs.length === 0
      ? []
      : [invalidField(IPS, clusterIPs, "must be empty when `clusterIP` is not specified")];
  }
  if (clusterIPs.length === 0) return [requiredField(IPS)];
  return clusterIPs[0] === clusterIP ? [] : [invalidField(IPS, clusterIPs, "first value must match `clusterIP`")];
}

function validateFamilies({ ipFamilies = [] }: ServiceSpec): readonly FieldError[] {
  const repeated = repeatedIndexes(ipFamilies);
  return validateEach(ipFamilies, (family, i) => [
    ...(KNOWN_FAMILIES.includes(family) ? [] : [notSupported(index(FAMILIES, i), family, KNOWN_FAMILIES)]),
    ...(repeated.has(i) ? [duplicateField(index(FAMILIES, i), family)] : []),
  ]);
}

function validatePolicy({ ipFamilyPolicy }: ServiceSpec): readonly FieldError[] {
  const isSupported = ipFamilyPolicy === undefined || POLICIES.includes(ipFamilyPolicy);
  return isSupported ? [] : [notSupported(POLICY, ipFamilyPolicy, POLICIES)];
}

/** Accepts addresses of the stored service. */
function validateAddresses(clusterIPs: readonly string[], before: readonly string[]): readonly FieldError[] {
  const accepted = new Set(before);
  return validateEach(clusterIPs, (ip, i) => {
    if (i === 0 && ip === HEADLESS) {
      return clusterIPs.length === 1 ? [] : [invalidField(IPS, clusterIPs, "'None' must be the first and only value")];
    }
    return accepted.has(ip) ? [] : validateLegacyIp(ip, index(IPS, i));
  });
}

function validateMatch({ clusterIPs = [], ipFamilies = [] }: ServiceSpec): readonly FieldError[] {
  return validateEach(clusterIPs.slice(0, ipFamilies.length), (ip, i) => {
    const family = ipFamilies[i];
    const matches = family === "IPv6" ? parseIp(ip)?.family === "IPv6" : parseIp(ip)?.family !== "IPv6";
    const detail = `expected an ${family} value as indicated by \`ipFamilies[${i}]\``;
    return matches || !KNOWN_FAMILIES.includes(family ?? "") ? [] : [invalidField(index(IPS, i), ip, detail)];
  });
}

const ONCE = "may not change once set";

/** A second address may be added or released; other changes require a change from or to `ExternalName`. */
export function validateIpFieldsUpdate(next: Service, previous: Service): readonly FieldError[] {
  const [spec, old] = [specOf(next), specOf(previous)];
  if (spec.type === "ExternalName" || old.type === "ExternalName") return [];
  const headless = isHeadless(spec);
  if (headless && isHeadless(old)) return [];
  const errors = [...validateIpsUpdate(spec, old)];
  // A change from or to a headless service is subject to the rules for addresses.
  if (headless === isHeadless(old)) errors.push(...validateFamiliesUpdate(spec, old));
  return errors;
}

function validateIpsUpdate(spec: ServiceSpec, old: ServiceSpec): readonly FieldError[] {
  const [now, before] = [spec.clusterIPs ?? [], old.clusterIPs ?? []];
  const changed = (i: number): FieldError => invalidField(index(IPS, i), now, ONCE);
  if (now.length === before.length) return validateEach(before, (ip, i) => (ip === now[i] ? [] : [changed(i)]));
  const errors: FieldError[] = [];
  if (now.length === 0) errors.push(invalidField(index(IPS, 0), now, "primary clusterIP can not be unset"));
  else if (before.length > 0 && now[0] !== before[0]) errors.push(changed(0));
  if (before.length > now.length && now.length === 1 && spec.ipFamilyPolicy !== "SingleStack") {
    const detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
    errors.push(invalidField(POLICY, spec.ipFamilyPolicy, detail));
  }
  return errors;
}

function validateFamiliesUpdate(spec: ServiceSpec, old: ServiceSpec): readonly FieldError[] {
  const [now, before] = [spec.ipFamilies ?? [], old.ipFamilies ?? []];
  const first = index(FAMILIES, 0);
  if (now.length === before.length) {
    return validateEach(before, (family, i) => (family === now[i] ? [] : [invalidField(first, now, ONCE)]));
  }
  const errors: FieldError[] = [];
  if (before.length > now.length && (spec.clusterIPs ?? []).length === 0) {
    errors.push(invalidField(first, now, "primary ipFamily can not be unset"));
  }
  if (now.length > 0 && before.length > 0 && now[0] !== before[0]) {
    errors.push(invalidField(first, spec.clusterIPs, ONCE));
  }
  if (before.length > now.length && now.length === 1 && spec.ipFamilyPolicy !== "SingleStack") {
    const detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
    errors.push(invalidField(POLICY, spec.ipFamilyPolicy, detail));
  }
  return errors;
}
