/** Sets volumes up before a pod's first container, refreshes them while it runs, tears them down after the last. */
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Volume } from "../../api/core/volume/schema.ts";
import { fileErrorText } from "../../std/fs/file-error.ts";
import { removeTree } from "../../std/fs/remove-tree.ts";
import { podDir, podsDir, volumeDir } from "../pods/directories.ts";
import type { NodeInfo } from "../pods/environment/downward-api.ts";
import { isStatic, podUid } from "../pods/pod-fields.ts";
import { type BoundClaim, type ClaimSource, claimName, resolveClaim } from "./claims.ts";
import type { VolumeCondition } from "./csi/volume-health.ts";
import type { DriverVolumes } from "./drivers/driver-volumes.ts";
import { type EmptyDirOptions, isMounted, memoryVolumeBytes, setUpEmptyDir } from "./local/empty-dir.ts";
import { cloneRepository, GIT_REPO_DISABLED } from "./local/git-repo.ts";
import { validateHostPath } from "./local/host-path.ts";
import { type LocalVolumeOptions, mountLocal } from "./local/local-volumes.ts";
import type { ProjectQuotas } from "./local/project-quotas.ts";
import { applyFsGroup, hasFsGroup } from "./mount/ownership.ts";
import { type MountRemote, mountNfs, toNfsVolume } from "./nfs/nfs-volume.ts";
import { newPluginError, OperationError, runOperation, UnresolvedError, type VolumeEvent } from "./operation-error.ts";
import { writeAtomically } from "./projected/atomic-writer.ts";
import {
  createDownwardPayload,
  type Payload,
  type PayloadContext,
  readConfigMapPayload,
  readProjectedPayload,
  readSecretPayload,
  type VolumeObjects,
} from "./projected/payload.ts";
import type { TokenManager } from "./projected/token-manager.ts";
import { SinglePodVolumes } from "./single-pod-volumes.ts";
import { usedVolumes } from "./used-volumes.ts";
import { checkVolume } from "./volume-checks.ts";
import type { VolumePath } from "./volume-path.ts";

/** Records operations on volumes. */
export interface VolumeObserver {
  /** One attempt, such as `volume_mount`. */
  onOperation(volume: Volume, operation: string, hasFailed: boolean, seconds: number): void;
  /** A volume is set up, `seconds` after the first attempt. */
  onSetUp(volume: Volume, seconds: number): void;
}

export interface VolumeManagerOptions extends LocalVolumeOptions {
  readonly objects: VolumeObjects;
  /** ConfigMaps and Secrets of the manifests; the only ones that static pods see. */
  readonly manifestObjects?: VolumeObjects;
  readonly node: () => NodeInfo;
  /** Undefined: none are known. */
  readonly nodeLabels?: () => Promise<Readonly<Record<string, string>>>;
  readonly tokens: TokenManager;
  readonly claims: ClaimSource;
  /** Undefined: volumes of drivers are not supported. */
  readonly drivers?: DriverVolumes;
  readonly metrics?: VolumeObserver | undefined;
  /** Counts what emptyDirs of pods in user namespaces use; undefined: they are measured by reading them. */
  readonly quotas?: Pick<ProjectQuotas, "monitor"> | undefined;
  /** Replaces the machine's mount program for network file systems. */
  readonly mountRemote?: MountRemote | undefined;
  /** Whether volumes are cloned by git. */
  readonly gitRepositories?: boolean | undefined;
}

/** A token that is due is renewed with the next refresh, not at once. */
const REFRESH_MIN_MS = 1_000;

export interface FailedVolume {
  readonly name: string;
  readonly message: string;
  /** Undefined: the volume waits for another component, and no event is recorded yet. */
  readonly event: VolumeEvent | undefined;
  /** The volume is not attached. */
  readonly isUnattached: boolean;
  /** Its claim cannot be used; an event about all volumes of the pod has the message. */
  readonly isUnresolved: boolean;
}

const GROUP_ANNOTATION = "pv.beta.kubernetes.io/gid";

function ignore(): void {}

/** Each may have all keys of a ConfigMap in memory; drivers are called for as many at a time. */
const VOLUMES_AT_ONCE = 16;
/** Interval at which drivers publish again and expand volumes. */
const DRIVER_REFRESH_MS = 60_000;

/** The volumes that failed. */
export class MountError extends Error {
  override readonly name = "MountError";
  readonly volumes: readonly FailedVolume[];

  constructor(volumes: MountError["volumes"]) {
    super(volumes.map(({ message }) => message).join("; "));
    this.volumes = volumes;
  }
}

