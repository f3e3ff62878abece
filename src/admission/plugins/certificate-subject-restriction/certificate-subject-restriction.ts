/** CertificateSubjectRestriction: rejects requests for a client certificate in the group system:masters. */

import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import { subjectOrganizations } from "../../../api/certificates/certificate-signing-request/pkcs10.ts";
import type { CertificateSigningRequest } from "../../../api/certificates/certificate-signing-request/schema.ts";
import { MASTERS } from "../../../auth/user.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

const SIGNER = "kubernetes.io/kube-apiserver-client";

export function certificateSubjectRestriction(): AdmissionPlugin {
  return {
    name: "CertificateSubjectRestriction",
    handles: (attributes) => matchesResource(attributes, certificateSigningRequestKind, ["CREATE"]),
    validate(request) {
      const { spec } = request.object as CertificateSigningRequest;
      const pem: string | undefined = spec.request;
      if (spec.signerName !== SIGNER) return;
      let groups: readonly string[];
      try {
        groups = subjectOrganizations(Buffer.from(pem ?? "", "base64").toString());
      } catch (error) {
        throw newForbidden(request, `failed to parse CSR: ${(error as Error).message}`);
      }
      if (!groups.includes(MASTERS)) return;
      throw newForbidden(request, `use of ${SIGNER} signer with ${MASTERS} group is not allowed`);
    },
  };
}
