/** What the recorder's API server did to pods before the agent saw them, and ours leaves to others. */
import type { ApiJson, Json } from "./cases.ts";

const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME = "kube-api-access-abcde";

interface PodJson extends Json {
  readonly spec?: {
    readonly serviceAccountName?: string;
    readonly automountServiceAccountToken?: boolean;
    readonly containers?: readonly ContainerJson[];
    readonly initContainers?: readonly ContainerJson[];
    readonly volumes?: readonly Json[];
  };
}

interface ContainerJson extends Json {
  readonly volumeMounts?: readonly Json[];
}

/** With the service account that it runs as, and the account's token. */
export function admitted(pod: ApiJson): ApiJson {
  const { spec } = pod as PodJson;
  if (spec === undefined) return pod;
  const named = { ...spec, serviceAccountName: spec.serviceAccountName ?? "default" };
  if (spec.automountServiceAccountToken === false) return { ...pod, spec: named };
  const mount = { name: VOLUME, mountPath: MOUNT_PATH, readOnly: true };
  const mounted = (container: ContainerJson): ContainerJson => ({
    ...container,
    volumeMounts: [...(container.volumeMounts ?? []), mount],
  });
  return {
    ...pod,
    spec: {
      ...named,
      containers: (spec.containers ?? []).map(mounted),
      ...(spec.initContainers === undefined ? {} : { initContainers: spec.initContainers.map(mounted) }),
      volumes: [...(spec.volumes ?? []), { name: VOLUME, projected: { sources, defaultMode: 0o644 } }],
    },
  };
}

const namespacePath = { path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } };
const sources: readonly Json[] = [
  { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
  { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
  { downwardAPI: { items: [namespacePath] } },
];
