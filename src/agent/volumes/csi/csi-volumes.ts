/** Attaches CSI volumes, stages them once for the node, publishes them for each pod, and undoes all of it. */
import { lstat, mkdir, rm, rmdir, stat, symlink } from "node:fs/promises";
import { dirname } from "node:path";
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { CSIDriver } from "../../../api/storage/csi-driver/schema.ts";
import { KeyedMutex } from "../../../std/async/keyed-mutex.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { Directories } from "../../pods/directories.ts";
import type { PodEventRecorder } from "../../pods/pod-events.ts";
import { podUid } from "../../pods/pod-fields.ts";
import type { AttachableVolume, Attachments } from "../drivers/attachments.ts";
import { isMounted } from "../local/empty-dir.ts";
import type { Mounter } from "../mount/mounter.ts";
import { applyFsGroupToVolume, hasFsGroup } from "../mount/ownership.ts";
import { findMountContext, type SeLinux, type SeLinuxMounts, systemSeLinux } from "../mount/selinux.ts";
import { runOperation } from "../operation-error.ts";
import type { TokenManager } from "../projected/token-manager.ts";
import type { VolumePath } from "../volume-path.ts";
import type { CsiDriver } from "./driver.ts";
import type { CsiDriverRegistry } from "./driver-registry.ts";
import type { VolumeCapability } from "./messages.ts";
import {
  agentAppliesFsGroup,
  createVolumeContext,
  readSecrets,
  type SecretSource,
  toVolumeCapability,
  validateEphemeral,
} from "./request-fields.ts";
import { MAP_DEVICE, MAP_POD_DEVICE, MOUNT_DEVICE, SETUP } from "./steps.ts";
import { type CsiVolume, toAttachmentName, toUniqueName } from "./volume.ts";
import type { VolumeCondition } from "./volume-health.ts";
import { type CsiRecord, CsiRecords } from "./volume-records.ts";

export interface CsiVolumesOptions {
  readonly directories: Directories;
  readonly drivers: Pick<CsiDriverRegistry, "get">;
  /** The driver's CSIDriver object; undefined when there is none. */
  readonly driverObject: (name: string) => Promise<CSIDriver | undefined>;
  readonly attachments: Attachments;
  readonly secret: SecretSource;
  readonly tokens: TokenManager;
  readonly mounter: Mounter;
  readonly events: PodEventRecorder;
  readonly clock: Clock;
  readonly nodeName: string;
  /** Which volumes are mounted with a SELinux context; none when absent. */
  readonly seLinuxMounts?: SeLinuxMounts | undefined;
  /** The host's SELinux when absent. */
  readonly seLinux?: SeLinux | undefined;
}

export interface CsiRequest {
  readonly pod: Pod;
  /** The volume's name in the pod. */
  readonly name: string;
  readonly volume: CsiVolume;
  /** Set when the persistent volume is larger than the claim's status reports. */
  readonly expansion?: CsiExpansion | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface CsiExpansion {
  readonly bytes: bigint;
  readonly onExpanded: () => Promise<void>;
}

/** The inputs of the steps for one volume. */
interface CsiOperation {
  readonly request: CsiRequest;
  readonly driver: CsiDriver;
  readonly object: CSIDriver | undefined;
  readonly record: CsiRecord;
  /** attachmentMetadata of the VolumeAttachment. */
  readonly context: Readonly<Record<string, string>>;
  readonly stages: boolean;
  readonly capability: VolumeCapability;
}

export class CsiVolumes {
  readonly #options: CsiVolumesOptions;
  readonly #records: CsiRecords;
  /** By volume, so that pods that share a volume stage it once. */
  readonly #mutex = new KeyedMutex();

  constructor(options: CsiVolumesOptions) {
    this.#options = options;
    this.#records = new CsiRecords(options.directories);
  }

  /** Marks volumes that a previous agent mounted as in use, so that the controller does not detach them. */
  async recover(): Promise<void> {
    for (const { uid, record } of await this.#records.all()) {
      if (record.attachmentID !== "") this.#options.attachments.markInUse(recordUniqueName(record), uid);
    }
  }

