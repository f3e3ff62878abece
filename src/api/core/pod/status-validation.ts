/** Rules for updates of a pod's status. */
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  invalidUnquoted,
  notSupported,
  unquoted,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { parseIp } from "../../../std/net/ip.ts";
import { validateLegacyIp } from "../../meta/validation/ip.ts";
import { dns1123Subdomain, qualifiedName, validateName } from "../../meta/validation/names.ts";
import type { Container } from "../container/schema.ts";
import { validateId } from "../container/security-context-validation.ts";
import type { ContainerStatus } from "../container/status.ts";
import { hasInvalidDeletionCost, validatePodAnnotations } from "../pod-spec/annotation-validation.ts";
import type { PodSpec } from "../pod-spec/schema.ts";
import type { Pod, PodStatus } from "./schema.ts";
import { validateAnnotationUpdate } from "./update-validation.ts";

const NO_SPEC: PodSpec = { containers: [] };
const SYSTEM_CONDITIONS = new Set(["PodScheduled", "PodReady", "Ready", "Initialized"]);

export function validatePodStatusUpdate(next: Pod, previous: Pod): readonly FieldError[] {
  const [status, before] = [next.status ?? {}, previous.status ?? {}];
  const { nominatedNodeName = "", qosClass = "" } = status;
  const nominated = nominatedNodeName !== (before.nominatedNodeName ?? "") && nominatedNodeName !== "";
  return [
    ...validateAnnotationUpdate(next.metadata, previous.metadata),
    ...validatePodAnnotations(next.metadata ?? {}, next.spec ?? NO_SPEC, "metadata.annotations", {
      allowInvalidDeletionCost: hasInvalidDeletionCost(previous.metadata),
    }),
    ...validateEach(status.conditions ?? [], ({ type }, i) =>
      SYSTEM_CONDITIONS.has(type) ? [] : validateName(`${index("status.conditions", i)}.Type`, type, qualifiedName),
    ),
    ...(nominated ? validateName("status.nominatedNodeName", nominatedNodeName, dns1123Subdomain) : []),
    ...(qosClass === (before.qosClass ?? "") ? [] : [invalidField("status.qosClass", qosClass, "field is immutable")]),
    ...validateTerminatedContainers(status, before, previous.spec),
    ...validateClaimStatuses(status, next.spec ?? NO_SPEC),
    ...validatePodIps((status.podIPs ?? []).map(({ ip }) => ip)),
    ...validateHostIps(status),
    ...validateContainerUsers(status, next.spec?.os?.name === "windows"),
    ...validateResourceHealth(status, next.spec ?? NO_SPEC),
  ];
}

/** Rules for the users that containers run as. */
function validateContainerUsers(status: PodStatus, windows: boolean): readonly FieldError[] {
  const lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] as const;
  return validateEach(lists, (list) =>
    validateEach(status[list] ?? [], ({ user }, i) => {
      const linux = user?.linux;
      const at = child(index(`status.${list}`, i), "linux");
      if (linux === undefined) return [];
      if (windows) return [forbiddenField(at, "cannot be set for a windows pod")];
      return [
        ...validateId(linux.uid, child(at, "uid")),
        ...validateId(linux.gid, child(at, "gid")),
        ...validateEach(linux.supplementalGroups ?? [], (group, groupIndex) =>
          validateId(group, index(child(at, "supplementalGroups"), groupIndex)),
        ),
      ];
    }),
  );
}

/** Each entry is of a claim of the pod. */
function validateClaimStatuses({ resourceClaimStatuses = [] }: PodStatus, spec: PodSpec): readonly FieldError[] {
  const known = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  const seen = new Set<string>();
  return validateEach(resourceClaimStatuses, ({ name, resourceClaimName }, i) => {
    const at = child(index("status.resourceClaimStatuses", i), "name");
    return [
      ...(known.has(name) ? [] : [invalidField(at, name, "must match the name of an entry in `spec.resourceClaims`")]),
      ...(seen.size === seen.add(name).size ? [duplicateField(at, name)] : []),
      ...(resourceClaimName === undefined ? [] : validateName(at, resourceClaimName, dns1123Subdomain)),
    ];
  });
}

const HEALTHS = ["Healthy", "Unhealthy", "Unknown"];

/** The health of allocated devices: of resources and claims that the container requests. */
function validateResourceHealth(status: PodStatus, spec: PodSpec): readonly FieldError[] {
  const forbidden = "must not be specified in container status";
  return [
    ...validateDeviceHealth(status.containerStatuses, spec.containers, "status.containerStatuses"),
    ...validateDeviceHealth(status.initContainerStatuses, spec.initContainers, "status.initContainerStatuses"),
    ...validateEach(status.ephemeralContainerStatuses ?? [], ({ allocatedResourcesStatus = [] }, i) =>
      allocatedResourcesStatus.length === 0
        ? []
        : [forbiddenField(child(index("status.ephemeralContainerStatuses", i), "allocatedResourcesStatus"), forbidden)],
    ),
  ];
}

