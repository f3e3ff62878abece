/** Rules for updates of a pod's status. */
import {
  duplicateField,
  type FieldError,
  forbiddenField,
  invalidField,
  unquoted,
  validateEach,
} from "../../../schema/validation/field-error.ts";
import { child, index } from "../../../schema/value/field-path.ts";
import { parseIp } from "../../../std/net/ip.ts";
import { validateLegacyIp } from "../../meta/validation/ip.ts";
import { dns1123Subdomain, qualifiedName, validateName } from "../../meta/validation/names.ts";
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
    ...validatePodIps((status.podIPs ?? []).map(({ ip }) => ip)),
    ...validateHostIps(status),
    ...validateContainerUsers(status, next.spec?.os?.name === "windows"),
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
    ...(isDualStack(ips) ? [] : [invalidField("status.podIPs", goIps("PodIP", ips), ONE_PER_FAMILY)]),
    ...validateUniqueIps(ips, "status.podIPs"),
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
    ...(isDualStack(ips) ? [] : [invalidField("status.hostIPs", goIps("HostIP", ips), ONE_PER_FAMILY)]),
    ...validateUniqueIps(ips, "status.hostIPs"),
  ];
}

/** As Go prints the list: `[]core.PodIP{core.PodIP{IP:"10.0.0.1"}}`. */
function goIps(type: string, ips: readonly string[]): unknown {
  const items = ips.map((ip) => `core.${type}{IP:${JSON.stringify(ip)}}`);
  return unquoted(`[]core.${type}{${items.join(", ")}}`);
}

/** Whether there is at most one address of each family. */
function isDualStack(ips: readonly string[]): boolean {
  if (ips.length < 2) return true;
  const families = new Set(ips.map((ip) => parseIp(ip)?.family));
  return ips.length === 2 && families.size === 2 && !families.has(undefined);
}

function validateUniqueIps(ips: readonly string[], path: string): readonly FieldError[] {
  const seen = new Set<string>();
  return validateEach(ips, (ip, i) => (seen.size === seen.add(ip).size ? [duplicateField(index(path, i), ip)] : []));
}
