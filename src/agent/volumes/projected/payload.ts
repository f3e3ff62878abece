/** The files of configMap, secret, downwardAPI and projected volumes. */
import type { Pod } from "../../../api/core/pod/schema.ts";
import type {
  ConfigMapVolumeSource,
  DownwardAPIVolumeFile,
  KeyToPath,
  ProjectedVolumeSource,
  SecretVolumeSource,
  ServiceAccountTokenProjection,
  VolumeProjection,
} from "../../../api/core/volume/schema.ts";
import { getMember } from "../../../schema/value/plain-object.ts";
import { type NodeInfo, resolveFieldRef, resolveResourceFieldRef } from "../../pods/environment/downward-api.ts";
import { appContainers, initContainers, podNamespace } from "../../pods/pod-fields.ts";
import { type FileContent, validatePath } from "./atomic-writer.ts";

/** Objects that volumes read: key → bytes; undefined when there is no such object. */
export interface VolumeObjects {
  configMap(namespace: string, name: string): Promise<Readonly<Record<string, Uint8Array>> | undefined>;
  secret(namespace: string, name: string): Promise<Readonly<Record<string, Uint8Array>> | undefined>;
}

export interface PayloadContext {
  readonly pod: Pod;
  readonly node: NodeInfo;
  readonly podIps: readonly string[];
  readonly objects: VolumeObjects;
  readonly token: (source: ServiceAccountTokenProjection) => Promise<string>;
}

export type Payload = ReadonlyMap<string, FileContent>;

const MODE = 0o644;

interface KeyedSource {
  readonly kind: "configMap" | "secret";
  readonly name: string;
  readonly items: readonly KeyToPath[] | undefined;
  readonly optional: boolean | undefined;
  readonly mode: number;
}

export function readConfigMapPayload(context: PayloadContext, source: ConfigMapVolumeSource): Promise<Payload> {
  const { name = "", items, optional, defaultMode = MODE } = source;
  return readKeyed(context, { kind: "configMap", name, items, optional, mode: defaultMode });
}

export function readSecretPayload(context: PayloadContext, source: SecretVolumeSource): Promise<Payload> {
  const { secretName: name = "", items, optional, defaultMode = MODE } = source;
  return readKeyed(context, { kind: "secret", name, items, optional, mode: defaultMode });
}

async function readKeyed(context: PayloadContext, source: KeyedSource): Promise<Payload> {
  const label = source.kind === "secret" ? "secret" : "configmap";
  const data = await context.objects[source.kind](podNamespace(context.pod), source.name);
  if (data === undefined && source.optional !== true) throw new Error(`${label} "${source.name}" not found`);
  const files = new Map<string, FileContent>();
  if (source.items === undefined || source.items.length === 0) {
    for (const [key, bytes] of Object.entries(data ?? {})) files.set(key, { data: bytes, mode: source.mode });
    return files;
  }
  for (const { key, path, mode } of source.items) {
    validatePath(path);
    const bytes = getMember(data, key);
    if (bytes !== undefined) files.set(path, { data: bytes, mode: mode ?? source.mode });
    else if (source.optional !== true) {
      throw new Error(
        label === "secret"
          ? `references non-existent secret key: ${key}`
          : `configmap references non-existent config key: ${key}`,
      );
    }
  }
  return files;
}

export function createDownwardPayload(
  context: PayloadContext,
  items: readonly DownwardAPIVolumeFile[] | undefined,
  mode: number | undefined,
): Payload {
  const files = new Map<string, FileContent>();
  /** Equal texts are in memory once. */
  const encoded = new Map<string, Buffer>();
  for (const item of items ?? []) {
    validatePath(item.path);
    const text =
      item.fieldRef !== undefined
        ? resolveFieldRef(context.pod, item.fieldRef.fieldPath, context.node, context.podIps)
        : item.resourceFieldRef === undefined
          ? ""
          : resolveResourceFieldRef(context.pod, undefined, item.resourceFieldRef, context.node);
    const data = encoded.get(text) ?? Buffer.from(text);
    encoded.set(text, data);
    files.set(item.path, { data, mode: item.mode ?? mode ?? MODE });
  }
  return files;
}

/** The last source of a path wins. Rejects with the errors of all sources, in kubelet's format. */
export async function readProjectedPayload(context: PayloadContext, source: ProjectedVolumeSource): Promise<Payload> {
  const files = new Map<string, FileContent>();
  const errors: string[] = [];
  for (const part of source.sources ?? []) {
    try {
      const content = await readProjection(context, part, source.defaultMode ?? MODE);
      for (const [path, file] of content) files.set(path, file);
    } catch (error) {
      errors.push(error instanceof Error ? error.message : String(error));
    }
  }
  if (errors.length > 0) throw new Error(errors.length === 1 ? errors[0] : `[${errors.join(", ")}]`);
  return files;
}

async function readProjection(context: PayloadContext, part: VolumeProjection, mode: number): Promise<Payload> {
  if (part.configMap !== undefined) {
    const { name = "", items, optional } = part.configMap;
    return readKeyed(context, { kind: "configMap", name, items, optional, mode });
  }
  if (part.secret !== undefined) {
    const { name = "", items, optional } = part.secret;
    return readKeyed(context, { kind: "secret", name, items, optional, mode });
  }
  if (part.downwardAPI !== undefined) return createDownwardPayload(context, part.downwardAPI.items, mode);
  if (part.serviceAccountToken !== undefined) return requestTokenPayload(context, part.serviceAccountToken, mode);
  throw new Error("projected source clusterTrustBundle is not supported by this agent");
}

/** For pods with a single user or an fsGroup the file has mode 0600. */
async function requestTokenPayload(
  context: PayloadContext,
  source: ServiceAccountTokenProjection,
  mode: number,
): Promise<Payload> {
  validatePath(source.path);
  const owner = findCommonUser(context.pod);
  const isPrivate = owner !== undefined || context.pod.spec?.securityContext?.fsGroup !== undefined;
  const data = Buffer.from(await context.token(source));
  return new Map([[source.path, { data, mode: isPrivate ? 0o600 : mode, ...(owner === undefined ? {} : { owner }) }]]);
}

/** The user that all containers run as; undefined when they differ, or when an image sets it. */
function findCommonUser(pod: Pod): number | undefined {
  const shared = pod.spec?.securityContext?.runAsUser;
  const containers = [...initContainers(pod), ...appContainers(pod)];
  const [first, ...others] = new Set(containers.map(({ securityContext }) => securityContext?.runAsUser ?? shared));
  return others.length === 0 ? first : undefined;
}
