/** Creates and expands volumes for claims. */
import type { Node } from "../../../api/core/node/schema.ts";
import { persistentVolumeKind } from "../../../api/core/persistent-volume/kind.ts";
import type { PersistentVolume } from "../../../api/core/persistent-volume/schema.ts";
import { storageClassNameOf } from "../../../api/core/persistent-volume/storage-class-name.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import type { PersistentVolumeClaim } from "../../../api/core/persistent-volume-claim/schema.ts";
import type { StorageClass } from "../../../api/storage/storage-class/schema.ts";
import type { Client } from "../../../client/client.ts";
import type { EventRecorder } from "../../../client/events/event-recorder.ts";
import type { Informer } from "../../../client/informer/informer.ts";
import { statusCodeOf } from "../../api-errors.ts";
import { objectReference } from "../../workload/object-keys.ts";
import { messageOf } from "../../workload/pod-control.ts";
import { storageOf } from "../binder/volume-matching.ts";
import { PROVISIONED_BY, SELECTED_NODE } from "../volume-annotations.ts";
import { LOCAL_PATH_PROVISIONER } from "./local-path-names.ts";
import { ensureDirectory } from "./node-volumes.ts";

/** Delays the deletion of a volume until its directory is removed; the name is that of all external provisioners. */
export const PROVISIONER_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer";
export const HOSTNAME_LABEL = "kubernetes.io/hostname";

export interface ProvisioningDeps {
  readonly client: Client;
  readonly recorder: EventRecorder;
  readonly volumes: Informer<PersistentVolume>;
  readonly classes: Informer<StorageClass>;
  readonly nodes: Informer<Node>;
}

