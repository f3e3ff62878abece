/** What `svc agent doctor` checks: the parts of the agent that a configuration describes. */

import { join } from "node:path";
import { loadKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { DNS_PORT } from "../../dns/forward/server-address.ts";
import type { AgentConfig } from "../agent-config.ts";
import { CertificateFiles } from "../certificates/certificate-files.ts";
import type { CertificateSubject, DirectorySubject, DoctorSubject, ListenerSubject } from "./subject.ts";

/** Without the parts that only `svc up` has. */
export async function agentSubject(
  config: AgentConfig,
  joined: string,
  warnings: readonly string[],
): Promise<DoctorSubject> {
  return {
    program: "svc agent",
    config,
    join: joined,
    problems: [],
    warnings,
    pid: undefined,
    managedRuntime: undefined,
    ownServer: false,
    listeners: agentListeners(config),
    directories: agentDirectories(config),
    certificates: [...(await clientCertificates(config, joined)), ...servingCertificates(config)],
    images: undefined,
  };
}

export function agentListeners(config: AgentConfig): readonly ListenerSubject[] {
  const { server } = config;
  if (!server.enabled) return dnsListeners(config);
  return [
    { flag: "--port", port: server.port, address: server.address },
    { flag: "--read-only-port", port: server.readOnlyPort, address: server.address },
    { flag: "--healthz-port", port: server.healthzPort, address: server.healthzAddress },
    ...dnsListeners(config),
  ];
}

export function dnsListeners({ dns, pods }: AgentConfig): readonly ListenerSubject[] {
  if (dns === undefined) return [];
  return pods.clusterDns.map((address) => ({ flag: `--cluster-dns ${address}, port`, port: DNS_PORT, address }));
}

/** `flag`: the flag that sets the agent's directory. */
export function agentDirectories(
  { rootDir, podLogsDir, node }: AgentConfig,
  flag = "--root-dir",
): readonly DirectorySubject[] {
  const thresholds = { space: node.evictionHard["nodefs.available"], inodes: node.evictionHard["nodefs.inodesFree"] };
  return [
    { flag, path: rootDir, ...thresholds, hasStore: false },
    { flag: "logs of pods", path: podLogsDir, ...thresholds, hasStore: false },
  ];
}

/** The certificate in use is in the agent's directory, or in the connection file. */
async function clientCertificates(config: AgentConfig, joined: string): Promise<readonly CertificateSubject[]> {
  const { svcconfig, certDir, certificates } = config;
  if (svcconfig === undefined) return [];
  const isCreated = joined !== "" || certificates.bootstrapSvcconfig !== undefined;
  const name = "client certificate";
  const common = { caFile: undefined, names: [], isCreated };
  const access = await loadKubeconfig(svcconfig).catch(() => undefined);
  if (access === undefined) {
    const certFile = new CertificateFiles(certDir, "client").current;
    return isCreated ? [{ ...common, name, certFile, keyFile: certFile }] : [];
  }
  const { cert, ca } = access;
  return [
    ...(cert === undefined ? [] : [{ ...common, name, certFile: svcconfig, pem: cert, keyFile: svcconfig }]),
    ...(ca === undefined
      ? []
      : [{ ...common, name: "CA of the API server", certFile: svcconfig, pem: ca, keyFile: undefined }]),
  ];
}

export function servingCertificates(config: AgentConfig): readonly CertificateSubject[] {
  const { server, certificates, certDir, node } = config;
  if (!server.enabled) return [];
  const files = [
    ...(server.clientCaFile === ""
      ? []
      : [{ name: "CA of clients (--client-ca-file)", certFile: server.clientCaFile, keyFile: undefined }]),
  ].map((each) => ({ ...each, caFile: undefined, names: [], isCreated: false }));
  const names = node.ips.filter((address) => address !== "0.0.0.0" && address !== "::");
  const serving = { name: "serving certificate", caFile: undefined, names };
  if (server.tlsCertFile !== "" && server.tlsKeyFile !== "" && !certificates.rotateServing) {
    return [...files, { ...serving, certFile: server.tlsCertFile, keyFile: server.tlsKeyFile, isCreated: false }];
  }
  const rotated = new CertificateFiles(certDir, "server").current;
  const own = certificates.rotateServing
    ? { certFile: rotated, keyFile: rotated }
    : { certFile: join(certDir, "svclet.crt"), keyFile: join(certDir, "svclet.key") };
  return [...files, { ...serving, ...own, isCreated: true }];
}
