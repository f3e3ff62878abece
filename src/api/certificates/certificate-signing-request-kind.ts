import { ageColumn, nameColumn } from "../columns.ts";
import { allVerbs, type Kind } from "../kind.ts";
import { keepStatus, statusSubresource } from "../strategy.ts";
import { type CertificateSigningRequest, certificateSigningRequest } from "./certificate-signing-request.ts";

export const certificateSigningRequestKind: Kind<CertificateSigningRequest> = {
  group: "certificates.svc.io",
  version: "v1",
  kind: "CertificateSigningRequest",
  listKind: "CertificateSigningRequestList",
  plural: "certificatesigningrequests",
  singular: "certificatesigningrequest",
  shortNames: ["csr"],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [statusSubresource("CertificateSigningRequest", { resetFields: [["spec"], ["status", "conditions"]] })],
  storageName: "certificatesigningrequests",
  schema: certificateSigningRequest,
  columns: [nameColumn, ageColumn],
  selectableFields: {},
  strategy: { prepareForUpdate: keepStatus, resetFields: [["spec"], ["status"]] },
};
