import { execFileSync } from "node:child_process";
import t from "tap";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";

const REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";
const merge = { "content-type": "application/merge-patch+json" };

/** A certificate signing request in PEM. */
function request(): string {
  const words = [
    "req",
    "-new",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-keyout",
    "/dev/null",
  ];
  return execFileSync("openssl", [...words, "-subj", "/CN=x"], { stdio: ["ignore", "pipe", "ignore"] }).toString();
}

t.test("a CSR is approved by users that may approve for its signer or for all signers of the domain", async (t) => {
  await using server = await startTestServer({ authorizationModes: ["RBAC"] });
  const spec = {
    request: Buffer.from(request()).toString("base64"),
    signerName: "example.com/web",
    usages: ["client auth"],
  };
  t.equal((await server.send(`POST ${REQUESTS}`, { body: { metadata: { name: "r" }, spec } })).status, 201);
  const allow = async (user: string, ...signers: readonly string[]): Promise<void> => {
    const resources = { apiGroups: ["certificates.k8s.io"], verbs: ["update", "patch"] };
    const rules = [
      { ...resources, resources: ["certificatesigningrequests/approval", "certificatesigningrequests/status"] },
      { apiGroups: ["certificates.k8s.io"], verbs: ["approve"], resources: ["signers"], resourceNames: signers },
    ];
    await server.send(`POST ${RBAC}/clusterroles`, { body: { metadata: { name: user }, rules } });
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: user };
    const subjects = [{ kind: "User", name: user, apiGroup: "rbac.authorization.k8s.io" }];
    const body = { metadata: { name: user }, roleRef, subjects };
    t.equal((await server.send(`POST ${RBAC}/clusterrolebindings`, { body })).status, 201);
  };
  await allow("eve", "example.com/other");
  await allow("ann", "example.com/*");
  const conditions = [{ type: "Approved", status: "True", reason: "Fine" }];
  const decide = (user: string) =>
    server.send(`PATCH ${REQUESTS}/r/approval`, { user, headers: merge, body: { status: { conditions } } });
  t.match(await decide("eve"), {
    status: 403,
    json: { message: /user not permitted to approve requests with signerName "example.com\/web"/ },
  });
  t.equal((await decide("ann")).status, 200);
  const none = { body: {}, headers: merge };
  t.match(await server.send(`PATCH ${REQUESTS}/r/approval`, { user: "eve", ...none }), {
    status: 403,
    json: { message: /user not permitted to approve requests/ },
  });
  t.equal((await server.send(`PATCH ${REQUESTS}/r/status`, { user: "eve", ...none })).status, 200, "nothing is issued");
  const failed = [...conditions, { type: "Failed", status: "True", reason: "No" }];
  const body = { status: { conditions: failed } };
  const issued = await server.send(`PATCH ${REQUESTS}/r/status`, { user: "ann", headers: merge, body });
  t.match(issued, { status: 403, json: { message: /user not permitted to sign requests/ } });
});
