import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import t, { type Test } from "tap";
import { message, optional, string } from "../../schema/define.ts";
import { defineUnaryMethod } from "../../schema/protobuf/unary-method.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { until } from "../../testing/std/until.ts";
import { UnixGrpcClient } from "./unix-grpc-client.ts";

const text = message("Text", { text: optional(1, string) });
const echo = { path: "/test.Echo/Echo", request: text, response: text };

function setUp(t: Test, name = "s") {
  const folder = mkdtempSync(join(tmpdir(), "svc-grpc-"));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const socket = name.startsWith("@") ? `${name}-${process.pid}` : join(folder, name);
  const clock = new FakeClock();
  const client = new UnixGrpcClient({ socket, timeoutMs: 1000, clock });
  t.teardown(() => client[Symbol.dispose]());
  const handle: grpc.handleUnaryCall<object, object> = ({ request }, done) => {
    const { text: sent = "" } = request as { readonly text?: string };
    if (sent === "fail") done({ code: grpc.status.NOT_FOUND, details: "no such text" });
    else if (sent !== "wait") done(null, { text: sent.toUpperCase() });
  };
  const serve = async (): Promise<grpc.Server> => {
    const server = new grpc.Server();
    server.addService({ Echo: defineUnaryMethod(echo.path, text, text) }, { Echo: handle });
    const address = socket.startsWith("@") ? `unix:\0${socket.slice(1)}` : `unix:${socket}`;
    await new Promise<void>((resolve, reject) =>
      server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error) =>
        error ? reject(error) : resolve(),
      ),
    );
    t.teardown(() => server.forceShutdown());
    return server;
  };
  return { socket, clock, client, serve };
}

t.test("a call waits for its server, and later calls reach one that was restarted", async (t) => {
  const { client, serve } = setUp(t);
  const early = client.call(echo, { text: "a" });
  const server = await serve();
  t.same(await early, { text: "A" });
  server.forceShutdown();
  await serve();
  t.same(await client.call(echo, { text: "b" }), { text: "B" });
});

t.test("sockets of the abstract namespace are reached", async (t) => {
  const { client, serve } = setUp(t, "@svc-grpc-test");
  await serve();
  t.same(await client.call(echo, { text: "a" }), { text: "A" });
});

t.test("errors have Go's codes and texts", async (t) => {
  const { client, clock, serve, socket } = setUp(t);
  const missing = client.call(echo, { text: "a" }).catch((error: Error) => error);
  await clock.advance(1000);
  t.match(await missing, {
    code: "DeadlineExceeded",
    message:
      "rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: " +
      `desc = "transport: Error while dialing: dial unix ${socket}: connect: no such file or directory"`,
  });
  await serve();
  await t.rejects(client.call(echo, { text: "fail" }), {
    code: "NotFound",
    message: "rpc error: code = NotFound desc = no such text",
  });
  let isOver = false;
  const slow = client.call(echo, { text: "wait" }).catch((error: Error) => {
    isOver = true;
    return error;
  });
  await until("the call times out", async () => {
    await clock.advance(1000);
    return isOver;
  });
  t.match(await slow, { message: "rpc error: code = DeadlineExceeded desc = context deadline exceeded" });
});