function validateDeviceHealth(
  statuses: readonly ContainerStatus[] = [],
  containers: readonly Container[] = [],
  path: string,
): readonly FieldError[] {
  const byName = new Map(containers.toReversed().map((container) => [container.name, container]));
  return validateEach(statuses, ({ name, allocatedResourcesStatus = [] }, i) => {
    const container = byName.get(name);
    return validateEach(allocatedResourcesStatus, (allocated, j) => {
      const at = index(child(index(path, i), "allocatedResourcesStatus"), j);
      const seen = new Set<string>();
      return [
        ...(container === undefined ? [] : validateAllocatedName(allocated.name, container, child(at, "name"))),
        ...validateEach(allocated.resources ?? [], ({ resourceID, health = "" }, k) => {
          const device = index(child(at, "resources"), k);
          const repeated = seen.size === seen.add(resourceID).size;
          return [
            ...(HEALTHS.includes(health) ? [] : [notSupported(child(device, "health"), health, HEALTHS)]),
            ...(repeated ? [duplicateField(child(device, "resourceID"), resourceID)] : []),
          ];
        }),
      ];
    });
  });
}

const CLAIM_PREFIX = "claim:";

function validateAllocatedName(name: string, { resources }: Container, path: string): readonly FieldError[] {
  if (!name.startsWith(CLAIM_PREFIX)) {
    const isRequested = Object.hasOwn(resources?.requests ?? {}, name);
    return isRequested ? [] : [invalidUnquoted(path, name, "must match one of the container's resource requests")];
  }
  const claims = (resources?.claims ?? []).map((claim) =>
    claim.request ? `${claim.name}/${claim.request}` : claim.name,
  );
  if (claims.includes(name.slice(CLAIM_PREFIX.length))) return [];
  const detail =
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
  return [invalidUnquoted(path, name, detail)];
}

/** A terminated container that is not restarted must stay terminated. */
function validateTerminatedContainers(
  next: PodStatus,
  previous: PodStatus,
  spec: PodSpec | undefined,
): readonly FieldError[] {
  const policy = spec?.restartPolicy ?? "Always";
  const sidecars = new Set(
    (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always").map(({ name }) => name),
  );
  const mayRestart = ({ name, state }: ContainerStatus): boolean =>
    policy === "Always" || sidecars.has(name) || (policy === "OnFailure" && state?.terminated?.exitCode !== 0);
  const never = (): boolean => false;
  return [
    ...validateStaysTerminated(
      next.containerStatuses,
      previous.containerStatuses,
      "status.containerStatuses",
      mayRestart,
    ),
    ...validateStaysTerminated(
      next.initContainerStatuses,
      previous.initContainerStatuses,
      "status.initContainerStatuses",
      mayRestart,
    ),
    ...validateStaysTerminated(
      next.ephemeralContainerStatuses,
      previous.ephemeralContainerStatuses,
      "status.ephemeralContainerStatuses",
      never,
    ),
  ];
}

function validateStaysTerminated(
  next: readonly ContainerStatus[] = [],
  previous: readonly ContainerStatus[] = [],
  path: string,
  mayRestart: (status: ContainerStatus) => boolean,
): readonly FieldError[] {
  const running = new Set(next.filter(({ state }) => state?.terminated === undefined).map(({ name }) => name));
  return validateEach(previous, (old, i) => {
    if (old.state?.terminated === undefined || mayRestart(old)) return [];
    const restarted = running.has(old.name);
    const at = child(index(path, i), "state");
    return restarted ? [forbiddenField(at, "may not be transitioned to non-terminated state")] : [];
  });
}

const ONE_PER_FAMILY = "may specify no more than one IP for each IP family";

function validatePodIps(ips: readonly string[]): readonly FieldError[] {
  return [
    ...validateEach(ips, (ip, i) => validateLegacyIp(ip, index("status.podIPs", i))),
    ...validateFamilies(ips, "status.podIPs", "PodIP"),
    ...validateUniqueIps(ips, "status.podIPs", "PodIP"),
  ];
}

function validateHostIps({ hostIP = "", hostIPs = [] }: PodStatus): readonly FieldError[] {
  const ips = hostIPs.map(({ ip }) => ip);
  const [first] = ips;
  return [
    ...(first === undefined || first === hostIP
      ? []
      : [invalidField("status.hostIPs[0].ip", first, "must be equal to `hostIP`")]),
    ...validateEach(ips, (ip, i) => validateLegacyIp(ip, index("status.hostIPs", i))),
    ...validateUniqueIps(ips, "status.hostIPs", "HostIP"),
    ...validateFamilies(ips, "status.hostIPs", "HostIP"),
  ];
}

/** As Go prints the address: `core.PodIP{IP:"10.0.0.1"}`. */
function formatGoIp(type: string, ip: string): string {
  return `core.${type}{IP:${goQuote(ip)}}`;
}

/** At most one address of each family. */
function validateFamilies(ips: readonly string[], path: string, type: string): readonly FieldError[] {
  if (ips.length < 2) return [];
  const families = ips.map((ip) => parseIp(ip)?.family);
  const unread = families.indexOf(undefined);
  const detail = `failed to check for dual stack with error:invalid IP[${unread}]: <nil>`;
  const valid = unread < 0 && ips.length === 2 && families[0] !== families[1];
  const value = unquoted(`[]core.${type}{${ips.map((ip) => formatGoIp(type, ip)).join(", ")}}`);
  return [
    ...(unread < 0 ? [] : [{ type: "InternalError", field: path, detail } as const]),
    ...(valid ? [] : [invalidField(path, value, ONE_PER_FAMILY)]),
  ];
}

function validateUniqueIps(ips: readonly string[], path: string, type: string): readonly FieldError[] {
  const seen = new Set<string>();
  return validateEach(ips, (ip, i) =>
    seen.size === seen.add(ip).size ? [duplicateField(index(path, i), unquoted(formatGoIp(type, ip)))] : [],
  );
}
