/** Connections that switch protocols through an extension server, as exec and attach do. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import t from "tap";
import { connectUpgrade } from "../../http/upgrade/connect-upgrade.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { makeAggregationCertificates, SAMPLE_API } from "../../testing/aggregation/aggregated-cluster.ts";
import { startExtensionServer } from "../../testing/aggregation/extension-server.ts";
import { flunderKind } from "../../testing/aggregation/sample-kinds.ts";
import { readResponse } from "../../testing/apiserver/server-fixture.ts";
import { until } from "../../testing/std/until.ts";
import { defaultConfig } from "../config/default-config.ts";
import { startApiServer } from "../server.ts";

const EXEC = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders/a/exec";

/** Resolves with as many bytes as were sent. */
async function exchange(socket: Duplex, text: string): Promise<string> {
  socket.write(text);
  let received = "";
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    received += chunk.toString();
    if (received.length >= text.length) break;
  }
  return received;
}

t.test("SPDY and WebSocket connections pass through an extension server", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "svc-upgrade-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "tokens"), 'secret,ann,1,"system:masters"\n');
  using certificates = await makeAggregationCertificates();
  await using extension = await startExtensionServer({
    kinds: [flunderKind],
    certificate: certificates.server,
    proxyCa: certificates.proxyCa.cert,
    intercept: async ({ request }) => {
      if (!request.path.endsWith("/exec")) return undefined;
      if (request.query.includes("refuse")) return { status: 403, headers: {}, body: Buffer.from("not for you") };
      if (request.query.includes("ignore")) return { status: 200, headers: {}, body: Buffer.from("plain") };
      return { status: 101, headers: { upgrade: request.headers.upgrade ?? "" }, body: request.body };
    },
  });
  const config = {
    ...defaultConfig,
    serving: { ...defaultConfig.serving, certDir: folder },
    authentication: { ...defaultConfig.authentication, tokenFile: join(folder, "tokens") },
    proxyClientCertificate: certificates.proxyClient,
  };
  await using server = await startApiServer(config, { clock: systemClock, log: silentLogger });
  const headers = { authorization: "Bearer secret", "content-type": "application/json" };
  const send = async (method: string, path: string, body?: object) => {
    const response = await fetchJson(server.address.port, method, path, headers, body);
    return response;
  };
  const { port } = extension;
  await send("POST", "/api/v1/namespaces/default/services", {
    metadata: { name: "sample" },
    spec: { type: "ExternalName", externalName: "localhost", ports: [{ port }] },
  });
  const service = { name: "sample", namespace: "default", port };
  const spec = {
    group: "wardle.example.com",
    version: "v1alpha1",
    groupPriorityMinimum: 1,
    versionPriority: 1,
    service,
  };
  const caBundle = Buffer.from(certificates.serverCa.cert).toString("base64");
  const services = "/apis/apiregistration.k8s.io/v1/apiservices";
  await send("POST", services, { metadata: { name: SAMPLE_API }, spec: { ...spec, caBundle } });
  await until("an available API service", async () => {
    const { status } = (await send("GET", `${services}/${SAMPLE_API}`)) as { status?: { conditions?: unknown } };
    return JSON.stringify(status).includes('"True"');
  });
  const upgrade = async (query: string, protocol: string) => {
    const signal = AbortSignal.timeout(10_000);
    const own = { authorization: "Bearer secret", upgrade: protocol, "x-remote-user": "evil" };
    const { port: serverPort } = server.address;
    const to = { method: "POST", secure: true, host: "127.0.0.1", port: serverPort, path: `${EXEC}?${query}` };
    return await connectUpgrade({ ...to, headers: own, signal });
  };
  for (const protocol of ["SPDY/3.1", "websocket"]) {
    const result = await upgrade("command=ls", protocol);
    t.equal(result.status, 101, protocol);
    if (!("socket" in result)) continue;
    t.equal(result.headers.upgrade, protocol);
    t.equal(await exchange(result.socket, "hello ".repeat(10_000)), "hello ".repeat(10_000));
    result.socket.destroy();
    const { user, headers: sent } = extension.received.at(-1)!;
    t.match(user, { name: "ann", uid: "1", groups: ["system:masters", "system:authenticated"] });
    t.equal(sent.authorization, undefined);
  }
  const refused = await upgrade("refuse", "SPDY/3.1");
  t.match(await readResponse(refused as never), { status: 403, text: "not for you" });
  const ignored = await upgrade("ignore", "SPDY/3.1");
  t.match(await readResponse(ignored as never), { status: 503, text: "invalid upgrade response: status code 200\n" });
});

async function fetchJson(
  port: number,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: object | undefined,
): Promise<unknown> {
  const { request } = await import("node:https");
  return await new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, method, path, headers: { ...headers }, rejectUnauthorized: false };
    const outgoing = request(options, (response) => {
      let text = "";
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => resolve(JSON.parse(text)));
    });
    outgoing.on("error", reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
