/** `svc doctor`: checks what `svc up` with the same flags needs, while it runs and while it does not. */
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { agentDirectories, dnsListeners, servingCertificates } from "../../agent/doctor/agent-subject.ts";
import { type DiagnosedProgram, runDoctor } from "../../agent/doctor/command.ts";
import type { CertificateSubject, DoctorSubject } from "../../agent/doctor/subject.ts";
import { invoke } from "../../flags/program.ts";
import { GIT_VERSION } from "../../std/version.ts";
import { agentConfig } from "../cluster.ts";
import { cniDirectories } from "../containerd/runtime.ts";
import { upFlags, upProgram } from "../flags.ts";
import { findDataDirOwner } from "../host/data-dir-lock.ts";
import { checkHost, HostError, inspectMachine, type Machine } from "../host/host.ts";
import { type HostEnvironment, serverNames, type UpOptions, upOptions } from "../options.ts";

const upDoctor: DiagnosedProgram = {
  name: "svc doctor",
  checked: "svc up",
  flags: upFlags,
  async subject(argv) {
    const invocation = invoke(upProgram, argv, { version: GIT_VERSION });
    if (invocation.kind === "exit") return invocation;
    const { flags, warnings } = invocation;
    const machine = inspectMachine(process.env);
    const routes = machine.readText("/proc/net/route");
    const surroundings = { hostname: hostname(), interfaces: networkInterfaces(), routes };
    const { options, problems } = usableOptions(flags, surroundings);
    const pid = await findDataDirOwner(options.dataDir);
    return upSubject(options, { isImageDirSet: flags["image-dir"] !== "", problems, warnings, pid, machine });
  },
};

export function run(argv: readonly string[]): Promise<number> {
  return runDoctor(upDoctor, argv);
}

/** On a machine without an address svc up does not start; the other checks are made all the same. */
export function usableOptions(
  flags: Parameters<typeof upOptions>[0],
  surroundings: HostEnvironment,
): { readonly options: UpOptions; readonly problems: readonly string[] } {
  try {
    return { options: upOptions(flags, surroundings), problems: [] };
  } catch (error) {
    const usable = { ...flags, "node-ip": ["127.0.0.1"], "service-cidr": [], "cluster-cidr": [] };
    const options = upOptions(usable, { ...surroundings, routes: undefined });
    return { options, problems: [(error as Error).message] };
  }
}

interface Invoked {
  readonly isImageDirSet: boolean;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
  /** The process of `svc up` with the same data directory, if it runs. */
  readonly pid: number | undefined;
  readonly machine: Machine;
}

export function upSubject(
  options: UpOptions,
  { isImageDirSet, problems, warnings, pid, machine }: Invoked,
): DoctorSubject {
  const { dataDir, runtimeEndpoint, imageDir } = options;
  const pki = join(dataDir, "pki");
  const endpoint = runtimeEndpoint ?? `unix://${join(options.runDir, "containerd.sock")}`;
  const config = agentConfig(options, { agentCaFile: join(pki, "agent-ca.crt") }, endpoint);
  return {
    program: "svc up",
    config,
    join: "",
    problems,
    warnings,
    pid,
    managedRuntime: runtimeEndpoint === undefined ? managedRuntime(options, machine) : undefined,
    ownServer: true,
    listeners: [
      { flag: "--secure-port", port: options.securePort, address: options.bindAddress },
      { flag: "--agent-port", port: options.agentPort, address: config.server.address },
      ...dnsListeners(config),
    ],
    directories: [
      { flag: "--data-dir", path: dataDir, space: undefined, inodes: undefined, hasStore: true },
      ...agentDirectories(config, "directory of the agent"),
    ],
    certificates: [
      ...clusterCertificates(options, pki),
      ...servingCertificates(config).map((each) => ({ ...each, isCreated: true })),
    ],
    images: {
      directory: imageDir,
      isSet: isImageDirSet,
      recordFile: join(dataDir, "containerd", "images.json"),
    },
  };
}

function managedRuntime(options: UpOptions, machine: Machine): NonNullable<DoctorSubject["managedRuntime"]> {
  const { confDir: cniConfDir } = cniDirectories(options);
  try {
    // Another finding reports a user that is not root.
    return { missing: [], cniConfDir, cniBinDir: checkHost({ ...machine, uid: 0 }, options.cniBinDir).cniBinDir };
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    return { missing: error.missing, cniConfDir, cniBinDir: "/opt/cni/bin" };
  }
}

/** The keys that `svc up` issues, and replaces when they are about to expire. */
function clusterCertificates(options: UpOptions, pki: string): readonly CertificateSubject[] {
  const named = (name: string, file: string, ca: string, names: readonly string[] = []): CertificateSubject => ({
    name,
    certFile: join(pki, `${file}.crt`),
    keyFile: join(pki, `${file}.key`),
    caFile: join(pki, `${ca}.crt`),
    names,
    isCreated: true,
  });
  const client = join(options.dataDir, "agent", "pki", "svclet-client-current.pem");
  return [
    named("CA of the cluster", "ca", "ca"),
    named("CA of agents", "agent-ca", "agent-ca"),
    named("certificate of the API server", "apiserver", "ca", serverNames(options)),
    named("certificate of the API server for agents", "agent-client", "agent-ca"),
    named("certificate of the administrator", "admin", "ca"),
    {
      name: "client certificate of the agent",
      certFile: client,
      keyFile: client,
      caFile: join(pki, "ca.crt"),
      names: [],
      isCreated: true,
    },
  ];
}
