import { PassThrough } from "node:stream";
import t, { type Test } from "tap";
import type { HttpRequest } from "../../../http/message.ts";
import { makeRequest } from "../../../http/request.ts";
import { readResponse, startTestServer, type TestResponse } from "../../../testing/apiserver/server-fixture.ts";

const PODS = "/api/v1/namespaces/default/pods";
const spdy = { connection: "Upgrade", upgrade: "SPDY/3.1" };
const tunnel = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  "sec-websocket-protocol": "SPDY/3.1+portforward.k8s.io",
};

/** A server with pods on a node without an agent. */
async function start(t: Test) {
  const server = await startTestServer();
  t.teardown(() => server[Symbol.asyncDispose]());
  const create = async (path: string, body: object): Promise<void> => {
    const { status, text } = await server.send(`POST ${path}`, { body });
    if (status !== 201) throw new Error(text);
  };
  await create("/api/v1/nodes", { metadata: { name: "n1" } });
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: 1 } },
  };
  await server.send("PATCH /api/v1/nodes/n1/status", {
    body: { status },
    headers: { "content-type": "application/merge-patch+json" },
  });
  const containers = (...names: readonly string[]) => names.map((name) => ({ name, image: "i" }));
  await create(PODS, { metadata: { name: "one" }, spec: { nodeName: "n1", containers: containers("c") } });
  await create(PODS, { metadata: { name: "lost" }, spec: { nodeName: "gone", containers: containers("c") } });
  await create(PODS, {
    metadata: { name: "many" },
    spec: { nodeName: "n1", containers: containers("a", "b"), initContainers: containers("i") },
  });
  const upgrade = async (line: string, headers: Readonly<Record<string, string>>): Promise<TestResponse> => {
    const [method = "", target = ""] = line.split(" ");
    const [path = "", query = ""] = target.split("?");
    const authorization = `Bearer ${server.parts.server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} })}`;
    const request: HttpRequest = {
      ...makeRequest({ method, path, query, headers: { ...headers, authorization } }),
      upgradable: true,
      body: new PassThrough(),
    };
    return await readResponse(await server.parts.server.handler(request));
  };
  return { ...server, upgrade };
}

t.test("streams into a pod on a node whose agent is down get kube-apiserver's error", async (t) => {
  const { upgrade } = await start(t);
  const message = "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused";
  for (const [line, headers] of [
    [`POST ${PODS}/one/exec?command=a&stdout=true`, spdy],
    [`GET ${PODS}/many/attach?container=i&stdout=true`, spdy],
    [`POST ${PODS}/one/portforward`, spdy],
    [`GET ${PODS}/one/portforward`, tunnel],
  ] as const) {
    const { status, json } = await upgrade(line, headers);
    t.same([status, json.message, json.reason], [500, message, undefined], line);
  }
});

t.test("with v5.channel.k8s.io the connection is upgraded before the agent is reached", async (t) => {
  const { upgrade } = await start(t);
  const headers = { ...tunnel, "sec-websocket-protocol": "v5.channel.k8s.io" };
  const { status, bytes } = await upgrade(`GET ${PODS}/one/exec?command=a&command=b&stdout=1&stdin=0`, headers);
  t.equal(status, 101);
  const query = "command=a&command=b&output=1";
  t.ok(
    bytes.includes(`error sending request: Post \\"https://127.0.0.1:1/exec/default/one/c?${query}\\"`),
    "sorted query",
  );
});

t.test("containers and pods that cannot have streams get 400 or 404", async (t) => {
  const { upgrade } = await start(t);
  const cases: readonly (readonly [string, number, string])[] = [
    [`POST ${PODS}/many/exec`, 400, "a container name must be specified for pod many, choose one of: [i a b]"],
    [`POST ${PODS}/many/attach?container=x`, 400, "container x is not valid for pod many"],
    [`POST ${PODS}/lost/portforward`, 404, 'nodes "gone" not found'],
    [`POST ${PODS}/none/exec`, 404, 'pods "none" not found'],
  ];
  for (const [line, code, message] of cases) {
    const { status, json } = await upgrade(line, spdy);
    t.same([status, json.message], [code, message], line);
  }
  const { json } = await upgrade(`POST ${PODS}/one/exec`, {});
  t.equal(json.message, "Upgrade request required");
});
