import { execFileSync } from "node:child_process";
import t from "tap";
import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import { subjectOrganizations } from "../../../api/certificates/certificate-signing-request/pkcs10.ts";
import { rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { certificateSubjectRestriction } from "./certificate-subject-restriction.ts";

function createRequest(subject: string): string {
  const words = "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj".split(" ");
  return execFileSync("openssl", [...words, subject], { stdio: ["ignore", "pipe", "ignore"] }).toString();
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const length = content.length < 0x80 ? [content.length] : [0x81, content.length];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

/** A request up to its subject, with the organization as an ASN.1 string of the given type. */
function encodeRequest(tag: number, organization: Buffer): string {
  const attribute = der(0x30, der(0x06, Buffer.from("55040a", "hex")), der(tag, organization));
  const information = der(0x30, der(0x02, Buffer.from([0])), der(0x30, der(0x31, attribute)));
  const body = der(0x30, information).toString("base64");
  return `-----BEGIN CERTIFICATE REQUEST-----\n${body}\n-----END CERTIFICATE REQUEST-----\n`;
}

t.test("certificateSubjectRestriction() rejects requests for a client certificate of system:masters", async (t) => {
  const plugin = certificateSubjectRestriction();
  const send = (subject: string | Buffer, signerName = "kubernetes.io/kube-apiserver-client") => {
    const pem = typeof subject === "string" ? Buffer.from(createRequest(subject)) : subject;
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

t.test("subjectOrganizations() decodes organizations of all ASN.1 string types", (t) => {
  const group = "system:masters";
  t.same(subjectOrganizations(createRequest(`/O=a/O=${group}/OU=b`)), ["a", group]);
  const wide = Buffer.from(group, "utf16le").swap16();
  t.same(subjectOrganizations(encodeRequest(0x1e, wide)), [group]);
  const wider = Buffer.concat([...group].map((letter) => Buffer.from([0, 0, 0, letter.charCodeAt(0)])));
  t.same(subjectOrganizations(encodeRequest(0x1c, wider)), [group]);
  t.end();
});
