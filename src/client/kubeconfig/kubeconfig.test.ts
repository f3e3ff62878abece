import { mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { loadKubeconfig, writeKubeconfig } from "./kubeconfig.ts";

const PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const KEY = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";

async function directory(t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "svc-config-"));
  t.teardown(() => rm(path, { recursive: true }));
  return path;
}

function config(cluster: string, user: string): string {
  return `apiVersion: v1
kind: Config
current-context: here
clusters:
- name: other
  cluster: {server: "https://other"}
- name: c
  cluster: {${cluster}}
users:
- name: u
  user: {${user}}
contexts:
- name: here
  context: {cluster: c, user: u, namespace: ns}
- name: anonymous
  context: {cluster: other}
`;
}

t.test("writeKubeconfig() writes a file for loadKubeconfig(), readable only by its owner", async (t) => {
  const path = join(await directory(t), "deep", "admin.svcconfig");
  const content = { server: "https://127.0.0.1:6443", cluster: "svc", user: "admin", ca: PEM, cert: PEM, key: KEY };
  await writeKubeconfig(path, { ...content, namespace: "x", tlsServerName: "kubernetes" });
  t.equal((await stat(path)).mode & 0o777, 0o600);
  t.strictSame(await loadKubeconfig(path), {
    ...content,
    namespace: "x",
    tlsServerName: "kubernetes",
    context: "admin@svc",
  });
  await writeKubeconfig(path, { server: "https://b", cluster: "b", user: "u", token: "t", context: "mine" });
  t.strictSame(await loadKubeconfig(path), {
    server: "https://b",
    cluster: "b",
    user: "u",
    token: "t",
    namespace: "",
    context: "mine",
  });
  t.strictSame(await readdir(join(path, "..")), ["admin.svcconfig"], "nothing is left beside it");
});

t.test("loadKubeconfig() resolves relative paths, token files and the requested context", async (t) => {
  const at = await directory(t);
  const path = join(at, "config");
  await writeFile(join(at, "ca.crt"), PEM);
  await writeFile(join(at, "me.crt"), PEM);
  await writeFile(join(at, "me.key"), KEY);
  await writeFile(join(at, "token"), "abc\n");
  const user = "client-certificate: me.crt, client-key: me.key, token: stale, tokenFile: token";
  await writeFile(path, config('server: "https://h:1/prefix", certificate-authority: ca.crt', user));
  t.match(await loadKubeconfig(path), {
    ca: PEM,
    cert: PEM,
    key: KEY,
    token: "abc",
    tokenFile: join(at, "token"),
    namespace: "ns",
  });
  t.strictSame(await loadKubeconfig(path, "anonymous"), {
    server: "https://other",
    namespace: "",
    context: "anonymous",
    user: "",
    cluster: "other",
  });
});

const good = 'server: "https://h"';
const bad: readonly (readonly [string, string, RegExp])[] = [
  ["empty", "", /config: the file is empty/],
  ["no YAML", "a: [", /config: yaml: line 1: did not find expected/],
  ["a list", "[]", /expected a mapping/],
  ["another kind", "kind: Pod", /config:1: kind: expected Config, found "Pod"/],
  ["no context", "kind: Config", /current-context: it is empty/],
  ["two documents", "kind: Config\n---\nkind: Config\n", /more than one/],
  ["unknown context", "current-context: x", /current-context: there is no entry named "x" in contexts/],
  ["no server", config("", ""), /config:8: clusters\[1\].cluster.server: it is missing/],
  ["bad server", config('server: "h:1"', ""), /clusters\[1\].cluster.server: expected https:/],
  [
    "insecure with authorities",
    config(
      `${good}, insecure-skip-tls-verify: true, certificate-authority-data: ${Buffer.from(PEM).toString("base64")}`,
      "",
    ),
    /insecure-skip-tls-verify: specifying a root certificates file with the insecure flag/,
  ],
  ["proxy", config(`${good}, proxy-url: "http://p"`, ""), /proxy-url: it is not supported/],
  ["exec", config(good, "exec: {command: x}"), /config:11: users\[0\].user.exec: it is not supported/],
  ["no base64", config(`${good}, certificate-authority-data: "!!"`, ""), /certificate-authority-data: expected base64/],
  ["no PEM", config(`${good}, certificate-authority-data: QUJD`, ""), /certificate-authority-data: expected PEM/],
  ["missing file", config(good, "client-certificate: gone"), /client-certificate: ENOENT/],
  [
    "key without certificate",
    config(good, `client-key-data: ${Buffer.from(KEY).toString("base64")}`),
    /the key has no certificate/,
  ],
  [
    "certificate without key",
    config(good, `client-certificate-data: ${Buffer.from(PEM).toString("base64")}`),
    /the certificate has no key/,
  ],
  ["number for text", config(good, "token: 5"), /users\[0\].user.token: expected text/],
  ["list for a user", config(good, "").replace("user: {}", "user: []"), /users\[0\].user: expected a mapping/],
];

t.test("loadKubeconfig() reports problems with file, line and field", async (t) => {
  const path = join(await directory(t), "config");
  for (const [what, text, message] of bad) {
    await writeFile(path, text);
    await t.rejects(loadKubeconfig(path), { name: "KubeconfigError", message }, what);
  }
  await t.rejects(loadKubeconfig("/nonexistent/config"), { message: /^Cannot load \/nonexistent\/config: ENOENT/ });
});