/** Supported volume sources. */
const supported: readonly string[] = [
  "hostPath",
  "emptyDir",
  "configMap",
  "secret",
  "downwardAPI",
  "projected",
  "persistentVolumeClaim",
  "ephemeral",
  "csi",
  "flexVolume",
  "gitRepo",
  "nfs",
];

/** Sources that Kubernetes no longer has plugins for: such a pod waits, and events say why. */
const removed: readonly string[] = [
  "cephfs",
  "flocker",
  "glusterfs",
  "photonPersistentDisk",
  "quobyte",
  "rbd",
  "scaleIO",
  "storageos",
];

/** The source of a volume that is not supported; undefined when it is. */
export function findUnsupportedSource(volume: Volume, imageVolumes = false): string | undefined {
  const sources = Object.keys(volume).filter((key) => key !== "name" && volume[key as keyof Volume] !== undefined);
  const unknown = sources.find(
    (key) => !supported.includes(key) && !removed.includes(key) && !(imageVolumes && key === "image"),
  );
  if (unknown !== undefined) return unknown;
  const tokens = (volume.projected?.sources ?? []).flatMap((source) => Object.keys(source));
  return tokens.find((key) => key === "clusterTrustBundle");
}

export class VolumeManager {
  readonly #options: VolumeManagerOptions;
  /** Paths of volumes of claims and drivers, by pod and volume; `tearDown` removes a pod's. */
  readonly #paths = new Map<string, Map<string, VolumePath>>();
  /** The volumes that are set up, by pod. */
  readonly #ready = new Map<string, Set<string>>();
  /** Groups that persistent volumes name, by pod and volume; undefined: none. */
  readonly #groups = new Map<string, Map<string, number | undefined>>();
  readonly #singlePodVolumes = new SinglePodVolumes();
  /** When drivers were last called for a pod, in monotonic milliseconds. */
  readonly #refreshedAt = new Map<string, number>();
  /** First attempts of volumes that are not set up yet, by pod and volume, in monotonic milliseconds. */
  readonly #attemptedAt = new Map<string, Map<string, number>>();

  constructor(options: VolumeManagerOptions) {
    this.#options = options;
  }

