import t from "tap";
import { podKind } from "../api/core/pod/kind.ts";
import { makeRequest } from "../http/request.ts";
import { bytesResponse } from "../http/respond.ts";
import { seededRandom } from "../std/crypto/random.ts";
import { silentLogger } from "../std/log/logger.ts";
import { createMemoryStore } from "../storage/memory.ts";
import { ObjectStore } from "../storage/object-store.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { createNodeApi } from "./node-api.ts";

const reader = { name: "reader", uid: "", groups: [], extra: {} };

t.test("createNodeApi() serves reads to authenticated clients, and writes to the agent only", async (t) => {
  const clock = new FakeClock();
  await using store = createMemoryStore({ clock });
  await using api = createNodeApi({
    store,
    prefix: "/registry",
    nodeName: "n1",
    authenticate: (authorization) => (authorization === "Bearer right" ? reader : undefined),
    containerLogs: async ({ path, query }) => bytesResponse(200, "text/plain", Buffer.from(`${path}?${query}`)),
    readOnlyMessage: "this node only shows",
    address: () => "127.0.0.1:1",
    clock,
    random: seededRandom(1),
    log: silentLogger,
  });
  const pods = new ObjectStore({ store, kind: podKind, prefix: "/registry" });
  const web = { metadata: { name: "web", namespace: "default", uid: "u" } };
  const spec = { nodeName: "n1", containers: [{ name: "c", image: "i" }] };
  await pods.create(pods.key("default", "web"), { ...web, spec });
  const answer = async (handler: typeof api.agentHandler, line: string, token = "Bearer right", sent?: unknown) => {
    const [method = "", target = ""] = line.split(" ");
    const [path = "", query = ""] = target.split("?");
    const headers = { authorization: token, "content-type": "application/json" };
    const body = sent === undefined ? undefined : JSON.stringify(sent);
    const response = await handler(makeRequest({ method, path, query, headers, body }));
    const pieces: Uint8Array[] = [];
    if (response.body instanceof Uint8Array) pieces.push(response.body);
    else for await (const piece of response.body) pieces.push(piece);
    return { status: response.status, text: Buffer.concat(pieces).toString() };
  };
  const node = { metadata: { name: "n1" } };
  t.equal((await answer(api.agentHandler, "POST /api/v1/nodes", "", node)).status, 201, "the agent writes its node");

  const read: readonly (readonly [string, RegExp])[] = [
    ["GET /api/v1/pods", /"kind":"PodList".*"name":"web"/],
    ["GET /api/v1/pods?fieldSelector=spec.nodeName%3Dother", /"items":\[\]/],
    ["GET /api/v1/namespaces/default/pods/web", /"kind":"Pod"/],
    ["GET /api/v1/namespaces/default/pods/web/log?tailLines=2", /^\/containerLogs\/default\/web\/c\?tailLines=2$/],
    ["GET /api/v1/nodes/n1", /"name":"n1"/],
    ["GET /api/v1", /"name":"pods\/log"/],
    ["GET /openapi/v3", /api\/v1/],
    ["GET /version", /"gitVersion": "v1\.33/],
    ["GET /readyz", /^ok$/],
  ];
  for (const [line, expected] of read)
    t.match(await answer(api.clientHandler, line), { status: 200, text: expected }, line);
  t.notMatch((await answer(api.clientHandler, "GET /api/v1")).text, /"create"|"delete"|nodes\/proxy/);

  const refused: readonly (readonly [string, number, RegExp])[] = [
    ["POST /api/v1/nodes", 405, /this node only shows/],
    ["DELETE /api/v1/namespaces/default/pods/web", 405, /this node only shows/],
    ["PATCH /api/v1/nodes/n1", 405, /this node only shows/],
    ["POST /nowhere", 405, /this node only shows/],
    ["GET /api/v1/services", 404, /"NotFound"/],
    ["GET /apis/apps/v1/deployments", 404, /"NotFound"/],
    ["GET /nowhere", 404, /not found/],
  ];
  for (const [line, status, text] of refused) {
    t.match(await answer(api.clientHandler, line, undefined, {}), { status, text }, line);
  }
  for (const token of ["", "Bearer wrong", "Bearer "]) {
    for (const line of ["GET /api/v1/pods", "GET /readyz", "DELETE /api/v1/nodes/n1"]) {
      t.equal((await answer(api.clientHandler, line, token)).status, 401, `${line} ${token}`);
    }
  }
});
