/** What a driver is told of a volume and of the pod that wants it. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type { CSIDriver } from "../../../api/storage/csi-driver/schema.ts";
import { podName, podNamespace, podUid } from "../../pods/pod-fields.ts";
import type { TokenManager } from "../projected/token-manager.ts";
import type { VolumeCapability } from "./messages.ts";
import type { CsiVolume, SecretName } from "./volume.ts";

export type SecretSource = (
  namespace: string,
  name: string,
) => Promise<Readonly<Record<string, Uint8Array>> | undefined>;

/** `tellsSingle`: the driver knows the modes that tell one pod from many; `group`: it gives files to it itself. */
export function toVolumeCapability(
  { isBlock, fsType, mountOptions, accessModes }: CsiVolume,
  { tellsSingle, group }: { readonly tellsSingle: boolean; readonly group: string | undefined },
): VolumeCapability {
  const mode = toAccessMode(accessModes[0] ?? "ReadWriteOnce", tellsSingle);
  if (isBlock) return { block: {}, accessMode: { mode } };
  const mount = { fsType, mountFlags: [...mountOptions], ...(group === undefined ? {} : { volumeMountGroup: group }) };
  return { mount, accessMode: { mode } };
}

function toAccessMode(
  mode: string,
  tellsSingle: boolean,
): NonNullable<NonNullable<VolumeCapability["accessMode"]>["mode"]> {
  switch (mode) {
    case "ReadWriteMany":
      return "MULTI_NODE_MULTI_WRITER";
    case "ReadOnlyMany":
      return "MULTI_NODE_READER_ONLY";
    case "ReadWriteOncePod":
      return tellsSingle ? "SINGLE_NODE_SINGLE_WRITER" : "SINGLE_NODE_WRITER";
    default:
      return tellsSingle ? "SINGLE_NODE_MULTI_WRITER" : "SINGLE_NODE_WRITER";
  }
}

/** The volume's attributes and what the CSIDriver object asks to be told of the pod. */
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
  const wishes = driver?.spec.tokenRequests ?? [];
  if (wishes.length === 0) return context;
  const granted: Record<string, unknown> = {};
  for (const { audience, expirationSeconds } of wishes) {
    const { token, expirationTimestamp } = await tokens.getIssuedToken(pod, { audience, expirationSeconds });
    granted[audience] = { token, expirationTimestamp };
  }
  context["csi.storage.k8s.io/serviceAccount.tokens"] = JSON.stringify(granted);
  return context;
}

/** Rejects in Kubernetes' words; `what` is `NodePublishSecretRef`. */
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

/** Whether the agent gives the volume's files to the pod's group; otherwise they stay whose they are. */
export function agentAppliesFsGroup(volume: CsiVolume, driver: CSIDriver | undefined): boolean {
  if (volume.isBlock || volume.readOnly) return false;
  const policy = driver?.spec.fsGroupPolicy ?? "ReadWriteOnceWithFSType";
  if (policy !== "ReadWriteOnceWithFSType") return policy === "File";
  if (volume.fsType === "") return false;
  return volume.isEphemeral || volume.accessModes.some((mode) => /^ReadWriteOnce(Pod)?$/.test(mode));
}

/** Throws when the driver does not provide volumes that live with a pod. */
export function validateEphemeral({ driver: name }: CsiVolume, driver: CSIDriver | undefined): void {
  const refuse = (why: string): Error =>
    new Error(
      "kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: " +
        `volume mode "Ephemeral" not supported by driver ${name} (${why})`,
    );
  if (driver === undefined) throw refuse("no CSIDriver object");
  const modes = driver.spec.volumeLifecycleModes ?? ["Persistent"];
  if (modes.includes("Ephemeral")) return;
  throw refuse(`only supports [${modes.map((mode) => JSON.stringify(mode)).join(" ")}]`);
}
