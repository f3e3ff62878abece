/** What a container runtime reports of itself, for the checks of runtime, CNI, control groups, images and disk. */
import type { Clock } from "../../std/time/clock.ts";
import type { RuntimeConfig } from "../agent-config.ts";
import type { StatusResponse, VersionResponse } from "../runtime/cri/runtime-status.ts";
import { createCriClient } from "../runtime/cri-client.ts";
import type { FileStat, HostReader } from "./host-reader.ts";

/** The parts of containerd's configuration that checks use; each is undefined when it is not reported. */
export interface RuntimeSettings {
  readonly sandboxImage: string | undefined;
  readonly restrictsOomScore: boolean | undefined;
  readonly cniBinDirs: readonly string[] | undefined;
  readonly cniConfDir: string | undefined;
  readonly systemdCgroup: boolean | undefined;
}

export interface RuntimeFacts {
  readonly endpoint: string;
  /** The path of the socket. */
  readonly path: string;
  readonly socket: FileStat | undefined;
  /** Undefined when it does not answer. */
  readonly version: VersionResponse | undefined;
  /** Why a call failed. */
  readonly error: string | undefined;
  readonly status: StatusResponse | undefined;
  readonly settings: RuntimeSettings;
  /** Undefined: unknown. */
  readonly hasSandboxImage: boolean | undefined;
  /** Directories of the file systems of images. */
  readonly imageDirectories: readonly string[];
  /** Of the images that were looked up. */
  readonly missingImages: readonly string[];
}

const noSettings: RuntimeSettings = {
  sandboxImage: undefined,
  restrictsOomScore: undefined,
  cniBinDirs: undefined,
  cniConfDir: undefined,
  systemdCgroup: undefined,
};

const CALL_MS_MAX = 3_000;

/** `images` are looked up as well. */
export async function readRuntimeFacts(
  { endpoint, imageEndpoint }: Pick<RuntimeConfig, "endpoint" | "imageEndpoint">,
  images: readonly string[],
  host: HostReader,
  clock: Clock,
  signal: AbortSignal,
): Promise<RuntimeFacts> {
  const path = endpoint.replace(/^unix:\/\//, "");
  const socket = await host.stat(path);
  const facts: RuntimeFacts = {
    endpoint,
    path,
    socket,
    version: undefined,
    error: undefined,
    status: undefined,
    settings: noSettings,
    hasSandboxImage: undefined,
    imageDirectories: [],
    missingImages: [],
  };
  if (socket?.kind !== "socket") return facts;
  try {
    using cri = createCriClient({ endpoint, requestTimeoutMs: CALL_MS_MAX, clock });
    const version = await cri.runtime.version({}, signal);
    const status = await cri.runtime.status({ verbose: true }, signal);
    const settings = parseSettings(status.info?.config);
    using imageClient = createCriClient({ endpoint: imageEndpoint, requestTimeoutMs: CALL_MS_MAX, clock });
    const isMissing = async (image: string): Promise<boolean> =>
      (await imageClient.images.imageStatus({ image: { image } }, signal)).image === undefined;
    const { sandboxImage } = settings;
    const info = await imageClient.images.imageFsInfo({}, signal).catch(() => undefined);
    const missing = await Promise.all(images.map(isMissing));
    return {
      ...facts,
      version,
      status,
      settings,
      hasSandboxImage: sandboxImage === undefined ? undefined : !(await isMissing(sandboxImage)),
      imageDirectories: (info?.imageFilesystems ?? []).flatMap(({ fsId }) => fsId?.mountpoint ?? []),
      missingImages: images.filter((_, index) => missing[index]),
    };
  } catch (error) {
    return { ...facts, error: error instanceof Error ? error.message : String(error) };
  }
}

type Json = Readonly<Record<string, unknown>>;

/** The CRI configuration of containerd 1.6 to 2.x; other runtimes report other fields, or none. */
export function parseSettings(text: string | undefined): RuntimeSettings {
  let config: Json;
  try {
    config = asObject(JSON.parse(text ?? "{}"));
  } catch {
    return noSettings;
  }
  const cni = asObject(config.cni);
  const containerd = asObject(config.containerd);
  const runtime = asObject(asObject(containerd.runtimes)[asText(containerd.defaultRuntimeName) ?? "runc"]);
  const binDirs = [cni.binDir, ...(Array.isArray(cni.binDirs) ? cni.binDirs : [])].flatMap(
    (each) => asText(each) ?? [],
  );
  return {
    sandboxImage: asText(config.sandboxImage),
    restrictsOomScore: asBoolean(config.restrictOOMScoreAdj),
    cniBinDirs: binDirs.length > 0 ? [...new Set(binDirs)] : undefined,
    cniConfDir: asText(cni.confDir),
    systemdCgroup: asBoolean(asObject(runtime.options).SystemdCgroup),
  };
}

function asObject(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : {};
}

function asText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function asBoolean(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}
