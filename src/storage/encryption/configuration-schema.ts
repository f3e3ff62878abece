/** The schema of Kubernetes' EncryptionConfiguration. */
import { duration, int32, list, object, optional, pointer, string } from "../../schema/define.ts";
import type { Infer } from "../../schema/schema.ts";

const keys = object("apiserver/v1.AESConfiguration", {
  keys: optional(0, list(object("apiserver/v1.Key", { name: optional(0, string), secret: optional(0, string) }))),
});
const kms = object("apiserver/v1.KMSConfiguration", {
  apiVersion: optional(0, string),
  name: optional(0, string),
  cachesize: pointer(0, int32),
  endpoint: optional(0, string),
  timeout: pointer(0, duration),
});
export const encryptionConfiguration = object("apiserver/v1.EncryptionConfiguration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  resources: optional(
    0,
    list(
      object("apiserver/v1.ResourceConfiguration", {
        resources: optional(0, list(string)),
        providers: optional(
          0,
          list(
            object("apiserver/v1.ProviderConfiguration", {
              aesgcm: pointer(0, keys),
              aescbc: pointer(0, keys),
              secretbox: pointer(0, keys),
              identity: pointer(0, object("apiserver/v1.IdentityConfiguration", {})),
              kms: pointer(0, kms),
            }),
          ),
        ),
      }),
    ),
  ),
});
export type EncryptionConfiguration = Infer<typeof encryptionConfiguration>;
export type ResourceConfiguration = NonNullable<EncryptionConfiguration["resources"]>[number];
export type ProviderConfiguration = NonNullable<ResourceConfiguration["providers"]>[number];
export type KeysConfiguration = Infer<typeof keys>;
export type KmsConfiguration = Infer<typeof kms>;
