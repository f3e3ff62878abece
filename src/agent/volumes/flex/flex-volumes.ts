/** Attaches and mounts Flex volumes for the node when the driver supports it, and mounts them for each pod. */
import { lstat, mkdir, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { KeyedMutex } from "../../../std/async/keyed-mutex.ts";
import { type Directories, podDir, podsDir } from "../../pods/directories.ts";
import { podName, podNamespace, podUid } from "../../pods/pod-fields.ts";
import type { SecretSource } from "../csi/request-fields.ts";
import type { Attachments } from "../drivers/attachments.ts";
import { isMounted } from "../local/empty-dir.ts";
import type { Mounter } from "../mount/mounter.ts";
import { applyFsGroup } from "../mount/ownership.ts";
import { newPluginError, OperationError, runOperation } from "../operation-error.ts";
import type { VolumePath } from "../volume-path.ts";
import { type FlexDrivers, NoDriverError, NotSupportedError } from "./driver.ts";
import type { FlexVolume } from "./volume.ts";

export interface FlexVolumesOptions {
  readonly directories: Directories;
  readonly drivers: FlexDrivers;
  readonly attachments: Attachments;
  readonly secret: SecretSource;
  readonly mounter: Mounter;
  readonly nodeName: string;
}

export interface FlexRequest {
  readonly pod: Pod;
  /** The volume's name in the pod. */
  readonly name: string;
  readonly volume: FlexVolume;
  readonly signal?: AbortSignal | undefined;
}

/** Written beside the mount, for the agent that unmounts it. */
interface FlexRecord {
  readonly driver: string;
  readonly specName: string;
  readonly podVolume: string;
  /** The driver's name of the volume; empty when the driver does not attach. */
  readonly volumeName: string;
  readonly readOnly: boolean;
}

const SUFFIX = ".flex.json";

export class FlexVolumes {
  readonly #options: FlexVolumesOptions;
  /** By volume, so that pods that share a volume attach it once. */
  readonly #mutex = new KeyedMutex();

  constructor(options: FlexVolumesOptions) {
    this.#options = options;
  }

  async find(uid: string, name: string): Promise<VolumePath | undefined> {
    const record = (await this.#records(uid)).find(({ podVolume }) => podVolume === name);
    if (record === undefined) return undefined;
    const path = this.#targetPath(uid, record);
    return (await isMounted(this.#options.mounter, path)) ? { path, isBlock: false } : undefined;
  }

  /** Idempotent. Rejects with an `OperationError`. */
  async setUp(request: FlexRequest): Promise<VolumePath> {
    const { pod, name, volume, signal } = request;
    const { driver, specName, readOnly } = volume;
    const step = { volume: specName, event: "FailedMount", signal } as const;
    const options = await runOperation("MountVolume.SetUp", step, () => this.#driverOptions(request));
    const { attach, fsGroup } = await runOperation("MountVolume.SetUp", step, () =>
      this.#options.drivers.capabilities(driver, signal),
    ).catch((error: unknown) => {
      throw error instanceof OperationError && error.cause instanceof NoDriverError ? newPluginError(name) : error;
    });
    const volumeName = attach ? await this.#volumeName(volume, options, signal) : "";
    const uid = podUid(pod);
    const record = { driver, specName, podVolume: name, volumeName, readOnly };
    const path = this.#targetPath(uid, record);
    await this.#write(uid, record);
    if (attach) {
      await this.#mutex.run(`${driver}/${volumeName}`, () => this.#mountDevice(request, record, options));
    }
    await runOperation("MountVolume.SetUp", step, async () => {
      await mkdir(path, { recursive: true, mode: 0o750 });
      try {
        await this.#options.drivers.call(driver, "mount", [path, JSON.stringify(options)], signal);
      } catch (error) {
        if (!(error instanceof NotSupportedError)) throw error;
        await this.#options.mounter.bind(this.#deviceMountPath(record), path);
      }
      const group = pod.spec?.securityContext?.fsGroup;
      if (!readOnly && fsGroup && group !== undefined) await applyFsGroup(path, { group, readOnly: false });
    });
    return { path, isBlock: false };
  }

  /** Rejects while a driver fails. */
  async tearDown(uid: string): Promise<void> {
    for (const record of await this.#records(uid)) {
      const path = this.#targetPath(uid, record);
      if (await isMounted(this.#options.mounter, path)) await this.#unmount(record.driver, "unmount", path);
      await removeEmptyDirectory(path);
      if (record.volumeName !== "") {
        await this.#mutex.run(`${record.driver}/${record.volumeName}`, () => this.#unmountDevice(uid, record));
      }
      await rm(this.#file(uid, record), { force: true });
    }
  }

  async #volumeName(
    volume: FlexVolume,
    options: Readonly<Record<string, string>>,
    signal: AbortSignal | undefined,
  ): Promise<string> {
    try {
      const response = await this.#options.drivers.call(
        volume.driver,
        "getvolumename",
        [JSON.stringify(options)],
        signal,
      );
      return response.volumeName || volume.specName;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof NotSupportedError) return volume.specName;
      throw new OperationError("MountVolume.SetUp", volume.specName, "FailedMount", error);
    }
  }

  async #mountDevice(
    { pod, volume, signal }: FlexRequest,
    record: FlexRecord,
    options: Readonly<Record<string, string>>,
  ): Promise<void> {
    const { drivers, attachments, mounter, nodeName } = this.#options;
    const { driver, specName } = volume;
    const target = this.#deviceMountPath(record);
    if (await isMounted(mounter, target)) return;
    const unique = `flexvolume-${driver}/${record.volumeName}`;
    const optionsJson = JSON.stringify(options);
    let device = "";
    if (attachments.byController) device = await attachments.waitForDevice(unique, specName, podUid(pod));
    else {
      const step = { volume: specName, event: "FailedAttachVolume", signal } as const;
      device = await runOperation("AttachVolume.Attach", step, async () => {
        const response = await drivers
          .call(driver, "attach", [optionsJson, nodeName], signal)
          .catch(ignoreNotSupported);
        return response?.device ?? "";
      });
    }
    const wait = { volume: specName, event: "FailedMount", signal } as const;
    device = await runOperation("MountVolume.WaitForAttach", wait, async () => {
      const response = await drivers
        .call(driver, "waitforattach", [device, optionsJson], signal)
        .catch(ignoreNotSupported);
      return response?.device || device;
    });
    await runOperation("MountVolume.MountDevice", wait, async () => {
      await mkdir(target, { recursive: true, mode: 0o750 });
      await drivers.call(driver, "mountdevice", [target, device, optionsJson], signal);
    });
  }

  async #unmountDevice(uid: string, record: FlexRecord): Promise<void> {
    const { drivers, attachments, mounter, nodeName } = this.#options;
    const { driver, volumeName } = record;
    const unique = `flexvolume-${driver}/${volumeName}`;
    const others = await this.#otherRecords(uid);
    if (!others.some((each) => each.driver === driver && each.volumeName === volumeName)) {
      const target = this.#deviceMountPath(record);
      if (await isMounted(mounter, target)) await this.#unmount(driver, "unmountdevice", target);
      await removeEmptyDirectory(target);
      if (!attachments.byController)
        await drivers.call(driver, "detach", [volumeName, nodeName]).catch(ignoreNotSupported);
    }
    attachments.unmarkInUse(unique, uid);
  }

  /** Unmounts the path itself when the driver does not support the command. */
  async #unmount(driver: string, command: string, path: string): Promise<void> {
    try {
      await this.#options.drivers.call(driver, command, [path]);
    } catch (error) {
      if (!(error instanceof NotSupportedError)) throw error;
      await this.#options.mounter.unmount(path);
    }
  }

  async #driverOptions({ pod, volume }: FlexRequest): Promise<Readonly<Record<string, string>>> {
    const { secret } = this.#options;
    const { fsType, readOnly, options, specName } = volume;
    const group = pod.spec?.securityContext?.fsGroup;
    const secrets: Record<string, string> = {};
    if (volume.secret !== undefined) {
      const { namespace, name } = volume.secret;
      const found = await secret(namespace, name);
      if (found === undefined)
        throw new Error(`Couldn't get secret ${namespace}/${name} err: secrets "${name}" not found`);
      for (const [key, value] of Object.entries(found)) {
        secrets[`kubernetes.io/secret/${key}`] = Buffer.from(value).toString("base64");
      }
    }
    return {
      ...options,
      "kubernetes.io/fsType": fsType,
      "kubernetes.io/readwrite": readOnly ? "ro" : "rw",
      "kubernetes.io/pvOrVolumeName": specName,
      ...(group === undefined ? {} : { "kubernetes.io/mounterArgs.FsGroup": String(group) }),
      "kubernetes.io/pod.name": podName(pod),
      "kubernetes.io/pod.namespace": podNamespace(pod),
      "kubernetes.io/pod.uid": podUid(pod),
      "kubernetes.io/serviceAccount.name": pod.spec?.serviceAccountName ?? "",
      ...secrets,
    };
  }

  #targetPath(uid: string, { driver, specName }: FlexRecord): string {
    return join(podDir(this.#options.directories, uid), "volumes", driver.replaceAll("/", "~"), specName);
  }

  /** Mount point of the device for all pods of the node. */
  #deviceMountPath({ driver, volumeName }: FlexRecord): string {
    const { rootDir } = this.#options.directories;
    return join(rootDir, "plugins", "kubernetes.io", "flexvolume", driver, "mounts", volumeName);
  }

  #file(uid: string, record: FlexRecord): string {
    return `${this.#targetPath(uid, record)}${SUFFIX}`;
  }

  async #write(uid: string, record: FlexRecord): Promise<void> {
    const path = this.#file(uid, record);
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    await writeFile(path, JSON.stringify(record), { mode: 0o600 });
  }

  async #otherRecords(uid: string): Promise<readonly FlexRecord[]> {
    const uids = await readdir(podsDir(this.#options.directories)).catch(() => []);
    const found = await Promise.all(uids.filter((each) => each !== uid).map((each) => this.#records(each)));
    return found.flat();
  }

  async #records(uid: string): Promise<readonly FlexRecord[]> {
    const volumes = join(podDir(this.#options.directories, uid), "volumes");
    const records: FlexRecord[] = [];
    for (const plugin of await readdir(volumes).catch(() => [])) {
      if (plugin.startsWith("kubernetes.io~")) continue;
      for (const name of await readdir(join(volumes, plugin)).catch(() => [])) {
        if (name.endsWith(SUFFIX)) records.push(JSON.parse(await readFile(join(volumes, plugin, name), "utf8")));
      }
    }
    return records;
  }
}

function ignoreNotSupported(error: unknown): undefined {
  if (error instanceof NotSupportedError) return undefined;
  throw error;
}

/** Removes an empty directory only: its content, if any, is user data. */
async function removeEmptyDirectory(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined) await rmdir(path);
}
