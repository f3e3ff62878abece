/** Makes all checks in parallel; one that fails or takes too long does not stop the others. */
import { lookup } from "node:dns/promises";
import { hostname } from "node:os";
import type { Clock } from "../../std/time/clock.ts";
import { withTimeout } from "../../std/time/with-timeout.ts";
import { parseMillis } from "../pods/resources/quantities.ts";
import { type ApiServerFacts, checkApiServer, readApiServerFacts } from "./api-server.ts";
import { checkCertificate, readCertificateFacts } from "./certificates.ts";
import { checkCgroups, readCgroupFacts } from "./cgroups.ts";
import { checkClock, readClockFacts } from "./clock.ts";
import { checkCni, readCniFacts } from "./cni.ts";
import { checkDirectory, readDirectoryFacts } from "./disk.ts";
import { checkDns } from "./dns.ts";
import { type Finding, finding } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";
import { checkImages, readImageDir } from "./images.ts";
import { checkKernel, readKernelFacts } from "./kernel.ts";
import { checkMachineFacts, checkUniqueName, readMachineFacts } from "./machine.ts";
import { checkDistributions, checkFirewall, readDistributions, readForwardPolicy } from "./network.ts";
import { checkPorts, readPortOwners } from "./ports.ts";
import { sortFindings } from "./report.ts";
import { checkRuntime, readRuntimeSubject } from "./runtime.ts";
import { type RuntimeFacts, readRuntimeFacts } from "./runtime-facts.ts";
import type { DoctorSubject } from "./subject.ts";

