/** NodeRestriction: limits the objects that a kubelet can modify to its own Node, Pods, Lease and CSINode. */

import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import { subjectCommonName } from "../../../api/certificates/certificate-signing-request/pkcs10.ts";
import type { CertificateSigningRequest } from "../../../api/certificates/certificate-signing-request/schema.ts";
import { leaseKind } from "../../../api/coordination/lease/kind.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import { persistentVolumeClaimKind } from "../../../api/core/persistent-volume-claim/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import { serviceAccountKind } from "../../../api/core/service-account/kind.ts";
import type { Kind } from "../../../api/kind.ts";
import { csiNodeKind } from "../../../api/storage/csi-node/kind.ts";
import { NODE_USER_PREFIX, NODES, type UserInfo } from "../../../auth/user.ts";
import { type AdmissionRequest, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";
import { restrictClaim } from "./claims.ts";
import { restrictNode } from "./nodes.ts";
import { restrictPod } from "./pods.ts";
import type { Deps, Restriction } from "./restriction.ts";
import { restrictToken } from "./tokens.ts";

const LEASE_NAMESPACE = "kube-node-lease";
const SIGNERS = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

const restrictions = new Map<string, Restriction>([
  [keyOf(podKind), restrictPod],
  [keyOf(nodeKind), restrictNode],
  [keyOf(persistentVolumeClaimKind), restrictClaim],
  [keyOf(serviceAccountKind), restrictToken],
  [keyOf(leaseKind), restrictLease],
  [keyOf(csiNodeKind), restrictCsiNode],
  [keyOf(certificateSigningRequestKind), restrictCertificate],
]);

export function nodeRestriction(deps: Deps): AdmissionPlugin {
  return {
    name: "NodeRestriction",
    handles: ({ kind, operation }) => operation !== "CONNECT" && restrictions.has(keyOf(kind)),
    async mutate(request) {
      const node = nodeOf(request.user);
      if (node === undefined) return undefined;
      if (node === "")
        throw newForbidden(request, `could not determine node from user ${JSON.stringify(request.user.name)}`);
      await restrictions.get(keyOf(request.kind))?.(node, request, deps);
      return undefined;
    },
  };
}

function keyOf({ group, plural }: Pick<Kind, "group" | "plural">): string {
  return `${group}/${plural}`;
}

/** The name of the node; "" if the user name has none; undefined if the user is not a node. */
function nodeOf({ name, groups }: UserInfo): string | undefined {
  return name.startsWith(NODE_USER_PREFIX) && groups.includes(NODES) ? name.slice(NODE_USER_PREFIX.length) : undefined;
}

function nameOf({ operation, object, name }: AdmissionRequest): string {
  return operation === "CREATE" ? (metadataOf(object).name ?? "") : name;
}

function restrictLease(node: string, request: AdmissionRequest): void {
  if (request.namespace !== LEASE_NAMESPACE) {
    throw newForbidden(request, `can only access leases in the ${JSON.stringify(LEASE_NAMESPACE)} system namespace`);
  }
  if (nameOf(request) === node) return;
  throw newForbidden(request, "can only access node lease with the same name as the requesting node");
}

function restrictCsiNode(node: string, request: AdmissionRequest): void {
  if (nameOf(request) === node) return;
  throw newForbidden(request, "can only access CSINode with the same name as the requesting node");
}

function restrictCertificate(node: string, request: AdmissionRequest, { isFeatureEnabled }: Deps): void {
  if (request.operation !== "CREATE" || isFeatureEnabled("AllowInsecureSvcletCertificateSigningRequests")) return;
  const { spec } = request.object as CertificateSigningRequest;
  if (!SIGNERS.includes(spec.signerName)) return;
  let name: string;
  try {
    name = subjectCommonName(Buffer.from(spec.request, "base64").toString());
  } catch (error) {
    throw newForbidden(request, `unable to parse csr: ${(error as Error).message}`);
  }
  const commonName = NODE_USER_PREFIX + node;
  if (name !== commonName) throw newForbidden(request, `can only create a node CSR with CN=${commonName}`);
}
