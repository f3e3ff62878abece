import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { writeFileDurably, writeKeyPair } from "../../auth/pki/key-pair.ts";
import type { Handler } from "../../http/message.ts";
import { textResponse } from "../../http/respond.ts";
import { listen } from "../../http/server/server.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { defaultConfig } from "../config/default-config.ts";

const LOG = "/api/v1/namespaces/default/pods/web/log";

/** An agent and an API server with mutual TLS. */
async function startCluster(t: Test, answer: Handler) {
  const dir = await mkdtemp(join(tmpdir(), "svc-pod-log-"));
  t.teardown(() => rm(dir, { recursive: true }));
  const now = systemClock.now();
  const ca = await createCa("test", 1, now);
  const agentPair = await issueCertificate(
    ca,
    { commonName: "n1", alternativeNames: ["127.0.0.1"], usages: ["server"], days: 1 },
    now,
  );
  const client = await issueCertificate(ca, { commonName: "apiserver", usages: ["client"], days: 1 }, now);
  const files = { certFile: join(dir, "client.crt"), keyFile: join(dir, "client.key") };
  await writeKeyPair(files, client);
  await writeFileDurably(join(dir, "ca.crt"), ca.cert, 0o644);
  const agent = await listen({
    handler: answer,
    log: silentLogger,
    host: "127.0.0.1",
    tls: { ...agentPair, requestCert: true, ca: ca.cert },
  });
  const server = await startTestServer({
    agents: { ...defaultConfig.agents, clientCertificate: files, certificateAuthorityFile: join(dir, "ca.crt") },
  });
  t.teardown(async () => {
    await server[Symbol.asyncDispose]();
    await agent.close();
  });
  const status = {
    addresses: [
      { type: "InternalIP", address: "127.0.0.1" },
      { type: "ExternalIP", address: "192.0.2.9" },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: agent.port } },
  };
  await server.send("POST /api/v1/nodes", { body: { metadata: { name: "n1" } } });
  await server.send("PUT /api/v1/nodes/n1/status", { body: { metadata: { name: "n1" }, status } });
  const pod = (containers: readonly string[], nodeName?: string) =>
    server.send("POST /api/v1/namespaces/default/pods", {
      body: {
        metadata: { name: "web" },
        spec: { nodeName, containers: containers.map((name) => ({ name, image: "i" })) },
      },
    });
  return { server, pod };
}

t.test("pods/log forwards the options with the server's client certificate", async (t) => {
  const seen: string[] = [];
  const { server, pod } = await startCluster(t, async (request) => {
    seen.push(`${request.path}?${request.query} ${request.peer.certificates.length}`);
    return textResponse(200, "hello\n");
  });
  await pod(["c"], "n1");
  const answer = await server.send(`GET ${LOG}?tailLines=3&timestamps=true&follow=false&pretty=true`);
  t.match(answer, { status: 200, text: "hello\n", headers: { "content-type": "text/plain" } });
  t.match(seen, [/^\/containerLogs\/default\/web\/c\?tailLines=3&timestamps=true [12]$/]);
});

t.test("pods/log returns the agent's error message", async (t) => {
  const { server, pod } = await startCluster(t, async () =>
    textResponse(400, 'container "c" in pod "web" is waiting to start'),
  );
  await pod(["c"], "n1");
  t.match((await server.send(`GET ${LOG}`)).json, {
    code: 400,
    reason: "BadRequest",
    message: 'container "c" in pod "web" is waiting to start',
  });
});