  /** The path of a volume that is set up; undefined otherwise. */
  async find(uid: string, name: string): Promise<VolumePath | undefined> {
    const record = (await this.#records.forPod(uid)).find(({ podVolumes }) => podVolumes.includes(name));
    if (record === undefined) return undefined;
    const path = this.#volumePath(uid, record);
    return (await this.#exists(path)) ? path : undefined;
  }

  /** What the driver reports about a volume that is set up; undefined if it reports no conditions. */
  async readCondition(uid: string, name: string, signal: AbortSignal): Promise<VolumeCondition | undefined> {
    const record = (await this.#records.forPod(uid)).find(({ podVolumes }) => podVolumes.includes(name));
    if (record?.touched !== true) return undefined;
    const driver = this.#options.drivers.get(record.driverName);
    if (driver === undefined) return undefined;
    for (const capability of ["GET_VOLUME_STATS", "VOLUME_CONDITION"]) {
      if (!(await driver.hasCapability(capability, signal))) return undefined;
    }
    const { path: volumePath } = this.#volumePath(uid, record);
    const { volumeCondition } = await driver.stats({ volumeId: record.volumeHandle, volumePath }, signal);
    return { abnormal: volumeCondition?.abnormal ?? false, message: volumeCondition?.message ?? "" };
  }

  /** Idempotent. Rejects with an `OperationError`. */
  async setUp(request: CsiRequest): Promise<VolumePath> {
    return await this.#mutex.run(toUniqueName(request.volume), async () => {
      const work = await this.#prepare(request);
      const uid = podUid(request.pod);
      const path = this.#volumePath(uid, work.record);
      await this.#records.write(uid, { ...work.record, touched: true });
      if (work.stages) await this.#stage(work);
      await this.#publish(work, path);
      await this.#expand(work, path);
      return path;
    });
  }

  /** Publishes again for drivers with requiresRepublish, and expands the volume. */
  async refresh(request: CsiRequest): Promise<void> {
    const object = await this.#options.driverObject(request.volume.driver);
    if (object?.spec.requiresRepublish !== true && request.expansion === undefined) return;
    await this.#mutex.run(toUniqueName(request.volume), async () => {
      const work = await this.#prepare(request);
      const path = this.#volumePath(podUid(request.pod), work.record);
      if (object?.spec.requiresRepublish === true) await this.#publish(work, path);
      await this.#expand(work, path);
    });
  }

  /** Unpublishes the pod's volumes, and unstages and detaches unused ones. Rejects when a driver is not available. */
  async tearDown(uid: string): Promise<void> {
    for (const record of await this.#records.forPod(uid)) {
      await this.#mutex.run(recordUniqueName(record), () => this.#tearDownVolume(uid, record));
    }
    this.#options.attachments.removePod(uid);
    this.#options.tokens.forget(uid);
  }

  /** Writes the record, attaches the volume and collects what the steps need. */
  async #prepare(request: CsiRequest): Promise<CsiOperation> {
    const { volume, pod, name, signal } = request;
    const { drivers, driverObject, nodeName } = this.#options;
    const object = await driverObject(volume.driver);
    const isAttached = !volume.isEphemeral && object?.spec.attachRequired !== false;
    const uid = podUid(pod);
    const known = (await this.#records.forPod(uid)).find(({ specVolID }) => specVolID === volume.specName);
    const wasTouched = known?.touched ?? false;
    const seLinuxMountContext = wasTouched ? known?.seLinuxMountContext : await this.#mountContext(request, object);
    const record: CsiRecord = {
      specVolID: volume.specName,
      driverName: volume.driver,
      volumeHandle: volume.handle,
      volumeLifecycleMode: volume.isEphemeral ? "Ephemeral" : "Persistent",
      attachmentID: isAttached ? toAttachmentName(volume, nodeName) : "",
      nodeName,
      podVolumes: [...new Set([...(known?.podVolumes ?? []), name])],
      block: volume.isBlock,
      touched: wasTouched,
      ...(seLinuxMountContext === undefined ? {} : { seLinuxMountContext }),
    };
    await this.#records.write(uid, record);
    const context = isAttached ? await this.#attach(request, record.attachmentID) : {};
    const step = volume.isEphemeral ? SETUP : volume.isBlock ? MAP_DEVICE : MOUNT_DEVICE;
    return await runOperation(step.name, { volume: volume.specName, event: step.event, signal }, async () => {
      const driver = drivers.get(volume.driver);
      if (driver === undefined) throw new Error(`${step.prefix}${driverNotFound(volume.driver)}`);
      if (volume.isEphemeral) validateEphemeral(volume, object);
      const stages = !volume.isEphemeral && (await driver.hasCapability("STAGE_UNSTAGE_VOLUME", signal));
      const group = pod.spec?.securityContext?.fsGroup;
      const takesGroup = group !== undefined && (await driver.hasCapability("VOLUME_MOUNT_GROUP", signal));
      const capabilities = {
        supportsSingleNode: await driver.hasCapability("SINGLE_NODE_MULTI_WRITER", signal),
        group: takesGroup ? String(group) : undefined,
        seLinuxContext: seLinuxMountContext,
      };
      return { request, driver, object, record, context, stages, capability: toVolumeCapability(volume, capabilities) };
    });
  }

