/** Rules that a gate adds to those of a kind's strategy, while it has the value that makes validation stricter. */
import type { FeatureLookup } from "../../flags/gates.ts";
import {
  errorsMax,
  type FieldError,
  invalidField,
  notSupported,
  unstructured,
} from "../../schema/validation/field-error.ts";
import { parseCidr, parseIp } from "../../std/net/ip.ts";
import { type ApiObject, type Kind, storageKindOf } from "../kind.ts";
import { strictLegacyCidrProblems, strictLegacyIpProblems } from "../meta/validation/ip.ts";
import { dns1123Subdomain, strictEnvironmentName } from "../meta/validation/names.ts";
import { type FieldPath, listFields, parseFieldPath } from "./paths.ts";
import { podSpecPaths } from "./rules.ts";

/** `previous` is undefined for a new object. */
export type ValidateGated<T> = (object: T, previous: T | undefined) => readonly FieldError[];

interface GatedRule {
  /** Errors have the path of the object that contains the field. */
  readonly reportsParent?: true;
  readonly gate: string;
  /** The rule applies while the gate has this value. */
  readonly while: boolean;
  readonly paths: readonly string[];
  /**
   * Returns the problems of the value; `scope` is the object, or its pod spec. Values of the stored object are not
   * checked again.
   */
  readonly problems?: (value: string, scope: unknown) => readonly string[];
  /** The only values that the field may have; `ifStored`: when the stored object has any. */
  readonly supported?: { readonly values: readonly string[]; readonly ifStored: readonly string[] };
}

const CONTAINERS = ["containers", "initContainers", "ephemeralContainers"];

const SELINUX_CHANGE_POLICY = "securityContext.seLinuxChangePolicy";
const CHANGE_POLICIES = ["MountOption", "Recursive"];

const podSpecRules: readonly GatedRule[] = [
  {
    gate: "RelaxedEnvironmentVariableValidation",
    while: false,
    paths: CONTAINERS.flatMap((list) => [`${list}[].env[].name`, `${list}[].envFrom[].prefix`]),
    problems: strictEnvironmentName,
  },
  {
    gate: "RelaxedDNSSearchValidation",
    while: false,
    paths: ["dnsConfig.searches[]"],
    problems: (search) => dns1123Subdomain(search.replace(/\.$/, "")),
  },
  {
    gate: "PodLifecycleSleepActionAllowZero",
    while: false,
    paths: CONTAINERS.flatMap((list) => [
      `${list}[].lifecycle.preStop.sleep.seconds`,
      `${list}[].lifecycle.postStart.sleep.seconds`,
    ]),
    problems: (seconds, spec) => (Number(seconds) === 0 ? [zeroSleepProblem(spec)] : []),
    reportsParent: true,
  },
  {
    gate: "VolumeAttributesClass",
    while: true,
    paths: ["volumes[].ephemeral.volumeClaimTemplate.spec.volumeAttributesClassName"],
    problems: dns1123Subdomain,
  },
  strictIps("hostAliases[].ip", "dnsConfig.nameservers[]"),
  {
    gate: "SELinuxMount",
    while: false,
    paths: [SELINUX_CHANGE_POLICY],
    supported: { values: ["Recursive"], ifStored: CHANGE_POLICIES },
  },
  {
    gate: "SELinuxMount",
    while: true,
    paths: [SELINUX_CHANGE_POLICY],
    supported: { values: CHANGE_POLICIES, ifStored: CHANGE_POLICIES },
  },
];

function zeroSleepProblem(spec: unknown): string {
  const { terminationGracePeriodSeconds: most = 30 } = spec as { readonly terminationGracePeriodSeconds?: number };
  return (
    `must be greater than 0 and less than terminationGracePeriodSeconds (${most}). ` +
    "Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
  );
}

