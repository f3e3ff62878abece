import { createServer as createHttp1 } from "node:http";
import { createServer as createHttp2, type Http2Server, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from "node:net";
import t from "tap";
import { systemClock } from "../../std/time/clock.ts";
import { connectTcp, describeDialError, type NetworkProbeOptions, type ProbeResult } from "./actions.ts";
import { checkGrpcHealth } from "./grpc-action.ts";
import { probeHttp, sendHttpHook } from "./http-action.ts";

const options: NetworkProbeOptions = {
  container: { name: "c" },
  podIp: "127.0.0.1",
  timeoutMs: 1000,
  clock: systemClock,
  signal: new AbortController().signal,
  userAgent: "kube-probe/1.33",
};

interface TestServer extends AsyncDisposable {
  readonly port: number;
}

async function listen(server: Server | Http2Server): Promise<TestServer> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Sends the response that the requested service's name encodes. */
function respond(stream: ServerHttp2Stream, service: string): void {
  if (service === "silent") return;
  const [status, code, text] = service.split("/");
  if (status === "http") {
    stream.respond({ ":status": Number(code), "content-type": "text/plain" });
    stream.end("no");
    return;
  }
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () =>
    stream.sendTrailers({ "grpc-status": code ?? "0", ...(text === undefined ? {} : { "grpc-message": text }) }),
  );
  stream.end(code === undefined ? Buffer.from([0, 0, 0, 0, 2, 8, Number(status)]) : undefined);
}

t.test("checkGrpcHealth() reports the response of a health service in Kubernetes' texts", async (t) => {
  const server = createHttp2();
  const requests: unknown[] = [];
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      requests.push([headers[":path"], headers["user-agent"], headers["content-type"], headers.te]);
      respond(stream, Buffer.concat(chunks).subarray(7).toString("utf8"));
    });
  });
  await using endpoint = await listen(server);
  const failed = (output: string): ProbeResult => ({ outcome: "failure", output });
  const rpc = (code: string): ProbeResult => failed(`error: health rpc probe failed: rpc error: code = ${code}`);
  const cases: readonly (readonly [string, ProbeResult])[] = [
    ["1", { outcome: "success", output: "service healthy" }],
    ["2", failed('service unhealthy (responded with "NOT_SERVING")')],
    ["0", failed('service unhealthy (responded with "UNKNOWN")')],
    ["9", failed('service unhealthy (responded with "9")')],
    ["-/5/unknown%20service", rpc("NotFound desc = unknown service")],
    ["-/1/gone", rpc("Canceled desc = gone")],
    ["-/99/odd%", rpc("Unknown desc = odd%")],
    [
      "-/12/none",
      failed("error: this server does not implement the grpc health protocol (grpc.health.v1.Health): none"),
    ],
    ["silent", failed("timeout: health rpc did not complete within 1s")],
  ];
  for (const [service, expected] of cases) {
    t.strictSame(await checkGrpcHealth({ port: endpoint.port, service }, options), expected, service);
  }
  t.match(await checkGrpcHealth({ port: endpoint.port, service: "http/503" }, options), {
    outcome: "failure",
    output: /code = Unavailable desc = unexpected HTTP status code received from server: 503/,
  });
  t.strictSame(requests[0], [
    "/grpc.health.v1.Health/Check",
    "kube-probe/1.33 grpc-go/1.68.1",
    "application/grpc",
    "trailers",
  ]);
});

t.test("checkGrpcHealth() retries the connection until its timeout", async (t) => {
  const closed = await listen(createTcp());
  await closed[Symbol.asyncDispose]();
  await using plain = await listen(createHttp1((_, response) => void response.end()));
  await using silent = await listen(createTcp());
  for (const { port } of [closed, plain, silent]) {
    t.strictSame(await checkGrpcHealth({ port, service: "" }, { ...options, timeoutMs: 300 }), {
      outcome: "failure",
      output: `timeout: failed to connect service "127.0.0.1:${port}" within 0.3s: context deadline exceeded`,
    });
  }
});

