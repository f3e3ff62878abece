import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import t, { type Test } from "tap";
import { makeRequest } from "../http/request.ts";
import { jsonResponse } from "../http/respond.ts";
import { listen } from "../http/server/server.ts";
import { silentLogger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { CLIENT_AUTH, makeCertificate, makeServerCertificate } from "../testing/http/test-certificates.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { openConnection } from "./connection.ts";

/** Writes a kubeconfig and returns its path. */
function writeKubeconfig(t: Test, cluster: object, user: object): string {
  const file = join(t.testdir(), "kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    users: [{ name: "u", user }],
    "current-context": "x",
  };
  writeFileSync(file, JSON.stringify(config));
  return file;
}

t.test("each transport that is created has a limit of its own", async (t) => {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const kubeconfig = writeKubeconfig(t, { server: `http://127.0.0.1:${port}` }, {});
  const stop = new AbortController();
  await using connection = await openConnection(
    { kubeconfig, server: "", userAgent: "test", qps: 1, burst: 1 },
    { clock: new FakeClock(), metrics: new MetricRegistry(), env: {} },
    stop.signal,
  );
  const get = (path: string) => makeRequest({ method: "GET", path });
  await connection.transport(get("/first"));
  const waiting = connection.transport(get("/second"));
  waiting.catch(() => {});
  await connection.createTransport()(get("/other"));
  t.same(paths, ["/first", "/other"]);
  stop.abort();
  await t.rejects(waiting);
});

t.test("an anonymous transport sends neither the certificate of the program nor its token", async (t) => {
  const { ca, server } = await makeServerCertificate();
  const pair = await makeCertificate({ subject: [{ CN: ["manager"] }], issuer: ca, usages: [CLIENT_AUTH] });
  const seen: string[] = [];
  const listener = await listen({
    handler: async ({ headers, peer }) => {
      seen.push(`${peer.certificates.length > 0 ? "certificate" : "none"} ${headers.authorization ?? ""}`);
      return jsonResponse(200, {});
    },
    log: silentLogger,
    host: "127.0.0.1",
    tls: { cert: server.cert, key: server.key, ca: ca.cert, requestCert: true },
  });
  t.teardown(() => listener.close());
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  const cluster = { server: `https://localhost:${listener.port}`, "certificate-authority-data": encode(ca.cert) };
  const certificate = { "client-certificate-data": encode(pair.cert), "client-key-data": encode(pair.key) };
  for (const user of [{ ...certificate }, { ...certificate, token: "own" }]) {
    await using connection = await openConnection(
      { kubeconfig: writeKubeconfig(t, cluster, user), server: "", userAgent: "test", qps: 0, burst: 0 },
      { clock: new FakeClock(), metrics: new MetricRegistry(), env: {} },
      new AbortController().signal,
    );
    await connection.transport(makeRequest({ path: "/" }));
    await connection.createAnonymousTransport()(makeRequest({ path: "/" }));
    const headers = { authorization: "Bearer account" };
    await connection.createAnonymousTransport()(makeRequest({ path: "/", headers }));
  }
  const others = ["none ", "none Bearer account"];
  t.same(seen, ["certificate ", ...others, "certificate Bearer own", ...others]);
});
