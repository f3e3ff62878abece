/** The container runtime of `svc up`: a managed containerd, ready to run pods, or an existing runtime. */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCriClient } from "../../agent/runtime/cri-client.ts";
import { type CniDirectories, findForeignConfig, hasConflist, writeConflist } from "../../pod-network/cni-config.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { checkHost, checkPlatform, findProgram, type Host, type Machine } from "../host/host.ts";
import { runCommand } from "../host/run-command.ts";
import { importImages, listArchives } from "../images/import.ts";
import type { Architecture } from "../images/oci-archive.ts";
import { pauseArchive, pauseImage } from "../images/pause.ts";
import type { UpOptions } from "../options.ts";
import { chooseSnapshotter, startContainerd } from "./containerd.ts";
import { probeOverlay } from "./overlay-probe.ts";

export interface RuntimeDeps {
  readonly machine: Machine;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
}

export interface PodRuntime extends AsyncDisposable {
  /** `unix:///run/svc/containerd.sock` */
  readonly endpoint: string;
  /** For the report. */
  readonly description: string;
  /** Names of the images that were imported from files. */
  readonly importedImages: readonly string[];
  /** Removes the pods' bridge. Call it when no pods are left, before disposal. */
  removeNetwork(): Promise<void>;
}

const COMMAND_MS_MAX = 10_000;

/** Rejects with everything that the machine lacks, before anything is started. */
export async function openRuntime(options: UpOptions, deps: RuntimeDeps, signal?: AbortSignal): Promise<PodRuntime> {
  const { runtimeEndpoint: endpoint } = options;
  if (endpoint === undefined) return startManagedRuntime(options, deps);
  checkPlatform(deps.machine);
  await waitForRuntime(endpoint, deps, signal);
  return {
    endpoint,
    description: `external, at ${endpoint}`,
    importedImages: [],
    removeNetwork: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
}

/** How long an existing runtime may take to accept a connection: it may start at the same time. */
const RUNTIME_START_MS = 30_000;
const RUNTIME_RETRY_MS = 500;

/** Rejects with a sentence when nothing answers at the endpoint, or with the signal's reason when it aborts. */
export async function waitForRuntime(
  endpoint: string,
  { clock, log }: Pick<RuntimeDeps, "clock" | "log">,
  signal?: AbortSignal,
): Promise<void> {
  using cri = createCriClient({ endpoint, requestTimeoutMs: RUNTIME_START_MS, clock });
  const deadline = clock.monotonic() + RUNTIME_START_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      await cri.runtime.version({});
      return;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (clock.monotonic() >= deadline) {
        throw new Error(
          `Cannot use --container-runtime-endpoint: no container runtime answers at ${endpoint} (${reason}); start ` +
            "it, or leave the flag out to let svc up start containerd",
          { cause: error },
        );
      }
      if (attempt === 1) log.info("Waiting for the container runtime", { endpoint, error: reason });
      await clock.sleep(RUNTIME_RETRY_MS, signal);
    }
  }
}

async function startManagedRuntime(options: UpOptions, deps: RuntimeDeps): Promise<PodRuntime> {
  const { machine, log } = deps;
  const host = checkHost(machine, options.cniBinDir);
  const directory = join(options.dataDir, "containerd");
  const root = join(directory, "root");
  const cni = cniDirectories(options);
  if (options.podNetwork !== "none") await prepareNetwork(options, host, deps);
  const snapshotter = await chooseSnapshotter(root, probeOverlay, log);
  const containerd = await startContainerd({
    binary: host.containerd,
    settings: {
      root,
      state: join(options.runDir, "containerd"),
      socket: join(options.runDir, "containerd.sock"),
      pauseImage,
      snapshotter,
      runc: host.runc,
      cniBinDir: host.cniBinDir,
      cniConfDir: cni.confDir,
      registryConfigDir: join(directory, "registries"),
      mayLowerOomScore: host.mayLowerOomScore,
    },
    configFile: join(directory, "config.toml"),
    logFile: join(directory, "containerd.log"),
    pidFile: join(options.runDir, "containerd.pid"),
    clock: deps.clock,
    random: deps.random,
    log,
  });
  let importedImages: readonly string[];
  try {
    const archives = await listArchives(options.imageDir);
    importedImages = await importImages(
      { ctr: host.ctr, socket: containerd.socket, snapshotter, recordFile: join(directory, "images.json"), log },
      [
        {
          path: await writePauseArchive(directory, machine.arch === "arm64" ? "arm64" : "amd64"),
          required: true,
          pinned: true,
        },
        ...archives.map((path) => ({ path })),
      ],
    );
  } catch (error) {
    await containerd.close();
    throw error;
  }
  const ip = findProgram(machine, "ip");
  return {
    endpoint: `unix://${containerd.socket}`,
    description: `containerd (managed), at ${containerd.socket}`,
    importedImages,
    removeNetwork: () => removeBridge(ip, options.networkNames.bridge, log),
    [Symbol.asyncDispose]: () => containerd.close(),
  };
}

/** The directories of the managed containerd. */
export function cniDirectories({ dataDir, runDir, cniConfDir }: UpOptions): CniDirectories {
  return { confDir: cniConfDir ?? join(dataDir, "containerd", "cni"), leaseDir: join(runDir, "addresses") };
}

/** Writes the first CNI configuration, so that pods need not wait for the agent, which corrects it. */
async function prepareNetwork(options: UpOptions, { hasIptables }: Host, { machine, log }: RuntimeDeps): Promise<void> {
  const hasNft = findProgram(machine, "nft") !== undefined;
  if (!hasIptables) {
    const lack = hasNft
      ? "host ports of pods do not work"
      : "pods can reach only this cluster, and host ports do not work";
    log.warn(`iptables is not installed: ${lack}`);
  }
  const directories = cniDirectories(options);
  if ((await hasConflist(directories.confDir)) || (await findForeignConfig(directories.confDir)) !== undefined) return;
  const { bridge } = options.networkNames;
  const podCidrs = [options.podCidr];
  await writeConflist({ ...directories, bridge, podCidrs, ipMasq: !hasNft && hasIptables, hairpin: true, hasIptables });
}

async function writePauseArchive(directory: string, architecture: Architecture): Promise<string> {
  const path = join(directory, "pause.tar");
  const archive = pauseArchive(architecture);
  const kept = await readFile(path).catch(() => undefined);
  if (kept?.equals(archive) === true) return path;
  await mkdir(directory, { recursive: true, mode: 0o711 });
  await writeFile(`${path}.new`, archive);
  await rename(`${path}.new`, path);
  return path;
}

async function removeBridge(ip: string | undefined, bridge: string, log: Logger): Promise<void> {
  if (ip === undefined) {
    log.warn("Cannot remove the pods' bridge: the ip command is not installed", { bridge });
    return;
  }
  const links = await runCommand(ip, ["-oneline", "link", "show"], { timeoutMs: COMMAND_MS_MAX });
  if (!links.includes(` ${bridge}:`)) return;
  await runCommand(ip, ["link", "delete", bridge], { timeoutMs: COMMAND_MS_MAX });
}
