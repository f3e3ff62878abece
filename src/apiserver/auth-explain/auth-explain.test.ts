import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { clusterRoleKind } from "../../api/rbac/cluster-role/kind.ts";
import { clusterRoleBindingKind } from "../../api/rbac/cluster-role-binding/kind.ts";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { writeKubeconfig } from "../../client/kubeconfig/kubeconfig.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { ObjectStore } from "../../storage/object-store.ts";
import { openStore } from "../../storage/open.ts";
import { defaultConfig } from "../config/default-config.ts";
import { startApiServer } from "../server.ts";
import { runAuthExplain } from "./command.ts";

async function files(t: Test, texts: Readonly<Record<string, string>>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "svc-explain-"));
  t.teardown(() => rm(directory, { recursive: true }));
  for (const [name, text] of Object.entries(texts)) await writeFile(join(directory, name), text);
  return directory;
}

const MEMORY = "--kvstore-servers=memory://";
const MODES = "--authorization-mode=Node,RBAC";

function jwt(claims: object): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${encode({ alg: "RS256" })}.${encode(claims)}.AAAA`;
}

t.test("a token shows which authenticator accepts it, and the request which rule allows it", async (t) => {
  const directory = await files(t, { tokens: 'tok,system:kube-scheduler,1,"devs"\n' });
  const tokens = `--token-auth-file=${join(directory, "tokens")}`;
  const found = await runAuthExplain([
    MEMORY,
    MODES,
    tokens,
    "--token=tok",
    "--verb=create",
    "--resource=pods/binding",
  ]);
  t.equal(found.code, 0);
  t.match(found.stdout, "  token file: authenticated\n");
  t.match(found.stdout, '  => user "system:kube-scheduler", uid "1"\n     groups devs, system:authenticated\n');
  t.match(found.stdout, "  Node: no-opinion\n  RBAC: allow\n");
  t.match(found.stdout, 'ClusterRoleBinding "system:kube-scheduler" of ClusterRole "system:kube-scheduler"');
  t.match(found.stdout, 'rule: verbs ["create"], apiGroups [""], resources ["bindings","pods/binding"]');
  t.notMatch(found.stdout, /\btok\b/);
});

t.test("a refused token shows what each authenticator said", async (t) => {
  const unknown = await runAuthExplain([MEMORY, "--token=abc", "--enable-bootstrap-token-auth"]);
  t.equal(unknown.code, 1);
  t.match(unknown.stdout, "bearer token of 3 characters, which is no JWT");
  t.match(unknown.stdout, "token file: skipped: there is no --token-auth-file");
  t.match(unknown.stdout, "service account: skipped: the token is no JWT");
  t.match(unknown.stdout, "bootstrap token: skipped: the token does not have the form ID.SECRET");
  t.match(unknown.stdout, "=> refused: 401 Unauthorized");
  const foreign = await runAuthExplain([MEMORY, `--token=${jwt({ iss: "https://a" })}`]);
  t.match(foreign.stdout, 'the issuer "https://a" is none of https://kubernetes.default.svc');
  const forged = await runAuthExplain([MEMORY, `--token=${jwt({ iss: "https://kubernetes.default.svc", exp: 1 })}`]);
  t.match(forged.stdout, "exp: 1 (1970-01-01T00:00:01.000Z)");
  t.match(forged.stdout, "service account: refused: invalid signature");
});

t.test("a refused certificate shows the checks that fail", async (t) => {
  const now = Date.now();
  const [ca, other] = await Promise.all(["ca", "other"].map((name) => createCa(name, 1, now)));
  const client = await issueCertificate(
    ca!,
    { commonName: "alice", organizations: ["devs"], usages: ["client"], days: 1 },
    now,
  );
  const server = await issueCertificate(ca!, { commonName: "web", usages: ["server"], days: 1 }, now);
  const expired = await issueCertificate(ca!, { commonName: "old", usages: ["client"], days: 1 }, now - 5 * 86_400_000);
  const directory = await files(t, {
    ca: ca!.cert,
    other: other!.cert,
    client: client.cert,
    server: server.cert,
    expired: expired.cert,
    text: "nothing",
  });
  const explain = async (ca: string, certificate: string) =>
    await runAuthExplain([
      ...[MEMORY, `--client-ca-file=${join(directory, ca)}`],
      `--client-certificate=${join(directory, certificate)}`,
    ]);
  t.match(await explain("ca", "client"), { code: 0, stdout: /client certificate: authenticated\n {2}=> user "alice"/ });
  t.match(await explain("ca", "server"), { code: 1, stdout: /it is not for client authentication/ });
  t.match(await explain("ca", "expired"), { code: 1, stdout: /it has expired at \d{4}-/ });
  t.match(await explain("other", "client"), { code: 1, stdout: /its issuer is none of the authorities/ });
  t.match(await explain("ca", "text"), { code: 2, stderr: /Cannot use --client-certificate=/ });
});

t.test("a refused request shows the rules that come close", async (t) => {
  const request = ["--user=system:kube-scheduler", "--verb=patch", "--resource=nodes"];
  const { stdout, code } = await runAuthExplain([MEMORY, MODES, ...request]);
  t.equal(code, 1);
  t.match(stdout, 'verbs ["get","list","watch"], apiGroups [""], resources ["nodes"]');
  t.match(stdout, "=> forbidden: no authorizer allows it");
  const admin = ["--user=a", "--group=system:masters", "--verb=delete", "--resource=nodes"];
  t.match(await runAuthExplain([MEMORY, MODES, ...admin]), { code: 0, stdout: /before any authorizer/ });
  const path = ["--user=a", "--verb=get", "--path=/version"];
  t.match(await runAuthExplain([MEMORY, MODES, ...path]), { code: 0, stdout: /nonResourceURLs/ });
});

t.test("each authorizer of a configuration file is shown by its name", async (t) => {
  const directory = await files(t, {
    "authz.yaml":
      "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: AuthorizationConfiguration\n" +
      "authorizers: [{type: Node, name: nodes}, {type: RBAC, name: roles}, {type: AlwaysAllow, name: rest}]\n",
  });
  const flags = [
    `--authorization-config=${join(directory, "authz.yaml")}`,
    "--user=a",
    "--verb=get",
    "--resource=pods",
  ];
  const { stdout, code } = await runAuthExplain([MEMORY, ...flags]);
  t.equal(code, 0);
  t.match(stdout, 'Node "nodes": no-opinion\n');
  t.match(stdout, 'AlwaysAllow "rest": allow\n');
});

t.test("the rules of a stopped server are those of its store", async (t) => {
  const directory = await files(t, {});
  const url = `level://${join(directory, "store")}`;
  const options = { urls: [url], clock: systemClock, log: silentLogger, compactionIntervalMs: 0 };
  const store = await openStore(options);
  const metadata = { name: "readers" };
  const roles = new ObjectStore({ store, kind: clusterRoleKind, prefix: "/registry" });
  const rules = [{ verbs: ["get"], apiGroups: ["apps"], resources: ["deployments"] }];
  await roles.create(roles.key(undefined, "readers"), { metadata, rules });
  const bindings = new ObjectStore({ store, kind: clusterRoleBindingKind, prefix: "/registry" });
  await bindings.create(bindings.key(undefined, "readers"), {
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "readers" },
    subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "bob" }],
  });
  const flags = [`--kvstore-servers=${url}`, MODES, "--user=bob", "--verb=get", "--resource=deployments.apps"];
  t.match(await runAuthExplain(flags), { code: 2, stderr: /a server uses it; .*--svcconfig/ });
  await store[Symbol.asyncDispose]();
  const { stdout, code } = await runAuthExplain(flags);
  t.equal(code, 0, stdout);
  t.match(stdout, 'ClusterRoleBinding "readers" of ClusterRole "readers" to User "bob"');
});

