/** Every flag of `svc up`, in the order of its help. */
import { DNS_FORWARD, forwardRules } from "../agent/flags/networking.ts";
import { WORKERS } from "../apiserver/flags/serving.ts";
import { runtimeConfig } from "../apiserver/flags/values.ts";
import { loggingFlags } from "../component/flags.ts";
import { flag, section } from "../flags/flag.ts";
import { agentGates } from "../flags/gate-tables/agent.ts";
import { apiserverGates } from "../flags/gate-tables/apiserver.ts";
import type { GateTable } from "../flags/gates.ts";
import { validateLogging } from "../flags/log-options.ts";
import type { Program } from "../flags/program.ts";
import { gateSettings } from "../flags/types/gate-settings.ts";
import { strings } from "../flags/types/list.ts";
import { cidrs, endpoint, ip, ips, nodeIps, podCidr } from "../flags/types/network.ts";
import { int, port } from "../flags/types/number.ts";
import { bool, directory, oneOf, pattern, requiredDirectory, version } from "../flags/types/text.ts";

const nodeName = pattern(
  "a node name: lower-case letters, digits, dots and dashes, or nothing",
  (value) => value === "" || (value.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(value)),
  "node-7",
  { wrong: "Node 7" },
);

const clusterDomain = pattern(
  "a domain such as cluster.local",
  (value) =>
    value.length <= 200 && /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$/.test(value),
  "corp.example",
  { wrong: "Corp." },
);

export const upFlags = {
  ...section("Cluster", {
    "data-dir": flag(requiredDirectory, "/var/lib/svc", "Directory of the cluster's state, keys and images."),
    "bind-address": flag(ip, "0.0.0.0", "Address the API server listens on."),
    "secure-port": flag(port("int", "no-zero"), 6443, "HTTPS port of the API server."),
    workers: flag(int({ min: 1, max: 64 }), 1, WORKERS),
    "kvstore-quota-bytes": flag(
      int(),
      0,
      "Size in bytes at which the store accepts only deletions and small updates; 0 means 2147483648, a negative " +
        "value no quota.",
    ),
    "embedded-controllers": flag(
      strings({ sample: "scheduler" }),
      ["*"],
      "Controllers to run in the API server process; * enables all, -NAME excludes one.",
    ),
    "service-cidr": flag(
      cidrs,
      [],
      "Ranges of the addresses of services, at most one of each IP family; an existing cluster keeps its own.",
      { defaultNote: "10.96.0.0/16; with another --data-dir a part of 10.96.0.0/12" },
    ),
    "cluster-cidr": flag(
      cidrs,
      [],
      "Ranges of the addresses of all pods. Packets from elsewhere to services get the node's address as source.",
      { defaultNote: "10.244.0.0/16, or a range around --pod-cidr if that is outside of it" },
    ),
    "feature-gates": flag(
      gateSettings("Gate=true,..."),
      {},
      "Enables and disables feature gates of the API server and the agent.",
    ),
    "runtime-config": flag(
      runtimeConfig,
      {},
      "Enables and disables built-in APIs: <group>/<version>=true|false, api/beta, api/alpha.",
    ),
  }),
  ...section("Node", {
    "node-name": flag(nodeName, "", "Name of the node.", { defaultNote: "the host name" }),
    "node-ip": flag(nodeIps, [], "Address of the node, or one IPv4 and one IPv6 address.", {
      defaultNote: "that of the default route",
    }),
    "container-runtime-endpoint": flag(
      endpoint,
      "",
      "Socket of a container runtime to use; without it svc up starts and supervises containerd.",
    ),
    "agent-port": flag(port("int", "no-zero"), 10250, "HTTPS port of the node agent."),
    "pod-cidr": flag(podCidr, "", "IPv4 range of the addresses of pods of this node.", {
      defaultNote: "10.244.0.0/24, or the first /24 of --cluster-cidr",
    }),
    "pod-network": flag(
      oneOf("auto", "vxlan", "none"),
      "auto",
      "How pods reach those of other nodes: auto takes routes to nodes in the same layer-2 network and VXLAN to others, " +
        "vxlan takes VXLAN to all; none configures no network of pods.",
    ),
    "cni-conf-dir": flag(
      directory,
      "",
      "Directory of the CNI configuration of another pod network, such as /etc/cni/net.d; svc up then configures none.",
      { excludes: ["container-runtime-endpoint"] },
    ),
    "cni-bin-dir": flag(directory, "", "Directory of the CNI plugins.", {
      defaultNote: "the first of /opt/cni/bin, /usr/lib/cni and /usr/libexec/cni that has the usual ones",
      excludes: ["container-runtime-endpoint"],
    }),
    "service-proxy": flag(
      bool,
      true,
      "Make the addresses and node ports of services lead to their pods on this node, by nftables. Without it " +
        "something else must do that.",
    ),
    "network-policy": flag(
      bool,
      true,
      "Enforce NetworkPolicy objects, by nftables, on this node and those that join. Without effect with " +
        "--pod-network=none or --cni-conf-dir, where the CNI plugin does that or none.",
    ),
    "serve-dns": flag(
      bool,
      true,
      "Serve the DNS of the cluster on this node, at the addresses in --cluster-dns, which svc up adds to the loopback " +
        "interface. Without it something else must answer there.",
    ),
    "cluster-dns": flag(ips, [], "Addresses of the DNS of the cluster, for pods.", {
      defaultNote: "the tenth of the services' range",
    }),
    "cluster-domain": flag(clusterDomain, "cluster.local", "Domain of the names of services and pods."),
    "dns-forward": flag(forwardRules, [], DNS_FORWARD.replace("--resolv-conf", "/etc/resolv.conf")),
    "image-dir": flag(directory, "", "Directory of image archives (*.tar) to import at the start.", {
      defaultNote: "images in the data directory",
    }),
    "stop-pods": flag(
      bool,
      false,
      "Stop the pods when svc stops; otherwise they keep running, and the next start manages them again.",
    ),
  }),
  ...loggingFlags,
  ...section("Other", {
    "print-systemd-unit": flag(bool, false, "Print a systemd unit that runs this command, and exit."),
    version: flag(version, "", "Print the version and exit; --version=vX.Y.Z... sets the reported version."),
    help: flag(bool, false, "Print help.", { short: "h" }),
  }),
};

/** The gates of the API server and the agent; a gate that only one of them reads is as in its table. */
const upGates: GateTable = {
  ...agentGates,
  ...Object.fromEntries(
    Object.entries(apiserverGates).filter(([name, gate]) => gate.effective === true || !agentGates[name]?.effective),
  ),
};

export const upProgram: Program<typeof upFlags> = {
  name: "svc up",
  summary: "Runs a cluster of one node on this machine: API server, controllers, node agent and container runtime.",
  flags: upFlags,
  // Not in the help, which would list the gates of both programs.
  gatesFor: () => upGates,
  check: validateLogging,
};