t.test("probeHttp() follows redirects on the same host, and returns a warning for others", async (t) => {
  const requests: string[] = [];
  const server = createHttp1((request, response) => {
    requests.push(`${request.url} ${request.headers.referer ?? "-"}`);
    const url = new URL(request.url ?? "/", "http://x");
    const location = url.searchParams.get("to");
    response.writeHead(Number(url.pathname.slice(1)), location === null ? {} : { location }).end("body");
  });
  await using endpoint = await listen(server);
  const probe = (path: string) => probeHttp({ port: endpoint.port, path }, options);
  const base = `http://127.0.0.1:${endpoint.port}`;
  const warning = { outcome: "warning", output: "Probe terminated redirects, Response body: body" };
  t.strictSame(await probe("/204"), { outcome: "success", output: "" });
  t.strictSame(await probe("/302?to=/200"), { outcome: "success", output: "body" });
  t.equal(requests.at(-1), `/200 ${base}/302?to=/200`);
  t.strictSame(await probe("/302?to=http://192.0.2.1/"), warning);
  t.strictSame(await probe("/399"), warning);
  t.strictSame(await probe("/300?to=/200"), warning, "not a redirect that clients follow");
  t.strictSame(await probe("/307"), warning, "without a location");
  t.strictSame(await probe("/500"), { outcome: "failure", output: "HTTP probe failed with statuscode: 500" });
});

t.test("probeHttp() fails after 10 redirects", async (t) => {
  let count = 0;
  await using endpoint = await listen(
    createHttp1((_, response) => {
      count++;
      response.writeHead(302, { location: "/again" }).end();
    }),
  );
  const url = `http://127.0.0.1:${endpoint.port}/again`;
  const expected = { outcome: "failure", output: `Get "${url}": stopped after 10 redirects` };
  t.strictSame(await probeHttp({ port: endpoint.port, path: "/" }, options), expected);
  t.equal(count, 10);
});

/** The lines of the request that `send` makes, with `HOST` for the address of the server. */
async function readRequest(send: (port: number) => Promise<ProbeResult>): Promise<readonly string[]> {
  let text = "";
  const server = createTcp((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (text.endsWith("\r\n\r\n")) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
  });
  await using endpoint = await listen(server);
  t.match(await send(endpoint.port), { outcome: "success" });
  return text.replaceAll(`127.0.0.1:${endpoint.port}`, "HOST").trimEnd().split("\r\n");
}

const userAgent = "User-Agent: kube-probe/1.33";

for (const { name, headers, lines } of [
  { name: "nothing", headers: [], lines: ["Host: HOST", userAgent, "Accept: */*", "Connection: close"] },
  {
    name: "repeated names in another case",
    headers: [
      ["x-b", "1"],
      ["X-a", "2"],
      ["X-B", "3"],
      ["x-EMPTY", ""],
    ],
    lines: ["Host: HOST", userAgent, "Accept: */*", "X-A: 2", "X-B: 1", "X-B: 3", "X-Empty: ", "Connection: close"],
  },
  {
    name: "names that are not in canonical form",
    headers: [
      ["hOST", "example.test"],
      ["user-agent", "me"],
      ["ACCEPT", "text/x"],
      ["x_y-z", "1"],
    ],
    lines: ["Host: example.test", "User-Agent: me", "Accept: text/x", "X_y-Z: 1", "Connection: close"],
  },
  {
    name: "empty defaults",
    headers: [
      ["Host", ""],
      ["User-Agent", ""],
      ["Accept", ""],
    ],
    lines: ["Host: HOST", "Connection: close"],
  },
  {
    name: "fields of the connection",
    headers: [
      ["Content-Length", "5"],
      ["transfer-encoding", "chunked"],
      ["connection", "close"],
    ],
    lines: ["Host: HOST", userAgent, "Accept: */*", "Connection: close"],
  },
] as const) {
  t.test(`probeHttp() and sendHttpHook() write fields as Go's client does: ${name}`, async (t) => {
    const httpHeaders = headers.map(([name, value]) => ({ name, value }));
    const found = await readRequest((port) => probeHttp({ port, path: "/a b", httpHeaders }, options));
    t.strictSame(found, ["GET /a%20b HTTP/1.1", ...lines]);
    const hook = { ...options, headers: { "Accept-Encoding": "gzip" } };
    const sent = await readRequest((port) => sendHttpHook({ port, path: "/", httpHeaders }, hook));
    const expected = [...lines.filter((line) => line !== "Connection: close"), "Accept-Encoding: gzip"];
    t.same(sent.filter((line) => line !== "Connection: close").slice(1), expected);
  });
}

