/** Certificate requests, tokens of service accounts in pods, OIDC discovery, and access reviews. */
import assert from "node:assert/strict";
import { createCertificateRequest } from "../../../auth/pki/certificate-signing.ts";
import { until } from "../../../testing/std/until.ts";
import { Api } from "../harness/api.ts";
import { type Behaviours, containerOf, PAUSE, podOf, type TestNamespace } from "../harness/behaviour.ts";
import { nodeContainer, nodeVolumes } from "../harness/node-program.ts";
import { testOperations } from "../harness/operations.ts";

const MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const approval = (reason: string) => ({
  conditions: [{ type: "Approved", status: "True", reason, message: "Approved by the test" }],
});

const certificateRequests = testOperations({
  make: async (at, index) => {
    const subject = { commonName: "e2e-example", organizations: [] };
    const { request } = await createCertificateRequest(subject);
    return {
      apiVersion: "certificates.k8s.io/v1",
      kind: "CertificateSigningRequest",
      metadata: { name: `${at.name}-${index}` },
      spec: {
        request: Buffer.from(request).toString("base64"),
        signerName: "example.com/e2e",
        expirationSeconds: 3600,
        usages: ["digital signature", "key encipherment", "server auth"],
      },
    };
  },
  subresources: {
    approval: { patch: { status: approval("Patched") }, update: { metadata: { annotations: { approved: "true" } } } },
    status: {
      patch: { metadata: { annotations: { "patched-status": "true" } } },
      update: { metadata: { annotations: { "updated-status": "true" } } },
    },
  },
  discovered: true,
});

async function mountToken(at: TestNamespace): Promise<void> {
  const containers = ["token", "ca", "namespace"].map((name) => containerOf(PAUSE, {}, name));
  const spec = { automountServiceAccountToken: true, containers };
  await at.runPod(podOf("mounted", "", { spec }));
  const read = (container: string, file: string) => at.exec("mounted", `cat ${MOUNT}/${file}`, container);
  const token = await read("token", "token");
  const review = await at.api.post("/apis/authentication.k8s.io/v1/tokenreviews", { spec: { token } });
  assert.equal(review.status.user.username, `system:serviceaccount:${at.name}:default`);
  const { data } = await at.api.get(at.path("configmaps/kube-root-ca.crt"));
  assert.equal(await read("ca", "ca.crt"), data["ca.crt"]);
  assert.equal(await read("namespace", "namespace"), at.name);
}

/** `undefined` leaves the field out. */
const choices = [undefined, true, false] as const;

async function optOut(at: TestNamespace): Promise<void> {
  const field = (value: boolean | undefined) => (value === undefined ? {} : { automountServiceAccountToken: value });
  for (const [index, ofAccount] of choices.entries()) {
    await at.api.post(at.path("serviceaccounts"), { metadata: { name: `account-${index}` }, ...field(ofAccount) });
    for (const ofPod of choices) {
      const name = `pod-${index}-${ofPod}`;
      const pod = podOf(name, PAUSE, { spec: { serviceAccountName: `account-${index}` } });
      const { automountServiceAccountToken: _, ...spec } = pod.spec as typeof pod.spec & {
        automountServiceAccountToken: boolean;
      };
      await at.runPod({ ...pod, spec: { ...spec, ...field(ofPod) } });
      const mounted = ofPod ?? ofAccount ?? true;
      const listed = await at.exec(name, `ls ${MOUNT} 2>&1 || true`);
      assert.equal(listed.includes("token"), mounted, `pod ${ofPod}, account ${ofAccount}: ${listed}`);
      await at.api.delete(at.path(`pods/${name}`));
    }
  }
}

/** A pod reads the keys of the issuer of its token at the address that the issuer publishes, and checks the token. */
async function discoverIssuer(at: TestNamespace): Promise<void> {
  const binding = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: at.name },
    roleRef: {
      apiGroup: "rbac.authorization.k8s.io",
      kind: "ClusterRole",
      name: "system:service-account-issuer-discovery",
    },
    subjects: [{ kind: "ServiceAccount", name: "default", namespace: at.name }],
  };
  await at.create(binding);
  try {
    const token = {
      name: "oidc",
      projected: { sources: [{ serviceAccountToken: { path: "token", audience: "oidc-test" } }] },
    };
    const container = nodeContainer("conformance/auth/verify-token.ts", [
      `${MOUNT}/token`,
      `${MOUNT}/ca.crt`,
      "/oidc/token",
    ]);
    const volumeMounts = [...container.volumeMounts, { name: "oidc", mountPath: "/oidc" }];
    const pod = podOf("verifier", "", {
      spec: {
        automountServiceAccountToken: true,
        containers: [{ ...container, volumeMounts }],
        volumes: [...nodeVolumes, token],
      },
    });
    assert.match(await at.outputOf(pod), /^verified system:serviceaccount:.*:default for oidc-test\n$/);
  } finally {
    await at.api.delete(at.pathOfObject(binding));
  }
}

