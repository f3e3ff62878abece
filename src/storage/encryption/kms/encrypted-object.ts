/** Reads, writes and checks `EncryptedObject` as Kubernetes does, with its errors. */
import { createHash } from "node:crypto";
import { dns1123Label, dns1123Subdomain } from "../../../api/meta/validation/names.ts";
import { decodeProtobuf } from "../../../schema/protobuf/decode.ts";
import { encodeProtobuf } from "../../../schema/protobuf/encode.ts";
import {
  type FieldError,
  invalidField,
  renderFieldErrors,
  requiredField,
} from "../../../schema/validation/field-error.ts";
import { aggregateErrors } from "../transformer.ts";
import { DEK_SOURCE, type EncryptedObject, encryptedObject } from "./protocol.ts";

const ANNOTATIONS_BYTES_MAX = 32 * 1024;
const KEY_ID_BYTES_MAX = 1024;
const DEK_SOURCE_BYTES_MAX = 1024;

/** Throws for bytes that are no valid object. */
export function decodeEncryptedObject(bytes: Uint8Array): EncryptedObject {
  const decoded = decodeProtobuf(encryptedObject, bytes);
  checkEncryptedObject(decoded);
  return decoded;
}

export function encodeEncryptedObject(value: EncryptedObject): Uint8Array {
  checkEncryptedObject(value);
  return encodeProtobuf(encryptedObject, value);
}

/** Throws for an object that Kubernetes would not store. */
export function checkEncryptedObject({
  encryptedData = new Uint8Array(),
  keyID = "",
  encryptedDEKSource = new Uint8Array(),
  annotations = {},
  encryptedDEKSourceType: type = 0,
}: EncryptedObject): void {
  if (type !== DEK_SOURCE.aesGcmKey && type !== DEK_SOURCE.hkdfSha256ExtendedNonceSeed) {
    throw new Error(`unknown encryptedDEKSourceType: ${type}`);
  }
  if (encryptedData.length === 0) throw new Error("encrypted data is empty");
  const { length } = encryptedDEKSource;
  if (length === 0) throw new Error("failed to validate encrypted DEK source: encrypted DEK source is empty");
  if (length > DEK_SOURCE_BYTES_MAX) {
    const why = `encrypted DEK source is ${length} bytes, which exceeds the max size of ${DEK_SOURCE_BYTES_MAX}`;
    throw new Error(`failed to validate encrypted DEK source: ${why}`);
  }
  const keyError = checkKeyId(keyID);
  if (keyError !== undefined) throw new Error(`failed to validate key id: ${keyError.message}`);
  checkAnnotations(annotations);
}

/** Undefined for a valid key ID; `code` is the label value of metrics. */
export function checkKeyId(keyId: string): { readonly code: string; readonly message: string } | undefined {
  if (keyId === "") return { code: "empty", message: "keyID is empty" };
  const bytes = Buffer.byteLength(keyId);
  if (bytes <= KEY_ID_BYTES_MAX) return undefined;
  return { code: "too_long", message: `keyID is ${bytes} bytes, which exceeds the max size of ${KEY_ID_BYTES_MAX}` };
}

function checkAnnotations(annotations: Readonly<Record<string, Uint8Array>>): void {
  const errors: string[] = [];
  let total = 0;
  for (const [name, value] of Object.entries(annotations)) {
    const found = validateDomainName(name);
    if (found.length > 0) errors.push(renderFieldErrors(found));
    total += Buffer.byteLength(name) + value.length;
  }
  if (total > ANNOTATIONS_BYTES_MAX) {
    errors.push(`total size of annotations is ${total}, which exceeds the max size of ${ANNOTATIONS_BYTES_MAX}`);
  }
  if (errors.length > 0) throw new Error(`failed to validate annotations: ${aggregateErrors(errors)}`);
}

function validateDomainName(text: string): readonly FieldError[] {
  const path = "annotations";
  if (text === "") return [requiredField(path)];
  const name = text.endsWith(".") ? text.slice(0, -1) : text;
  const problems = dns1123Subdomain(name);
  if (problems.length > 0) return [invalidField(path, name, problems.join(","))];
  const labels = name.split(".");
  if (labels.length < 2) {
    return [invalidField(path, name, "should be a domain with at least two segments separated by dots")];
  }
  return labels.flatMap((label) => dns1123Label(label).map((problem) => invalidField(path, label, problem)));
}

/** Identifies a data key: two values with the same key text have the same data key. */
export function dataKeyText({
  encryptedDEKSourceType: type = 0,
  encryptedDEKSource = new Uint8Array(),
  keyID = "",
  annotations = {},
}: EncryptedObject): string {
  const hash = createHash("sha256");
  const add = (bytes: Uint8Array | string): void => {
    hash.update(`${Buffer.byteLength(bytes)}:`).update(bytes);
  };
  hash.update(`${type}:`);
  add(encryptedDEKSource);
  add(keyID);
  for (const name of Object.keys(annotations).sort()) {
    add(name);
    add(annotations[name] ?? "");
  }
  return hash.digest("base64");
}

/** Logs and errors show the hash, since a key ID may reveal where keys are. */
export function keyIdHash(keyId: string): string {
  return keyId === "" ? "" : `sha256:${createHash("sha256").update(keyId).digest("hex")}`;
}
