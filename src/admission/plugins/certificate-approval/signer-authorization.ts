/** Authorization for signers. Signers are not API objects, but RBAC rules name them. */
import type { Authorizer } from "../../../auth/user.ts";
import type { AdmissionRequest } from "../../chain/attributes.ts";

/** Whether the user has the verb for this signer, or for all signers of its domain. */
export async function isAuthorizedForSigner(
  authorizer: Authorizer,
  { user, group }: AdmissionRequest,
  verb: "approve" | "sign" | "attest",
  signer: string,
): Promise<boolean> {
  const attributes = {
    namespace: "",
    apiGroup: group,
    apiVersion: "*",
    resource: "signers",
    subresource: "",
    path: "",
  };
  for (const name of [signer, `${signer.split("/")[0]}/*`]) {
    const { decision } = await authorizer.authorize({ ...attributes, user, verb, name, isResourceRequest: true });
    if (decision === "allow") return true;
  }
  return false;
}
