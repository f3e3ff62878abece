/** Signers are no objects, but there are rules about who may do what with them. */
import type { Authorizer } from "../../../auth/user.ts";
import type { AdmissionRequest } from "../../chain/plugin.ts";

/** Whether the user may: for the signer itself, or all of its domain. */
export async function maySign(
  authorizer: Authorizer,
  { user, group }: AdmissionRequest,
  verb: "approve" | "sign" | "attest",
  signer: string,
): Promise<boolean> {
  const about = { namespace: "", apiGroup: group, apiVersion: "*", resource: "signers", subresource: "", path: "" };
  for (const name of [signer, `${signer.split("/")[0]}/*`]) {
    const { decision } = await authorizer.authorize({ ...about, user, verb, name, isResourceRequest: true });
    if (decision === "allow") return true;
  }
  return false;
}
