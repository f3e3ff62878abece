import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { loadWebhookKubeconfig } from "./webhook-kubeconfig.ts";

const PEM = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

const config = (cluster: string, user: string): string => `current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://h:1/review?x=1", ${cluster}}}]
users: [{name: u, user: {${user}}}]
`;

t.test("loadWebhookKubeconfig() reads all fields of webhook kubeconfigs", async (t) => {
  const at = t.testdir({ "me.crt": PEM, "me.key": PEM, token: "abc\n" });
  const path = join(at, "config");
  const load = async (cluster: string, user: string) => {
    await writeFile(path, config(cluster, user));
    return await loadWebhookKubeconfig(path);
  };
  const cluster = 'insecure-skip-tls-verify: true, tls-server-name: x, proxy-url: "http://me:p%20w@proxy:3128"';
  t.match(await load(cluster, "client-certificate: me.crt, client-key: me.key, tokenFile: token"), {
    server: "https://h:1/review?x=1",
    insecure: true,
    tlsServerName: "x",
    proxy: { hostname: "proxy", port: "3128", username: "me" },
    cert: PEM,
    token: "abc",
    tokenFile: join(at, "token"),
    pairFiles: { cert: join(at, "me.crt"), key: join(at, "me.key") },
  });
  t.match(await load(`certificate-authority-data: ${base64(PEM)}`, "username: jo, password: x"), {
    insecure: false,
    ca: PEM,
    basic: { username: "jo", password: "x" },
    pairFiles: undefined,
  });
  const exec = "apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: bin/login";
  const { exec: program } = await load(
    "tls-server-name: x, extensions: [{name: client.authentication.k8s.io/exec, extension: {a: 1}}]",
    `exec: {${exec}, args: [a, b], env: [{name: NAME, value: v}, {name: EMPTY}], provideClusterInfo: true, installHint: h}`,
  );
  t.same(program, {
    command: join(at, "bin/login"),
    args: ["a", "b"],
    env: { NAME: "v", EMPTY: "" },
    apiVersion: "client.authentication.k8s.io/v1",
    installHint: "h",
    cluster: { server: "https://h:1/review?x=1", "tls-server-name": "x", config: { a: 1 } },
  });
  const beta = await load("", "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: login}");
  t.match(beta.exec, { command: "login", cluster: undefined });
});

t.test("loadWebhookKubeconfig() reports problems with file, line and field", async (t) => {
  const path = join(t.testdir(), "config");
  const exec = (members: string): string => `exec: {apiVersion: client.authentication.k8s.io/v1, ${members}}`;
  const bad: readonly (readonly [string, string, RegExp])[] = [
    [`insecure-skip-tls-verify: true, certificate-authority-data: ${base64(PEM)}`, "", /with the insecure flag/],
    ['proxy-url: "socks5://p:1"', "", /config:3: clusters\[0\].cluster.proxy-url: expected http:/],
    ["", "username: jo, token: abc", /config:4: users\[0\].user: more than one authentication method/],
    ["", "auth-provider: {name: oidc}", /auth-provider: it is not supported/],
    ["", "as: jo", /users\[0\].user.as: it is not supported/],
    ["", exec("interactiveMode: Never"), /exec.command: it is missing/],
    ["", exec("command: x"), /exec.interactiveMode: expected one of Never/],
    ["", exec("command: x, interactiveMode: Always"), /the server has no terminal/],
    ["", "exec: {command: x}", /exec.apiVersion: it is missing/],
    ["", "exec: {command: x, apiVersion: v1}", /exec.apiVersion: expected client.authentication/],
    ["", exec("command: x, interactiveMode: Never, args: [1]"), /exec.args\[0\]: expected text/],
    ["", exec("command: x, interactiveMode: Never, env: [{value: v}]"), /exec.env\[0\].name: it is missing/],
  ];
  for (const [cluster, user, message] of bad) {
    await writeFile(path, config(cluster, user));
    await t.rejects(loadWebhookKubeconfig(path), { name: "KubeconfigError", message }, `${cluster} ${user}`);
  }
});
