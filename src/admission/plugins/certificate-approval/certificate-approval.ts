/** CertificateApproval: requires that the user who approves or denies a request may `approve` for its signer. */
import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../../api/certificates/certificate-signing-request/schema.ts";
import type { Authorizer } from "../../../auth/user.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { isAuthorizedForSigner } from "./signer-authorization.ts";

export function certificateApproval({ authorizer }: { readonly authorizer: Authorizer }): AdmissionPlugin {
  return {
    name: "CertificateApproval",
    handles: (attributes) => matchesResource(attributes, certificateSigningRequestKind, ["UPDATE"], "approval"),
    // Also if the approval is unchanged, as in Kubernetes.
    async validate(request) {
      const { signerName } = (request.oldObject as CertificateSigningRequest).spec;
      if (await isAuthorizedForSigner(authorizer, request, "approve", signerName)) return;
      const signer = JSON.stringify(signerName);
      throw newForbidden(request, `user not permitted to approve requests with signerName ${signer}`);
    },
  };
}