  /**
   * Sets up every volume that a container uses. Idempotent. Rejects with a `MountError` of the volumes that fail, or
   * with the signal's reason.
   */
  async setUp(pod: Pod, podIps: readonly string[], signal?: AbortSignal): Promise<void> {
    await mkdir(podDir(this.#options.directories, podUid(pod)), { recursive: true, mode: 0o750 });
    const ready = this.#ready.get(podUid(pod)) ?? new Set<string>();
    this.#ready.set(podUid(pod), ready);
    const setUp = async (volume: Volume): Promise<void> => {
      await this.#measureSetUp(pod, volume, () => this.#setUpOne(pod, volume, podIps, signal));
      ready.add(volume.name);
    };
    await this.#each(usedVolumes(pod), setUp, signal);
    this.#refreshedAt.set(podUid(pod), this.#options.clock.monotonic());
  }

  /** Whether a container uses a volume that is not set up, such as a later ephemeral container. */
  needsSetUp(pod: Pod): boolean {
    const ready = this.#ready.get(podUid(pod));
    return usedVolumes(pod).some(({ name }) => ready?.has(name) !== true);
  }

  /** Writes changed ConfigMaps, Secrets, labels and new tokens. Rejects as `setUp` does. */
  async refresh(pod: Pod, podIps: readonly string[], signal?: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const askedAt = this.#refreshedAt.get(podUid(pod)) ?? Number.NEGATIVE_INFINITY;
    const isDue = clock.monotonic() - askedAt >= DRIVER_REFRESH_MS;
    if (isDue) this.#refreshedAt.set(podUid(pod), clock.monotonic());
    await this.#each(
      usedVolumes(pod),
      async (volume) => {
        if (isWrittenByAgent(volume)) await this.#setUpOne(pod, volume, podIps, signal);
        else if (isDue) await this.#refreshDriver(pod, volume, signal);
      },
      signal,
    );
  }

  /** Milliseconds until the pod's volumes need a refresh for their tokens; infinity when they have none. */
  refreshInMs(pod: Pod): number {
    return Math.max(REFRESH_MIN_MS, this.#options.tokens.renewInMs(podUid(pod)));
  }

  /** The host path of the volume. */
  path(pod: Pod, volume: Volume): string {
    if (volume.hostPath !== undefined) return volume.hostPath.path;
    const path = this.#paths.get(podUid(pod))?.get(volume.name);
    if (path !== undefined) return path.path;
    return volumeDir(this.#options.directories, podUid(pod), pluginDirectory(volume), volume.name);
  }

  /** What the volume's driver reports about it; undefined if it reports no conditions. */
  async readCondition(pod: Pod, volume: Volume, signal: AbortSignal): Promise<VolumeCondition | undefined> {
    return await this.#options.drivers?.readCondition(podUid(pod), volume.name, signal);
  }

  /** The groups that the pod's persistent volumes name in an annotation, and that its processes get. */
  groups(pod: Pod): readonly number[] {
    const all = [...(this.#groups.get(podUid(pod))?.values() ?? [])];
    return [...new Set(all.filter((group) => group !== undefined))];
  }

  /** Whether the volume is mounted with the SELinux label of the pod, so that the runtime need not relabel it. */
  isLabelled(pod: Pod, { name }: Volume): boolean {
    return this.#paths.get(podUid(pod))?.get(name)?.isLabelled === true;
  }

  /** The host path of a block volume; undefined for other volumes. */
  device(pod: Pod, name: string): string | undefined {
    const path = this.#paths.get(podUid(pod))?.get(name);
    return path?.isBlock === true ? path.path : undefined;
  }

  /** Unmounts and removes all of the pod's files below the root directory. Idempotent. */
  async tearDown(uid: string): Promise<void> {
    const directory = podDir(this.#options.directories, uid);
    const { mounter, drivers } = this.#options;
    // Bind mounts of subpaths are unmounted before their volume.
    const bound = join(directory, "volume-subpaths");
    for (const point of await mounter.listMountPoints(bound)) await mounter.unmount(point);
    await drivers?.tearDown(uid);
    for (const point of await mounter.listMountPoints(directory)) await mounter.unmount(point);
    // Mounts that are left were made by other programs.
    const [left] = await mounter.listMountPoints(directory);
    if (left !== undefined) throw new Error(`Cannot remove ${directory}: ${left} is still mounted`);
    await removeTree(directory);
    this.#options.tokens.forget(uid);
    this.#paths.delete(uid);
    this.#refreshedAt.delete(uid);
    this.#attemptedAt.delete(uid);
    this.#ready.delete(uid);
    this.#groups.delete(uid);
    this.#singlePodVolumes.removePod(uid);
  }

  /** Unmounts all volumes and keeps their files, since the pods will be started again. */
  async unmountAll(): Promise<void> {
    const { mounter, directories } = this.#options;
    for (const point of await mounter.listMountPoints(podsDir(directories))) await mounter.unmount(point);
  }

  async #measureSetUp(pod: Pod, volume: Volume, setUp: () => Promise<void>): Promise<void> {
    const { clock, metrics } = this.#options;
    const began = clock.monotonic();
    const attempts = this.#attemptedAt.get(podUid(pod)) ?? new Map<string, number>();
    this.#attemptedAt.set(podUid(pod), attempts);
    const firstBegan = attempts.get(volume.name) ?? began;
    attempts.set(volume.name, firstBegan);
    let hasFailed = true;
    try {
      await setUp();
      hasFailed = false;
      attempts.delete(volume.name);
      metrics?.onSetUp(volume, (clock.monotonic() - firstBegan) / 1000);
    } finally {
      metrics?.onOperation(volume, "volume_mount", hasFailed, (clock.monotonic() - began) / 1000);
    }
  }

  async #setUpOne(pod: Pod, volume: Volume, podIps: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    // The runtime mounts image volumes.
    if (volume.image !== undefined) return;
    if (volume.hostPath !== undefined) {
      await validateHostPath(volume.hostPath);
      return;
    }
    const directory = this.path(pod, volume);
    const group = pod.spec?.securityContext?.fsGroup;
    if (volume.emptyDir !== undefined) {
      const isNew = await setUpEmptyDir(this.#emptyDirOptions(), pod, volume, directory);
      // Other pods could change the project of their files, and with it what is counted.
      if (isNew && !volume.emptyDir.medium && pod.spec?.hostUsers === false)
        await this.#options.quotas?.monitor(directory);
      // Once only: after a restart of the agent the files in it have the owners that pods set.
      const rights = group === undefined ? undefined : { group, readOnly: false };
      if (rights !== undefined && !(await hasFsGroup(directory, rights))) await applyFsGroup(directory, rights);
      return;
    }
    if (volume.gitRepo !== undefined) {
      if (this.#options.gitRepositories !== true) throw new Error(GIT_REPO_DISABLED);
      await setUpEmptyDir(this.#emptyDirOptions(), pod, volume, directory);
      const plugin = join(podDir(this.#options.directories, podUid(pod)), "plugins", "kubernetes.io~git-repo");
      await cloneRepository(volume.gitRepo, directory, join(plugin, volume.name, "ready"), signal);
      if (group !== undefined) await applyFsGroup(directory, { group, readOnly: false });
      return;
    }
    if (isProvidedVolume(volume)) return await this.#setUpProvided(pod, volume, directory, signal);
    const payload = await this.#payload(pod, volume, podIps);
    await this.#makeDirectory(pod, directory, volume.configMap === undefined);
    await writeAtomically(directory, payload, this.#options.clock.now(), async () => {
      if (group !== undefined) await applyFsGroup(directory, { group, readOnly: true });
    });
  }

  /** A mounted volume stays, whatever happens to the claim, and needs no further API request. */
  async #setUpProvided(pod: Pod, volume: Volume, directory: string, signal: AbortSignal | undefined): Promise<void> {
    const { mounter, claims, drivers } = this.#options;
    const hasClaim = claimName(pod, volume) !== undefined;
    const known = await drivers?.find(podUid(pod), volume.name);
    if (known !== undefined || (await isMounted(mounter, directory))) {
      // Mounted by an agent before this one.
      if (hasClaim && this.#groups.get(podUid(pod))?.has(volume.name) !== true)
        await resolveClaim(claims, pod, volume).then((found) => {
          this.#recordGroup(pod, volume, found);
          this.#singlePodVolumes.add(podUid(pod), found.volume);
        }, ignore);
      return known && this.#recordPath(pod, volume, known);
    }
    const bound = hasClaim ? await resolveClaim(claims, pod, volume) : undefined;
    if (bound !== undefined) this.#recordGroup(pod, volume, bound);
    const { nodeLabels, node } = this.#options;
    if (bound !== undefined) {
      checkVolume(bound.volume, { name: node().name, labels: (await nodeLabels?.()) ?? {} });
      this.#singlePodVolumes.check(podUid(pod), bound.volume);
      this.#singlePodVolumes.add(podUid(pod), bound.volume);
    }
    try {
      const path =
        (await drivers?.setUp(pod, volume, bound, signal)) ?? (await this.#mountNfs(pod, volume, bound, signal));
      if (path !== undefined) return this.#recordPath(pod, volume, path);
      if (bound === undefined) throw newPluginError(volume.name);
      await this.#mountLocal(pod, volume, bound, directory, signal);
    } catch (error) {
      // A volume that may be mounted all the same is not released.
      if (bound !== undefined && signal?.aborted !== true) this.#singlePodVolumes.remove(podUid(pod), bound.volume);
      throw error;
    }
  }

  async #mountNfs(
    pod: Pod,
    volume: Volume,
    bound: BoundClaim | undefined,
    signal: AbortSignal | undefined,
  ): Promise<VolumePath | undefined> {
    const nfs = toNfsVolume(volume, bound);
    if (nfs === undefined) return undefined;
    const path = volumeDir(this.#options.directories, podUid(pod), "nfs", nfs.specName);
    const step = { volume: nfs.specName, event: "FailedMount", signal } as const;
    await runOperation("MountVolume.SetUp", step, () => mountNfs(nfs, path, this.#options, signal));
    return { path, isBlock: false };
  }

  async #mountLocal(
    pod: Pod,
    volume: Volume,
    bound: BoundClaim,
    directory: string,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const step = { volume: bound.volume.metadata?.name ?? volume.name, event: "FailedMount", signal } as const;
    const request = { pod, volume, bound: bound.volume, directory };
    const device = await runOperation("MountVolume.SetUp", step, () => mountLocal(request, this.#options));
    if (device !== undefined) this.#recordPath(pod, volume, device);
  }

  #recordGroup(pod: Pod, { name }: Volume, { volume: { metadata } }: BoundClaim): void {
    const own = this.#groups.get(podUid(pod)) ?? new Map<string, number | undefined>();
    const text = metadata?.annotations?.[GROUP_ANNOTATION] ?? "";
    this.#groups.set(podUid(pod), own.set(name, /^\d+$/.test(text) ? Number(text) : undefined));
  }

  #recordPath(pod: Pod, { name }: Volume, path: VolumePath): void {
    const own = this.#paths.get(podUid(pod)) ?? new Map<string, VolumePath>();
    this.#paths.set(podUid(pod), own.set(name, path));
  }

  async #refreshDriver(pod: Pod, volume: Volume, signal: AbortSignal | undefined): Promise<void> {
    const { drivers, claims } = this.#options;
    if (drivers === undefined || !this.#paths.get(podUid(pod))?.has(volume.name)) return;
    const bound = claimName(pod, volume) === undefined ? undefined : await resolveClaim(claims, pod, volume);
    await drivers.refresh(pod, volume, bound, signal);
  }

  async #each(
    volumes: readonly Volume[],
    work: (volume: Volume) => Promise<void>,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const waiting = volumes.entries();
    const failed = new Map<number, FailedVolume>();
    const workOn = async (): Promise<void> => {
      for (const [index, volume] of waiting) {
        if (signal?.aborted === true) return;
        await work(volume).catch((error: unknown) => failed.set(index, toFailedVolume(volume.name, error)));
      }
    };
    await Promise.all(Array.from({ length: Math.min(volumes.length, VOLUMES_AT_ONCE) }, workOn));
    signal?.throwIfAborted();
    if (failed.size > 0) throw new MountError([...failed].sort(([a], [b]) => a - b).map(([, each]) => each));
  }

  /** Secrets, tokens and downward API files are in memory, never on disk. */
  async #makeDirectory(pod: Pod, directory: string, inMemory: boolean): Promise<void> {
    const { mounter, memoryBytes } = this.#emptyDirOptions();
    const made = await mkdir(directory, { recursive: true, mode: 0o777 });
    if (made !== undefined) await chmod(directory, 0o777);
    if (inMemory && !(await isMounted(mounter, directory)))
      await mounter.tmpfs(directory, memoryVolumeBytes(pod, memoryBytes));
  }

  #emptyDirOptions(): EmptyDirOptions {
    return { mounter: this.#options.mounter, memoryBytes: this.#options.node().allocatable.memoryBytes };
  }

  async #payload(pod: Pod, volume: Volume, podIps: readonly string[]): Promise<Payload> {
    const { tokens, node, manifestObjects: ofManifests } = this.#options;
    const objects = isStatic(pod) ? (ofManifests ?? this.#options.objects) : this.#options.objects;
    const context: PayloadContext = {
      pod,
      podIps,
      node: node(),
      objects,
      token: (source) => tokens.getToken(pod, source),
    };
    if (volume.configMap !== undefined) return readConfigMapPayload(context, volume.configMap);
    if (volume.secret !== undefined) return readSecretPayload(context, volume.secret);
    if (volume.projected !== undefined) return readProjectedPayload(context, volume.projected);
    if (volume.downwardAPI !== undefined) {
      return createDownwardPayload(context, volume.downwardAPI.items, volume.downwardAPI.defaultMode);
    }
    throw newPluginError(volume.name);
  }
}

/** With kubelet's messages. */
function toFailedVolume(name: string, error: unknown): FailedVolume {
  const cause = error instanceof OperationError ? error.cause : error;
  const text = fileErrorText(cause) ?? (error instanceof Error ? error.message : String(error));
  if (error instanceof UnresolvedError) {
    return { name, message: text, event: undefined, isUnattached: false, isUnresolved: true };
  }
  if (error instanceof OperationError) {
    const message = `${error.operation} failed for volume "${error.volume}" : ${text}`;
    return { name, message, event: error.event, isUnattached: error.event !== "FailedMount", isUnresolved: false };
  }
  const message = `MountVolume.SetUp failed for volume "${name}" : ${text}`;
  return { name, message, event: "FailedMount", isUnattached: false, isUnresolved: false };
}

/** Whether the agent writes the volume's files. */
export function isWrittenByAgent(volume: Volume): boolean {
  const { emptyDir, hostPath, image, gitRepo } = volume;
  return !isProvidedVolume(volume) && [emptyDir, hostPath, image, gitRepo].every((each) => each === undefined);
}

/** Whether a claim, a driver or a server provides the volume. */
function isProvidedVolume({ persistentVolumeClaim, ephemeral, csi, flexVolume, nfs }: Volume): boolean {
  return [persistentVolumeClaim, ephemeral, csi, flexVolume, nfs].some((each) => each !== undefined);
}

export function isReadOnly({ persistentVolumeClaim, csi, flexVolume, nfs }: Volume): boolean {
  return [persistentVolumeClaim, csi, flexVolume, nfs].some((each) => each?.readOnly === true);
}

function pluginDirectory(volume: Volume): string {
  if (volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined) return "local-volume";
  if (volume.emptyDir !== undefined) return "empty-dir";
  if (volume.gitRepo !== undefined) return "git-repo";
  if (volume.nfs !== undefined) return "nfs";
  if (volume.configMap !== undefined) return "configmap";
  if (volume.secret !== undefined) return "secret";
  return volume.projected === undefined ? "downward-api" : "projected";
}
