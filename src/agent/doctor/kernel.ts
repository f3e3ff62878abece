/** The kernel: its version, and the features that runtimes and network plugins need. */
import { gunzipSync } from "node:zlib";
import { findKernelProblems } from "../node/machine/kernel-tunables.ts";
import { type Finding, finding, findingOf } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";

export interface KernelFacts {
  /** `6.1.0-18-amd64` */
  readonly release: string;
  /** Undefined: it cannot be determined. */
  readonly overlay: boolean | undefined;
  readonly bridge: boolean | undefined;
  readonly veth: boolean | undefined;
  /** Content of `bridge-nf-call-iptables`; undefined when br_netfilter is not loaded. */
  readonly bridgeNetfilter: string | undefined;
  readonly ipForward: string | undefined;
  readonly netfilter: boolean | undefined;
  readonly hasIptables: boolean;
  readonly hasNft: boolean;
  /** The programs `ip` and `bridge`. */
  readonly hasIproute: boolean;
  readonly vxlan: boolean | undefined;
  /** Undefined: the kernel has no user namespaces. */
  readonly userNamespacesMax: number | undefined;
  readonly seccompActions: string | undefined;
  /** Parameters that differ from those of `--protect-kernel-defaults`. */
  readonly parameters: readonly string[];
}

export interface KernelSettings {
  readonly seccompDefault: boolean;
  readonly protectKernelDefaults: boolean;
  readonly serviceProxy: boolean;
  /** Whether the agent configures the network of pods; undefined: not, `isOptional`: it starts without iproute2. */
  readonly podNetwork: { readonly isOptional: boolean } | undefined;
}

const RELEASE_MIN = [4, 19] as const;
const RELEASE_USABLE = [3, 10] as const;

export function checkKernel(facts: KernelFacts, settings: KernelSettings): readonly Finding[] {
  const { release, userNamespacesMax, seccompActions, parameters } = facts;
  return [
    checkRelease(release),
    checkFeature("kernel-overlayfs", "overlay", facts.overlay, "warning"),
    checkBridge(facts),
    checkBridgeNetfilter(facts.bridgeNetfilter),
    facts.ipForward === "1"
      ? finding("kernel-ip-forward", "ok", "net.ipv4.ip_forward is 1")
      : finding("kernel-ip-forward", "warning", `net.ipv4.ip_forward is ${facts.ipForward ?? "not readable"}`),
    checkIptables(facts),
    findingOf(
      "kernel-nftables",
      facts.hasNft ? "nft is installed" : "not needed",
      facts.hasNft || !settings.serviceProxy ? undefined : "nft is not installed",
      "error",
    ),
    checkPodNetwork(facts, settings),
    userNamespacesMax !== undefined && userNamespacesMax > 0
      ? finding("kernel-user-namespaces", "ok", `user.max_user_namespaces is ${userNamespacesMax}`)
      : finding(
          "kernel-user-namespaces",
          "warning",
          userNamespacesMax === 0 ? "user.max_user_namespaces is 0" : "the kernel has no user namespaces",
        ),
    findingOf(
      "kernel-seccomp",
      `actions: ${seccompActions?.trim()}`,
      seccompActions === undefined ? "the kernel has no seccomp filters" : undefined,
      settings.seccompDefault ? "error" : "warning",
    ),
    parameters.length > 0 && settings.protectKernelDefaults
      ? finding("kernel-parameters", "error", parameters.join("; "))
      : finding("kernel-parameters", "ok", settings.protectKernelDefaults ? "as expected" : "not enforced"),
  ];
}

function checkRelease(release: string): Finding {
  const [major = 0, minor = 0] = release.split(".").map((part) => Number.parseInt(part, 10));
  const isAtLeast = ([a, b]: readonly [number, number]): boolean => major > a || (major === a && minor >= b);
  if (isAtLeast(RELEASE_MIN)) return finding("kernel-version", "ok", release);
  return finding("kernel-version", isAtLeast(RELEASE_USABLE) ? "warning" : "error", `${release || "unknown"}`);
}

function checkFeature(
  id: "kernel-overlayfs" | "kernel-bridge",
  name: string,
  has: boolean | undefined,
  severity: "warning" | "error",
): Finding {
  if (has === undefined) return finding(id, "ok", `${name}: cannot be determined, neither loaded nor ruled out`);
  return findingOf(id, `the kernel has ${name}`, has ? undefined : `the kernel has no ${name}`, severity);
}

function checkBridge({ bridge, veth }: KernelFacts): Finding {
  const missing = bridge === false ? "bridge" : veth === false ? "veth" : undefined;
  if (missing !== undefined) return checkFeature("kernel-bridge", missing, false, "error");
  return checkFeature("kernel-bridge", "bridge and veth", bridge && veth, "error");
}

