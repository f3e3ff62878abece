import { ageColumn, column, nameColumn } from "../../columns/columns.ts";
import { humanDuration } from "../../columns/human-duration.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { pathSegment } from "../../meta/validation/names.ts";
import { type CertificateSigningRequest, certificateSigningRequest } from "./schema.ts";
import { approval, certificateSigningRequestStrategy, statusSubresourceOfRequest } from "./strategy.ts";

/** The cell of the column Condition: `Approved,Issued`. */
function conditionText(object: CertificateSigningRequest): string {
  const types = new Set((object.status?.conditions ?? []).map(({ type }) => type));
  const decided = types.has("Denied") ? "Denied" : types.has("Approved") ? "Approved" : "Pending";
  return [decided, ...(types.has("Failed") ? ["Failed"] : []), ...(object.status?.certificate ? ["Issued"] : [])].join(
    ",",
  );
}

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
  subresources: [approval, statusSubresourceOfRequest],
  storageName: "certificatesigningrequests",
  schema: certificateSigningRequest,
  nameFormat: pathSegment,
  columns: [
    nameColumn,
    ageColumn,
    column("SignerName", ({ spec }) => spec.signerName || "<none>"),
    column("Requestor", ({ spec }) => spec.username ?? ""),
    column("RequestedDuration", ({ spec }) =>
      spec.expirationSeconds === undefined ? "<none>" : humanDuration(spec.expirationSeconds * 1000),
    ),
    column("Condition", conditionText),
  ],
  selectableFields: { "spec.signerName": ({ spec }) => spec.signerName },
  strategy: certificateSigningRequestStrategy,
};