t.test("pods/log requires a container name and valid numbers", async (t) => {
  const { server, pod } = await startCluster(t, async () => textResponse(200, ""));
  await pod(["a", "b"], "n1");
  t.match((await server.send(`GET ${LOG}`)).json, {
    code: 400,
    message: "a container name must be specified for pod web, choose one of: [a b]",
  });
  t.match((await server.send(`GET ${LOG}?container=x`)).json, { message: "container x is not valid for pod web" });
  t.equal((await server.send(`GET ${LOG}?container=a`)).status, 200);
  const message = async (query: string): Promise<unknown> =>
    (await server.send(`GET ${LOG}?container=a&${query}`)).json.message;
  const invalid = 'PodLogOptions "web" is invalid: ';
  const both = "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified";
  t.equal(await message("sinceSeconds=-1&sinceTime=2020-01-01T00:00:00Z"), `${invalid}${both}`);
  t.equal(await message("stream="), `${invalid}stream: Forbidden: may not be specified`);
  t.equal(
    await message("sinceSeconds=-1&tailLines=-1"),
    `${invalid}[tailLines: Invalid value: -1: must be greater than or equal to 0, ` +
      "sinceSeconds: Invalid value: -1: must be greater than 0]",
  );
  t.equal((await server.send(`GET ${LOG}?container=a&limitBytes=x`)).status, 400);
  t.equal((await server.send(`GET ${LOG}?container=a&sinceTime=x`)).status, 400);
});

t.test(
  "pods/log reads the options before the pod, and sends them to the agent in whole seconds and sorted",
  async (t) => {
    const seen: string[] = [];
    const { server, pod } = await startCluster(t, async (request) => {
      seen.push(request.query);
      return textResponse(200, "");
    });
    await pod(["c"], "n1");
    const none = LOG.replace("web", "none");
    t.equal((await server.send(`GET ${none}?tailLines=x`)).status, 400);
    t.equal((await server.send(`GET ${none}?tailLines=-1`)).status, 422);
    t.equal((await server.send(`GET ${none}`)).status, 404);
    const sent =
      "timestamps=1&sinceTime=2020-01-01T02:00:00.9%2B01:00&previous=FALSE&limitBytes=9223372036854775807&follow=0";
    t.equal((await server.send(`GET ${LOG}?${sent}`)).status, 200);
    t.equal((await server.send(`GET ${LOG}?sinceTime=`)).status, 200);
    const time = (text: string): string => `sinceTime=${encodeURIComponent(text)}`;
    t.same(seen, [
      `limitBytes=9223372036854775807&${time("2020-01-01T01:00:00Z")}&timestamps=true`,
      time("0001-01-01T00:00:00Z"),
    ]);
  },
);

t.test("pods/log is served to clients that accept a type of objects", async (t) => {
  const { server, pod } = await startCluster(t, async () => textResponse(200, "x"));
  await pod(["c"], "n1");
  const types = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
  for (const [accept, status, message] of [
    ["*/*", 200, ""],
    ["application/json", 200, ""],
    ["application/yaml", 200, ""],
    ["application/vnd.kubernetes.protobuf", 200, ""],
    ["text/plain, */*", 200, ""],
    ["text/plain", 406, `only the following media types are accepted: ${types}`],
    ["text/html", 406, `406: Not Acceptable\n\nAvailable representations: text/plain, ${types}`],
  ] as const) {
    const answer = await server.send(`GET ${LOG}`, { headers: { accept } });
    t.equal(answer.status, status, accept);
    if (status === 406) t.equal(answer.json.message, message, accept);
  }
});

t.test("pods/log of a pod without a node is empty; an unreachable agent gets 500", async (t) => {
  const { server, pod } = await startCluster(t, async () => textResponse(200, "x"));
  await pod(["c"]);
  t.match(await server.send(`GET ${LOG}`), { status: 204, text: "" });
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: 1 } },
  };
  await server.send("PUT /api/v1/nodes/n1/status", { body: { metadata: { name: "n1" }, status } });
  const target = { kind: "Node", name: "n1" };
  await server.send("POST /api/v1/namespaces/default/pods/web/binding", {
    body: { metadata: { name: "web" }, target },
  });
  t.match((await server.send(`GET ${LOG}`)).json, {
    code: 500,
    message: /^Get "https:\/\/127\.0\.0\.1:1\/containerLogs.*": dial tcp 127\.0\.0\.1:1: connect: connection refused$/,
  });
  t.equal((await server.send(`GET /api/v1/namespaces/default/pods/none/log`)).status, 404);
});