async function review(at: TestNamespace): Promise<void> {
  await at.api.post(at.path("serviceaccounts"), { metadata: { name: "e2e" } });
  const user = `system:serviceaccount:${at.name}:e2e`;
  const attributes = { namespace: at.name, verb: "list", resource: "configmaps", version: "v1" };
  const group = "/apis/authorization.k8s.io/v1";
  const impersonate = () => at.api.send(`GET ${at.path("configmaps")}`, { headers: { "impersonate-user": user } });
  const agrees = async (allowed: boolean): Promise<void> => {
    const body = { spec: { user, resourceAttributes: attributes } };
    const ofCluster = await at.api.post(`${group}/subjectaccessreviews`, body);
    assert.equal(ofCluster.status.allowed, allowed);
    const ofNamespace = await at.api.post(`${group}/namespaces/${at.name}/localsubjectaccessreviews`, body);
    assert.equal(ofNamespace.status.allowed, allowed);
    assert.equal((await impersonate()).status, allowed ? 200 : 403);
  };
  await agrees(false);
  const rbac = { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name: "reader" } };
  await at.create({ ...rbac, kind: "Role", rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list"] }] });
  await at.create({
    ...rbac,
    kind: "RoleBinding",
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
    subjects: [{ kind: "ServiceAccount", name: "e2e", namespace: at.name }],
  });
  await agrees(true);
  const token = await at.api.post(at.path("serviceaccounts/e2e/token"), { spec: {} });
  const { server, ca } = at.api.credentials;
  using own = new Api({ server, ca, token: token.status.token });
  assert.equal((await own.send(`GET ${at.path("configmaps")}`)).status, 200, "the account itself");
}

async function reviewToken(at: TestNamespace): Promise<void> {
  await at.api.post(at.path("serviceaccounts"), { metadata: { name: "e2e" } });
  const { status } = await at.api.post(at.path("serviceaccounts/e2e/token"), { spec: {} });
  assert.ok(status.token);
  const reviewed = await at.api.post("/apis/authentication.k8s.io/v1/tokenreviews", { spec: { token: status.token } });
  assert.equal(reviewed.status.error ?? "", "");
  assert.equal(reviewed.status.authenticated, true);
  assert.equal(reviewed.status.user.username, `system:serviceaccount:${at.name}:e2e`);
}

/** The ConfigMap with the root certificates is created, and comes back after a deletion and a change. */
async function keepRootCertificates(at: TestNamespace): Promise<void> {
  const path = at.path("configmaps/kube-root-ca.crt");
  const found = (): Promise<string> =>
    until("the certificates", async () => {
      const { status, json } = await at.api.send(`GET ${path}`);
      return status === 200 && Object.keys(json.data).join() === "ca.crt" ? (json.data["ca.crt"] as string) : undefined;
    });
  const certificate = await found();
  assert.match(certificate, /BEGIN CERTIFICATE/);
  await at.api.delete(path);
  assert.equal(await found(), certificate);
  await at.api.update(path, (map) => {
    map.data = { "ca.crt": "" };
  });
  await at.wait(path, "the certificate again", ({ data }) => data["ca.crt"] === certificate);
}

async function projectToken(at: TestNamespace): Promise<void> {
  const script =
    "cat /var/run/secrets/tokens/test-token; echo; busybox stat -L -c '%a %u' /var/run/secrets/tokens/test-token";
  const token = { serviceAccountToken: { path: "test-token", expirationSeconds: 3600 } };
  const pod = podOf("reader", script, {
    container: { volumeMounts: [{ name: "t", mountPath: "/var/run/secrets/tokens", readOnly: true }] },
    spec: { volumes: [{ name: "t", projected: { sources: [token] } }] },
  });
  const [text = "", mode] = (await at.outputOf(pod)).split("\n");
  assert.equal(mode, "644 0");
  const { metadata } = await at.pod("reader");
  const payload = JSON.parse(Buffer.from(text.split(".")[1] ?? "", "base64url").toString());
  assert.equal(payload.sub, `system:serviceaccount:${at.name}:default`);
  assert.equal(payload["kubernetes.io"].pod.uid, metadata.uid);
  assert.equal(payload.exp - payload.iat, 3600);
}

export const access: Behaviours = {
  "ServiceAccounts should create a serviceAccountToken and ensure a successful TokenReview": reviewToken,
  "ServiceAccounts should guarantee kube-root-ca.crt exist in any namespace": keepRootCertificates,
  "ServiceAccounts should mount projected service account token": projectToken,
  "Certificates API should support CSR API operations": certificateRequests,
  "ServiceAccounts ServiceAccountIssuerDiscovery should support OIDC discovery of service account issuer":
    discoverIssuer,
  "ServiceAccounts should allow opting out of API token automount": optOut,
  "ServiceAccounts should mount an API token into pods": mountToken,
  "SubjectReview should support SubjectReview API operations": review,
};
