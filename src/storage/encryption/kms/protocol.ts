/** The messages of KMS plugins, `v2` and `v1beta1`, and of the values that are encrypted with their keys. */

import { binary, int32, map, message, optional, string } from "../../../schema/define.ts";
import type { GrpcMethod } from "../../../schema/protobuf/grpc-method.ts";
import type { Infer } from "../../../schema/schema.ts";

const SERVICE = "KeyManagementService";

/** https://github.com/kubernetes/kms/blob/master/apis/v2/api.proto */
export const kmsV2 = {
  status: {
    path: `/v2.${SERVICE}/Status`,
    request: message("v2.StatusRequest", {}),
    response: message("v2.StatusResponse", {
      version: optional(1, string),
      healthz: optional(2, string),
      keyId: optional(3, string),
    }),
  },
  encrypt: {
    path: `/v2.${SERVICE}/Encrypt`,
    request: message("v2.EncryptRequest", { plaintext: optional(1, binary), uid: optional(2, string) }),
    response: message("v2.EncryptResponse", {
      ciphertext: optional(1, binary),
      keyId: optional(2, string),
      annotations: optional(3, map(binary)),
    }),
  },
  decrypt: {
    path: `/v2.${SERVICE}/Decrypt`,
    request: message("v2.DecryptRequest", {
      ciphertext: optional(1, binary),
      uid: optional(2, string),
      keyId: optional(3, string),
      annotations: optional(4, map(binary)),
    }),
    response: message("v2.DecryptResponse", { plaintext: optional(1, binary) }),
  },
} as const satisfies Readonly<Record<string, GrpcMethod>>;
export type KmsV2Status = Infer<typeof kmsV2.status.response>;

/** https://github.com/kubernetes/kms/blob/master/apis/v1beta1/api.proto */
export const kmsV1 = {
  version: {
    path: `/v1beta1.${SERVICE}/Version`,
    request: message("v1beta1.VersionRequest", { version: optional(1, string) }),
    response: message("v1beta1.VersionResponse", {
      version: optional(1, string),
      runtimeName: optional(2, string),
      runtimeVersion: optional(3, string),
    }),
  },
  encrypt: {
    path: `/v1beta1.${SERVICE}/Encrypt`,
    request: message("v1beta1.EncryptRequest", { version: optional(1, string), plain: optional(2, binary) }),
    response: message("v1beta1.EncryptResponse", { cipher: optional(1, binary) }),
  },
  decrypt: {
    path: `/v1beta1.${SERVICE}/Decrypt`,
    request: message("v1beta1.DecryptRequest", { version: optional(1, string), cipher: optional(2, binary) }),
    response: message("v1beta1.DecryptResponse", { plain: optional(1, binary) }),
  },
} as const satisfies Readonly<Record<string, GrpcMethod>>;

/** How the key of a value follows from the decrypted `encryptedDEKSource`. */
export const DEK_SOURCE = {
  /** It is the key. */
  aesGcmKey: 0,
  /** It is a seed: the first 32 bytes of the value are the `info` of HKDF. */
  hkdfSha256ExtendedNonceSeed: 1,
} as const;

/** A stored value after its prefix. */
export const encryptedObject = message("v2.EncryptedObject", {
  encryptedData: optional(1, binary),
  keyID: optional(2, string),
  encryptedDEKSource: optional(3, binary),
  annotations: optional(4, map(binary)),
  encryptedDEKSourceType: optional(5, int32),
});
export type EncryptedObject = Infer<typeof encryptedObject>;
