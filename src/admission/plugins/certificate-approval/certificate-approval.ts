/**
 * Requests for certificates: who decides on them, or issues them, must be allowed to for the signer that is asked, and
 * nobody may ask for what makes its bearer an administrator.
 */
import type { CertificateSigningRequest } from "../../../api/certificates/certificate-signing-request/schema.ts";
import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import type { Authorizer } from "../../../auth/user.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { matchesResource, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../../chain/plugin.ts";
import { maySign } from "./signer-authorization.ts";

export function certificateApproval({ authorizer }: { readonly authorizer: Authorizer }): AdmissionPlugin {
  return {
    name: "CertificateApproval",
    handles: (place) => matchesResource(place, certificateSigningRequestKind, ["UPDATE"], "approval"),
    validate: async (request) => await demand(authorizer, request, "approve"),
  };
}

export function certificateSigning({ authorizer }: { readonly authorizer: Authorizer }): AdmissionPlugin {
  return {
    name: "CertificateSigning",
    handles: (place) => matchesResource(place, certificateSigningRequestKind, ["UPDATE"], "status"),
    async validate(request) {
      const { status: next } = request.object as CertificateSigningRequest;
      const { status: before } = request.oldObject as CertificateSigningRequest;
      const same = next?.certificate === before?.certificate && deepEqual(next?.conditions, before?.conditions);
      if (!same) await demand(authorizer, request, "sign");
    },
  };
}

/** Who writes an approval decides, even if it stays as it was. */
async function demand(authorizer: Authorizer, request: AdmissionRequest, verb: "approve" | "sign"): Promise<void> {
  const { signerName } = (request.oldObject as CertificateSigningRequest).spec;
  if (await maySign(authorizer, request, verb, signerName)) return;
  throw newForbidden(request, `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`);
}
