/**
 * Approves what nodes ask for: to be known by the API server, where they may ask for that; and to be trusted under the
 * addresses that they have.
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
import { NODE_CLIENT_SIGNER, NODE_SERVING_SIGNER, nodeClientProblem, nodeServingProblem } from "./validate-request.ts";
import { hasCondition, requestText, runRequestQueue } from "./certificate-controller.ts";

export async function runApproveController(deps: ControllerDeps): Promise<void> {
  const { client, observer, clock, log } = deps;
  await runRequestQueue(deps, "approve", async (request, signal) => {
    if (hasCondition(request, "Approved") || hasCondition(request, "Denied")) return;
    const { signerName } = request.spec;
    if (signerName !== NODE_CLIENT_SIGNER && signerName !== NODE_SERVING_SIGNER) return;
    // Requests are rare, and what reads them is large.
    const { parseCertificateRequest: readRequest } = await import("../../auth/pki/certificate-signing.ts");
    const requested = readRequest(requestText(request));
    const message =
      signerName === NODE_CLIENT_SIGNER
        ? await mayBeKnown(client, request, requested, signal)
        : await mayBeTrusted(observer, request, requested, signal);
    if (message === undefined) return;
    const now = formatTime(clock.now());
    const approved = { type: "Approved", status: "True", reason: "AutoApproved", message, lastUpdateTime: now };
    const conditions = [...(request.status?.conditions ?? []), { ...approved, lastTransitionTime: now }];
    const next: CertificateSigningRequest = { ...request, status: { ...request.status, conditions } };
    await client.updateSubresource(certificateSigningRequestKind, next, "approval", signal);
    log.info("Approved a request for a certificate", { name: request.metadata?.name ?? "", signer: signerName });
  });
}

/** Why it is approved; undefined when it is not. Throws when the requester may not ask: that may be granted yet. */
async function mayBeKnown(
  client: Client,
  { spec }: CertificateSigningRequest,
  requested: ParsedRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (nodeClientProblem(requested, spec.usages ?? []) !== undefined) return undefined;
  const own = spec.username === requested.commonName;
  const ways = own ? (["selfnodeclient", "nodeclient"] as const) : (["nodeclient"] as const);
  for (const subresource of ways) {
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
  throw new Error(`${spec.username ?? ""} may not ask for certificates of nodes`);
}

/** The same for a serving certificate. A node that has not told its addresses yet may do so soon: throws then. */
async function mayBeTrusted(
  observer: Client,
  { spec }: CertificateSigningRequest,
  requested: ParsedRequest,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (nodeServingProblem(requested, spec.usages ?? []) !== undefined) return undefined;
  if (spec.username !== requested.commonName) return undefined;
  const name = requested.commonName.slice(NODE_USER_PREFIX.length);
  const asked = [...requested.dnsNames, ...requested.ips].map(plain);
  const reserved = asked.filter((address) => API_NAME.test(address));
  if (reserved.length > 0) throw new Error(`${reserved.join(", ")} is a name of the API server, not of node ${name}`);
  const { items } = await observer.list(nodeKind, {}, signal);
  const own = items.find(({ metadata }) => metadata?.name === name);
  const known = addressesOf(own);
  const strange = asked.filter((address) => !known.has(address));
  if (strange.length > 0) throw new Error(`node ${name} does not have the address ${strange.join(", ")}`);
  // A node tells its addresses itself: what another one had before stays that one's, as long as it is heard of.
  for (const other of items) {
    if (other === own || !isHeardOf(other) || !isOlder(other, own)) continue;
    const taken = asked.filter((address) => addressesOf(other).has(address));
    if (taken.length > 0) throw new Error(`node ${other.metadata?.name} had the address ${taken.join(", ")} first`);
  }
  return "Auto approving kubelet serving certificate for addresses of its node.";
}

/** Under these pods look for the API server. */
const API_NAME = /^(?:kubernetes|svc)\.default(?:\.svc(?:\..*)?)?$/;

function addressesOf(node: Node | undefined): ReadonlySet<string> {
  return new Set((node?.status?.addresses ?? []).map(({ address }) => plain(address)));
}

function isHeardOf({ status }: Node): boolean {
  return (status?.conditions ?? []).some((each) => each.type === "Ready" && each.status !== "Unknown");
}

/** Of two that were made in the same second the names decide. */
function isOlder(one: Node, than: Node | undefined): boolean {
  return ageOf(one) < ageOf(than);
}

function ageOf(node: Node | undefined): string {
  return `${node?.metadata?.creationTimestamp ?? ""} ${node?.metadata?.name ?? ""}`;
}

/** One spelling of an address or a name. */
function plain(address: string): string {
  if (isIP(address) !== 6) return address.toLowerCase();
  return new URL(`http://[${address}]`).hostname;
}
