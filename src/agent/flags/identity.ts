import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { nodeIps } from "../../flags/types/network.ts";
import { nodeLabels, taints } from "../../flags/types/node.ts";
import { int32 } from "../../flags/types/number.ts";
import { bool, file, oneOfOrNone, requiredDirectory, text } from "../../flags/types/text.ts";
import { inFile } from "./deprecation.ts";

export const identityFlags = section("Identity and registration", {
  "hostname-override": flag(text, "", "Non-empty value replaces the real hostname as node identity."),
  "cloud-provider": flag(
    oneOfOrNone("external"),
    "",
    "Empty: no cloud provider. external: the node registers with the taint that an external provider removes, and has " +
      "the addresses that the provider sets.",
  ),
  "cloud-config": flag(file, "", "Path to the cloud provider configuration file.", {
    deprecated: "it will be removed in 1.25 or later, in favor of removing cloud providers code from Kubelet.",
    redundant: "an external cloud provider reads its configuration itself",
  }),
  "provider-id": flag(text, "", "Identity of the node in a machine database, for example that of a cloud provider.", {
    config: "providerID",
  }),
  "node-ip": flag(
    nodeIps,
    [],
    "One IP or comma-separated dual-stack IPs. Unset: default IPv4 address, else default IPv6 address. :: " +
      "makes the default IPv6 address preferred.",
  ),
  "node-labels": flag(
    nodeLabels,
    {},
    "Alpha. Labels added at registration, comma-separated. Keys in the svc.io namespace must start with an " +
      "allowed prefix (svclet.svc.io, node.svc.io) or be one of: beta.svc.io/arch, beta.svc.io/instance-type, " +
      "beta.svc.io/os, failure-domain.beta.svc.io/region, failure-domain.beta.svc.io/zone, svc.io/arch, " +
      "svc.io/hostname, svc.io/os, node.svc.io/instance-type, topology.svc.io/region, topology.svc.io/zone.",
  ),
  "register-node": flag(bool, true, "Register with the API server.", { config: "registerNode", deprecated: inFile }),
  "register-schedulable": flag(bool, true, "Register as schedulable; no effect when --register-node is false.", {
    deprecated: "it will be removed in a future release; taint the node instead.",
  }),
  "register-with-taints": flag(
    taints,
    [],
    "Comma-separated <key>=<value>:<effect> taints at registration; no-op if --register-node is false.",
    { config: "registerWithTaints", deprecated: inFile },
  ),
  svcconfig: flag(
    file,
    "",
    "Path to the connection-config file for reaching the API server; presence selects API server mode.",
  ),
  join: flag(
    text,
    "",
    "URL of the API server of a cluster to join, with --token and --ca-hash, as svc token create prints them; in place " +
      "of --bootstrap-svcconfig. A node that has joined keeps its credentials.",
    { requires: ["token", "ca-hash"], excludes: ["bootstrap-svcconfig"] },
  ),
  token: flag(text, "", "Bootstrap token to join with.", { requires: ["join"] }),
  "ca-hash": flag(text, "", "Hash of the public key of the cluster's CA: sha256:<hex>.", { requires: ["join"] }),
  "bootstrap-svcconfig": flag(
    file,
    "",
    "Connection-config file used to request a client certificate when the file at --svcconfig does not " +
      "exist. On success a file referencing the generated client certificate and key is written at the " +
      "--svcconfig path; certificate and key are stored under --cert-dir.",
    { requires: ["svcconfig"] },
  ),
  "cert-dir": flag(
    requiredDirectory,
    "/var/lib/svclet/pki",
    "Directory of TLS certificates; ignored when both --tls-cert-file and --tls-private-key-file are given.",
  ),
  "root-dir": flag(requiredDirectory, "/var/lib/svclet", "Directory for agent files such as volume mounts."),
  "node-status-update-frequency": flag(
    duration({ min: 1 }),
    10_000,
    "How often node status is posted; must work together with the node controller's monitor grace period.",
    { config: "nodeStatusUpdateFrequency", deprecated: inFile },
  ),
  "node-status-max-images": flag(
    int32({ min: -1 }),
    50,
    "Maximum images listed in node.status.images; -1 means no cap.",
    { config: "nodeStatusMaxImages", deprecated: inFile },
  ),
});
