/**
 * Converts the names in stored values: the magic bytes and the groups of the project, which the embedded store has, and
 * those of Kubernetes, which etcd has. The object itself is the same in both.
 */
import type { Kind } from "../../api/kind.ts";
import { formatApiVersion, kubernetesGroup, parseApiVersion, svcGroup } from "../../api/scheme.ts";
import { decodeEnvelope, encodeEnvelope, type Magic } from "../../schema/protobuf/envelope.ts";
import { ENCRYPTED_PREFIX } from "../encryption/transformer.ts";
import type { Snapshot, SnapshotItem } from "./snapshot.ts";

type NamedKind = Pick<Kind, "group" | "kind">;

export interface ConversionCounts {
  converted: number;
  /** These keep the names that are inside them; both are read. */
  encrypted: number;
}

/** `kinds`: the built-in ones. The groups of custom resources are those of their definitions and stay. */
export function convertNames(
  snapshot: Snapshot,
  names: Magic,
  kinds: readonly NamedKind[],
  counts: ConversionCounts,
): Snapshot {
  const convert = createConverter(names, kinds);
  return {
    revision: snapshot.revision,
    async *parts() {
      [counts.converted, counts.encrypted] = [0, 0];
      for await (const part of snapshot.parts()) {
        yield part.map((item): SnapshotItem => {
          const value = convert(item.value);
          if (value === "encrypted") counts.encrypted++;
          if (typeof value === "string") return item;
          counts.converted++;
          return { ...item, value };
        });
      }
    },
  };
}

/** Returns the value with the other names, or why it stays as it is. */
export function createConverter(
  names: Magic,
  kinds: readonly NamedKind[],
): (value: Uint8Array) => Uint8Array | "encrypted" | "same" {
  const builtIn = new Set(kinds.map(({ group, kind }) => `${kind} ${kubernetesGroup(group)}`));
  const rename = (apiVersion: string, kind: string): string => {
    const { group, version } = parseApiVersion(apiVersion) ?? { group: "", version: "" };
    if (!builtIn.has(`${kind} ${kubernetesGroup(group)}`)) return apiVersion;
    return formatApiVersion(names === "k8s" ? kubernetesGroup(group) : svcGroup(group), version);
  };
  return (value) => {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    const start = bytes.toString("latin1", 0, ENCRYPTED_PREFIX.length);
    if (start === ENCRYPTED_PREFIX) return "encrypted";
    if (start.startsWith("k8s\0") || start.startsWith("svc\0")) {
      const { magic, apiVersion, kind, raw } = decodeEnvelope(bytes);
      const renamed = rename(apiVersion, kind);
      return magic === names && renamed === apiVersion
        ? "same"
        : encodeEnvelope(names, { apiVersion: renamed, kind }, raw);
    }
    return convertText(bytes, rename);
  };
}

/** JSON or YAML: only `apiVersion` changes. */
function convertText(bytes: Buffer, rename: (apiVersion: string, kind: string) => string): Uint8Array | "same" {
  const text = bytes.toString();
  if (!Buffer.from(text).equals(bytes)) return "same";
  const isJson = text.startsWith("{");
  const identity = isJson ? readJsonIdentity(text) : readYamlIdentity(text);
  if (identity === undefined) return "same";
  const { apiVersion, kind } = identity;
  const renamed = rename(apiVersion, kind);
  if (renamed === apiVersion) return "same";
  if (!isJson) return Buffer.from(text.replace(/^apiVersion:.*$/m, () => `apiVersion: ${renamed}`));
  return Buffer.from(JSON.stringify({ ...(JSON.parse(text) as object), apiVersion: renamed }));
}

interface Identity {
  readonly apiVersion: string;
  readonly kind: string;
}

function readJsonIdentity(text: string): Identity | undefined {
  try {
    const { apiVersion, kind } = JSON.parse(text) as Partial<Identity>;
    return typeof apiVersion === "string" && typeof kind === "string" ? { apiVersion, kind } : undefined;
  } catch {
    return undefined;
  }
}

function readYamlIdentity(text: string): Identity | undefined {
  const read = (name: string): string | undefined =>
    new RegExp(`^${name}: *["']?([^"'\\s]+)["']? *$`, "m").exec(text)?.[1];
  const [apiVersion, kind] = [read("apiVersion"), read("kind")];
  return apiVersion === undefined || kind === undefined ? undefined : { apiVersion, kind };
}
