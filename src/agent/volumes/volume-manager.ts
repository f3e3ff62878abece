/** Volumes of pods: set up before the first container, refreshed while it runs, gone after the last. */
import { chmod, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Pod } from "../../api/core/pod.ts";
import type { Volume } from "../../api/core/volume.ts";
import type { Clock } from "../../std/clock.ts";
import { type Directories, podDir, podsDir, volumeDir } from "../pods/directories.ts";
import type { NodeFacts } from "../pods/downward.ts";
import { isStatic, podUid } from "../pods/pod-fields.ts";
import { writeAtomically } from "./atomic-writer.ts";
import { ClaimError, type ClaimSource, claimedPath, claimName } from "./claims.ts";
import { isMounted, setUpEmptyDir } from "./empty-dir.ts";
import { checkHostPath } from "./host-path.ts";
import type { Mounter } from "./mounter.ts";
import { belongsToGroup, giveToGroup } from "./ownership.ts";
import {
  configMapPayload,
  downwardPayload,
  type Payload,
  type PayloadContext,
  projectedPayload,
  secretPayload,
  type VolumeObjects,
} from "./payload.ts";
import type { TokenManager } from "./token-manager.ts";

export interface VolumeManagerOptions {
  readonly directories: Directories;
  readonly mounter: Mounter;
  readonly clock: Clock;
  readonly objects: VolumeObjects;
  /** What lies beside static pods; these see nothing else. */
  readonly ofManifests?: VolumeObjects;
  readonly node: () => NodeFacts;
  readonly tokens: TokenManager;
  readonly claims: ClaimSource;
}

/** What is due already is looked at with everything else. */
const GOOD_FOR_MIN_MS = 1_000;

/** What to say in FailedMount events: a line for each volume that fails. */
export class MountError extends Error {
  override readonly name = "MountError";
  readonly volumes: readonly { readonly name: string; readonly message: string }[];

  constructor(volumes: MountError["volumes"]) {
    super(volumes.map(({ message }) => message).join("; "));
    this.volumes = volumes;
  }
}

/** Sources the agent can provide; any other is refused by name. */
const supported: readonly string[] = [
  "hostPath",
  "emptyDir",
  "configMap",
  "secret",
  "downwardAPI",
  "projected",
  "persistentVolumeClaim",
  "ephemeral",
];

/** The source of a volume that cannot be provided; undefined when it can. */
export function unsupportedSource(volume: Volume): string | undefined {
  const sources = Object.keys(volume).filter((key) => key !== "name" && volume[key as keyof Volume] !== undefined);
  const unknown = sources.find((key) => !supported.includes(key));
  if (unknown !== undefined) return unknown;
  const tokens = (volume.projected?.sources ?? []).flatMap((source) => Object.keys(source));
  return tokens.find((key) => key === "clusterTrustBundle");
}

export class VolumeManager {
  readonly #options: VolumeManagerOptions;

  constructor(options: VolumeManagerOptions) {
    this.#options = options;
  }

