/** Counts stored values by the provider and the key that encrypted them. No key is needed for that. */
import { decodeProtobuf } from "../../schema/protobuf/decode.ts";
import { normalizePrefix } from "../keys.ts";
import { prefixRange, type Store } from "../store.ts";
import { encryptedObject } from "./kms/protocol.ts";
import { createResourceFinder, resourceText, type StoredKind } from "./resource-of-key.ts";
import { ENCRYPTED_PREFIX } from "./transformer.ts";

export interface EncryptionCount {
  /** `secrets`, `deployments.apps`; `(other)` for keys of no resource. */
  readonly resource: string;
  /** `identity` for plain text, `aescbc`, `kms v2`; `unknown` for a prefix that is none of Kubernetes'. */
  readonly provider: string;
  /** The key's name; of KMS the plugin's name, and of version 2 its key ID. */
  readonly key: string;
  readonly keyId?: string | undefined;
  readonly values: number;
}

/** Names are short; this bounds what a value's first bytes are searched for. */
const PREFIX_BYTES_MAX = 1024;
/** `k8s:enc:PROVIDER:VERSION:KEY:` */
const ENCRYPTED = /^k8s:enc:(aescbc|aesgcm|secretbox|kms):(v1|v2):([^:]*):/;

/** In the order of resources, providers and keys. */
export async function countEncryption(
  store: Store,
  prefix: string,
  kinds: readonly StoredKind[],
): Promise<readonly EncryptionCount[]> {
  const resourceOf = createResourceFinder(prefix, kinds);
  const counts = new Map<string, EncryptionCount>();
  for await (const { items } of store.scan(prefixRange(normalizePrefix(prefix)))) {
    for (const { key, value } of items) {
      const found = resourceOf(key);
      const resource = found === undefined ? "(other)" : resourceText(found);
      const encryption = describeValue(value);
      const id = [resource, encryption.provider, encryption.key, encryption.keyId ?? ""].join("\0");
      counts.set(id, { resource, ...encryption, values: (counts.get(id)?.values ?? 0) + 1 });
    }
  }
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
}

function describeValue(value: Uint8Array): Pick<EncryptionCount, "provider" | "key" | "keyId"> {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const start = bytes.toString("utf8", 0, Math.min(bytes.length, PREFIX_BYTES_MAX));
  if (!start.startsWith(ENCRYPTED_PREFIX)) return { provider: "identity", key: "" };
  const [prefix, provider = "", version = "", key = ""] = ENCRYPTED.exec(start) ?? [];
  if (prefix === undefined) return { provider: "unknown", key: "" };
  if (provider !== "kms") return { provider, key };
  if (version === "v1") return { provider: "kms v1", key };
  return { provider: "kms v2", key, keyId: readKeyId(bytes.subarray(Buffer.byteLength(prefix))) };
}

function readKeyId(bytes: Uint8Array): string | undefined {
  try {
    return decodeProtobuf(encryptedObject, bytes).keyID;
  } catch {
    // A damaged value is counted all the same.
    return undefined;
  }
}
