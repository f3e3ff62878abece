/**
 * Records on disk of what is mounted for which pod, so that the next agent can unmount it without the API server. The
 * files are kubelet's `vol_data.json`, with the pod's names of the volume in addition.
 *
 *     pods/<uid>/volumes/kubernetes.io~csi/<volume>/vol_data.json         beside the mount point `mount`
 *     pods/<uid>/volumeDevices/kubernetes.io~csi/<volume>.vol_data.json   beside the link to the device
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Directories, podDir, podsDir } from "../../pods/directories.ts";
import { hash } from "./volume.ts";

export interface CsiRecord {
  readonly specVolID: string;
  readonly driverName: string;
  readonly volumeHandle: string;
  readonly volumeLifecycleMode: "Persistent" | "Ephemeral";
  /** Empty when the driver's volumes are not attached. */
  readonly attachmentID: string;
  readonly nodeName: string;
  /** The pod's names of the volume. */
  readonly podVolumes: readonly string[];
  /** Absent or false: a file system. */
  readonly block?: boolean;
  /** The SELinux label that the volume is mounted with. */
  readonly seLinuxMountContext?: string;
  /** Whether the driver was called; false: there is nothing to undo. */
  readonly touched: boolean;
}

const PLUGIN = "kubernetes.io~csi";
const FILE = "vol_data.json";

export class CsiRecords {
  readonly #directories: Directories;

  constructor(at: Directories) {
    this.#directories = at;
  }

  /** Mount point of a filesystem volume for the pod. */
  mountPoint(uid: string, specName: string): string {
    return join(podDir(this.#directories, uid), "volumes", PLUGIN, specName, "mount");
  }

  /** Symbolic link to the volume's device. */
  deviceLink(uid: string, specName: string): string {
    return join(podDir(this.#directories, uid), "volumeDevices", PLUGIN, specName);
  }

  /** Where the driver stages the volume for all pods of the node. */
  stagingPath({ driverName, volumeHandle, specVolID, block }: CsiRecord): string {
    const base = join(this.#directories.rootDir, "plugins", "kubernetes.io", "csi");
    if (block === true) return join(base, "volumeDevices", "staging", specVolID);
    return join(base, driverName, hash(volumeHandle), "globalmount");
  }

  /** Where the driver publishes the pod's device. */
  devicePath(uid: string, specName: string): string {
    return join(
      this.#directories.rootDir,
      "plugins",
      "kubernetes.io",
      "csi",
      "volumeDevices",
      "publish",
      specName,
      uid,
    );
  }

  /** Writes atomically. */
  async write(uid: string, record: CsiRecord): Promise<void> {
    const path = this.#file(uid, record);
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    await writeFile(`${path}.tmp`, JSON.stringify(record), { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  }

  async remove(uid: string, record: CsiRecord): Promise<void> {
    await rm(this.#file(uid, record), { force: true });
  }

  async forPod(uid: string): Promise<readonly CsiRecord[]> {
    const mounts = join(podDir(this.#directories, uid), "volumes", PLUGIN);
    const devices = join(podDir(this.#directories, uid), "volumeDevices", PLUGIN);
    const files = [
      ...(await listNames(mounts)).map((name) => join(mounts, name, FILE)),
      ...(await listNames(devices)).filter((name) => name.endsWith(`.${FILE}`)).map((name) => join(devices, name)),
    ];
    const records = await Promise.all(files.map(readRecord));
    return records.filter((record) => record !== undefined);
  }

  /** Records of all pods. */
  async all(): Promise<readonly { readonly uid: string; readonly record: CsiRecord }[]> {
    const uids = await listNames(podsDir(this.#directories));
    const found = await Promise.all(
      uids.map(async (uid) => (await this.forPod(uid)).map((record) => ({ uid, record }))),
    );
    return found.flat();
  }

  #file(uid: string, { block, specVolID }: CsiRecord): string {
    if (block === true) return `${this.deviceLink(uid, specVolID)}.${FILE}`;
    return join(dirname(this.mountPoint(uid, specVolID)), FILE);
  }
}

async function listNames(directory: string): Promise<readonly string[]> {
  return await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  });
}

/** kubelet's files have no podVolumes. Undefined for a malformed file. */
async function readRecord(path: string): Promise<CsiRecord | undefined> {
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const found = JSON.parse(text) as Partial<CsiRecord>;
    if (typeof found.driverName !== "string" || typeof found.volumeHandle !== "string") return undefined;
    if (typeof found.specVolID !== "string") return undefined;
    const mode = found.volumeLifecycleMode === "Ephemeral" ? "Ephemeral" : "Persistent";
    return {
      specVolID: found.specVolID,
      driverName: found.driverName,
      volumeHandle: found.volumeHandle,
      volumeLifecycleMode: mode,
      attachmentID: found.attachmentID ?? "",
      nodeName: found.nodeName ?? "",
      podVolumes: found.podVolumes ?? [found.specVolID],
      block: found.block === true,
      touched: found.touched !== false,
      ...(found.seLinuxMountContext ? { seLinuxMountContext: found.seLinuxMountContext } : {}),
    };
  } catch {
    return undefined;
  }
}
