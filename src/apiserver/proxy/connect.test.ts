import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import t from "tap";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";

const PODS = "/api/v1/namespaces/default/pods";
const SERVICES = "/api/v1/namespaces/default/services";
const spec = { nodeName: "n1", containers: [{ name: "c", image: "i", ports: [{ containerPort: 80 }] }] };

type Server = Awaited<ReturnType<typeof startTestServer>>;

async function made(server: Server, path: string, body: object, status?: object): Promise<void> {
  const answer = await server.send(`POST ${path}`, { body });
  if (answer.status !== 201) throw new Error(answer.text);
  if (status === undefined) return;
  const { name } = answer.json.metadata;
  const changed = await server.send(`PUT ${path}/${name}/status`, { body: { ...answer.json, status } });
  if (changed.status !== 200) throw new Error(changed.text);
}

t.test("streams and proxies respond with Kubernetes' errors to invalid requests", async (t) => {
  await using server = await startTestServer();
  await made(server, PODS, { metadata: { name: "web" }, spec: { containers: [{ name: "c", image: "i" }] } });
  await made(server, PODS, {
    metadata: { name: "two" },
    spec: { containers: ["a", "b"].map((name) => ({ name, image: "i" })) },
  });
  await made(
    server,
    PODS,
    { metadata: { name: "bound" }, spec },
    { podIP: "127.0.0.1", podIPs: [{ ip: "127.0.0.1" }] },
  );
  await made(server, SERVICES, { metadata: { name: "till" }, spec: { ports: [{ port: 80 }] } });
  const upgrade = { connection: "Upgrade", upgrade: "SPDY/3.1" };
  const cases: readonly (readonly [string, number, RegExp, Record<string, string>?])[] = [
    [`GET ${PODS}/none/exec?command=a`, 404, /^pods "none" not found$/],
    [`POST ${PODS}/none/attach`, 404, /^pods "none" not found$/],
    [`GET ${PODS}/web/exec`, 400, /^pod web does not have a host assigned$/],
    [`GET ${PODS}/two/exec`, 400, /^a container name must be specified for pod two, choose one of: \[a b\]$/],
    [`GET ${PODS}/two/exec?container=x`, 400, /^container x is not valid for pod two$/],
    [
      `GET ${PODS}/bound/portforward?ports=http`,
      400,
      /^cannot convert to \[\]int32: strconv.ParseUint: parsing "http"/,
    ],
    [`GET ${PODS}/bound/portforward?ports=1,70000`, 400, /parsing "70000": value out of range$/],
    [`POST ${PODS}/bound/exec`, 404, /^nodes "n1" not found$/, upgrade],
    [`PUT ${PODS}/bound/exec`, 405, /does not allow this method/],
    [`GET ${PODS}/none/proxy/`, 404, /^pods "none" not found$/],
    [`GET ${PODS}/bound/proxy/`, 400, /^address not allowed$/],
    [`GET ${PODS}/a:b:c:d/proxy/`, 400, /^invalid pod request "a:b:c:d"$/],
    [`GET ${PODS}/bound/proxy/..%2f..%2fapi`, 404, /could not find the requested resource/],
    [`GET ${SERVICES}/none/proxy/`, 404, /^services "none" not found$/],
    [`GET ${SERVICES}/till:81/proxy/`, 503, /^no service port 81 found for service "till"$/],
    ["GET /api/v1/nodes/none/proxy/metrics", 404, /^nodes "none" not found$/],
  ];
  for (const [line, code, message, headers] of cases) {
    const answer = await server.send(line, headers === undefined ? {} : { headers });
    t.match(answer.json, { kind: "Status", code, message }, line);
  }
});

/** An address other than loopback. */
function wideAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flat();
  return all.find((one) => one?.family === "IPv4" && !one.internal)?.address;
}

t.test(
  "proxies forward requests without the client's credentials, and responses without hop-by-hop headers",
  async (t) => {
    const host = wideAddress();
    if (host === undefined) {
      t.comment("Skipped: this machine has no address but its loopback");
      return;
    }
    const seen: { method: string; url: string; headers: IncomingHttpHeaders; body: string }[] = [];
    const backend = createServer((request, response) => {
      const { method = "", url = "", headers } = request;
      request.setEncoding("utf8");
      request.once("data", (body: string) => {
        seen.push({ method, url, headers, body });
        response.writeHead(418, {
          "x-own": "1",
          location: "/login",
          connection: "x-hop",
          "x-hop": "1",
          "access-control-allow-origin": "*",
        });
        response.end("tea");
      });
    });
    await new Promise<void>((resolve) => backend.listen(0, host, resolve));
    t.teardown(() => backend.close());
    const { port } = backend.address() as AddressInfo;
    await using server = await startTestServer();
    const ports = [{ containerPort: port }];
    const pod = { metadata: { name: "web" }, spec: { containers: [{ name: "c", image: "i", ports }] } };
    await made(server, PODS, pod, { podIP: host, podIPs: [{ ip: host }] });
    const sent = { headers: { "x-mine": "1", connection: "x-gone", "x-gone": "1" }, body: "hello" };
    const answer = await server.send(`POST ${PODS}/web/proxy/a%20b/c?d=e`, sent);
    t.same([answer.status, answer.text, answer.headers["x-own"]], [418, "tea", "1"]);
    t.same([answer.headers["x-hop"], answer.headers["access-control-allow-origin"]], [undefined, undefined]);
    const [found] = seen;
    t.match(found, { method: "POST", url: "/a%20b/c?d=e", body: "hello", headers: { "x-mine": "1" } });
    t.same([found?.headers.authorization, found?.headers["x-gone"]], [undefined, undefined]);
    const bare = await server.send(`GET ${PODS}/web/proxy`);
    t.same([bare.status, bare.headers.location], [301, `${PODS}/web/proxy/`]);
    const head = await server.send(`HEAD ${PODS}/web/proxy?a=b`);
    t.same([head.status, head.headers.location], [301, `${PODS}/web/proxy/?a=b`]);
    for (const method of ["DELETE", "POST", "PUT", "PATCH", "OPTIONS"]) {
      const response = await server.send(`${method} ${PODS}/web/proxy`, { body: "x" });
      t.same([response.status, seen.at(-1)?.method, seen.at(-1)?.url], [418, method, "/"], method);
    }
    t.equal(answer.headers.location, `${PODS}/web/proxy/login`);
    const closed = await server.send(`GET ${PODS}/web:1/proxy/`);
    t.match(closed.json, { code: 503, reason: "ServiceUnavailable", message: /^error trying to reach service: / });
  },
);