t.test("the rules of a running server are those that it serves", async (t) => {
  const directory = await files(t, { tokens: 'tok,admin,1,"system:masters"\n' });
  const authentication = { ...defaultConfig.authentication, tokenFile: join(directory, "tokens") };
  const serving = { ...defaultConfig.serving, certDir: join(directory, "pki") };
  const config = { ...defaultConfig, authentication, serving, authorizationModes: ["RBAC"] };
  await using server = await startApiServer(config, { clock: systemClock, log: silentLogger });
  const { host, port } = server.address;
  const svcconfig = join(directory, "svcconfig");
  const ca = await readFile(join(directory, "pki/apiserver.crt"), "utf8");
  const access = { server: `https://${host}:${port}`, cluster: "c", user: "u", ca, token: "tok" };
  await writeKubeconfig(svcconfig, access);
  const flags = [MEMORY, MODES, `--svcconfig=${svcconfig}`, "--user=system:kube-scheduler", "--verb=list"];
  const { stdout, code, stderr } = await runAuthExplain([...flags, "--resource=nodes"]);
  t.equal(code, 0, stderr);
  t.match(stdout, `Objects: the server https://${host}:${port}\n`);
  t.match(stdout, 'ClusterRoleBinding "system:kube-scheduler"');
  const account = jwt({ iss: "https://kubernetes.default.svc", sub: "system:serviceaccount:default:none" });
  t.match(await runAuthExplain([MEMORY, `--svcconfig=${svcconfig}`, `--token=${account}`]), { code: 1 });
});

t.test("the command line", async (t) => {
  t.match(await runAuthExplain(["--help"]), { code: 0, stdout: /--client-certificate/ });
  t.match(await runAuthExplain(["--nonsense"]), { code: 1, stderr: /unknown flag/ });
  t.match(await runAuthExplain([MEMORY, "--user=a", "--resource=pods"]), { code: 2, stderr: /--verb is missing/ });
  t.match(await runAuthExplain([MEMORY, "--token=a", "--token-file=b"]), {
    code: 2,
    stderr: /cannot be used together/,
  });
});
