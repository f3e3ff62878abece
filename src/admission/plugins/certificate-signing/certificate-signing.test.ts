import t from "tap";
import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import { authorizerOf, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { certificateSigning } from "./certificate-signing.ts";

const calls: string[] = [];

const authorizer = authorizerOf((verb, resource, name) => {
  calls.push(`${verb} ${resource} ${name}`);
  return verb === "sign" ? name === "a.b/c" : name === "a.b/*";
});

const request = (signerName: string, status: object = {}) =>
  ({ metadata: { name: "r" }, spec: { signerName, request: "", usages: [] }, status }) as never;

t.test("certificateSigning() rejects a certificate or condition without permission for the signer", async (t) => {
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