t.test("probeHttp() and connectTcp() report connection errors in Go's texts", async (t) => {
  const closed = await listen(createTcp());
  await closed[Symbol.asyncDispose]();
  await using plain = await listen(createHttp1((_, response) => void response.end()));
  await using silent = await listen(createTcp());
  const { port } = closed;
  const refused = `dial tcp 127.0.0.1:${port}: connect: connection refused`;
  t.equal((await connectTcp({ port }, options)).output, refused);
  t.equal((await probeHttp({ port, path: "/" }, options)).output, `Get "http://127.0.0.1:${port}/": ${refused}`);
  t.equal(
    (await probeHttp({ port: plain.port, scheme: "HTTPS" }, options)).output,
    `Get "https://127.0.0.1:${plain.port}/": http: server gave HTTP response to HTTPS client`,
  );
  t.equal(
    (await probeHttp({ port: silent.port }, { ...options, timeoutMs: 200 })).output,
    `Get "http://127.0.0.1:${silent.port}/": ` +
      "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
  );
  for (const [code, text] of [
    ["ENOTFOUND", "no such host"],
    ["EAI_AGAIN", "server misbehaving"],
  ] as const) {
    const error = Object.assign(new Error("getaddrinfo"), { code });
    t.match(
      describeDialError(error, "absent.test", 80),
      new RegExp(`^dial tcp: lookup absent.test( on .+)?: ${text}$`),
    );
  }
  const unknownPort = await probeHttp({ port: "nope" }, options);
  t.strictSame(unknownPort, { outcome: "unknown", output: 'strconv.Atoi: parsing "nope": invalid syntax' });
});

for (const [name, response, text] of [
  ["no protocol", "garbage\n", 'malformed HTTP response "garbage"'],
  ["a status that is no number", "HTTP/1.1 good\r\n\r\n", 'malformed HTTP status code "good"'],
  [
    "a header without a colon",
    "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
    'malformed MIME header: missing colon: "nonsense"',
  ],
] as const) {
  t.test(`probeHttp() reports a response with ${name} in Go's text`, async (t) => {
    await using server = await listen(createTcp((socket) => socket.once("data", () => socket.end(response))));
    const { output } = await probeHttp({ port: server.port }, options);
    t.equal(output, `Get "http://127.0.0.1:${server.port}/": net/http: HTTP/1.x transport connection broken: ${text}`);
  });
}

t.test("probeHttp() reports a reset connection with both addresses, as Go does", async (t) => {
  const server = createTcp((socket) => socket.once("data", () => socket.resetAndDestroy()));
  await using at = await listen(server);
  const { output } = await probeHttp({ port: at.port }, options);
  t.match(
    output,
    new RegExp(`^Get "[^"]+": read tcp 127.0.0.1:\\d+->127.0.0.1:${at.port}: read: connection reset by peer$`),
  );
});

t.test("probeHttp() requests a path with a stray percent sign literally", async (t) => {
  t.equal((await readRequest((port) => probeHttp({ port, path: "/%zz?a" }, options)))[0], "GET /%25zz%3Fa HTTP/1.1");
  t.equal((await readRequest((port) => probeHttp({ port, path: "/%41?a=%" }, options)))[0], "GET /%41?a=% HTTP/1.1");
});
