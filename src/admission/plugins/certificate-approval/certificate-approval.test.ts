/** Plugins about certificates, and about who may speak for a signer. */
import { execFileSync } from "node:child_process";
import t from "tap";
import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import { subjectOrganizations } from "../../../api/certificates/certificate-signing-request/pkcs10.ts";
import { configMapKind } from "../../../api/core/config-map/kind.ts";
import type { Kind } from "../../../api/kind.ts";
import { runPlugin, authorizerOf, rejectionOf } from "../../../testing/admission/admission-fixture.ts";
import { certificateSubjectRestriction } from "../certificate-subject-restriction/certificate-subject-restriction.ts";
import { clusterTrustBundleAttest } from "../cluster-trust-bundle-attest/cluster-trust-bundle-attest.ts";
import { certificateApproval, certificateSigning } from "./certificate-approval.ts";

const asked: string[] = [];
const authorizer = authorizerOf((verb, resource, name) => {
  asked.push(`${verb} ${resource} ${name}`);
  return verb === "sign" ? name === "a.b/c" : name === "a.b/*";
});
const request = (signerName: string, status: object = {}) =>
  ({ metadata: { name: "r" }, spec: { signerName, request: "", usages: [] }, status }) as never;

t.test("certificateApproval() demands that whoever decides may, though nothing changes", async (t) => {
  const plugin = certificateApproval({ authorizer });
  const decide = (signer: string) =>
    rejectionOf(
      runPlugin(plugin, certificateSigningRequestKind, request("x.y/z"), {
        oldObject: request(signer),
        subresource: "approval",
      }),
    );
  asked.length = 0;
  t.equal(await decide("a.b/c"), "");
  t.same(asked, ["approve signers a.b/c", "approve signers a.b/*"]);
  t.match(
    await decide("b.c/d"),
    /^certificatesigningrequests.* "r" is forbidden: user not permitted to approve requests with signerName "b\.c\/d"$/,
  );
});

t.test("certificateSigning() demands that whoever issues or fails a request may", async (t) => {
  const plugin = certificateSigning({ authorizer });
  const issue = (signer: string, status: object) =>
    rejectionOf(
      runPlugin(plugin, certificateSigningRequestKind, request(signer, status), {
        oldObject: request(signer),
        subresource: "status",
      }),
    );
  t.equal(await issue("b.c/d", {}), "");
  t.equal(await issue("a.b/c", { certificate: "x" }), "");
  t.match(await issue("b.c/d", { certificate: "x" }), /user not permitted to sign requests with signerName "b\.c\/d"$/);
  t.match(await issue("b.c/d", { conditions: [{ type: "Failed", status: "True" }] }), /not permitted to sign/);
});

function made(subject: string): string {
  const words = "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj".split(" ");
  return execFileSync("openssl", [...words, subject], { stdio: ["ignore", "pipe", "ignore"] }).toString();
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.length < 0x80 ? [content.length] : [0x81, content.length];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

/** A request, as far as its subject, that says its organization in an alphabet of the sender's choice. */
function naming(tag: number, organization: Buffer): string {
  const attribute = der(0x30, der(0x06, Buffer.from("55040a", "hex")), der(tag, organization));
  const information = der(0x30, der(0x02, Buffer.from([0])), der(0x30, der(0x31, attribute)));
  const body = der(0x30, information).toString("base64");
  return `-----BEGIN CERTIFICATE REQUEST-----\n${body}\n-----END CERTIFICATE REQUEST-----\n`;
}

t.test("certificateSubjectRestriction() gives nobody a client certificate of system:masters", async (t) => {
  const plugin = certificateSubjectRestriction();
  const send = (subject: string | Buffer, signerName = "kubernetes.io/kube-apiserver-client") => {
    const pem = typeof subject === "string" ? Buffer.from(made(subject)) : subject;
    const sent = { metadata: { name: "r" }, spec: { signerName, request: pem.toString("base64"), usages: [] } };
    return rejectionOf(runPlugin(plugin, certificateSigningRequestKind, sent as never));
  };
  const why = /use of kubernetes\.io\/kube-apiserver-client signer with system:masters group is not allowed$/;
  t.match(await send("/O=team/O=system:masters/CN=eve"), why);
  t.equal(await send("/O=team/CN=system:masters"), "");
  t.equal(await send("/O=system:masters/CN=eve", "example.com/other"), "");
  t.match(await send(Buffer.from("nothing")), /failed to parse CSR: PEM block type must be CERTIFICATE REQUEST$/);
  const cut = `-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n`;
  t.match(await send(Buffer.from(cut)), /failed to parse CSR: malformed certificate request$/);
});

t.test("subjectOrganizations() reads groups in whatever alphabet they are written", (t) => {
  const group = "system:masters";
  t.same(subjectOrganizations(made(`/O=a/O=${group}/OU=b`)), ["a", group]);
  const wide = Buffer.from(group, "utf16le").swap16();
  t.same(subjectOrganizations(naming(0x1e, wide)), [group]);
  const wider = Buffer.concat([...group].map((letter) => Buffer.from([0, 0, 0, letter.charCodeAt(0)])));
  t.same(subjectOrganizations(naming(0x1c, wider)), [group]);
  t.end();
});

t.test("clusterTrustBundleAttest() lets who may speak for a signer publish its bundles", async (t) => {
  const plugin = clusterTrustBundleAttest({ authorizer });
  const kind: Kind = {
    ...(configMapKind as unknown as Kind),
    plural: "clustertrustbundles",
    group: "certificates.svc.io",
    namespaced: false,
  };
  const bundle = (signerName?: string, metadata: object = {}) =>
    ({ metadata: { name: "b", ...metadata }, spec: signerName === undefined ? {} : { signerName } }) as never;
  t.equal(await rejectionOf(runPlugin(plugin, kind, bundle("a.b/c"))), "");
  t.equal(await rejectionOf(runPlugin(plugin, kind, bundle())), "");
  t.match(await rejectionOf(runPlugin(plugin, kind, bundle("b.c/d"))), /user not permitted to attest for signerName "b\.c\/d"$/);
  const previous = bundle("b.c/d");
  t.equal(await rejectionOf(runPlugin(plugin, kind, bundle("b.c/d", { finalizers: ["a/b"] }), { oldObject: previous })), "");
  t.match(await rejectionOf(runPlugin(plugin, kind, bundle("b.c/d", { labels: { a: "b" } }), { oldObject: previous })), /not permitted/);
  t.match(await rejectionOf(runPlugin(plugin, kind, bundle("a.b/c"), { oldObject: previous })), /changing signer name is forbidden$/);
});
