import {
  base64,
  documentedEnum,
  int32,
  list,
  listMap,
  map,
  named,
  object,
  optional,
  pointer,
  required,
  string,
  time,
} from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import { objectMeta } from "../../meta/object-meta.ts";
import { typeMeta } from "../../meta/type-meta.ts";

/** The allowed key usages. */
export const keyUsages = [
  "signing",
  "digital signature",
  "content commitment",
  "key encipherment",
  "key agreement",
  "data encipherment",
  "cert sign",
  "crl sign",
  "encipher only",
  "decipher only",
  "any",
  "server auth",
  "client auth",
  "code signing",
  "email protection",
  "s/mime",
  "ipsec end system",
  "ipsec tunnel",
  "ipsec user",
  "timestamping",
  "ocsp signing",
  "microsoft sgc",
  "netscape sgc",
] as const;

export const certificateSigningRequestSpec = object("certificates/v1.CertificateSigningRequestSpec", {
  request: required(1, base64),
  signerName: required(7, string),
  expirationSeconds: pointer(8, int32),
  usages: optional(5, list(named("v1.KeyUsage", documentedEnum(...keyUsages)))),
  username: optional(2, string),
  uid: optional(3, string),
  groups: optional(4, list(string)),
  extra: optional(6, map(named("v1.ExtraValue", list(string)))),
});
export type CertificateSigningRequestSpec = Infer<typeof certificateSigningRequestSpec>;

export const certificateSigningRequestCondition = object("certificates/v1.CertificateSigningRequestCondition", {
  type: required(1, named("v1.RequestConditionType", string)),
  status: required(6, named("v1.ConditionStatus", string)),
  reason: optional(2, string),
  message: optional(3, string),
  lastUpdateTime: optional(4, time),
  lastTransitionTime: optional(5, time),
});
export type CertificateSigningRequestCondition = Infer<typeof certificateSigningRequestCondition>;

export const certificateSigningRequestStatus = object("certificates/v1.CertificateSigningRequestStatus", {
  conditions: optional(1, listMap(certificateSigningRequestCondition, "type")),
  certificate: optional(2, base64),
});
export type CertificateSigningRequestStatus = Infer<typeof certificateSigningRequestStatus>;

export const certificateSigningRequest = object("certificates/v1.CertificateSigningRequest", {
  ...typeMeta,
  metadata: optional(1, objectMeta),
  spec: required(2, certificateSigningRequestSpec),
  status: optional(3, certificateSigningRequestStatus),
});
export type CertificateSigningRequest = Infer<typeof certificateSigningRequest>;
