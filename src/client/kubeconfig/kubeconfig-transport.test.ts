import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { Handler } from "../../http/message.ts";
import { makeRequest } from "../../http/request.ts";
import { jsonResponse } from "../../http/respond.ts";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { CLIENT_AUTH, makeCertificate, makeServerCertificate } from "../../testing/http/test-certificates.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { readAll } from "../response.ts";
import { kubeconfigTransport } from "./kubeconfig-transport.ts";
import { loadWebhookKubeconfig, type WebhookKubeconfig } from "./webhook-kubeconfig.ts";

const { ca, server } = await makeServerCertificate();

/** Returns the `authorization` header, and whether there was a client certificate. */
const echo: Handler = async ({ headers, peer }) => {
  const { authorization = "" } = headers;
  const answer = { authorization, certificate: peer.certificates.length > 0 };
  return authorization === "Bearer bad" ? jsonResponse(401, answer) : jsonResponse(200, answer);
};

async function serve(t: Test): Promise<string> {
  const tls = { cert: server.cert, key: server.key, ca: ca.cert, requestCert: true };
  const listener = await listen({ handler: echo, log: silentLogger, host: "127.0.0.1", tls });
  t.teardown(() => listener.close());
  return `https://localhost:${listener.port}`;
}

function open(t: Test, file: Partial<WebhookKubeconfig> & Pick<WebhookKubeconfig, "server">, clock = new FakeClock()) {
  const send = kubeconfigTransport({ insecure: false, ca: ca.cert, ...file }, { clock });
  t.teardown(() => send[Symbol.asyncDispose]());
  return async () => {
    const { status, body } = await send(makeRequest({ path: "/" }));
    return { status, ...JSON.parse((await readAll(body, 10_000)).toString()) };
  };
}

t.test("kubeconfigTransport() sends the token of a file, and reads it again", async (t) => {
  const url = await serve(t);
  const tokenFile = join(t.testdir({ token: "two\n" }), "token");
  const clock = new FakeClock();
  const send = open(t, { server: url, token: "one", tokenFile }, clock);
  t.match(await send(), { authorization: "Bearer one" });
  await clock.advance(60_000);
  t.match(await send(), { authorization: "Bearer two" });
  await writeFile(tokenFile, "");
  await clock.advance(60_000);
  t.match(await send(), { authorization: "Bearer two" }, "an empty file is ignored");
});

t.test("kubeconfigTransport() sends basic authentication and renewed certificates", async (t) => {
  const url = await serve(t);
  t.match(await open(t, { server: url, basic: { username: "jo", password: "x:y" } })(), {
    authorization: `Basic ${Buffer.from("jo:x:y").toString("base64")}`,
  });
  const pair = await makeCertificate({ subject: [{ CN: ["jo"] }], issuer: ca, usages: [CLIENT_AUTH] });
  const at = t.testdir({ crt: pair.cert, key: pair.key });
  const clock = new FakeClock();
  const send = open(t, { server: url, pairFiles: { cert: join(at, "crt"), key: join(at, "key") } }, clock);
  t.match(await send(), { certificate: false });
  await clock.advance(60_000);
  t.match(await send(), { certificate: true });
});

t.test("kubeconfigTransport() skips verification with insecure-skip-tls-verify", async (t) => {
  const url = await serve(t);
  await t.rejects(open(t, { server: url, ca: undefined })());
  t.match(await open(t, { server: url, ca: undefined, insecure: true })(), { status: 200 });
});

