import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { nodeIps } from "../../flags/types/network.ts";
import { nodeLabels, taints } from "../../flags/types/node.ts";
import { int32 } from "../../flags/types/number.ts";
import { bool, file, oneOfOrNone, requiredDirectory, text } from "../../flags/types/text.ts";
import { inFile } from "./deprecation.ts";

export const identityFlags = section("Identity and registration", {
  "hostname-override": flag(
    text,
    "",
    "Non-empty value replaces the real hostname as node identity. Ignored in favour of the cloud provider's " +
      "name when --cloud-provider is set.",
    { effective: true },
  ),
  "cloud-provider": flag(
    oneOfOrNone("external"),
    "",
    "Empty: no cloud provider. external: an external provider. Any set value: the provider decides the node " + "name.",
  ),
  "cloud-config": flag(file, "", "Path to the cloud provider configuration file.", {
    deprecated: "it will be removed in 1.25 or later.",
  }),
  "provider-id": flag(text, "", "Identity of the node in a machine database, for example that of a cloud provider.", {
    config: "providerID",
    effective: true,
  }),
  "node-ip": flag(
    nodeIps,
    [],
    "One IP or comma-separated dual-stack IPs. Unset: default IPv4 address, else default IPv6 address. :: " +
      "makes the default IPv6 address preferred.",
    { effective: true },
  ),
  "node-labels": flag(
    nodeLabels,
    {},
    "Alpha. Labels added at registration, comma-separated. Keys in the svc.io namespace must start with an " +
      "allowed prefix (svclet.svc.io, node.svc.io) or be one of: beta.svc.io/arch, beta.svc.io/instance-type, " +
      "beta.svc.io/os, failure-domain.beta.svc.io/region, failure-domain.beta.svc.io/zone, svc.io/arch, " +
      "svc.io/hostname, svc.io/os, node.svc.io/instance-type, topology.svc.io/region, topology.svc.io/zone.",
    { effective: true },
  ),
  "register-node": flag(bool, true, "Register with the API server.", {
    config: "registerNode",
    deprecated: inFile,
    effective: true,
  }),
  "register-schedulable": flag(bool, true, "Register as schedulable; no effect when --register-node is false.", {
    deprecated: "it will be removed in a future release; taint the node instead.",
    effective: true,
  }),
  "register-with-taints": flag(
    taints,
    [],
    "Comma-separated <key>=<value>:<effect> taints at registration; no-op if --register-node is false.",
    { config: "registerWithTaints", deprecated: inFile, effective: true },
  ),
  svcconfig: flag(
    file,
    "",
    "Path to the connection-config file for reaching the API server; presence selects API server mode.",
    { effective: true },
  ),
  join: flag(
    text,
    "",
    "URL of the API server of a cluster to join, with --token and --ca-hash, as svc token create prints them; in place " +
      "of --bootstrap-svcconfig. A node that has joined goes on with what it has.",
    { requires: ["token", "ca-hash"], excludes: ["bootstrap-svcconfig"], effective: true },
  ),
  token: flag(text, "", "Bootstrap token to join with.", { requires: ["join"], effective: true }),
  "ca-hash": flag(text, "", "Hash of the public key of the cluster's authority: sha256:<hex>.", {
    requires: ["join"],
    effective: true,
  }),
  "bootstrap-svcconfig": flag(
    file,
    "",
    "Connection-config file used to request a client certificate when the file at --svcconfig does not " +
      "exist. On success a file referencing the generated client certificate and key is written at the " +
      "--svcconfig path; certificate and key are stored under --cert-dir.",
    { requires: ["svcconfig"], effective: true },
  ),
  "cert-dir": flag(
    requiredDirectory,
    "/var/lib/svclet/pki",
    "Directory of TLS certificates; ignored when both --tls-cert-file and --tls-private-key-file are given.",
    { effective: true },
  ),
  "root-dir": flag(requiredDirectory, "/var/lib/svclet", "Directory for agent files such as volume mounts.", {
    effective: true,
  }),
  "node-status-update-frequency": flag(
    duration({ min: 1 }),
    10_000,
    "How often node status is posted; must work together with the node controller's monitor grace period.",
    { config: "nodeStatusUpdateFrequency", deprecated: inFile, effective: true },
  ),
  "node-status-max-images": flag(
    int32({ min: -1 }),
    50,
    "Maximum images listed in node.status.images; -1 means no cap.",
    { config: "nodeStatusMaxImages", deprecated: inFile, effective: true },
  ),
});