export interface DoctorDeps {
  readonly host: HostReader;
  readonly clock: Clock;
  /** Of each check; 10 s when absent. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
/** Of what several checks wait for, so that they can go on without it. */
const SHARED_PART = 0.6;

const defaultCniConfDir = "/etc/cni/net.d";
const defaultCniBinDirs = ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"];

interface Check {
  readonly name: string;
  run(signal: AbortSignal): Promise<readonly Finding[]>;
}

/** Resolves with errors first. */
export async function diagnose(subject: DoctorSubject, deps: DoctorDeps): Promise<readonly Finding[]> {
  const { clock, timeoutMs = TIMEOUT_MS } = deps;
  const shared = new AbortController();
  const timer = clock.timer(timeoutMs * SHARED_PART, () => shared.abort(new Error("no answer in time")));
  try {
    const checks = createChecks(subject, deps, shared.signal);
    const results = await Promise.all(checks.map((check) => runCheck(check, clock, timeoutMs)));
    return sortFindings(results.flat());
  } finally {
    timer.cancel();
    shared.abort(new Error("the checks have ended"));
  }
}

async function runCheck({ name, run }: Check, clock: Clock, timeoutMs: number): Promise<readonly Finding[]> {
  const stop = new AbortController();
  try {
    return await withTimeout(clock, timeoutMs, run(stop.signal), "no result");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return [finding("check-failed", "warning", `${name}: ${reason}`)];
  } finally {
    stop.abort(new Error("the check has ended"));
  }
}

function createChecks(subject: DoctorSubject, deps: DoctorDeps, shared: AbortSignal): readonly Check[] {
  const { host, clock } = deps;
  const { config } = subject;
  const runtime = memoize(() => readRuntime(subject, deps, shared));
  const server = memoize(() => readServer(subject, clock, shared));
  const podNetwork = config.podNetwork.mode === "none" ? undefined : config.podNetwork;
  const kernelSettings = { ...config.runtime, serviceProxy: config.proxy !== undefined, podNetwork };
  return [
    { name: "configuration", run: async () => checkConfiguration(subject) },
    {
      name: "machine",
      run: async () => checkMachineFacts(await readMachineFacts(host), machineSettings(subject)),
    },
    { name: "kernel", run: async () => checkKernel(await readKernelFacts(host), kernelSettings) },
    {
      name: "cgroups",
      run: async () => {
        const { settings } = await runtime();
        return checkCgroups(await readCgroupFacts(host, settings.systemdCgroup), config.runtime);
      },
    },
    { name: "runtime", run: async () => checkRuntime(await runtime(), await readRuntimeSubject(host, subject)) },
    { name: "CNI", run: async () => await checkNetworkPlugins(subject, host, await runtime()) },
    ...imageChecks(subject, host, runtime),
    {
      name: "clock",
      run: async (signal) => {
        const offsetMs = (await server())?.offsetMs;
        return checkClock(await readClockFacts(host, clock.now(), offsetMs, signal));
      },
    },
    ...subject.certificates.map((each) => ({
      name: each.name,
      run: async () => checkCertificate(each, await readCertificateFacts(host, each), clock.now()),
    })),
    ...subject.directories.map((each) => ({
      name: each.path,
      run: async () => checkDirectory(each, await readDirectoryFacts(host, each.path)),
    })),
    { name: "file system of images", run: async () => await checkImageDisk(subject, host, await runtime()) },
    { name: "DNS", run: async () => checkDns(await readDnsFacts(subject, host)) },
    { name: "API server", run: async () => await checkServer(subject, host, await server()) },
    { name: "ports", run: async () => await checkListeners(subject, host) },
    { name: "firewall", run: async (signal) => checkFirewall(await readForwardPolicy(host, signal)) },
    { name: "other distributions", run: async () => checkDistributions(await readDistributions(host)) },
  ];
}

/** The work starts with the first call, so that its failure always has a check that reports it. */
function memoize<T>(start: () => Promise<T>): () => Promise<T> {
  let work: Promise<T> | undefined;
  return () => {
    work ??= start();
    return work;
  };
}

function checkConfiguration({ problems, warnings }: DoctorSubject): readonly Finding[] {
  if (problems.length > 0) return problems.map((problem) => finding("configuration", "error", problem));
  if (warnings.length === 0) return [finding("configuration", "ok", "valid")];
  return warnings.map((warning) => finding("configuration", "ok", `valid, with the warning: ${warning}`));
}

function machineSettings({ config }: DoctorSubject) {
  return {
    nodeName: config.nodeName,
    nodeIps: config.node.ips,
    failSwapOn: config.runtime.failSwapOn,
    reservedCpuMillis: parseMillis(config.node.reserved.cpu),
  };
}

async function readRuntime(
  subject: DoctorSubject,
  { host, clock }: DoctorDeps,
  signal: AbortSignal,
): Promise<RuntimeFacts> {
  const { images, config } = subject;
  const names = images === undefined ? [] : (await readImageDir(host, images)).imported;
  return await readRuntimeFacts(config.runtime, names, host, clock, signal);
}

/** Undefined when there is none, or when it is a part of svc up, which does not run. */
async function readServer(
  { config, ownServer, pid, join }: DoctorSubject,
  clock: Clock,
  signal: AbortSignal,
): Promise<ApiServerFacts | undefined> {
  const { svcconfig = "" } = config;
  if ((svcconfig === "" && join === "") || (ownServer && pid === undefined)) return undefined;
  return await readApiServerFacts(svcconfig, join, config.nodeName, clock, signal);
}

async function checkServer(
  { config, ownServer }: DoctorSubject,
  host: HostReader,
  facts: ApiServerFacts | undefined,
): Promise<readonly Finding[]> {
  if (facts === undefined) {
    const why = ownServer ? "svc up does not run" : "none is configured: --svcconfig is not set";
    return [finding("api-server-reachable", "ok", why)];
  }
  const machineId = ((await host.readText("/etc/machine-id")) ?? "").trim();
  const { nodeName, version, server } = config;
  const checked = checkApiServer(facts, { nodeName, version, tunnel: server.tunnel });
  return [...checked, ...checkUniqueName(config.nodeName, machineId, facts.machineId)];
}

async function checkNetworkPlugins(
  { managedRuntime, pid }: DoctorSubject,
  host: HostReader,
  { settings }: RuntimeFacts,
): Promise<readonly Finding[]> {
  const confDir = settings.cniConfDir ?? managedRuntime?.cniConfDir ?? defaultCniConfDir;
  const binDirs =
    settings.cniBinDirs ?? (managedRuntime === undefined ? defaultCniBinDirs : [managedRuntime.cniBinDir]);
  return checkCni(await readCniFacts(host, confDir, binDirs), managedRuntime !== undefined && pid === undefined);
}

function imageChecks(
  { images }: DoctorSubject,
  host: HostReader,
  runtime: () => Promise<RuntimeFacts>,
): readonly Check[] {
  if (images === undefined) return [];
  const run = async (): Promise<readonly Finding[]> => {
    const { status, missingImages } = await runtime();
    return checkImages(images, await readImageDir(host, images), status === undefined ? undefined : missingImages);
  };
  return [{ name: "images", run }];
}

async function checkImageDisk(
  { config }: DoctorSubject,
  host: HostReader,
  { imageDirectories }: RuntimeFacts,
): Promise<readonly Finding[]> {
  const space = config.node.evictionHard["imagefs.available"];
  const findings = imageDirectories.map(async (path) => {
    const inodes = config.node.evictionHard["imagefs.inodesFree"];
    return checkDirectory(
      { flag: "images", path, space, inodes, hasStore: false },
      await readDirectoryFacts(host, path),
    );
  });
  return (await Promise.all(findings)).flat();
}

/** A failed lookup of the server's name, or of this machine's, shows a resolver that does not work. */
async function readDnsFacts({ config }: DoctorSubject, host: HostReader) {
  const path = config.pods.resolvConf;
  const name = hostname();
  const lookupError = await lookup(name).then(
    () => undefined,
    (error: Error) => error.message,
  );
  return { path, resolvConf: await host.readText(path), name, lookupError };
}

async function checkListeners(
  { listeners, pid, program }: DoctorSubject,
  host: HostReader,
): Promise<readonly Finding[]> {
  const owners = await readPortOwners(
    host,
    listeners.map(({ port }) => port),
  );
  return checkPorts(listeners, owners, (owner) =>
    program === "svc up" ? owner.pid === pid && pid !== undefined : owner.svcProgram === "agent",
  );
}
