import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import t from "tap";
import { makeRequest } from "../http/request.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { FakeClock } from "../testing/std/fake-clock.ts";
import { openConnection } from "./connection.ts";

t.test("each transport that is created has a limit of its own", async (t) => {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const kubeconfig = join(t.testdir(), "kubeconfig");
  const clusters = [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }];
  const contexts = [{ name: "x", context: { cluster: "c", user: "u" } }];
  const users = [{ name: "u", user: {} }];
  const config = { apiVersion: "v1", kind: "Config", clusters, users, contexts, "current-context": "x" };
  writeFileSync(kubeconfig, JSON.stringify(config));
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
