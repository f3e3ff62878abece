import { PassThrough } from "node:stream";
import t, { type Test } from "tap";
import type { Handler, HttpRequest } from "../../../http/message.ts";
import { makeRequest } from "../../../http/request.ts";
import { textResponse } from "../../../http/respond.ts";
import { listen } from "../../../http/server/server.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { readResponse } from "../../../testing/apiserver/server-fixture.ts";
import { isTunnelRequest, tunnelPortForward } from "./port-forward-tunnel.ts";
import { registerStreamMetrics } from "./stream-metrics.ts";

const handshake = {
  upgrade: "websocket",
  connection: "Upgrade",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  "sec-websocket-protocol": "v4.channel.k8s.io, SPDY/3.1+portforward.k8s.io",
};

const { tunnelled: requests } = registerStreamMetrics(new MetricRegistry());

function request(headers: Readonly<Record<string, string>> = {}, body = new PassThrough()): HttpRequest {
  return { ...makeRequest({ path: "/", headers: { ...handshake, ...headers } }), upgradable: true, body };
}

/** Forwards to an agent with the handler. */
async function forwardTo(t: Test, handler: Handler): Promise<(request: HttpRequest) => ReturnType<Handler>> {
  const agent = await listen({ handler, log: silentLogger, upgrades: true, host: "127.0.0.1" });
  t.teardown(() => agent.close());
  const to = { secure: false, host: "127.0.0.1", port: agent.port, path: "/portForward/a/b" };
  return (each) => tunnelPortForward(each, to, each.signal, requests);
}

/** Accepts SPDY and echoes its bytes. */
const echo: Handler = async ({ method, headers, body }) => {
  const protocol = headers["x-stream-protocol-version"] ?? "";
  if (method !== "POST" || headers.upgrade !== "SPDY/3.1" || headers["sec-websocket-key"] !== undefined) {
    return textResponse(400, `${method} ${headers.upgrade}`);
  }
  return { status: 101, headers: { upgrade: "SPDY/3.1", "x-stream-protocol-version": protocol }, body };
};

t.test("the bytes of messages are those of the agent's connection", async (t) => {
  const forward = await forwardTo(t, echo);
  const body = new PassThrough();
  const response = await forward(request({}, body));
  t.same([response.status, response.headers["sec-websocket-protocol"]], [101, "SPDY/3.1+portforward.k8s.io"]);
  body.write(Buffer.from([0x82, 0x83, 0, 0, 0, 0, 1, 2, 3]));
  const received: Uint8Array[] = [];
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    received.push(chunk);
    // A close frame ends the tunnel.
    if (received.length === 1) body.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
  }
  t.equal(Buffer.concat(received).toString("hex"), "8203010203880203e8");
});

t.test("refusals of the agent and invalid handshakes are responses without a 101", async (t) => {
  const refuse = await forwardTo(t, async () => textResponse(500, "pod not found"));
  const { status, text } = await readResponse(await refuse(request()));
  t.same([status, text], [500, "pod not found"]);
  const forward = await forwardTo(t, echo);
  const post = await readResponse(await forward({ ...request(), method: "POST" }));
  t.same([post.status, post.text, post.headers["sec-websocket-version"]], [405, "Method Not Allowed\n", "13"]);
  const key = await readResponse(await forward(request({ "sec-websocket-key": "short" })));
  t.same([key.status, key.text], [400, "Bad Request\n"]);
  const none = await readResponse(await forward(request({ "sec-websocket-protocol": "SPDY/3.1+other" })));
  t.same([none.status, none.text], [400, "unable to upgrade: no tunneling spdy protocols provided\n"]);
  const odd = await forwardTo(t, async () => textResponse(200, "ok"));
  await t.rejects(odd(request()), { message: "invalid upgrade response: status code 200" });
  const counts = requests.series().map(({ values, value }) => `${values} ${value}`);
  t.same(counts, ["101 1", "400 2", "405 1", "500 2"], "requests are counted by code");
});

t.test("only requests that offer a tunnel are tunnels", async (t) => {
  t.ok(isTunnelRequest(request()));
  t.notOk(isTunnelRequest(request({ "sec-websocket-protocol": "v4.channel.k8s.io" })));
  t.notOk(isTunnelRequest({ ...request(), upgradable: false }));
});