  /** Rejects where pods or containers that share the volume need different contexts. */
  async #mountContext(
    { pod, name, volume, signal }: CsiRequest,
    object: CSIDriver | undefined,
  ): Promise<string | undefined> {
    const { seLinuxMounts = "none", seLinux = systemSeLinux } = this.#options;
    if (seLinuxMounts === "none" || volume.isBlock) return undefined;
    const { specName, isEphemeral } = volume;
    return await runOperation(SETUP.name, { volume: specName, event: SETUP.event, signal }, async () => {
      const isSupported = object?.spec.seLinuxMount === true;
      const labelled = { name, accessModes: isEphemeral ? undefined : volume.accessModes, isSupported };
      const context = findMountContext(pod, labelled, seLinuxMounts, seLinux);
      if (!isSupported || !seLinux.isEnabled()) return context;
      const others = (await this.#records.all()).filter(
        ({ uid, record }) => uid !== podUid(pod) && recordUniqueName(record) === toUniqueName(volume),
      );
      const [other] = others.map(({ record }) => record.seLinuxMountContext);
      if (others.length > 0 && other !== context) {
        const labels = `${JSON.stringify(other ?? "")} and ${JSON.stringify(context ?? "")}`;
        throw new Error(`conflicting SELinux labels of volume ${specName}: ${labels}`);
      }
      return context;
    });
  }

  async #attach({ pod, volume, signal }: CsiRequest, attachment: string): Promise<Readonly<Record<string, string>>> {
    const wanted: AttachableVolume = {
      uniqueName: toUniqueName(volume),
      attachment,
      driver: volume.driver,
      handle: volume.handle,
      persistentVolume: volume.specName,
    };
    const { context, isNew } = await this.#options.attachments.ensureAttached(wanted, podUid(pod), signal);
    if (isNew) {
      const text = `AttachVolume.Attach succeeded for volume "${volume.specName}" `;
      this.#options.events.recordPodEvent(pod, "Normal", "SuccessfulAttachVolume", text);
    }
    return context;
  }

  async #stage({ request, driver, record, context, capability: volumeCapability }: CsiOperation): Promise<void> {
    const { volume, signal } = request;
    const { name, event } = volume.isBlock ? MAP_DEVICE : MOUNT_DEVICE;
    await runOperation(name, { volume: volume.specName, event, signal }, async () => {
      const stagingTargetPath = this.#records.stagingPath(record);
      const secrets = await readSecrets(this.#options.secret, "NodeStageSecretRef", volume.stageSecret);
      await mkdir(stagingTargetPath, { recursive: true, mode: 0o750 });
      await driver.stage(
        {
          volumeId: volume.handle,
          publishContext: context,
          stagingTargetPath,
          volumeCapability,
          secrets,
          volumeContext: volume.attributes,
        },
        signal,
      );
    });
  }

  async #publish(work: CsiOperation, path: VolumePath): Promise<void> {
    const { request, driver, object, record, context, stages, capability: volumeCapability } = work;
    const { volume, pod, signal } = request;
    const { secret, tokens } = this.#options;
    const { name, event } = volume.isBlock ? MAP_POD_DEVICE : SETUP;
    const targetPath = this.#targetPath(podUid(pod), record);
    await runOperation(name, { volume: volume.specName, event, signal }, async () => {
      const secrets = await readSecrets(secret, "NodePublishSecretRef", volume.publishSecret);
      const volumeContext = await createVolumeContext(volume, pod, object, tokens);
      // The driver creates the target itself.
      await mkdir(dirname(targetPath), { recursive: true, mode: 0o750 });
      await driver.publish(
        {
          volumeId: volume.handle,
          publishContext: context,
          ...(stages ? { stagingTargetPath: this.#records.stagingPath(record) } : {}),
          targetPath,
          volumeCapability,
          readonly: volume.readOnly,
          secrets,
          volumeContext,
        },
        signal,
      );
      if (volume.isBlock) await this.#linkDevice(request, targetPath, path);
      else if (volumeCapability.mount?.volumeMountGroup === undefined) await this.#applyFsGroup(work, targetPath);
    });
  }

  async #applyFsGroup({ request: { pod, name, volume }, object }: CsiOperation, path: string): Promise<void> {
    const { fsGroup: group, fsGroupChangePolicy: policy } = pod.spec?.securityContext ?? {};
    if (group === undefined || !agentAppliesFsGroup(volume, object)) return;
    const rights = { group, readOnly: false };
    if (policy === "OnRootMismatch" && (await hasFsGroup(path, rights))) return;
    await applyFsGroupToVolume(path, rights, { ...this.#options, pod, name });
  }

  async #linkDevice({ pod, volume: { specName } }: CsiRequest, device: string, { path }: VolumePath): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    const isNew = (await lstat(path).catch(() => undefined)) === undefined;
    await rm(path, { force: true });
    await symlink(device, path);
    if (!isNew) return;
    for (const what of [`globalMapPath "${dirname(device)}"`, `volumeMapPath "${dirname(path)}"`]) {
      const text = `MapVolume.MapPodDevice succeeded for volume "${specName}" ${what}`;
      this.#options.events.recordPodEvent(pod, "Normal", "SuccessfulMountVolume", text);
    }
  }

  async #expand(
    { request, driver, record, stages, capability: volumeCapability }: CsiOperation,
    path: VolumePath,
  ): Promise<void> {
    const { volume, expansion, pod, signal } = request;
    if (expansion === undefined || !(await driver.hasCapability("EXPAND_VOLUME", signal))) return;
    try {
      await driver.expand(
        {
          volumeId: volume.handle,
          volumePath: volume.isBlock ? this.#targetPath(podUid(pod), record) : path.path,
          capacityRange: { requiredBytes: expansion.bytes },
          ...(stages ? { stagingTargetPath: this.#records.stagingPath(record) } : {}),
          volumeCapability,
          secrets: await readSecrets(this.#options.secret, "NodeExpandSecretRef", volume.expandSecret),
        },
        signal,
      );
      await expansion.onExpanded();
      const text = `MountVolume.NodeExpandVolume succeeded for volume "${volume.specName}" ${this.#options.nodeName}`;
      this.#options.events.recordPodEvent(pod, "Normal", "FileSystemResizeSuccessful", text);
    } catch (error) {
      signal?.throwIfAborted();
      // The volume remains usable; the next refresh tries again.
      const message = error instanceof Error ? error.message : String(error);
      const text = `NodeExpandVolume.NodeExpandVolume failed for volume "${volume.specName}" : ${message}`;
      this.#options.events.recordPodEvent(pod, "Warning", "VolumeResizeFailed", text);
    }
  }

  async #tearDownVolume(uid: string, record: CsiRecord): Promise<void> {
    const { drivers, attachments, mounter } = this.#options;
    const others = (await this.#records.all()).some(
      (each) =>
        recordUniqueName(each.record) === recordUniqueName(record) &&
        (each.uid !== uid || each.record.specVolID !== record.specVolID),
    );
    if (record.touched) {
      const driver = drivers.get(record.driverName);
      if (driver === undefined)
        throw new Error(`Cannot unmount ${record.specVolID}: ${driverNotFound(record.driverName)}`);
      const targetPath = this.#targetPath(uid, record);
      await driver.unpublish({ volumeId: record.volumeHandle, targetPath });
      await removeMountPoint(mounter, targetPath);
      if (
        !others &&
        record.volumeLifecycleMode === "Persistent" &&
        (await driver.hasCapability("STAGE_UNSTAGE_VOLUME"))
      ) {
        const stagingTargetPath = this.#records.stagingPath(record);
        await driver.unstage({ volumeId: record.volumeHandle, stagingTargetPath });
        await removeMountPoint(mounter, stagingTargetPath);
      }
    }
    if (!others) await attachments.detach(record.attachmentID);
    attachments.unmarkInUse(recordUniqueName(record), uid);
    await this.#records.remove(uid, record);
  }

  #volumePath(uid: string, { specVolID, block, seLinuxMountContext }: CsiRecord): VolumePath {
    if (block === true) return { path: this.#records.deviceLink(uid, specVolID), isBlock: true };
    const isLabelled = seLinuxMountContext !== undefined;
    return { path: this.#records.mountPoint(uid, specVolID), isBlock: false, isLabelled };
  }

  /** The target path that the driver creates. */
  #targetPath(uid: string, { specVolID, block }: CsiRecord): string {
    return block === true ? this.#records.devicePath(uid, specVolID) : this.#records.mountPoint(uid, specVolID);
  }

  async #exists({ path, isBlock }: VolumePath): Promise<boolean> {
    if (isBlock) return (await stat(path).catch(() => undefined))?.isBlockDevice() === true;
    return await isMounted(this.#options.mounter, path);
  }
}

function driverNotFound(driver: string): string {
  return `driver name ${driver} not found in the list of registered CSI drivers`;
}

function recordUniqueName({ driverName: driver, volumeHandle: handle }: CsiRecord): string {
  return toUniqueName({ driver, handle });
}

/** Removes an empty directory only: its content, if any, is user data. */
async function removeMountPoint(mounter: Mounter, path: string): Promise<void> {
  for (const point of await mounter.listMountPoints(path)) await mounter.unmount(point);
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined) await (found.isDirectory() ? rmdir(path) : rm(path));
}
