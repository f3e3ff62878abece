/** The proxies of pods, services and nodes: the addresses they connect to, and the headers they forward. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { networkInterfaces } from "node:os";
import t from "tap";
import { isReachable } from "../../apiserver/proxy/destination.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";

const PODS = "/api/v1/namespaces/default/pods";
const SERVICES = "/api/v1/namespaces/default/services";

const HOST_ADDRESSES = [
  ...["127.0.0.1", "127.255.255.254", "0.0.0.0", "169.254.169.254", "169.254.0.1", "224.0.0.1", "255.255.255.255"],
  ...["::1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:7f00:0001", "::ffff:169.254.169.254"],
  ...["fe80::1", "fe80::1%lo", "ff02::1", "::ffff:0.0.0.0"],
];
const INVALID_ADDRESSES = [
  "localhost",
  "0x7f000001",
  "2130706433",
  "0177.0.0.1",
  "127.1",
  "127.0.0.1:80",
  "[::1]",
  "",
  " 127.0.0.1",
];

t.test("isReachable() rejects loopback, link-local, multicast and unspecified addresses", async (t) => {
  for (const address of [...HOST_ADDRESSES, ...INVALID_ADDRESSES]) t.notOk(isReachable(address), address);
});

async function create(server: TestServer, path: string, body: object, status?: object): Promise<void> {
  const created = await server.send(`POST ${path}`, { body });
  if (created.status !== 201) throw new Error(created.text);
  if (status === undefined) return;
  const { name } = created.json.metadata;
  const response = await server.send(`PUT ${path}/${name}/status`, { body: { ...created.json, status } });
  if (response.status !== 200) throw new Error(response.text);
}

const pod = (name: string) => ({
  metadata: { name },
  spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }] },
});

t.test("the proxies of pods, services and nodes refuse addresses of the server's host", async (t) => {
  let connections = 0;
  const listener = createTcpServer((socket) => {
    connections++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => listener.listen(0, resolve));
  t.teardown(() => listener.close());
  const { port } = listener.address() as AddressInfo;
  await using server = await startTestServer();
  for (const [index, ip] of HOST_ADDRESSES.filter((each) => !each.includes("%")).entries()) {
    const name = `p${index}`;
    const created = await server.send(`POST ${PODS}`, { body: pod(name) });
    const status = { podIP: ip, podIPs: [{ ip }] };
    // Validation refuses some of these addresses.
    await server.send(`PUT ${PODS}/${name}/status`, { body: { ...created.json, status } });
    for (const scheme of ["", "http:", "https:"]) {
      const response = await server.send(`GET ${PODS}/${scheme}${name}:${port}/proxy/`);
      t.equal(response.status, 400, `pod at ${ip} ${scheme}`);
    }
  }
  await create(server, SERVICES, { metadata: { name: "s" }, spec: { ports: [{ port: 80, targetPort: port }] } });
  const subsets = ["127.0.0.1", "::1", "169.254.169.254", "192.0.2.7"].map((ip) => ({
    addresses: [{ ip }],
    ports: [{ port }],
  }));
  const endpoints = `/api/v1/namespaces/default/endpoints`;
  const created = await server.send(`POST ${endpoints}`, {
    body: { metadata: { name: "s" }, subsets: subsets.slice(-1) },
  });
  t.equal(created.status, 201);
  t.equal((await server.send(`GET ${SERVICES}/s:80/proxy/`)).status, 503, "an address without a pod");
  const addresses = [{ type: "InternalIP", address: "127.0.0.1" }];
  await create(server, "/api/v1/nodes", { metadata: { name: "n1" } }, { addresses });
  for (const name of [`n1:${port}`, `http:n1:${port}`, `https:n1:${port}`]) {
    t.equal((await server.send(`GET /api/v1/nodes/${name}/proxy/`)).status, 400, `node ${name}`);
  }
  for (const name of ["n1:0", "n1:65536", "n1:-1", "n1:80@x", "n1:80%2f..", "gopher:n1:80", "n1:80:80:80"]) {
    const { status } = await server.send(`GET /api/v1/nodes/${name}/proxy/`);
    t.ok(status === 400 || status === 404, `node ${name}: ${status}`);
  }
  t.equal(connections, 0, "no connection");
});

function externalAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flat();
  return all.find((one) => one?.family === "IPv4" && !one.internal)?.address;
}

t.test("the proxy follows no redirects and forwards no credentials or identity headers", async (t) => {
  const host = externalAddress();
  if (host === undefined) {
    t.comment("Skipped: this machine has only loopback addresses");
    return;
  }
  const seen: { url: string; headers: IncomingHttpHeaders }[] = [];
  const backend = createServer(({ url = "", headers }, response) => {
    seen.push({ url, headers });
    response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data/" }).end();
  });
  await new Promise<void>((resolve) => backend.listen(0, host, resolve));
  t.teardown(() => backend.close());
  const { port } = backend.address() as AddressInfo;
  await using server = await startTestServer();
  await create(server, PODS, pod("web"), { podIP: host, podIPs: [{ ip: host }] });
  const headers = {
    "x-remote-user": "root",
    "x-remote-group": "system:masters",
    "x-remote-extra-scopes": "all",
    "impersonate-user": "admin",
    "impersonate-group": "system:masters",
    "proxy-authorization": "Basic eA==",
  };
  const response = await server.send(`GET ${PODS}/web:${port}/proxy/a`, { headers });
  t.match([response.status, response.headers.location], [302, "http://169.254.169.254/latest/meta-data/"]);
  t.equal(seen.length, 1);
  for (const name of ["authorization", ...Object.keys(headers)]) t.equal(seen[0]?.headers[name], undefined, name);
  for (const path of [
    "..%2f..%2fapi",
    "%2e%2e/api",
    "a/../../b",
    "a%00b",
    "%ff",
    "..%5c..",
    "a%0d%0ax-remote-user:root",
  ]) {
    const response = await server.send(`GET ${PODS}/web:${port}/proxy/${path}`);
    const passed = seen.at(-1)?.url ?? "";
    t.ok(response.status === 404 || passed === `/${path}`, `${path}: ${response.status}`);
    t.notMatch(passed, /\.\.\/|%2e%2e|\.\.%2f|%00/i, path);
  }
});

t.test("the proxy ends each request on a connection to a pod before the next", async (t) => {
  const host = externalAddress();
  if (host === undefined) {
    t.comment("Skipped: this machine has only loopback addresses");
    return;
  }
  const seen: string[] = [];
  const backend = createServer((request, response) => {
    // Responds before the body arrives, as many servers do.
    response.end("ok");
    let body = "";
    request.setEncoding("latin1").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => seen.push(`${request.method} ${request.url} ${body}`.trim()));
  });
  await new Promise<void>((resolve) => backend.listen(0, host, resolve));
  t.teardown(() => backend.close());
  const { port } = backend.address() as AddressInfo;
  await using server = await startTestServer();
  await create(server, PODS, pod("web"), { podIP: host, podIPs: [{ ip: host }] });
  const proxy = `${PODS}/web:${port}/proxy`;
  const hidden = "DELETE /hidden HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const method of ["GET", "DELETE", "POST", "OPTIONS"]) {
    for (const [payload, length] of [
      [hidden, String(hidden.length)],
      ["", "0"],
      ["", undefined],
      [hidden, undefined],
    ] as const) {
      const headers = length === undefined ? {} : { "content-length": length };
      const response = await server.send(`${method} ${proxy}/front`, {
        headers,
        ...(payload === "" ? {} : { body: payload }),
      });
      t.equal(response.status, 200, `${method} ${length}`);
      t.equal((await server.send(`GET ${proxy}/next`)).status, 200, `the request after ${method} ${length}`);
      t.equal(
        seen.some((each) => each.startsWith("DELETE /hidden")),
        false,
        "no smuggled request",
      );
      t.equal(seen.at(-1), "GET /next");
      t.equal(seen.splice(0).length, 2);
    }
  }
});
