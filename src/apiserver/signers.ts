/** Who decides on requests for certificates, or issues them, must be allowed to for the signer that is asked. */
import type { CertificateSigningRequest } from "../api/certificates/certificate-signing-request.ts";
import { certificateSigningRequestKind } from "../api/certificates/certificate-signing-request-kind.ts";
import { forbidden } from "../api/status.ts";
import type { Authorizer } from "../auth/user.ts";
import type { Confirm, Scope } from "../registry/registry.ts";
import { deepEqual } from "../schema/equal.ts";

/** Kubernetes' CertificateApproval and CertificateSigning, by the subresource that is written; "" for the whole. */
export function signerCheck(authorizer: Authorizer): (subresource: string) => Confirm {
  return (subresource) => async (scope, next, previous) => {
    if (previous === undefined) return;
    const [after, before] = [next as CertificateSigningRequest, previous as CertificateSigningRequest];
    const verb = verbOf(subresource, after, before);
    const { signerName } = before.spec;
    if (verb === undefined || (await may(authorizer, scope, verb, signerName))) return;
    const subject = {
      group: scope.group,
      resource: certificateSigningRequestKind.plural,
      name: next.metadata?.name ?? "",
    };
    throw forbidden(subject, `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`);
  };
}

/** Who writes an approval decides, even if it stays as it was. */
function verbOf(
  subresource: string,
  after: CertificateSigningRequest,
  before: CertificateSigningRequest,
): "approve" | "sign" | undefined {
  if (subresource === "approval") return "approve";
  if (subresource !== "status") return undefined;
  const { certificate, conditions } = after.status ?? {};
  const same = certificate === before.status?.certificate && deepEqual(conditions, before.status?.conditions);
  return same ? undefined : "sign";
}

/** For the signer itself, or all of its domain. */
async function may(authorizer: Authorizer, { user, group }: Scope, verb: string, signer: string): Promise<boolean> {
  const about = { namespace: "", apiGroup: group, apiVersion: "*", resource: "signers", subresource: "", path: "" };
  for (const name of [signer, `${signer.split("/")[0]}/*`]) {
    const { decision } = await authorizer.authorize({ ...about, user, verb, name, isResourceRequest: true });
    if (decision === "allow") return true;
  }
  return false;
}
