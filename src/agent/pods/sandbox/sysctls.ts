/** Kernel parameters that pods may set: the safe ones, and those that the node allows. */
import type { Pod } from "../../../api/core/pod/schema.ts";

type Namespace = "ipc" | "net";

/** Sysctls that affect only the pod; the node must allow others. */
const SAFE_SYSCTLS: ReadonlySet<string> = new Set([
  "kernel.shm_rmid_forced",
  "net.ipv4.ip_local_port_range",
  "net.ipv4.tcp_syncookies",
  "net.ipv4.ping_group_range",
  "net.ipv4.ip_unprivileged_port_start",
  "net.ipv4.ip_local_reserved_ports",
  "net.ipv4.tcp_keepalive_time",
  "net.ipv4.tcp_fin_timeout",
  "net.ipv4.tcp_keepalive_intvl",
  "net.ipv4.tcp_keepalive_probes",
  "net.ipv4.tcp_rmem",
  "net.ipv4.tcp_wmem",
]);

/**
 * The name with dots as separators. With slashes as separators, a dot is part of a component:
 * `net/ipv4/conf/eth0.7/rp_filter` is `net.ipv4.conf.eth0/7.rp_filter`.
 */
export function normalizeSysctlName(name: string): string {
  const separator = /[./]/.exec(name)?.[0];
  if (separator !== "/") return name;
  return name.replace(/[./]/g, (each) => (each === "/" ? "." : "/"));
}

/** The parameters in the pod's spec: name → value. */
export function podSysctls(pod: Pod): Readonly<Record<string, string>> {
  const all = pod.spec?.securityContext?.sysctls ?? [];
  return Object.fromEntries(all.map(({ name, value }) => [normalizeSysctlName(name), value]));
}

/**
 * Why the pod's sysctls are forbidden, in Kubernetes' text; undefined when they are allowed. `allowed` contains names,
 * and prefixes of names followed by `*`.
 */
export function findForbiddenSysctl(pod: Pod, allowed: readonly string[]): string | undefined {
  for (const name of Object.keys(podSysctls(pod))) {
    if (!SAFE_SYSCTLS.has(name) && !allowed.some((pattern) => matchesPattern(normalizeSysctlName(pattern), name))) {
      return `forbidden sysctl: "${name}" not allowlisted`;
    }
    const namespace = namespaceOf(name);
    const isShared = namespace === "ipc" ? pod.spec?.hostIPC === true : pod.spec?.hostNetwork === true;
    if (isShared) return `forbidden sysctl: "${name}" not allowed with host ${namespace} enabled`;
  }
  return undefined;
}

/** Throws for a pattern that allows pods to change the node itself. */
export function validateAllowedSysctls(patterns: readonly string[]): void {
  const wrong = patterns.filter((pattern) => namespaceOf(normalizeSysctlName(pattern)) === undefined);
  if (wrong.length === 0) return;
  const which = wrong.map((pattern) => JSON.stringify(pattern)).join(", ");
  throw new Error(`Cannot allow sysctls ${which}: they are not known to be namespaced`);
}

function matchesPattern(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/** The namespace of the parameter; undefined for a parameter of the whole node. */
function namespaceOf(name: string): Namespace | undefined {
  if (name.startsWith("net.")) return "net";
  const isIpc = name === "kernel.sem" || /^(kernel\.(shm|msg)|fs\.mqueue\.)/.test(name);
  return isIpc ? "ipc" : undefined;
}