/** The rules of the strategy reject text that is no address at all. */
function strictIps(...paths: readonly string[]): GatedRule {
  const problems = (text: string) => (parseIp(text) === undefined ? [] : strictLegacyIpProblems(text));
  return { gate: "StrictIPCIDRValidation", while: true, paths, problems };
}

function strictCidrs(...paths: readonly string[]): GatedRule {
  const problems = (text: string) => (parseCidr(text) === undefined ? [] : strictLegacyCidrProblems(text));
  return { gate: "StrictIPCIDRValidation", while: true, paths, problems };
}

const rulesByResource: Readonly<Record<string, readonly GatedRule[]>> = {
  "/nodes": [strictCidrs("spec.podCIDRs[]")],
  "/pods": [{ ...strictIps("status.podIPs[].ip", "status.hostIPs[].ip"), reportsParent: true }],
  "/services": [
    strictIps("spec.clusterIPs[]", "spec.externalIPs[]", "status.loadBalancer.ingress[].ip"),
    strictCidrs("spec.loadBalancerSourceRanges[]"),
  ],
  "/endpoints": [strictIps("subsets[].addresses[].ip", "subsets[].notReadyAddresses[].ip")],
  "networking.svc.io/ingresses": [strictIps("status.loadBalancer.ingress[].ip")],
  "discovery.svc.io/endpointslices": [strictIps("endpoints[].addresses[]")],
  "networking.svc.io/networkpolicies": [
    strictCidrs(
      ...["spec.ingress[].from[].ipBlock", "spec.egress[].to[].ipBlock"].flatMap((block) => [
        `${block}.cidr`,
        `${block}.except[]`,
      ]),
    ),
  ],
};

/** Undefined when no rule applies to the kind. */
export function createValidateGated<T extends ApiObject>(
  kind: Kind<T>,
  features: FeatureLookup,
): ValidateGated<T> | undefined {
  if (kind.custom) return undefined;
  const { group, plural } = storageKindOf(kind);
  const resource = `${group}/${plural}`;
  const podSpec = podSpecPaths[resource];
  const inPodSpec = podSpec === undefined ? [] : podSpecRules.map((rule) => compile(rule, features, `${podSpec}.`));
  const own = (rulesByResource[resource] ?? []).map((rule) => compile(rule, features, ""));
  const checks = [...inPodSpec, ...own].filter((check) => check !== undefined);
  if (checks.length === 0) return undefined;
  return (object, previous) => checks.flatMap((check) => check(object, previous));
}

type Members = Readonly<Record<string, unknown>>;
type Check = (object: unknown, previous: unknown) => readonly FieldError[];

function compile(rule: GatedRule, features: FeatureLookup, scope: string): Check | undefined {
  if (features.has(rule.gate) !== rule.while) return undefined;
  const paths = rule.paths.map((path) => parseFieldPath(`${scope}${path}`));
  const within = scope.split(".").filter((name) => name !== "");
  return (object, previous) => {
    const kept = new Set(paths.flatMap((path) => valuesAt(previous, path)));
    const errors: FieldError[] = [];
    const inner = within.reduce<unknown>((value, name) => (value as Members | undefined)?.[name], object);
    for (const path of paths) {
      for (const [at, value] of listFields(object, path)) {
        if (kept.has(value)) continue;
        const supported = kept.size === 0 ? rule.supported?.values : rule.supported?.ifStored;
        if (supported?.includes(String(value)) === false) errors.push(notSupported(at, value, supported));
        if (value === "") continue;
        const field = rule.reportsParent ? at.slice(0, at.lastIndexOf(".")) : at;
        const problems = rule.problems?.(String(value), inner) ?? [];
        for (const problem of problems) errors.push(invalidField(field, unstructured(value), problem));
        if (errors.length >= errorsMax) return errors;
      }
    }
    return errors;
  };
}

function valuesAt(object: unknown, path: FieldPath): readonly unknown[] {
  return [...listFields(object, path)].map(([, value]) => value);
}
