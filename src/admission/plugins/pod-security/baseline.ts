/** The checks of the baseline level of the Pod Security Standards. */
import type { SELinuxOptions } from "../../../api/core/container/security-context.ts";
import {
  type Check,
  type CheckedPod,
  type CheckPod,
  containersOf,
  isRelaxed,
  namesText,
  namesWhere,
  pluralize,
  quoteList,
  settersOf,
  sortUnique,
} from "./check.ts";
import { checkSeccompProfiles, isConfined } from "./seccomp.ts";

const APP_ARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/";
const ALLOWED_CAPABILITIES: ReadonlySet<string> = new Set([
  "AUDIT_WRITE",
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "MKNOD",
  "NET_BIND_SERVICE",
  "SETFCAP",
  "SETGID",
  "SETPCAP",
  "SETUID",
  "SYS_CHROOT",
]);
const SE_LINUX_TYPES = ["", "container_t", "container_init_t", "container_kvm_t"];

const SYSCTLS = [
  "kernel.shm_rmid_forced",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.tcp_syncookies",
  "net.ipv4.ping_group_range",
  "net.ipv4.ip_unprivileged_port_start",
];
const SYSCTLS_27 = [...SYSCTLS, "net.ipv4.ip_local_reserved_ports"];
const SYSCTLS_29 = [
  ...SYSCTLS_27,
  "net.ipv4.tcp_keepalive_time",
  "net.ipv4.tcp_fin_timeout",
  "net.ipv4.tcp_keepalive_intvl",
  "net.ipv4.tcp_keepalive_probes",
];
const SYSCTLS_32 = [...SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

/** Sorted by id, the order of violations in messages. */
export const baseline: readonly Check[] = [
  { id: "appArmorProfile", versions: [[0, appArmorProfile]] },
  { id: "capabilities_baseline", versions: [[0, capabilities]] },
  { id: "hostNamespaces", versions: [[0, hostNamespaces]] },
  { id: "hostPathVolumes", versions: [[0, hostPathVolumes]] },
  { id: "hostPorts", versions: [[0, hostPorts]] },
  { id: "privileged", versions: [[0, privileged]] },
  { id: "procMount", versions: [[0, procMount]] },
  {
    id: "seLinuxOptions",
    versions: [
      [0, seLinux(SE_LINUX_TYPES)],
      [31, seLinux([...SE_LINUX_TYPES, "container_engine_t"])],
    ],
  },
  {
    id: "seccompProfile_baseline",
    versions: [
      [0, seccompAnnotations],
      [19, seccompProfile],
    ],
  },
  {
    id: "sysctls",
    versions: [
      [0, sysctls(SYSCTLS)],
      [27, sysctls(SYSCTLS_27)],
      [29, sysctls(SYSCTLS_29)],
      [32, sysctls(SYSCTLS_32)],
    ],
  },
  { id: "windowsHostProcess", versions: [[0, windowsHostProcess]] },
];

function appArmorProfile(pod: CheckedPod): ReturnType<CheckPod> {
  const own = pod.spec.securityContext?.appArmorProfile?.type;
  const isBad = (type: string | undefined): type is string => type !== undefined && !isConfined(type);
  const typeOf = ({ securityContext }: ReturnType<typeof containersOf>[number]) =>
    securityContext?.appArmorProfile?.type;
  const bad = namesWhere(pod, (container) => isBad(typeOf(container)));
  const annotations = Object.entries(pod.metadata.annotations ?? {})
    .filter(([name, value]) => name.startsWith(APP_ARMOR_PREFIX) && !isAllowedAppArmor(value))
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  const setters = [
    ...(isBad(own) || bad.length > 0 ? [settersOf(isBad(own), bad)] : []),
    ...(annotations.length > 0 ? [pluralize("annotation", annotations.length)] : []),
  ];
  if (setters.length === 0) return undefined;
  const types = sortUnique([own, ...containersOf(pod).map(typeOf)].filter((type) => isBad(type)));
  const values = [...types, ...sortUnique(annotations)];
  return {
    reason: pluralize("forbidden AppArmor profile", values.length),
    detail: `${setters.join(" and ")} must not set AppArmor profile type to ${quoteList(values)}`,
  };
}

function isAllowedAppArmor(value: string): boolean {
  return value === "" || value === "runtime/default" || value.startsWith("localhost/");
}

function capabilities(pod: CheckedPod): ReturnType<CheckPod> {
  return addedCapabilities(pod, "non-default capabilities", ALLOWED_CAPABILITIES);
}

/** Also used by the restricted level, with a shorter list. */
export function addedCapabilities(pod: CheckedPod, reason: string, allowed: ReadonlySet<string>): ReturnType<CheckPod> {
  const added = containersOf(pod).map(({ name, securityContext }) => ({
    name,
    forbidden: (securityContext?.capabilities?.add ?? []).filter((capability) => !allowed.has(capability)),
  }));
  const bad = added.filter(({ forbidden }) => forbidden.length > 0);
  if (bad.length === 0) return undefined;
  const who = namesText(
    "container",
    bad.map(({ name }) => name),
  );
  const what = quoteList(sortUnique(bad.flatMap(({ forbidden }) => forbidden)));
  return { reason, detail: `${who} must not include ${what} in securityContext.capabilities.add` };
}

function hostNamespaces({ spec }: CheckedPod): ReturnType<CheckPod> {
  const shared = (["hostNetwork", "hostPID", "hostIPC"] as const).filter((member) => spec[member] === true);
  if (shared.length === 0) return undefined;
  return { reason: "host namespaces", detail: shared.map((member) => `${member}=true`).join(", ") };
}

function hostPathVolumes({ spec }: CheckedPod): ReturnType<CheckPod> {
  const bad = (spec.volumes ?? []).filter(({ hostPath }) => hostPath !== undefined).map(({ name }) => name);
  return bad.length === 0 ? undefined : { reason: "hostPath volumes", detail: namesText("volume", bad) };
}

function hostPorts(pod: CheckedPod): ReturnType<CheckPod> {
  const portsOf = ({ ports = [] }: ReturnType<typeof containersOf>[number]) =>
    ports.map(({ hostPort = 0 }) => hostPort).filter((port) => port !== 0);
  const bad = namesWhere(pod, (container) => portsOf(container).length > 0);
  if (bad.length === 0) return undefined;
  const ports = sortUnique(containersOf(pod).flatMap(portsOf).map(String));
  const uses = `${bad.length === 1 ? "uses" : "use"} ${pluralize("hostPort", ports.length)}`;
  return { reason: "hostPort", detail: `${namesText("container", bad)} ${uses} ${ports.join(", ")}` };
}

function privileged(pod: CheckedPod): ReturnType<CheckPod> {
  const bad = namesWhere(pod, ({ securityContext }) => securityContext?.privileged === true);
  if (bad.length === 0) return undefined;
  const detail = `${namesText("container", bad)} must not set securityContext.privileged=true`;
  return { reason: "privileged", detail };
}

function procMount(pod: CheckedPod): ReturnType<CheckPod> {
  if (isRelaxed(pod)) return undefined;
  const mountOf = ({ securityContext }: ReturnType<typeof containersOf>[number]) =>
    securityContext?.procMount ?? "Default";
  const bad = namesWhere(pod, (container) => mountOf(container) !== "Default");
  if (bad.length === 0) return undefined;
  const types = sortUnique(
    containersOf(pod)
      .map(mountOf)
      .filter((type) => type !== "Default"),
  );
  const detail = `${namesText("container", bad)} must not set securityContext.procMount to ${quoteList(types)}`;
  return { reason: "procMount", detail };
}

function seLinux(allowed: readonly string[]): CheckPod {
  const isBad = ({ type = "", user = "", role = "" }: SELinuxOptions = {}) =>
    !allowed.includes(type) || user !== "" || role !== "";
  return (pod) => {
    const own = pod.spec.securityContext?.seLinuxOptions;
    const bad = namesWhere(pod, ({ securityContext }) => isBad(securityContext?.seLinuxOptions));
    if (!isBad(own) && bad.length === 0) return undefined;
    const all = [own, ...containersOf(pod).map(({ securityContext }) => securityContext?.seLinuxOptions)];
    const types = sortUnique(all.map((options) => options?.type ?? "").filter((type) => !allowed.includes(type)));
    const faults = [
      ...(types.length === 0 ? [] : [namesText("type", types)]),
      ...(all.some((options) => options?.user) ? ["user may not be set"] : []),
      ...(all.some((options) => options?.role) ? ["role may not be set"] : []),
    ];
    const verb = `set forbidden securityContext.seLinuxOptions: ${faults.join("; ")}`;
    return { reason: "seLinuxOptions", detail: `${settersOf(isBad(own), bad)} ${verb}` };
  };
}

/** For releases before the seccompProfile field. */
function seccompAnnotations(pod: CheckedPod): ReturnType<CheckPod> {
  const { annotations = {} } = pod.metadata;
  const names = [
    "seccomp.security.alpha.kubernetes.io/pod",
    ...containersOf(pod).map(({ name }) => `container.seccomp.security.alpha.kubernetes.io/${name}`),
  ];
  const isAllowed = (value: string) =>
    value === "runtime/default" || value === "docker/default" || value.startsWith("localhost/");
  const bad = sortUnique(
    names
      .filter((name) => Object.hasOwn(annotations, name) && !isAllowed(annotations[name] ?? ""))
      .map((name) => `${name}=${JSON.stringify(annotations[name])}`),
  );
  if (bad.length === 0) return undefined;
  return { reason: "seccompProfile", detail: `forbidden ${pluralize("annotation", bad.length)} ${bad.join(", ")}` };
}

function seccompProfile(pod: CheckedPod): ReturnType<CheckPod> {
  return checkSeccompProfiles(pod).forbidden;
}

function sysctls(allowed: readonly string[]): CheckPod {
  return ({ spec }) => {
    const bad = (spec.securityContext?.sysctls ?? []).map(({ name }) => name).filter((name) => !allowed.includes(name));
    return bad.length === 0 ? undefined : { reason: "forbidden sysctls", detail: bad.join(", ") };
  };
}

function windowsHostProcess(pod: CheckedPod): ReturnType<CheckPod> {
  const own = pod.spec.securityContext?.windowsOptions?.hostProcess === true;
  const bad = namesWhere(pod, ({ securityContext }) => securityContext?.windowsOptions?.hostProcess === true);
  if (!own && bad.length === 0) return undefined;
  const detail = `${settersOf(own, bad)} must not set securityContext.windowsOptions.hostProcess=true`;
  return { reason: "hostProcess", detail };
}
