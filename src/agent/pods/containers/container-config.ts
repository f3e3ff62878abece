/** Converts a container to the CRI ContainerConfig. */
import type { Container } from "../../../api/core/container/schema.ts";
import type { AppArmorProfile } from "../../../api/core/container/security-context.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { ContainerAssignment } from "../../resource-managers/resource-managers.ts";
import type { ContainerConfig, LinuxContainerSecurityContext } from "../../runtime/cri/container.ts";
import type { Image } from "../../runtime/cri/image.ts";
import type { Device, LinuxContainerResources, Mount, UserNamespace } from "../../runtime/cri/shared.ts";
import { annotations, labels } from "../../runtime/observation.ts";
import { logPath } from "../directories.ts";
import { expand, TextBudget } from "../environment/expansion.ts";
import { graceSeconds, podFullName } from "../pod-fields.ts";
import { makeContainerResources, type ResourceSettings } from "../resources/container-resources.ts";
import {
  makeNamespaceOptions,
  makePodLabels,
  makeSeccompProfile,
  makeSupplementalGroups,
} from "../sandbox/sandbox-config.ts";
import { containerHash } from "./container-hash.ts";
import { mergeDevices } from "./device-options.ts";
import { toRuntimeSignal } from "./stop-signals.ts";

export interface ContainerConfigInput {
  readonly pod: Pod;
  readonly container: Container;
  readonly restartCount: number;
  /** The runtime's id of the image. */
  readonly imageRef: string;
  readonly image: Image | undefined;
  readonly environment: ReadonlyMap<string, string>;
  readonly mounts: readonly Mount[];
  readonly devices?: readonly Device[];
  readonly cpu: ResourceSettings;
  /** CPUs and NUMA nodes of the container; undefined: all. */
  readonly assignment?: ContainerAssignment | undefined;
  readonly memoryCapacityBytes: number;
  readonly seccompDefault: boolean;
  readonly rootDir: string;
  /** Delay of the next restart, if the container has been restarted. */
  readonly restartDelayMs?: number | undefined;
  /** Id of the container whose PID namespace it joins; undefined for the pod's. */
  readonly targetId?: string | undefined;
  /** Undefined: the pod uses the node's user namespace. */
  readonly userNamespace?: UserNamespace | undefined;
  /** Of the pod's volumes. */
  readonly volumeGroups?: readonly number[];
}

/** As the kernel writes it. */
const NO_QUOTA = -1n;

/** Throws with Kubernetes' text when the security context cannot be satisfied, and when the command is too long. */
export function makeContainerConfig(input: ContainerConfigInput): ContainerConfig {
  const { pod, container, environment } = input;
  const budget = new TextBudget("the command with its arguments");
  const expandWords = (words: readonly string[] = []): readonly string[] =>
    words.map((word) => budget.add(expand(word, (name) => environment.get(name))));
  const stopSignal = toRuntimeSignal(container);
  verifyNonRoot(input);
  const allocated = mergeDevices(input.assignment?.devices ?? [], input.assignment?.cdiDevices ?? []);
  const devices = [...allocated.devices, ...(input.devices ?? [])];
  return {
    metadata: { name: container.name, attempt: input.restartCount },
    image: { image: input.imageRef, userSpecifiedImage: container.image },
    command: expandWords(container.command),
    args: expandWords(container.args),
    ...(container.workingDir === undefined ? {} : { workingDir: container.workingDir }),
    envs: [...allocated.envs, ...environment].map(([key, value]) => ({ key, value })),
    mounts: [...allocated.mounts, ...input.mounts],
    ...(devices.length === 0 ? {} : { devices }),
    ...(allocated.cdiDevices.length === 0 ? {} : { CDIDevices: allocated.cdiDevices }),
    labels: { ...makePodLabels(pod), [labels.containerName]: container.name },
    annotations: { ...allocated.annotations, ...makeAnnotations(input) },
    logPath: logPath(container.name, input.restartCount),
    ...(stopSignal === undefined ? {} : { stopSignal }),
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    linux: {
      resources: makeResources(input),
      securityContext: makeSecurityContext(input),
    },
  };
}

function makeResources({ pod, container, cpu, memoryCapacityBytes, assignment }: ContainerConfigInput) {
  const resources = makeContainerResources(pod, container, cpu, memoryCapacityBytes);
  return assignment === undefined ? resources : { ...resources, ...makeCpuset(resources, assignment) };
}

function makeCpuset(
  { cpuQuota }: LinuxContainerResources,
  { cpusetCpus, cpusetMems, isWithoutQuota }: ContainerAssignment,
): LinuxContainerResources {
  return {
    ...(cpusetCpus === "" ? {} : { cpusetCpus }),
    ...(cpusetMems === "" ? {} : { cpusetMems }),
    ...(isWithoutQuota && cpuQuota !== undefined ? { cpuQuota: NO_QUOTA } : {}),
  };
}

