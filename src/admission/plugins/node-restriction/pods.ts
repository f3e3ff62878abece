/** A node may create and delete its mirror pods, update the status of its pods, and evict them. */

import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Node } from "../../../api/core/node/schema.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { notFound } from "../../../api/status.ts";
import { podReferences } from "../../../auth/authz/node/node-graph.ts";
import { deepEqual } from "../../../schema/value/equal.ts";
import { type AdmissionRequest, metadataOf, newForbidden } from "../../chain/attributes.ts";
import type { Deps } from "./restriction.ts";

const MIRROR = "kubernetes.io/config.mirror";

export async function restrictPod(node: string, request: AdmissionRequest, deps: Deps): Promise<void> {
  const { operation, subresource } = request;
  const own = JSON.stringify(node);
  switch (subresource) {
    case "":
      if (operation === "CREATE") return await restrictCreate(node, request, deps);
      if (operation === "DELETE") return await restrictDelete(node, request, deps);
      throw newForbidden(
        request,
        `unexpected operation ${JSON.stringify(operation)}, node ${own} can only create and delete mirror pods`,
      );
    case "status":
      return restrictStatus(node, request);
    case "eviction":
      return await restrictEviction(node, request, deps);
    default:
      throw newForbidden(
        request,
        `unexpected pod subresource ${JSON.stringify(subresource)}, only 'status' and 'eviction' are allowed`,
      );
  }
}

async function restrictCreate(node: string, request: AdmissionRequest, { reader }: Deps): Promise<void> {
  const pod = request.object as Pod;
  const quotedNode = JSON.stringify(node);
  const reject = (reason: string): Error => newForbidden(request, reason);
  if (metadataOf(pod).annotations?.[MIRROR] === undefined) {
    throw reject(
      `pod does not have ${JSON.stringify(MIRROR)} annotation, node ${quotedNode} can only create mirror pods`,
    );
  }
  if (pod.spec?.nodeName !== node) {
    throw reject(`node ${quotedNode} can only create pods with spec.nodeName set to itself`);
  }
  const ownerError = validateOwner(node, pod);
  if (ownerError !== undefined) throw reject(ownerError);
  const present: Node | undefined = await reader.get(nodeKind, "", node, request.signal);
  if (present === undefined) throw notFound({ group: "", resource: "node", name: node });
  const ownerUid = metadataOf(pod).ownerReferences?.[0]?.uid ?? "";
  const uid = metadataOf(present).uid ?? "";
  if (ownerUid !== uid) throw reject(`node ${node} UID mismatch: expected ${ownerUid} got ${uid}`);
  const referred = firstReference(pod);
  if (referred !== undefined) throw reject(`node ${quotedNode} can not create pods that reference ${referred}`);
}

/** The node must be the only owner, and a controller that does not block deletion. */
function validateOwner(node: string, pod: Pod): string | undefined {
  const own = JSON.stringify(node);
  const [owner, ...more] = metadataOf(pod).ownerReferences ?? [];
  if (more.length > 0) return `node ${own} can only create pods with a single owner reference set to itself`;
  if (owner?.apiVersion !== "v1" || owner.kind !== "Node" || owner.name !== node) {
    return `node ${own} can only create pods with an owner reference set to itself`;
  }
  if (owner.controller !== true) {
    return `node ${own} can only create pods with a controller owner reference set to itself`;
  }
  if (owner.blockOwnerDeletion !== true) return undefined;
  return `node ${own} must not set blockOwnerDeletion on an owner reference`;
}

/** A mirror pod must not reference objects, since the node could then read them. */
function firstReference(pod: Pod): string | undefined {
  const { serviceAccountName, volumes = [], resourceClaims = [] } = pod.spec ?? {};
  if (serviceAccountName) return "a service account";
  const referred = new Set([...podReferences(pod)].map((reference) => reference.split("/")[0]));
  if (referred.has("secrets")) return "secrets";
  if (referred.has("configmaps")) return "configmaps";
  const bundles = volumes.some(({ projected }) => projected?.sources?.some((each) => each.clusterTrustBundle));
  if (bundles) return "clustertrustbundles";
  if (referred.has("persistentvolumeclaims")) return "persistentvolumeclaims";
  return resourceClaims.length > 0 ? "resourceclaims" : undefined;
}

async function restrictDelete(node: string, request: AdmissionRequest, deps: Deps): Promise<void> {
  const pod = (request.oldObject as Pod | undefined) ?? (await getPod(request, request.name, deps));
  if (pod.spec?.nodeName === node) return;
  throw newForbidden(request, `node ${JSON.stringify(node)} can only delete pods with spec.nodeName set to itself`);
}

function restrictStatus(node: string, request: AdmissionRequest): void {
  const own = JSON.stringify(node);
  if (request.operation !== "UPDATE") {
    throw newForbidden(request, `unexpected operation ${JSON.stringify(request.operation)}`);
  }
  const [next, previous] = [request.object as Pod, request.oldObject as Pod];
  if (previous.spec?.nodeName !== node) {
    throw newForbidden(request, `node ${own} can only update pod status for pods with spec.nodeName set to itself`);
  }
  if (!deepEqual(metadataOf(next).labels ?? {}, metadataOf(previous).labels ?? {})) {
    throw newForbidden(request, `node ${own} cannot update labels through pod status`);
  }
  const [claims, before] = [next, previous].map(({ status }) => status?.resourceClaimStatuses ?? []);
  if (!deepEqual(claims, before)) throw newForbidden(request, `node ${own} cannot update resource claim statues`);
}

async function restrictEviction(node: string, request: AdmissionRequest, deps: Deps): Promise<void> {
  if (request.operation !== "CREATE") throw newForbidden(request, `unexpected operation ${request.operation}`);
  const name = request.name || metadataOf(request.object).name || "";
  if (name === "") throw newForbidden(request, "could not determine pod from request data");
  const pod = await getPod(request, name, deps);
  if (pod.spec?.nodeName === node) return;
  throw newForbidden(request, `node ${node} can only evict pods with spec.nodeName set to itself`);
}

/** Throws a 404 if the pod does not exist, with the singular name that Kubernetes' caches use. */
export async function getPod({ namespace, signal }: AdmissionRequest, name: string, { reader }: Deps): Promise<Pod> {
  const pod = await reader.get(podKind, namespace, name, signal);
  if (pod === undefined) throw notFound({ group: "", resource: "pod", name });
  return pod;
}
