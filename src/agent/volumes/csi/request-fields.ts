/** Fields of requests to CSI drivers. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { CSIDriver } from "../../../api/storage/csi-driver/schema.ts";
import { podName, podNamespace, podUid } from "../../pods/pod-fields.ts";
import { contextOption } from "../mount/selinux.ts";
import type { TokenManager } from "../projected/token-manager.ts";
import type { VolumeCapability } from "./messages.ts";
import type { CsiVolume, SecretName } from "./volume.ts";

export type SecretSource = (
  namespace: string,
  name: string,
) => Promise<Readonly<Record<string, Uint8Array>> | undefined>;

export interface CapabilityOptions {
  /** The driver supports SINGLE_NODE_MULTI_WRITER. */
  readonly supportsSingleNode: boolean;
  /** The driver applies this fsGroup. */
  readonly group: string | undefined;
  /** The SELinux label of the mount. */
  readonly seLinuxContext?: string | undefined;
}

export function toVolumeCapability(
  { isBlock, fsType, mountOptions, accessModes }: CsiVolume,
  { supportsSingleNode, group, seLinuxContext }: CapabilityOptions,
): VolumeCapability {
  const mode = toAccessMode(accessModes[0] ?? "ReadWriteOnce", supportsSingleNode);
  if (isBlock) return { block: {}, accessMode: { mode } };
  const mountFlags = [...mountOptions, ...(seLinuxContext === undefined ? [] : [contextOption(seLinuxContext)])];
  const mount = { fsType, mountFlags, ...(group === undefined ? {} : { volumeMountGroup: group }) };
  return { mount, accessMode: { mode } };
}

function toAccessMode(
  mode: string,
  supportsSingleNode: boolean,
): NonNullable<NonNullable<VolumeCapability["accessMode"]>["mode"]> {
  switch (mode) {
    case "ReadWriteMany":
      return "MULTI_NODE_MULTI_WRITER";
    case "ReadOnlyMany":
      return "MULTI_NODE_READER_ONLY";
    case "ReadWriteOncePod":
      return supportsSingleNode ? "SINGLE_NODE_SINGLE_WRITER" : "SINGLE_NODE_WRITER";
    default:
      return supportsSingleNode ? "SINGLE_NODE_MULTI_WRITER" : "SINGLE_NODE_WRITER";
  }
}

/** The volume's attributes, and the pod information and tokens that the CSIDriver object requests. */
export async function createVolumeContext(
  { attributes, isEphemeral }: CsiVolume,
  pod: Pod,
  driver: CSIDriver | undefined,
  tokens: Pick<TokenManager, "getIssuedToken">,
): Promise<Readonly<Record<string, string>>> {
  const context: Record<string, string> = { ...attributes };
  if (driver?.spec.podInfoOnMount === true) {
    context["csi.storage.k8s.io/pod.name"] = podName(pod);
    context["csi.storage.k8s.io/pod.namespace"] = podNamespace(pod);
    context["csi.storage.k8s.io/pod.uid"] = podUid(pod);
    context["csi.storage.k8s.io/serviceAccount.name"] = pod.spec?.serviceAccountName ?? "";
    context["csi.storage.k8s.io/ephemeral"] = String(isEphemeral);
  }
  const requests = driver?.spec.tokenRequests ?? [];
  if (requests.length === 0) return context;
  const issued: Record<string, unknown> = {};
  for (const { audience, expirationSeconds } of requests) {
    const { token, expirationTimestamp } = await tokens.getIssuedToken(pod, { audience, expirationSeconds });
    issued[audience] = { token, expirationTimestamp };
  }
  context["csi.storage.k8s.io/serviceAccount.tokens"] = JSON.stringify(issued);
  return context;
}

/** Rejects with kubelet's message; `what` is `NodePublishSecretRef`. */
export async function readSecrets(
  source: SecretSource,
  what: string,
  name: SecretName | undefined,
): Promise<Readonly<Record<string, string>>> {
  if (name === undefined) return {};
  const at = `${name.namespace}/${name.name}`;
  const found = await source(name.namespace, name.name).catch((error: unknown) => {
    throw new Error(`fetching ${what} ${at} failed: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  });
  if (found === undefined) {
    throw new Error(
      `fetching ${what} ${at} failed: failed to find secret ${name.name} in the namespace ${name.namespace} with ` +
        `error: secrets "${name.name}" not found`,
    );
  }
  return Object.fromEntries(Object.entries(found).map(([key, value]) => [key, Buffer.from(value).toString("utf8")]));
}

/** Whether the agent applies fsGroup to the volume, by fsGroupPolicy. */
export function agentAppliesFsGroup(volume: CsiVolume, driver: CSIDriver | undefined): boolean {
  if (volume.isBlock || volume.readOnly) return false;
  const policy = driver?.spec.fsGroupPolicy ?? "ReadWriteOnceWithFSType";
  if (policy !== "ReadWriteOnceWithFSType") return policy === "File";
  if (volume.fsType === "") return false;
  return volume.isEphemeral || volume.accessModes.some((mode) => /^ReadWriteOnce(Pod)?$/.test(mode));
}

/** Throws when the driver does not support ephemeral volumes. */
export function validateEphemeral({ driver: name }: CsiVolume, driver: CSIDriver | undefined): void {
  const refuse = (reason: string): Error =>
    new Error(
      "kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: " +
        `volume mode "Ephemeral" not supported by driver ${name} (${reason})`,
    );
  if (driver === undefined) throw refuse("no CSIDriver object");
  const modes = driver.spec.volumeLifecycleModes ?? ["Persistent"];
  if (modes.includes("Ephemeral")) return;
  throw refuse(`only supports [${modes.map((mode) => JSON.stringify(mode)).join(" ")}]`);
}
