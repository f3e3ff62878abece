/**
 * The CSR approving controller: approves kubelet client certificates that the requester is authorized for, and kubelet
 * serving certificates for the addresses of the node.
 */
import { isIP } from "node:net";
import { subjectAccessReviewKind } from "../../api/authorization/access-review/kinds.ts";
import { certificateSigningRequestKind } from "../../api/certificates/certificate-signing-request/kind.ts";
import type { CertificateSigningRequest } from "../../api/certificates/certificate-signing-request/schema.ts";
import { nodeKind } from "../../api/core/node/kind.ts";
import type { Node } from "../../api/core/node/schema.ts";
import type { ParsedRequest } from "../../auth/pki/certificate-signing.ts";
import { NODE_USER_PREFIX } from "../../auth/user.ts";
import type { Client } from "../../client/client.ts";
import { formatTime } from "../../schema/value/time.ts";
import type { ControllerDeps } from "../controller.ts";
import { hasCondition, requestText, runCertificateController } from "./certificate-controller.ts";
import {
  NODE_CLIENT_SIGNER,
  NODE_SERVING_SIGNER,
  validateNodeClientRequest,
  validateNodeServingRequest,
} from "./validate-request.ts";

export async function runCsrApprovingController(deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, log } = deps;
  await runCertificateController(deps, "approve", async (request, signal) => {
    if (hasCondition(request, "Approved") || hasCondition(request, "Denied")) return;
    const { signerName } = request.spec;
    if (signerName !== NODE_CLIENT_SIGNER && signerName !== NODE_SERVING_SIGNER) return;
    // Loaded on demand: requests are rare and the library is large.
    const { parseCertificateRequest } = await import("../../auth/pki/certificate-signing.ts");
    const requested = parseCertificateRequest(requestText(request));
    const message =
      signerName === NODE_CLIENT_SIGNER
        ? await approveClientCertificate(client, request, requested, signal)
        : await approveServingCertificate(observer, request, requested, signal);
    if (message === undefined) return;
    const now = formatTime(clock.now());
    const approved = { type: "Approved", status: "True", reason: "AutoApproved", message, lastUpdateTime: now };
    const conditions = [...(request.status?.conditions ?? []), { ...approved, lastTransitionTime: now }];
    const next: CertificateSigningRequest = { ...request, status: { ...request.status, conditions } };
    await client.updateSubresource(certificateSigningRequestKind, next, "approval", signal);
    log.info("Approved certificate signing request", { name: request.metadata?.name ?? "", signer: signerName });
  });
}

/**
 * Returns the message of the approval; undefined if the request is not recognized. Throws if the requester is not
 * authorized, so that the request is retried.
 */
async function approveClientCertificate(
  client: Client,
  { spec }: CertificateSigningRequest,
  requested: ParsedRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (validateNodeClientRequest(requested, spec.usages ?? []) !== undefined) return undefined;
  const isSelf = spec.username === requested.commonName;
  const subresources = isSelf ? (["selfnodeclient", "nodeclient"] as const) : (["nodeclient"] as const);
  for (const subresource of subresources) {
    const { username: user = "", uid = "", groups = [], extra = {} } = spec;
    const resourceAttributes = {
      group: "certificates.k8s.io",
      version: "*",
      resource: "certificatesigningrequests",
      verb: "create",
      subresource,
    };
    const review = { spec: { user, uid, groups, extra, resourceAttributes } };
    const { status } = await client.create(subjectAccessReviewKind, review, signal);
    if (status?.allowed !== true) continue;
    const what = subresource === "selfnodeclient" ? "self kubelet client" : "kubelet client";
    return `Auto approving ${what} certificate after SubjectAccessReview.`;
  }
  throw new Error(`${spec.username ?? ""} is not authorized to create node client certificate requests`);
}

/**
 * Returns the message of the approval for a serving certificate; undefined if the request is not recognized. Throws if
 * the node does not report the addresses yet, so that the request is retried.
 */
async function approveServingCertificate(
  observer: Client,
  { spec }: CertificateSigningRequest,
  requested: ParsedRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (validateNodeServingRequest(requested, spec.usages ?? []) !== undefined) return undefined;
  if (spec.username !== requested.commonName) return undefined;
  const name = requested.commonName.slice(NODE_USER_PREFIX.length);
  const requestedNames = [...requested.dnsNames, ...requested.ips].map(normalize);
  const reserved = requestedNames.filter((address) => API_NAME.test(address));
  if (reserved.length > 0) throw new Error(`${reserved.join(", ")} is a name of the API server, not of node ${name}`);
  const { items } = await observer.list(nodeKind, {}, signal);
  const node = items.find(({ metadata }) => metadata?.name === name);
  const nodeAddresses = addressesOf(node);
  const unreported = requestedNames.filter((address) => !nodeAddresses.has(address));
  if (unreported.length > 0) throw new Error(`node ${name} does not have the address ${unreported.join(", ")}`);
  // Nodes report their addresses themselves: an address stays with the older node while that node is alive.
  for (const other of items) {
    if (other === node || !isAlive(other) || !isOlder(other, node)) continue;
    const taken = requestedNames.filter((address) => addressesOf(other).has(address));
    if (taken.length > 0) throw new Error(`node ${other.metadata?.name} already has the address ${taken.join(", ")}`);
  }
  return "Auto approving kubelet serving certificate for addresses of its node.";
}

/** Names that pods use for the API server. */
const API_NAME = /^(?:kubernetes|svc)\.default(?:\.svc(?:\..*)?)?$/;

function addressesOf(node: Node | undefined): ReadonlySet<string> {
  return new Set((node?.status?.addresses ?? []).map(({ address }) => normalize(address)));
}

function isAlive({ status }: Node): boolean {
  return (status?.conditions ?? []).some((each) => each.type === "Ready" && each.status !== "Unknown");
}

/** Nodes created in the same second are compared by name. */
function isOlder(one: Node, than: Node | undefined): boolean {
  return creationKey(one) < creationKey(than);
}

function creationKey(node: Node | undefined): string {
  return `${node?.metadata?.creationTimestamp ?? ""} ${node?.metadata?.name ?? ""}`;
}

/** Normalizes an address or name. */
function normalize(address: string): string {
  if (isIP(address) !== 6) return address.toLowerCase();
  return new URL(`http://[${address}]`).hostname;
}
