/** CertificateSigning: requires that the user who sets the certificate or a condition may `sign` for the signer. */
import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../../api/certificates/certificate-signing-request/schema.ts";
import type { Authorizer } from "../../../auth/user.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { isAuthorizedForSigner } from "../certificate-approval/signer-authorization.ts";

export function certificateSigning({ authorizer }: { readonly authorizer: Authorizer }): AdmissionPlugin {
  return {
    name: "CertificateSigning",
    handles: (attributes) => matchesResource(attributes, certificateSigningRequestKind, ["UPDATE"], "status"),
    async validate(request) {
      const { status } = request.object as CertificateSigningRequest;
      const { status: oldStatus, spec } = request.oldObject as CertificateSigningRequest;
      const isSameCertificate = status?.certificate === oldStatus?.certificate;
      if (isSameCertificate && deepEqual(status?.conditions, oldStatus?.conditions)) return;
      if (await isAuthorizedForSigner(authorizer, request, "sign", spec.signerName)) return;
      const signer = JSON.stringify(spec.signerName);
      throw newForbidden(request, `user not permitted to sign requests with signerName ${signer}`);
    },
  };
}
