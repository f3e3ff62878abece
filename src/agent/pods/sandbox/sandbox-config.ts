/** Converts a pod to the CRI PodSandboxConfig. */
import type { ContainerPort } from "../../../api/core/container/schema.ts";
import type { SeccompProfile } from "../../../api/core/container/security-context.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { LinuxSandboxSecurityContext, PodSandboxConfig } from "../../runtime/cri/sandbox.ts";
import type {
  DNSConfig,
  NamespaceOption,
  PortMapping,
  SecurityProfile,
  UserNamespace,
} from "../../runtime/cri/shared.ts";
import { labels } from "../../runtime/observation.ts";
import { type Directories, podLogDir } from "../directories.ts";
import { allContainers, appContainers, podName, podNamespace, podUid } from "../pod-fields.ts";
import { type CgroupSettings, podCgroupParent } from "../resources/cgroup-names.ts";
import { makeKernelHostname } from "./dns.ts";
import { podSysctls } from "./sysctls.ts";

export interface SandboxConfigInput {
  readonly pod: Pod;
  readonly attempt: number;
  readonly dns: DNSConfig;
  readonly clusterDomain: string;
  readonly directories: Directories;
  readonly cgroups: CgroupSettings;
  /** Undefined: the pod uses the node's user namespace. */
  readonly userNamespace?: UserNamespace | undefined;
  /** Of the pod's volumes. */
  readonly volumeGroups?: readonly number[];
}

/** Throws with Kubernetes' text when the pod's name is too long for the kernel. */
export function makeSandboxConfig(input: SandboxConfigInput): PodSandboxConfig {
  const { pod } = input;
  const hostNetwork = pod.spec?.hostNetwork === true;
  const context = pod.spec?.securityContext;
  const sysctls = podSysctls(pod);
  return {
    metadata: { name: podName(pod), uid: podUid(pod), namespace: podNamespace(pod), attempt: input.attempt },
    ...(hostNetwork ? {} : { hostname: makeKernelHostname(pod, input.clusterDomain) }),
    logDirectory: podLogDir(input.directories, pod),
    dnsConfig: input.dns,
    portMappings: hostNetwork ? [] : makePortMappings(pod),
    labels: { ...pod.metadata?.labels, ...makePodLabels(pod) },
    annotations: pod.metadata?.annotations ?? {},
    linux: {
      cgroupParent: podCgroupParent(pod, input.cgroups),
      ...(Object.keys(sysctls).length === 0 ? {} : { sysctls }),
      securityContext: {
        namespaceOptions: makeNamespaceOptions(pod, input.userNamespace),
        seccomp: { profileType: "RuntimeDefault" },
        privileged: allContainers(pod).some(({ spec }) => spec.securityContext?.privileged === true),
        ...makeSupplementalGroups(pod, input.volumeGroups),
        ...(context?.seLinuxOptions === undefined ? {} : { selinuxOptions: context.seLinuxOptions }),
        ...(context?.runAsUser === undefined ? {} : { runAsUser: { value: BigInt(context.runAsUser) } }),
        ...(context?.runAsGroup === undefined || context.runAsUser === undefined
          ? {}
          : { runAsGroup: { value: BigInt(context.runAsGroup) } }),
      },
    },
  };
}

export function makePodLabels(pod: Pod): Readonly<Record<string, string>> {
  return {
    [labels.podName]: podName(pod),
    [labels.podNamespace]: podNamespace(pod),
    [labels.podUid]: podUid(pod),
  };
}

/** Each container has its own PID namespace unless the pod shares the node's or one of its own. */
export function makeNamespaceOptions(pod: Pod, usernsOptions?: UserNamespace): NamespaceOption {
  return {
    network: pod.spec?.hostNetwork === true ? "NODE" : "POD",
    pid: pod.spec?.hostPID === true ? "NODE" : pod.spec?.shareProcessNamespace === true ? "POD" : "CONTAINER",
    ipc: pod.spec?.hostIPC === true ? "NODE" : "POD",
    ...(usernsOptions === undefined ? {} : { usernsOptions }),
  };
}

/** `Strict` excludes the groups that the image defines. */
export function makeSupplementalGroups(
  pod: Pod,
  volumeGroups: readonly number[] = [],
): Pick<LinuxSandboxSecurityContext, "supplementalGroups" | "supplementalGroupsPolicy"> {
  const context = pod.spec?.securityContext;
  const own = context?.supplementalGroups ?? [];
  const extra = volumeGroups.filter((group) => !own.includes(group));
  const all = [...own, ...(context?.fsGroup === undefined ? [] : [context.fsGroup]), ...extra];
  const policy = context?.supplementalGroupsPolicy === "Strict" ? ("Strict" as const) : ("Merge" as const);
  return { supplementalGroups: all.map(BigInt), supplementalGroupsPolicy: policy };
}

function makePortMappings(pod: Pod): readonly PortMapping[] {
  const ports: readonly ContainerPort[] = [...(pod.spec?.initContainers ?? []), ...appContainers(pod)].flatMap(
    (container) => container.ports ?? [],
  );
  return ports.map((port) => ({
    protocol: port.protocol ?? "TCP",
    containerPort: port.containerPort,
    ...(port.hostPort === undefined ? {} : { hostPort: port.hostPort }),
    ...(port.hostIP === undefined ? {} : { hostIp: port.hostIP }),
  }));
}

/** Localhost profiles are below the agent's root directory, as in Kubernetes. */
export function makeSeccompProfile(
  profile: SeccompProfile | undefined,
  seccompDefault: boolean,
  rootDir: string,
): SecurityProfile {
  if (profile === undefined) return { profileType: seccompDefault ? "RuntimeDefault" : "Unconfined" };
  if (profile.type !== "Localhost") return { profileType: profile.type };
  return { profileType: "Localhost", localhostRef: `${rootDir}/seccomp/${profile.localhostProfile ?? ""}` };
}
