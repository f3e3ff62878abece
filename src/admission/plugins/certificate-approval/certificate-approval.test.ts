import t from "tap";
import { certificateSigningRequestKind } from "../../../api/certificates/certificate-signing-request/kind.ts";
import { authorizerOf, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import { certificateApproval } from "./certificate-approval.ts";

const calls: string[] = [];

const authorizer = authorizerOf((verb, resource, name) => {
  calls.push(`${verb} ${resource} ${name}`);
  return verb === "sign" ? name === "a.b/c" : name === "a.b/*";
});

const request = (signerName: string, status: object = {}) =>
  ({ metadata: { name: "r" }, spec: { signerName, request: "", usages: [] }, status }) as never;

t.test(
  "certificateApproval() rejects an approval without permission for the signer, even if nothing changes",
  async (t) => {
    const plugin = certificateApproval({ authorizer });
    const decide = (signer: string) =>
      rejectionOf(
        runPlugin(plugin, certificateSigningRequestKind, request("x.y/z"), {
          oldObject: request(signer),
          subresource: "approval",
        }),
      );
    calls.length = 0;
    t.equal(await decide("a.b/c"), "");
    t.same(calls, ["approve signers a.b/c", "approve signers a.b/*"]);
    t.match(
      await decide("b.c/d"),
      /^certificatesigningrequests.* "r" is forbidden: user not permitted to approve requests with signerName "b\.c\/d"$/,
    );
  },
);