t.test("kubeconfigTransport() runs a credential plugin, and again after a 401", async (t) => {
  const url = await serve(t);
  const apiVersion = "client.authentication.k8s.io/v1";
  const pair = await makeCertificate({ subject: [{ CN: ["jo"] }], issuer: ca, usages: [CLIENT_AUTH] });
  const at = t.testdir({
    answer: "",
    login: '#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" >> "$1/info"; cat "$1/answer"\n',
  });
  await chmod(join(at, "login"), 0o755);
  const answer = (status: object | undefined, version = apiVersion): Promise<void> =>
    writeFile(join(at, "answer"), JSON.stringify({ kind: "ExecCredential", apiVersion: version, status }));
  const requests = async (): Promise<readonly string[]> =>
    (await readFile(join(at, "info"), "utf8")).trim().split("\n");
  const user = { command: join(at, "login"), args: [at], env: {}, apiVersion, installHint: "install it" };
  const clock = new FakeClock();
  const send = open(t, { server: url, exec: { ...user, cluster: { server: url } } }, clock);
  await answer({ token: "bad" });
  t.match(await send(), { status: 401 });
  await answer({ token: "good", expirationTimestamp: new Date(clock.now() + 60_000).toISOString() });
  t.match(await send(), { status: 200, authorization: "Bearer good" });
  t.match(await send(), { status: 200 });
  t.equal((await requests()).length, 2, "cached until it expires");
  t.same(JSON.parse((await requests())[0]!), {
    kind: "ExecCredential",
    apiVersion,
    spec: { interactive: false, cluster: { server: url } },
  });
  await clock.advance(60_000);
  await answer({ clientCertificateData: pair.cert, clientKeyData: pair.key });
  t.match(await send(), { authorization: "", certificate: true });
  const bad: readonly (readonly [object | undefined, RegExp])[] = [
    [undefined, /didn't return a status field/],
    [{}, /didn't return a token or cert/],
    [{ clientKeyData: pair.key, token: "x" }, /only certificate or key/],
    [{ clientKeyData: "x", clientCertificateData: "y" }, /not PEM/],
    [{ token: 5 }, /token that is not a string/],
    [{ token: "x", expirationTimestamp: "later" }, /is not a time/],
  ];
  for (const [status, message] of bad) {
    await answer(status);
    await t.rejects(open(t, { server: url, exec: user })(), { message }, JSON.stringify(status));
  }
  await answer({ token: "x" }, "client.authentication.k8s.io/v1beta1");
  await t.rejects(open(t, { server: url, exec: user })(), { message: /responded with another/ });
  await writeFile(join(at, "answer"), "secret");
  await t.rejects(open(t, { server: url, exec: user })(), {
    message: /exec: .*login: decoding stdout: it is not JSON$/,
  });
  const missing = { ...user, command: join(at, "missing") };
  await t.rejects(open(t, { server: url, exec: missing })(), { message: /ENOENT: install it$/ });
});

t.test("kubeconfigTransport() connects through a proxy, with HTTP/2 and HTTP/1.1", async (t) => {
  const url = await serve(t);
  const tunnels: string[] = [];
  const proxy = createServer((_, answer) => answer.writeHead(405).end());
  proxy.on("connect", (request, socket) => {
    tunnels.push(`${request.url} ${request.headers["proxy-authorization"] ?? ""}`);
    if (request.headers["proxy-authorization"] === undefined) {
      socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
      return;
    }
    const [, port] = (request.url ?? "").split(":");
    const target = connect(Number(port), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      target.pipe(socket).pipe(target);
    });
    for (const end of [target, socket]) end.on("error", () => target.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  t.teardown(() => proxy.close());
  const at = (login: string): URL => new URL(`http://${login}127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  t.match(await open(t, { server: url, proxy: at("me:p%20w@"), token: "x" })(), { authorization: "Bearer x" });
  t.same(tunnels, [`${new URL(url).host} Basic ${Buffer.from("me:p w").toString("base64")}`]);
  await t.rejects(open(t, { server: url, proxy: at("") })(), { message: /through the proxy 127.*: .*407/ });
  const old = createTlsServer({ cert: server.cert, key: server.key }, (_, outgoing) => outgoing.end('{"old":true}'));
  const plain = createServer((_, outgoing) => outgoing.end('{"plain":true}'));
  for (const [listener, scheme, answer] of [
    [old, "https", { old: true }],
    [plain, "http", { plain: true }],
  ] as const) {
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    t.teardown(() => {
      listener.close();
      listener.closeAllConnections();
    });
    const { port } = listener.address() as AddressInfo;
    t.match(await open(t, { server: `${scheme}://localhost:${port}`, proxy: at("me:x@") })(), answer, scheme);
  }
});

t.test("loadWebhookKubeconfig() and kubeconfigTransport() connect to the host of the server URL", async (t) => {
  const url = await serve(t);
  const path = join(t.testdir(), "config");
  const data = Buffer.from(ca.cert).toString("base64");
  await writeFile(
    path,
    `current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "${url}/review", certificate-authority-data: ${data}}}]
users: [{name: u, user: {token: abc}}]
`,
  );
  t.match(await open(t, await loadWebhookKubeconfig(path))(), { authorization: "Bearer abc" });
});
