import { parseForwardRule } from "../../dns/forward/forward-rule.ts";
import { flag, section } from "../../flags/flag.ts";
import { strings } from "../../flags/types/list.ts";
import { cidrs, ips, podCidr } from "../../flags/types/network.ts";
import { isSysctlPattern } from "../../flags/types/node.ts";
import { int, int32 } from "../../flags/types/number.ts";
import { bool, file, oneOf, text } from "../../flags/types/text.ts";
import { inFile } from "./deprecation.ts";

/** The value of `--dns-forward`, of `svc up` too. */
export const forwardRules = strings({
  element: "ADDRESS, ADDRESS:PORT or DOMAIN=ADDRESS:PORT of a DNS server",
  accepts: (text) => parseForwardRule(text) !== undefined,
  sample: "192.0.2.53,corp.example=[2001:db8::53]:5353",
  wrong: "dns.example",
});

export const DNS_FORWARD =
  "DNS servers of names outside of the cluster, each ADDRESS[:PORT], or DOMAIN=ADDRESS[:PORT] for the names of one " +
  "domain; empty for those in --resolv-conf.";

export const networkingFlags = section("Networking, DNS and misc", {
  "cluster-dns": flag(
    ips,
    [],
    "DNS server IPs for pods with dnsPolicy: ClusterFirst; all listed servers must serve identical records; " +
      "which one is queried is not guaranteed.",
    { config: "clusterDNS", deprecated: inFile },
  ),
  "cluster-domain": flag(text, "", "Cluster domain added to containers' search domains.", {
    config: "clusterDomain",
    deprecated: inFile,
  }),
  "resolv-conf": flag(file, "/etc/resolv.conf", "Base resolver config for containers.", {
    config: "resolvConf",
    deprecated: inFile,
  }),
  "serve-dns": flag(
    bool,
    false,
    "Serve the DNS of the cluster on this node, at the addresses in --cluster-dns, which the agent adds to the " +
      "loopback interface. Needs --cluster-domain, and --svcconfig or --join.",
  ),
  "dns-forward": flag(forwardRules, [], DNS_FORWARD, { requires: ["serve-dns"] }),
  "service-proxy": flag(
    bool,
    false,
    "Make the addresses and node ports of services lead to their pods on this node, by nftables. Needs --svcconfig or " +
      "--join.",
  ),
  "cluster-cidr": flag(
    cidrs,
    [],
    "Ranges of the addresses of all pods. Packets from elsewhere to services get the node's address as source. Needs " +
      "--service-proxy or --pod-network.",
  ),
  "pod-network": flag(
    oneOf("none", "auto", "vxlan"),
    "none",
    "Configure the network of pods: auto takes routes to nodes in the same layer-2 network and VXLAN to others, vxlan " +
      "takes VXLAN to all. Without effect if the runtime has another CNI configuration. Needs --cluster-cidr, and " +
      "--svcconfig or --join.",
  ),
  "network-policy": flag(
    bool,
    false,
    "Enforce NetworkPolicy objects for the pods of this node, by nftables. Not for nodes whose CNI plugin does that. " +
      "Needs --svcconfig or --join.",
  ),
  "pod-cidr": flag(podCidr, "", "Pod IP CIDR, standalone mode only; IPv6 allocates at most 65536 addresses.", {
    config: "podCIDR",
    deprecated: inFile,
  }),
  "hairpin-mode": flag(
    oneOf("promiscuous-bridge", "hairpin-veth", "none"),
    "promiscuous-bridge",
    "promiscuous-bridge, hairpin-veth, none: how a pod reaches itself through its service, in the CNI configuration " +
      "of --pod-network. The bridge's ports are in hairpin mode for both of the former, and are not with none.",
    { config: "hairpinMode", deprecated: inFile },
  ),
  "make-iptables-util-chains": flag(bool, true, "Ensure iptables utility rules exist.", {
    config: "makeIPTablesUtilChains",
    deprecated: inFile,
  }),
  "allowed-unsafe-sysctls": flag(
    strings({
      element: "a sysctl or a prefix that ends in *",
      accepts: isSysctlPattern,
      sample: "kernel.msg*,net.core.somaxconn",
      wrong: "a b",
    }),
    [],
    "Allow-list of unsafe sysctls or patterns ending in *.",
    { config: "allowedUnsafeSysctls", deprecated: inFile },
  ),
  "protect-kernel-defaults": flag(bool, false, "Error if kernel tunables differ from agent defaults.", {
    config: "protectKernelDefaults",
    deprecated: inFile,
  }),
  "seccomp-default": flag(bool, false, "Use RuntimeDefault as the seccomp profile of all workloads that name none.", {
    config: "seccompDefault",
  }),
  "fail-swap-on": flag(bool, true, "Refuse to start when swap is on.", { config: "failSwapOn", deprecated: inFile }),
  "fail-cgroupv1": flag(bool, true, "Refuse to start on a host that uses cgroup v1.", {
    config: "failCgroupV1",
    fileDefault: false,
  }),
  "max-open-files": flag(int({ min: 0 }), 1000000, "File-open limit of the process.", {
    config: "maxOpenFiles",
    deprecated: inFile,
  }),
  "oom-score-adj": flag(int32({ min: -1000, max: 1000 }), -999, "Range -1000..1000.", {
    config: "oomScoreAdj",
    deprecated: inFile,
  }),
  "lock-file": flag(
    file,
    "",
    "Alpha. File that is locked as long as the agent runs; the agent waits until no other process holds the lock.",
  ),
  "exit-on-lock-contention": flag(bool, false, "Exit on lock-file contention.", { requires: ["lock-file"] }),
  "contention-profiling": flag(
    bool,
    false,
    "Serve the delays of the event loop as block profile when profiling is enabled.",
    { config: "enableContentionProfiling", deprecated: inFile },
  ),
});