function checkBridgeNetfilter(value: string | undefined): Finding {
  const id = "kernel-br-netfilter";
  if (value === undefined) return finding(id, "warning", "br_netfilter is not loaded");
  return findingOf(
    id,
    "net.bridge.bridge-nf-call-iptables is 1",
    value === "1" ? undefined : `net.bridge.bridge-nf-call-iptables is ${value}`,
    "warning",
  );
}

function checkIptables({ hasIptables, netfilter }: KernelFacts): Finding {
  const id = "kernel-iptables";
  if (!hasIptables) return finding(id, "warning", "iptables is not installed");
  if (netfilter === false) return finding(id, "error", "iptables is installed, but the kernel has no packet rules");
  return finding(id, "ok", "iptables is installed");
}

function checkPodNetwork({ hasIproute, vxlan }: KernelFacts, { podNetwork }: KernelSettings): Finding {
  const id = "kernel-pod-network";
  if (podNetwork === undefined) return finding(id, "ok", "not needed");
  if (!hasIproute) return finding(id, podNetwork.isOptional ? "warning" : "error", "ip or bridge is not installed");
  if (vxlan === false) return finding(id, "warning", "the kernel has no vxlan");
  return finding(id, "ok", "ip and bridge are installed");
}

export async function readKernelFacts(host: HostReader): Promise<KernelFacts> {
  const release = ((await host.readText("/proc/sys/kernel/osrelease")) ?? "").trim();
  const kernel = await readKernelBuild(host, release);
  const has = (module: string, option: string) => findFeature(host, kernel, module, option);
  const filesystems = (await host.readText("/proc/filesystems")) ?? "";
  const userNamespaces = await trimmed(host, "/proc/sys/user/max_user_namespaces");
  return {
    release,
    overlay: /\toverlay$/m.test(filesystems) || (await has("overlay", "CONFIG_OVERLAY_FS")),
    bridge: await has("bridge", "CONFIG_BRIDGE"),
    veth: await has("veth", "CONFIG_VETH"),
    bridgeNetfilter: await trimmed(host, "/proc/sys/net/bridge/bridge-nf-call-iptables"),
    ipForward: await trimmed(host, "/proc/sys/net/ipv4/ip_forward"),
    netfilter: anyOf([
      (await host.readText("/proc/net/ip_tables_names")) !== undefined ? true : undefined,
      await has("nf_tables", "CONFIG_NF_TABLES"),
      await has("ip_tables", "CONFIG_IP_NF_IPTABLES"),
    ]),
    hasIptables: await host.hasProgram("iptables"),
    hasNft: await host.hasProgram("nft"),
    hasIproute: (await host.hasProgram("ip")) && (await host.hasProgram("bridge")),
    vxlan: await has("vxlan", "CONFIG_VXLAN"),
    userNamespacesMax: userNamespaces === undefined ? undefined : Number(userNamespaces),
    seccompActions: await host.readText("/proc/sys/kernel/seccomp/actions_avail"),
    parameters: await findKernelProblems(),
  };
}

interface KernelBuild {
  /** The options that it was built with; undefined: they are not on this machine. */
  readonly config: string | undefined;
  /** Names of the files of modules, and of what is built in. */
  readonly modules: string | undefined;
  readonly builtIn: string;
}

async function readKernelBuild(host: HostReader, release: string): Promise<KernelBuild> {
  const packed = await host.readBytes("/proc/config.gz");
  return {
    config: packed === undefined ? await host.readText(`/boot/config-${release}`) : unpack(packed),
    modules: await host.readText(`/lib/modules/${release}/modules.dep`),
    builtIn: (await host.readText(`/lib/modules/${release}/modules.builtin`)) ?? "",
  };
}

function unpack(packed: Buffer): string | undefined {
  try {
    return gunzipSync(packed, { maxOutputLength: 2 ** 24 }).toString("utf8");
  } catch {
    return undefined;
  }
}

/** Whether the kernel has the feature, built in or as a module that can be loaded. */
async function findFeature(
  host: HostReader,
  { config, modules, builtIn }: KernelBuild,
  module: string,
  option: string,
): Promise<boolean | undefined> {
  if ((await host.stat(`/sys/module/${module}`)) !== undefined) return true;
  const file = new RegExp(`/${module}\\.ko\\b`);
  if (file.test(builtIn) || file.test(modules ?? "")) return true;
  const value = new RegExp(`^${option}=([ym])$`, "m").exec(config ?? "")?.[1];
  if (value === "y") return true;
  // Built as a module, but without files of modules, it may be on another file system.
  if (config !== undefined && value === undefined) return false;
  return modules === undefined ? undefined : false;
}

/** True if one is, undefined if none is and one is unknown. */
function anyOf(values: readonly (boolean | undefined)[]): boolean | undefined {
  return values.includes(true) ? true : values.includes(undefined) ? undefined : false;
}

async function trimmed(host: HostReader, path: string): Promise<string | undefined> {
  return (await host.readText(path))?.trim();
}
