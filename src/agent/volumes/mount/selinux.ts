/** SELinux labels of volumes: a mount with `context=` has its label at once, where relabelling visits every file. */
import { existsSync, readFileSync } from "node:fs";
import type { SELinuxOptions } from "../../../api/core/container/security-context.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { allContainers } from "../../pods/pod-fields.ts";

export interface SeLinux {
  isEnabled(): boolean;
  /** The text of a file; undefined when there is none. */
  readFile(path: string): string | undefined;
}

export const systemSeLinux: SeLinux = {
  isEnabled: () => existsSync("/sys/fs/selinux/enforce"),
  readFile: (path) => {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return undefined;
    }
  },
};

/** Which volumes are mounted with a context. */
export type SeLinuxMounts = "none" | "ReadWriteOncePod" | "all";

export interface LabelledVolume {
  /** The volume's name in the pod. */
  readonly name: string;
  /** Undefined: inline in the pod. */
  readonly accessModes: readonly string[] | undefined;
  /** Whether the driver mounts with `context=`. */
  readonly isSupported: boolean;
}

/** The context of the mount; undefined for a volume that the runtime relabels. Throws kubelet's error. */
export function findMountContext(
  pod: Pod,
  { name, accessModes, isSupported }: LabelledVolume,
  mounts: SeLinuxMounts,
  seLinux: SeLinux,
): string | undefined {
  const shared = pod.spec?.securityContext;
  const isSelected = mounts === "all" || (mounts === "ReadWriteOncePod" && accessModes?.join() === "ReadWriteOncePod");
  if (!isSupported || !isSelected || shared?.seLinuxChangePolicy === "Recursive" || !seLinux.isEnabled())
    return undefined;
  const labels = new Set<string | undefined>();
  for (const { spec } of allContainers(pod)) {
    if (spec.volumeMounts?.some((mount) => mount.name === name) !== true) continue;
    const options = spec.securityContext?.seLinuxOptions ?? shared?.seLinuxOptions;
    if (options !== undefined && Object.values(options).some(Boolean)) labels.add(fileLabel(options, seLinux));
  }
  if (labels.size > 1) throw new Error(`multiple SELinux labels found: ${[...labels].join(", ")}`);
  return [...labels][0];
}

/** As in Kubernetes, quoted: a label contains commas. */
export function contextOption(label: string): string {
  return `context=${JSON.stringify(label)}`;
}

/** The label of files of containers with these options; undefined where the runtime chooses a level of its own. */
function fileLabel({ user, level }: SELinuxOptions, seLinux: SeLinux): string | undefined {
  const standard = readStandardLabel(seLinux)?.split(":");
  if (!level || standard === undefined || standard.length < 3) return undefined;
  const [standardUser, role, type] = standard;
  return [user || standardUser, role, type, level].join(":");
}

/** The host's label of containers' files, which `container-selinux` or the policy sets. */
function readStandardLabel({ readFile }: SeLinux): string | undefined {
  const policy = readSetting(readFile("/etc/selinux/config"), "SELINUXTYPE") ?? "targeted";
  const contexts =
    readFile("/usr/share/containers/selinux/contexts") ?? readFile(`/etc/selinux/${policy}/contexts/lxc_contexts`);
  return readSetting(contexts, "file");
}

/** The value of `name = "value"`. */
function readSetting(text: string | undefined, name: string): string | undefined {
  for (const line of text?.split("\n") ?? []) {
    const at = line.indexOf("=");
    if (at !== -1 && line.slice(0, at).trim() === name)
      return line
        .slice(at + 1)
        .trim()
        .replace(/^"(.*)"$/, "$1");
  }
  return undefined;
}
