import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import t from "tap";
import { makeRequest } from "../../http/request.ts";
import { RequestForwarder } from "./forward.ts";

t.test("forward() adds the content type that a server leaves out, as Go does", async (t) => {
  const server = createServer((request, response) => {
    if (request.url === "/typed") response.setHeader("content-type", "image/svg+xml");
    if (request.url === "/encoded") response.setHeader("content-encoding", "gzip");
    if (request.url === "/empty") return void response.end();
    response.write("<html>");
    setTimeout(() => response.end("rest"), 10);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  await using forwarder = new RequestForwarder();
  const get = async (path: string, method = "GET") => {
    const { signal } = new AbortController();
    const to = { secure: false, host: "127.0.0.1", port, path };
    const { headers, body } = await forwarder.forward(makeRequest({ method, path }), to, signal);
    return { type: headers["content-type"], text: await text(body as NodeJS.ReadableStream) };
  };
  t.same(await get("/html"), { type: "text/html; charset=utf-8", text: "<html>rest" });
  t.same(await get("/typed"), { type: "image/svg+xml", text: "<html>rest" });
  t.same(await get("/encoded"), { type: undefined, text: "<html>rest" });
  t.same(await get("/empty"), { type: undefined, text: "" });
  t.same(await get("/html", "HEAD"), { type: undefined, text: "" });
});
