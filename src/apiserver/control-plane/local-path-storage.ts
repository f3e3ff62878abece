/** The permissions of the embedded local path provisioner, and the storage class of its volumes. */
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import { clusterRoleBindingKind } from "../../api/rbac/cluster-role-binding/kind.ts";
import { storageClassKind } from "../../api/storage/storage-class/kind.ts";
import {
  LOCAL_PATH_ACCOUNT,
  LOCAL_PATH_CLASS,
  LOCAL_PATH_PROVISIONER,
} from "../../controllers/volumes/local-path/local-path-names.ts";
import type { Registries } from "../../registry/registries.ts";
import { ensure, systemScope } from "./ensure.ts";

const GROUP = "rbac.authorization.svc.io";
const ROLE = `svc:controller:${LOCAL_PATH_ACCOUNT}`;

const rules = [
  { apiGroups: [""], resources: ["persistentvolumes"], verbs: ["get", "list", "watch", "create", "update", "delete"] },
  { apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: ["get", "list", "watch", "patch"] },
  { apiGroups: [""], resources: ["persistentvolumeclaims/status"], verbs: ["update"] },
  { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch"] },
  // To create and remove directories.
  { apiGroups: [""], resources: ["nodes/proxy"], verbs: ["create"] },
  { apiGroups: ["", "events.svc.io"], resources: ["events"], verbs: ["create", "patch", "update"] },
  { apiGroups: ["storage.svc.io"], resources: ["storageclasses"], verbs: ["get", "list", "watch"] },
];

/** Creates missing objects; changed ones are left as they are. */
export async function ensureLocalPathStorage(
  registries: Registries,
  { storageClass }: { readonly storageClass: boolean },
  signal: AbortSignal,
): Promise<void> {
  const scope = { ...systemScope("", signal), group: GROUP };
  await ensure(registries.of(clusterRoleKind), scope, { metadata: { name: ROLE }, rules });
  await ensure(registries.of(clusterRoleBindingKind), scope, {
    metadata: { name: ROLE },
    roleRef: { apiGroup: GROUP, kind: "ClusterRole", name: ROLE },
    subjects: [{ kind: "ServiceAccount", namespace: "kube-system", name: LOCAL_PATH_ACCOUNT }],
  });
  if (!storageClass) return;
  await ensure(
    registries.of(storageClassKind),
    { ...scope, group: storageClassKind.group },
    {
      metadata: {
        name: LOCAL_PATH_CLASS,
        annotations: { "storageclass.kubernetes.io/is-default-class": "true" },
      },
      provisioner: LOCAL_PATH_PROVISIONER,
      reclaimPolicy: "Delete",
      volumeBindingMode: "WaitForFirstConsumer",
      allowVolumeExpansion: true,
    },
  );
}
