/** Contents of a pod's /etc/resolv.conf and /etc/hosts. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { DNSConfig } from "../../runtime/cri/shared.ts";
import { podFullName, podName, podNamespace } from "../pod-fields.ts";

export interface DnsSettings {
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  /** Content of the node's resolver file. */
  readonly resolvConf: string;
  /** Addresses of the node when it has no such file by its configuration: pods query themselves, as with kubelet. */
  readonly ownAddresses?: readonly string[] | undefined;
}

export interface DnsWarning {
  readonly reason: "MissingClusterDNS" | "DNSConfigForming";
  readonly message: string;
  /** The message of an event of the node; undefined: there is none. */
  readonly nodeMessage?: string;
}

export interface PodDns {
  readonly config: DNSConfig;
  readonly warnings: readonly DnsWarning[];
}

/** libc reads at most three. */
const NAMESERVERS_MAX = 3;
export const SEARCHES_MAX = 32;
/** All search paths together, with the spaces between them. */
export const SEARCH_CHARACTERS_MAX = 2048;
/** Of one search path; some resolvers abort on longer ones. */
export const NAME_CHARACTERS_MAX = 253;
const HOSTNAME_CHARACTERS_MAX = 63;
const KERNEL_NAME_MAX = 64;

interface Resolver {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

export function makePodDns(pod: Pod, settings: DnsSettings): PodDns {
  const warnings: DnsWarning[] = [];
  const base = chooseBaseResolver(pod, settings, warnings);
  const merged = mergePodConfig(base, pod);
  const servers = merged.servers.slice(0, NAMESERVERS_MAX);
  if (servers.length < merged.servers.length) {
    warnings.push({
      reason: "DNSConfigForming",
      message:
        "Nameserver limits were exceeded, some nameservers have been omitted, " +
        `the applied nameserver line is: ${servers.join(" ")}`,
    });
  }
  const searches = limitSearches(merged.searches);
  if (searches.length < merged.searches.length) {
    warnings.push({
      reason: "DNSConfigForming",
      message:
        "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " +
        searches.join(" "),
    });
  }
  return { config: { servers, searches, options: merged.options }, warnings };
}

function chooseBaseResolver(pod: Pod, settings: DnsSettings, warnings: DnsWarning[]): Resolver {
  const { ownAddresses } = settings;
  const host = ownAddresses === undefined ? parseResolvConf(settings.resolvConf) : makeLoopbackResolver(ownAddresses);
  const policy = pod.spec?.dnsPolicy ?? "ClusterFirst";
  if (policy === "None") return { servers: [], searches: [], options: [] };
  const cluster = policy === "ClusterFirstWithHostNet" || (policy === "ClusterFirst" && pod.spec?.hostNetwork !== true);
  if (!cluster) return host;
  if (settings.clusterDns.length === 0) {
    const nodeMessage =
      'svclet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. ' +
      'Falling back to "Default" policy.';
    const message = `pod: "${podFullName(pod)}". ${nodeMessage}`;
    warnings.push({ reason: "MissingClusterDNS", message, nodeMessage });
    return host;
  }
  const domain = settings.clusterDomain;
  const own = domain === "" ? [] : [`${podNamespace(pod)}.svc.${domain}`, `svc.${domain}`, domain];
  const searches = ownAddresses === undefined ? host.searches : [];
  return { servers: settings.clusterDns, searches: unique([...own, ...searches]), options: ["ndots:5"] };
}

function makeLoopbackResolver(addresses: readonly string[]): Resolver {
  const servers = unique(addresses.map((each) => (each.includes(":") ? "::1" : "127.0.0.1")));
  return { servers: servers.length === 0 ? ["127.0.0.1"] : servers, searches: ["."], options: [] };
}

function mergePodConfig(base: Resolver, pod: Pod): Resolver {
  const config = pod.spec?.dnsConfig;
  if (config === undefined) return base;
  const options = new Map(base.options.map((option) => [nameOfOption(option), option]));
  for (const { name = "", value } of config.options ?? []) {
    options.set(name, value === undefined || value === "" ? name : `${name}:${value}`);
  }
  return {
    servers: unique([...base.servers, ...(config.nameservers ?? [])]),
    searches: unique([...base.searches, ...(config.searches ?? [])]),
    options: [...options.values()],
  };
}

function limitSearches(searches: readonly string[]): readonly string[] {
  const kept = searches.slice(0, SEARCHES_MAX).filter((each) => each.length <= NAME_CHARACTERS_MAX);
  while (kept.join(" ").length > SEARCH_CHARACTERS_MAX) kept.pop();
  return kept;
}

function unique(items: readonly string[]): readonly string[] {
  return [...new Set(items)];
}

function nameOfOption(option: string): string {
  return option.split(":")[0] ?? "";
}

/** Options of several lines count, the last value of each; of search lines only the last. */
export function parseResolvConf(text: string): Resolver {
  const servers: string[] = [];
  let searches: readonly string[] = [];
  const options = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [word, ...rest] = line
      .replace(/[#;].*$/, "")
      .trim()
      .split(/\s+/);
    if (word === "nameserver" && rest[0] !== undefined) servers.push(rest[0]);
    if (word === "search") searches = rest.map((each) => (each === "." ? each : each.replace(/\.$/, "")));
    if (word === "options") for (const each of rest) options.set(nameOfOption(each), each);
  }
  return { servers, searches, options: [...options.values()] };
}

/** The pod's host name (at most 63 characters, no trailing dash or dot) and its domain, which may be empty. */
export function hostnameOf(pod: Pod, clusterDomain: string): { readonly hostname: string; readonly domain: string } {
  const name = pod.spec?.hostname ?? podName(pod);
  const hostname = name.slice(0, HOSTNAME_CHARACTERS_MAX).replace(/[-.]+$/, "");
  const subdomain = pod.spec?.subdomain;
  const domain =
    subdomain === undefined || subdomain === "" ? "" : `${subdomain}.${podNamespace(pod)}.svc.${clusterDomain}`;
  return { hostname, domain };
}

/** The host name in the pod's kernel. Throws with Kubernetes' text when it exceeds the kernel's limit. */
export function makeKernelHostname(pod: Pod, clusterDomain: string): string {
  const { hostname, domain } = hostnameOf(pod, clusterDomain);
  if (pod.spec?.setHostnameAsFQDN !== true || domain === "") return hostname;
  const name = `${hostname}.${domain}`;
  if (name.length <= KERNEL_NAME_MAX) return name;
  throw new Error(
    `failed to construct FQDN from pod hostname and cluster domain, FQDN ${name} is too long ` +
      `(${KERNEL_NAME_MAX} characters is the max, ${name.length} characters requested)`,
  );
}

/** `hostFile` is the node's own file, for pods on the host's network. */
export function makeHostsFile(pod: Pod, clusterDomain: string, podIps: readonly string[], hostFile: string): string {
  const { hostname, domain } = hostnameOf(pod, clusterDomain);
  const names = domain === "" ? hostname : `${hostname}.${domain}\t${hostname}`;
  const head =
    pod.spec?.hostNetwork === true
      ? `# Kubernetes-managed hosts file (host network).\n${hostFile}`
      : [
          "# Kubernetes-managed hosts file.",
          "127.0.0.1\tlocalhost",
          "::1\tlocalhost ip6-localhost ip6-loopback",
          "fe00::0\tip6-localnet",
          "fe00::0\tip6-mcastprefix",
          "fe00::1\tip6-allnodes",
          "fe00::2\tip6-allrouters",
          ...podIps.map((ip) => `${ip}\t${names}`),
          "",
        ].join("\n");
  const aliases = pod.spec?.hostAliases ?? [];
  if (aliases.length === 0) return head;
  const lines = aliases.map((alias) => `${alias.ip}\t${(alias.hostnames ?? []).join("\t")}`);
  return `${head}\n# Entries added by HostAliases.\n${lines.join("\n")}\n`;
}