function makeAnnotations(input: ContainerConfigInput): Readonly<Record<string, string>> {
  const { pod, container, restartCount, restartDelayMs } = input;
  const preStop = container.lifecycle?.preStop;
  return {
    [annotations.hash]: containerHash(container),
    [annotations.restartCount]: String(restartCount),
    [annotations.terminationMessagePath]: container.terminationMessagePath ?? "/dev/termination-log",
    [annotations.terminationMessagePolicy]: container.terminationMessagePolicy ?? "File",
    [annotations.terminationGracePeriod]: String(pod.spec?.terminationGracePeriodSeconds ?? graceSeconds(pod)),
    ...(pod.metadata?.deletionGracePeriodSeconds === undefined
      ? {}
      : { [annotations.deletionGracePeriod]: String(pod.metadata.deletionGracePeriodSeconds) }),
    ...(restartDelayMs === undefined ? {} : { [annotations.restartDelay]: String(restartDelayMs) }),
    ...(preStop === undefined ? {} : { [annotations.preStopHandler]: JSON.stringify(preStop) }),
    ...((container.ports ?? []).length === 0 ? {} : { [annotations.ports]: JSON.stringify(container.ports) }),
  };
}

function verifyNonRoot(input: ContainerConfigInput): void {
  const { pod, container, image } = input;
  const nonRoot = container.securityContext?.runAsNonRoot ?? pod.spec?.securityContext?.runAsNonRoot;
  if (nonRoot !== true) return;
  const where = `(pod: "${podFullName(pod)}", container: ${container.name})`;
  const user = container.securityContext?.runAsUser ?? pod.spec?.securityContext?.runAsUser;
  if (user !== undefined) {
    if (user === 0) throw new Error(`container's runAsUser breaks non-root policy ${where}`);
    return;
  }
  const imageUser = image?.uid?.value;
  if (imageUser === 0n || (imageUser === undefined && (image?.username ?? "") === "")) {
    throw new Error(`container has runAsNonRoot and image will run as root ${where}`);
  }
  if (imageUser === undefined) {
    throw new Error(
      `container has runAsNonRoot and image has non-numeric user (${image?.username}), ` +
        `cannot verify user is non-root ${where}`,
    );
  }
}

/** Paths that the runtime masks in unprivileged containers. */
const maskedPaths = [
  "/proc/asound",
  "/proc/acpi",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];
const readonlyPaths = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

function makeSecurityContext(input: ContainerConfigInput): LinuxContainerSecurityContext {
  const { pod, container, image } = input;
  const own = container.securityContext ?? {};
  const shared = pod.spec?.securityContext ?? {};
  const privileged = own.privileged === true;
  const user = own.runAsUser ?? shared.runAsUser;
  const group = own.runAsGroup ?? shared.runAsGroup;
  const unmasked = privileged || own.procMount === "Unmasked";
  return {
    privileged,
    namespaceOptions: {
      ...makeNamespaceOptions(pod, input.userNamespace),
      ...(input.targetId === undefined ? {} : { pid: "TARGET" as const, targetId: input.targetId }),
    },
    capabilities: {
      addCapabilities: (own.capabilities?.add ?? []).map(String),
      dropCapabilities: (own.capabilities?.drop ?? []).map(String),
    },
    ...makeUserFields(user, image),
    ...(group === undefined ? {} : { runAsGroup: { value: BigInt(group) } }),
    readonlyRootfs: own.readOnlyRootFilesystem ?? false,
    ...makeSupplementalGroups(pod, input.volumeGroups),
    noNewPrivs: own.allowPrivilegeEscalation === false,
    maskedPaths: unmasked ? [] : maskedPaths,
    readonlyPaths: unmasked ? [] : readonlyPaths,
    seccomp: privileged
      ? { profileType: "Unconfined" }
      : makeSeccompProfile(own.seccompProfile ?? shared.seccompProfile, input.seccompDefault, input.rootDir),
    ...makeAppArmorFields(own.appArmorProfile ?? shared.appArmorProfile),
    ...makeSeLinuxFields(own.seLinuxOptions ?? shared.seLinuxOptions),
  };
}

function makeUserFields(
  user: number | undefined,
  image: Image | undefined,
): Pick<LinuxContainerSecurityContext, "runAsUser" | "runAsUsername"> {
  if (user !== undefined) return { runAsUser: { value: BigInt(user) } };
  if (image === undefined) return {};
  const { uid, username = "" } = image;
  // An image without a user runs as root. Runtimes refuse a group without a user.
  return uid === undefined && username !== ""
    ? { runAsUsername: username }
    : { runAsUser: { value: uid?.value ?? 0n } };
}

/** Sets both fields: older runtimes read only the deprecated `apparmorProfile`. */
function makeAppArmorFields(
  profile: AppArmorProfile | undefined,
): Pick<LinuxContainerSecurityContext, "apparmor" | "apparmorProfile"> {
  switch (profile?.type) {
    case undefined:
      return {};
    case "RuntimeDefault":
      return { apparmor: { profileType: "RuntimeDefault" }, apparmorProfile: "runtime/default" };
    case "Localhost": {
      const localhostRef = profile.localhostProfile ?? "";
      return { apparmor: { profileType: "Localhost", localhostRef }, apparmorProfile: `localhost/${localhostRef}` };
    }
    default:
      return { apparmor: { profileType: "Unconfined" }, apparmorProfile: "unconfined" };
  }
}

function makeSeLinuxFields(
  options: NonNullable<Container["securityContext"]>["seLinuxOptions"],
): Pick<LinuxContainerSecurityContext, "selinuxOptions"> {
  return options === undefined ? {} : { selinuxOptions: options };
}