  /** Sets every volume up; repeating it is harmless. Rejects with a `MountError` of the volumes that fail. */
  async setUp(pod: Pod, podIps: readonly string[]): Promise<void> {
    await mkdir(podDir(this.#options.directories, podUid(pod)), { recursive: true, mode: 0o750 });
    await this.#each(pod.spec?.volumes ?? [], (volume) => this.#setUpOne(pod, volume, podIps));
  }

  /** Brings changed ConfigMaps, Secrets, labels and new tokens into running pods. Rejects as `setUp` does. */
  async refresh(pod: Pod, podIps: readonly string[]): Promise<void> {
    const written = (pod.spec?.volumes ?? []).filter(isWritten);
    await this.#each(written, (volume) => this.#setUpOne(pod, volume, podIps));
  }

  /** How long the pod's volumes stay as good as they are if nobody changes anything; infinity: for ever. */
  goodForMs(pod: Pod): number {
    const { tokens, clock } = this.#options;
    return Math.max(GOOD_FOR_MIN_MS, tokens.renewAtMs(podUid(pod)) - clock.now());
  }

  /** Where the volume is on the host. */
  path(pod: Pod, volume: Volume): string {
    if (volume.hostPath !== undefined) return volume.hostPath.path;
    return volumeDir(this.#options.directories, podUid(pod), pluginOf(volume), volume.name);
  }

  /** Unmounts and removes all that is the pod's below the root directory. Harmless when there is nothing. */
  async tearDown(uid: string): Promise<void> {
    const directory = podDir(this.#options.directories, uid);
    const { mounter } = this.#options;
    for (const point of await mounter.below(directory)) await mounter.unmount(point);
    // Whatever is still mounted there belongs to others.
    const [left] = await mounter.below(directory);
    if (left !== undefined) throw new Error(`Cannot remove ${directory}: ${left} is still mounted`);
    await rm(directory, { recursive: true, force: true });
    this.#options.tokens.forget(uid);
  }

  /** Lets go of what pods keep mounted, without removing what is theirs on disk: they will be started again. */
  async unmountAll(): Promise<void> {
    const { mounter, directories } = this.#options;
    for (const point of await mounter.below(podsDir(directories))) await mounter.unmount(point);
  }

  async #setUpOne(pod: Pod, volume: Volume, podIps: readonly string[]): Promise<void> {
    if (volume.hostPath !== undefined) {
      await checkHostPath(volume.hostPath);
      return;
    }
    const directory = this.path(pod, volume);
    const group = pod.spec?.securityContext?.fsGroup;
    if (volume.emptyDir !== undefined) {
      await setUpEmptyDir(this.#options.mounter, pod, volume, directory);
      // Once only: what it holds when the agent was restarted has its owners.
      const rights = group === undefined ? undefined : { group, readOnly: false };
      if (rights !== undefined && !(await belongsToGroup(directory, rights))) await giveToGroup(directory, rights);
      return;
    }
    if (claimName(pod, volume) !== undefined) return await this.#claimed(pod, volume, directory);
    const payload = await this.#payload(pod, volume, podIps);
    await this.#makeDirectory(directory, volume.configMap === undefined);
    await writeAtomically(directory, payload, this.#options.clock.now(), async () => {
      if (group !== undefined) await giveToGroup(directory, { group, readOnly: true });
    });
  }

  /** Once mounted it stays, whatever becomes of the claim, and the API server need not be asked again. */
  async #claimed(pod: Pod, volume: Volume, directory: string): Promise<void> {
    const { mounter, claims } = this.#options;
    if (await isMounted(mounter, directory)) return;
    const path = await claimedPath(claims, pod, volume);
    if ((await stat(path)).isDirectory()) await mkdir(directory, { recursive: true, mode: 0o750 });
    else {
      await mkdir(dirname(directory), { recursive: true, mode: 0o750 });
      await writeFile(directory, "");
    }
    const { fsGroup: group, fsGroupChangePolicy: policy } = pod.spec?.securityContext ?? {};
    if (group !== undefined && !isReadOnly(volume)) {
      const rights = { group, readOnly: false };
      if (policy !== "OnRootMismatch" || !(await belongsToGroup(path, rights))) await giveToGroup(path, rights);
    }
    await mounter.bind(path, directory);
  }

  async #each(volumes: readonly Volume[], work: (volume: Volume) => Promise<void>): Promise<void> {
    const failed: { name: string; message: string }[] = [];
    for (const volume of volumes) {
      try {
        await work(volume);
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        failed.push({ name: volume.name, message: `${failureOf(volume.name, error)}: ${text}` });
      }
    }
    if (failed.length > 0) throw new MountError(failed);
  }

  /** Secrets, tokens and what names the pod never reach the disk. */
  async #makeDirectory(directory: string, inMemory: boolean): Promise<void> {
    const { mounter } = this.#options;
    const made = await mkdir(directory, { recursive: true, mode: 0o777 });
    if (made !== undefined) await chmod(directory, 0o777);
    if (inMemory && !(await isMounted(mounter, directory))) await mounter.tmpfs(directory, 0);
  }

  async #payload(pod: Pod, volume: Volume, podIps: readonly string[]): Promise<Payload> {
    const { tokens, node, ofManifests } = this.#options;
    const objects = isStatic(pod) ? (ofManifests ?? this.#options.objects) : this.#options.objects;
    const context: PayloadContext = {
      pod,
      podIps,
      node: node(),
      objects,
      token: (source) => tokens.token(pod, source),
    };
    if (volume.configMap !== undefined) return configMapPayload(context, volume.configMap);
    if (volume.secret !== undefined) return secretPayload(context, volume.secret);
    if (volume.projected !== undefined) return projectedPayload(context, volume.projected);
    if (volume.downwardAPI !== undefined) {
      return downwardPayload(context, volume.downwardAPI.items, volume.downwardAPI.defaultMode);
    }
    throw new Error(`volume source ${unsupportedSource(volume) ?? "(none)"} is not supported by this agent`);
  }
}

/** What Kubernetes calls it: a claim is looked at before anything is mounted. */
function failureOf(name: string, error: unknown): string {
  if (!(error instanceof ClaimError)) return `MountVolume.SetUp failed for volume "${name}" `;
  const lists = `unmounted volumes=[${name}], unattached volumes=[], failed to process volumes=[${name}]`;
  return `Unable to attach or mount volumes: ${lists}`;
}

/** Whether the agent itself writes what is in the volume. */
export function isWritten(volume: Volume): boolean {
  const { emptyDir, hostPath, persistentVolumeClaim, ephemeral } = volume;
  return [emptyDir, hostPath, persistentVolumeClaim, ephemeral].every((each) => each === undefined);
}

export function isReadOnly(volume: Volume): boolean {
  return volume.persistentVolumeClaim?.readOnly === true;
}

function pluginOf(volume: Volume): string {
  if (volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined) return "local-volume";
  if (volume.emptyDir !== undefined) return "empty-dir";
  if (volume.configMap !== undefined) return "configmap";
  if (volume.secret !== undefined) return "secret";
  return volume.projected === undefined ? "downward-api" : "projected";
}
