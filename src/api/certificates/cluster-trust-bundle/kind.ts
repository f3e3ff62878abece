import { column, nameColumn } from "../../columns/columns.ts";
import { allVerbs, type Kind } from "../../kind.ts";
import { type ClusterTrustBundle, clusterTrustBundle } from "./schema.ts";
import { validateTrustBundle, validateTrustBundleUpdate } from "./validation.ts";

export const clusterTrustBundleKind: Kind<ClusterTrustBundle> = {
  group: "certificates.svc.io",
  version: "v1beta1",
  since: "1.33",
  featureGate: "ClusterTrustBundle",
  kind: "ClusterTrustBundle",
  listKind: "ClusterTrustBundleList",
  plural: "clustertrustbundles",
  singular: "clustertrustbundle",
  shortNames: [],
  categories: [],
  namespaced: false,
  verbs: allVerbs,
  subresources: [],
  storageName: "clustertrustbundles",
  schema: clusterTrustBundle,
  // The format depends on the signer: the strategy checks it.
  nameFormat: () => [],
  columns: [nameColumn, column("SignerName", ({ spec }) => spec.signerName || "<none>")],
  selectableFields: { "spec.signerName": ({ spec }) => spec.signerName ?? "" },
  strategy: {
    validate: validateTrustBundle,
    validateUpdate: validateTrustBundleUpdate,
    allowUnconditionalUpdate: false,
  },
};