/** Does nothing for a claim that waits for a node, or that has a volume which is not bound yet. */
export async function provisionVolume(
  deps: ProvisioningDeps,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<void> {
  const storageClass = deps.classes.get(storageClassNameOf(claim));
  const volumeName = `pvc-${claim.metadata?.uid}`;
  if (storageClass?.provisioner !== LOCAL_PATH_PROVISIONER || claim.metadata?.deletionTimestamp !== undefined) return;
  if (deps.volumes.get(volumeName) !== undefined) return;
  const selected = claim.metadata?.annotations?.[SELECTED_NODE];
  if (selected === undefined && storageClass.volumeBindingMode === "WaitForFirstConsumer") return;
  const record = (type: "Normal" | "Warning", reason: string, message: string): void =>
    deps.recorder.record(objectReference(claim), type, reason, message);
  const key = `${claim.metadata?.namespace}/${claim.metadata?.name}`;
  try {
    const problem = findUnsupported(claim);
    if (problem !== undefined) throw new Error(problem);
    record("Normal", "Provisioning", `External provisioner is provisioning volume for claim ${JSON.stringify(key)}`);
    const node = selected === undefined ? chooseNode(deps) : deps.nodes.get(selected);
    if (node === undefined) {
      await reschedule(deps, claim, signal);
      throw new Error(selected === undefined ? "no node is ready" : `node ${JSON.stringify(selected)} not found`);
    }
    const { storage = "0" } = claim.spec?.resources?.requests ?? {};
    const path = await ensureDirectory(deps.client, node.metadata?.name ?? "", volumeName, storage, signal);
    await deps.client.create(persistentVolumeKind, buildVolume(claim, storageClass, node, path), signal);
  } catch (error) {
    signal.throwIfAborted();
    if (statusCodeOf(error) === 409 && deps.volumes.get(volumeName) !== undefined) return;
    const className = JSON.stringify(storageClass.metadata?.name);
    const message = `failed to provision volume with StorageClass ${className}: ${messageOf(error)}`;
    record("Warning", "ProvisioningFailed", message);
    throw error;
  }
  record("Normal", "ProvisioningSucceeded", `Successfully provisioned volume ${volumeName}`);
}

function findUnsupported({ spec = {} }: PersistentVolumeClaim): string | undefined {
  if (spec.selector !== undefined) return "claim.spec.selector is not supported";
  if (spec.dataSource !== undefined || spec.dataSourceRef !== undefined)
    return "claim.spec.dataSource is not supported";
  return spec.volumeMode === "Block" ? "volume mode Block is not supported" : undefined;
}

/** For classes that bind immediately: the first node by name that is ready and takes pods. */
function chooseNode({ nodes }: ProvisioningDeps): Node | undefined {
  const isUsable = ({ spec, status }: Node): boolean =>
    spec?.unschedulable !== true &&
    (status?.conditions ?? []).some((condition) => condition.type === "Ready" && condition.status === "True");
  const byName = (a: Node, b: Node): number => ((a.metadata?.name ?? "") < (b.metadata?.name ?? "") ? -1 : 1);
  return [...nodes.list()].filter(isUsable).sort(byName)[0];
}

/** Without the annotation the scheduler selects another node. */
async function reschedule(
  { client }: ProvisioningDeps,
  { metadata }: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<void> {
  if (metadata?.annotations?.[SELECTED_NODE] === undefined) return;
  const { name = "", namespace } = metadata;
  const patch = { metadata: { annotations: { [SELECTED_NODE]: null } } };
  await client.patch(persistentVolumeClaimKind, { name, namespace }, "merge", patch, { signal });
}

function buildVolume(
  claim: PersistentVolumeClaim,
  { metadata: className, reclaimPolicy = "Delete", mountOptions }: StorageClass,
  node: Node,
  path: string,
): PersistentVolume {
  const { name, namespace, uid, resourceVersion } = claim.metadata ?? {};
  const hostname = node.metadata?.labels?.[HOSTNAME_LABEL] ?? node.metadata?.name ?? "";
  const onNode = { matchExpressions: [{ key: HOSTNAME_LABEL, operator: "In" as const, values: [hostname] }] };
  return {
    metadata: {
      name: `pvc-${uid}`,
      annotations: { [PROVISIONED_BY]: LOCAL_PATH_PROVISIONER },
      finalizers: [PROVISIONER_FINALIZER],
    },
    spec: {
      capacity: { storage: claim.spec?.resources?.requests?.storage ?? "0" },
      accessModes: claim.spec?.accessModes,
      claimRef: { apiVersion: "v1", kind: "PersistentVolumeClaim", name, namespace, uid, resourceVersion },
      persistentVolumeReclaimPolicy: reclaimPolicy,
      storageClassName: className?.name,
      volumeMode: "Filesystem",
      mountOptions,
      local: { path },
      nodeAffinity: { required: { nodeSelectorTerms: [onNode] } },
    },
  };
}

/** The node whose host name label the volume's node affinity has; undefined if there is no such node. */
export function nodeOfVolume({ spec }: PersistentVolume, nodes: Informer<Node>): Node | undefined {
  const [term] = spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const hostname = term?.matchExpressions?.find(({ key }) => key === HOSTNAME_LABEL)?.values?.[0];
  for (const node of nodes.list()) {
    const { labels, name } = node.metadata ?? {};
    if (hostname !== undefined && (labels?.[HOSTNAME_LABEL] ?? name) === hostname) return node;
  }
  return undefined;
}

/** Sets the quota of the directory and then the capacity of the volume and of its claim. */
export async function expandVolume(
  deps: ProvisioningDeps,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<void> {
  const volume = deps.volumes.get(claim.spec?.volumeName ?? "");
  const requested = claim.spec?.resources?.requests ?? {};
  const isOwn = volume?.metadata?.annotations?.[PROVISIONED_BY] === LOCAL_PATH_PROVISIONER;
  if (volume === undefined || !isOwn || volume.spec?.claimRef?.uid !== claim.metadata?.uid) return;
  if (claim.status?.phase !== "Bound" || storageOf(requested) <= storageOf(claim.status.capacity)) return;
  const { name = "" } = volume.metadata ?? {};
  const { storage = "0" } = requested;
  const record = (type: "Normal" | "Warning", reason: string, message: string): void =>
    deps.recorder.record(objectReference(claim), type, reason, message);
  record("Normal", "Resizing", `External resizer is resizing volume ${name}`);
  try {
    const node = nodeOfVolume(volume, deps.nodes);
    if (node === undefined) throw new Error("the node of the volume not found");
    await ensureDirectory(deps.client, node.metadata?.name ?? "", name, storage, signal);
    if (storageOf(volume.spec?.capacity) < storageOf(requested)) {
      const spec = { ...volume.spec, capacity: { ...volume.spec?.capacity, storage } };
      await deps.client.update(persistentVolumeKind, { ...volume, spec }, signal);
    }
    const status = { ...claim.status, capacity: { ...claim.status.capacity, storage } };
    await deps.client.updateStatus(persistentVolumeClaimKind, { ...claim, status }, signal);
  } catch (error) {
    signal.throwIfAborted();
    record("Warning", "VolumeResizeFailed", `resize volume ${JSON.stringify(name)} failed: ${messageOf(error)}`);
    throw error;
  }
  record("Normal", "VolumeResizeSuccessful", "Resize volume succeeded");
}
