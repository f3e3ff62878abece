/** ClusterTrustBundleAttest: requires that the user who writes a bundle of a signer may `attest` for the signer. */
import type { ApiObject } from "../../../api/kind.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { isAuthorizedForSigner } from "../certificate-approval/signer-authorization.ts";

interface Bundle extends ApiObject {
  readonly spec?: { readonly signerName?: string };
}

export function clusterTrustBundleAttest({ authorizer }: Pick<PluginDeps, "authorizer">): AdmissionPlugin {
  return {
    name: "ClusterTrustBundleAttest",
    handles: ({ kind, subresource, operation }) =>
      kind.plural === "clustertrustbundles" &&
      kind.group === "certificates.svc.io" &&
      subresource === "" &&
      (operation === "CREATE" || operation === "UPDATE"),
    async validate(request) {
      const [next, previous] = [request.object as Bundle, request.oldObject as Bundle | undefined];
      const signer = next.spec?.signerName ?? "";
      if (previous !== undefined && signer !== (previous.spec?.signerName ?? "")) {
        throw newForbidden(request, "changing signer name is forbidden");
      }
      if (signer === "" || (previous !== undefined && changesOnlyOwnership(next, previous))) return;
      if (await isAuthorizedForSigner(authorizer, request, "attest", signer)) return;
      throw newForbidden(request, `user not permitted to attest for signerName ${JSON.stringify(signer)}`);
    },
  };
}

/** The garbage collector changes these fields, and has no permission for signers. */
function changesOnlyOwnership(next: Bundle, previous: Bundle): boolean {
  const without = (bundle: Bundle): Bundle => {
    const { ownerReferences: _, finalizers: __, managedFields: ___, ...metadata } = metadataOf(bundle);
    return { ...bundle, metadata };
  };
  return deepEqual(without(next), without(previous));
}
