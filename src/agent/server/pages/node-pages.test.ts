import { symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { makeRequest } from "../../../http/request.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { podHarness, testPod } from "../../../testing/agent/pod-harness.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { RequestMetrics } from "../../metrics/request-metrics.ts";
import { type AgentHandlerOptions, createAgentHandler } from "../agent-handler.ts";

interface More {
  readonly method?: string;
  readonly query?: string;
  readonly body?: string;
  readonly accept?: string;
}

async function agent(options: Partial<AgentHandlerOptions>) {
  const at = await podHarness();
  at.manager.put(testPod("web"));
  await at.run(1);
  const base = { pods: at.manager, clock: at.clock, problems: () => [], configz: {}, debugging: true };
  const handler = createAgentHandler({ ...base, authenticate: undefined, ...options });
  const send = async (path: string, { accept, ...more }: More = {}) => {
    const { status, headers, body } = await handler(
      makeRequest({ path, ...more, ...(accept === undefined ? {} : { headers: { accept } }) }),
    );
    const chunks: Uint8Array[] = [];
    for await (const chunk of body instanceof Uint8Array ? [body] : body) chunks.push(chunk);
    return { status, headers, text: Buffer.concat(chunks).toString() };
  };
  return { at, send, [Symbol.asyncDispose]: () => at[Symbol.asyncDispose]() };
}

t.test("/logs/ serves the files of the log directory, and nothing above it", async (t) => {
  const nodeLogs = t.testdir({
    ...{ "a<b.log": "one\n", "empty.log": "", "run.gz": Buffer.from([0x1f, 0x8b, 8]), sub: {}, "sub.log": "" },
    ...{ "page.html": "<p>", indexed: { "index.html": "index" }, ä: {}, "c:d'": "" },
  });
  writeFileSync(join(nodeLogs, "binary"), Buffer.from([1, 2, 3, 0]));
  symlinkSync(join(nodeLogs, "a<b.log"), join(nodeLogs, "sub", "link"));
  utimesSync(nodeLogs, 0, 0);
  await using served = await agent({ nodeLogs });
  const listing = await served.send("/logs/");
  t.equal(listing.headers["content-type"], "text/html; charset=utf-8");
  t.equal(listing.headers["last-modified"], "Thu, 01 Jan 1970 00:00:00 GMT");
  t.match(listing.text, '<a href="a%3Cb.log">a&lt;b.log</a>\n');
  t.match(listing.text, '<a href="./c:d%27">c:d&#39;</a>\n');
  // Sorted by the names without the slash.
  t.match(listing.text, '<a href="sub/">sub/</a>\n<a href="sub.log">sub.log</a>\n');
  const cases: readonly (readonly [string, number, string | undefined, string])[] = [
    ["/logs", 301, "text/html; charset=utf-8", "/logs/"],
    ["/logs/a%3Cb.log", 200, "text/plain; charset=utf-8", "one\n"],
    ["/logs/sub/link", 200, "text/plain; charset=utf-8", "one\n"],
    ["/logs/empty.log", 200, "text/plain; charset=utf-8", ""],
    ["/logs/run.gz", 200, "application/x-gzip", ""],
    ["/logs/binary", 200, "application/octet-stream", ""],
    ["/logs/sub", 301, undefined, "sub/"],
    ["/logs/a%3Cb.log/", 301, undefined, "../a<b.log"],
    ["/logs/page.html", 200, "text/html; charset=utf-8", "<p>"],
    ["/logs/indexed/", 200, "text/html; charset=utf-8", "index"],
    ["/logs/indexed/index.html", 301, undefined, "./"],
    ["/logs/absent/index.html", 301, undefined, "./"],
    ["/logs/%C3%A4", 301, undefined, "%C3%A4/"],
    ["/logs/absent", 404, "text/plain; charset=utf-8", ""],
    ["/logs/../etc/passwd", 301, "text/html; charset=utf-8", "/etc/passwd"],
    ["/logs//sub/./link", 301, "text/html; charset=utf-8", "/logs/sub/link"],
    ["/logs/..%2f..%2fetc%2fpasswd", 404, "text/plain; charset=utf-8", ""],
    ["/logs/%00", 500, "text/plain; charset=utf-8", ""],
    ["/logs/%ff", 404, "text/plain; charset=utf-8", ""],
  ];
  for (const [path, status, mediaType, text] of cases) {
    const response = await served.send(path);
    t.equal(response.status, status, path);
    t.equal(response.headers["content-type"], mediaType, path);
    if (status === 200 && text !== "") t.equal(response.text, text, path);
    if (status === 301) t.equal(response.headers.location, text, path);
  }
  t.equal((await served.send("/logs/", { method: "POST" })).status, 405);
  await using queried = await agent({ nodeLogs, nodeLogQuery: true });
  const query = "query=svc-no-such-service";
  t.match(
    (await queried.send("/logs/", { query })).text,
    /^\nlog not found for svc-no-such-service\n$|^-- No entries --/,
  );
  t.match((await served.send("/logs/", { query })).text, "<!doctype html>", "without the field it is ignored");
  await using off = await agent({});
  t.equal((await off.send("/logs/")).text, "logs endpoint is disabled.\n");
});

t.test("/debug/flags/v sets the verbosity of the log", async (t) => {
  const levels: number[] = [];
  const debugPages = {
    profiling: true,
    contention: undefined,
    setVerbosity: (level: number) => void levels.push(level),
  };
  await using served = await agent({ debugPages });
  const put = (text: string) => served.send("/debug/flags/v", { method: "PUT", body: text });
  t.equal((await put("4")).text, "successfully set klog.logging.verbosity to 4\n");
  for (const wrong of ["", "x", "-1", "99999999999"]) t.equal((await put(wrong)).status, 400, wrong);
  t.equal((await served.send("/debug/flags/v")).status, 406);
  t.same(levels, [4]);
  t.match((await served.send("/debug/pprof/cmdline")).text, process.argv[0]);
  for (const name of ["goroutine", "threadcreate", "block", "mutex", "symbol"]) {
    t.equal((await served.send(`/debug/pprof/${name}`)).status, 200, name);
  }
  const absent = await served.send("/debug/pprof/absent");
  t.match(absent, { status: 404, text: "Unknown profile\n", headers: { "x-go-pprof": "1" } });
  t.equal((await served.send("/debug/pprof/")).text, "404: Page Not Found", "as in kubelet");
  t.equal((await served.send("/debug/pprof/symbol", { method: "POST" })).status, 405);
  await using off = await agent({ debugPages: { profiling: false, contention: undefined, setVerbosity: undefined } });
  t.equal((await off.send("/debug/pprof/heap")).text, "profiling endpoint is disabled.\n");
  t.equal((await off.send("/debug/flags/v", { method: "PUT" })).text, "flags endpoint is disabled.\n");
});

t.test("/checkpoint/ has the runtime write a file", async (t) => {
  await using served = await agent({});
  const post = (path: string, query = "") => served.send(`/checkpoint/${path}`, { method: "POST", query });
  t.match(JSON.parse((await post("default/web/c")).text), {
    items: [/\/checkpoints\/checkpoint-web_default-c-\d{4}-.*Z\.tar$/],
  });
  t.equal((await post("default/none/c")).text, "pod does not exist");
  t.equal((await post("default/web/x")).text, "container x does not exist");
  for (const timeout of ["", "x", "1.5", "9223372036854775808"]) {
    const { status, text } = await post("default/web/c", `timeout=1&timeout=${timeout}`);
    t.same([status, text], [404, "cannot parse value of timeout parameter"], timeout);
  }
  await post("default/web/c", "timeout=x&timeout=9223372036854775807");
  t.match(served.at.fake.calls.at(-1), { request: { timeout: 2n ** 63n - 1n } }, "the last value counts");
  served.at.fake.fail("checkpointContainer");
  const failed = await post("default/web/c", "timeout=5");
  t.equal(failed.status, 500);
  t.match(failed.text, /^checkpointing of default\/web\/c failed \(rpc error: .*fails on demand\)$/);
  await using off = await agent({ checkpoints: false });
  t.equal((await off.send("/checkpoint/default/web/c", { method: "POST" })).status, 404, "without the gate");
});

t.test("/flagz and /statusz serve text to clients that accept it", async (t) => {
  await using served = await agent({ status: { flags: { "node-ip": "::" }, statusPage: true, version: "v1.33.0" } });
  t.match(
    (await served.send("/flagz", { accept: "text/plain" })).text,
    /^\nkubelet flags\nWarning: .*\n\nnode-ip=::\n$/,
  );
  t.match((await served.send("/statusz", { accept: "*/*" })).text, "Binary version: 1.33.0\nEmulation version: 1.33\n");
  t.equal((await served.send("/statusz")).status, 406);
  await using off = await agent({ status: { flags: undefined, statusPage: false, version: "v1.33.0" } });
  t.equal((await off.send("/flagz", { accept: "*/*" })).status, 404);
  t.equal((await off.send("/statusz", { accept: "*/*" })).status, 404);
});

t.test("/stats/summary reports an error of the runtime, and /metrics is compressed", async (t) => {
  const registry = new MetricRegistry();
  registry
    .counter({ name: "a_total", help: "A.".repeat(600) })
    .with()
    .inc();
  const requested: boolean[] = [];
  const figures = {
    registry,
    refresh: async () => undefined,
    probes: new MetricRegistry(),
    slis: new MetricRegistry(),
    observeHealth: () => undefined,
    requests: new RequestMetrics(registry, new FakeClock()),
    renderContainers: async () => "c 1\n",
    renderResources: async () => "r 1\n",
    readSummary: async (only: boolean) => {
      requested.push(only);
      if (!only) throw new Error("the runtime is away");
      return { pods: [] };
    },
  };
  await using served = await agent({ figures, debugging: false });
  t.match((await served.send("/metrics")).text, /^a_total 1$/m);
  await served.send("/chosen/by/client", { method: "FETCH" });
  t.equal((await served.send("/metrics/cadvisor")).text, "c 1\n");
  t.equal((await served.send("/metrics/resource")).text, "r 1\n");
  t.equal((await served.send("/stats/summary", { query: "only_cpu_and_memory=true" })).text, '{"pods":[]}');
  const failed = await served.send("/stats/summary");
  t.same([failed.status, failed.text], [500, "Internal Error: the runtime is away"]);
  t.same(requested, [true, false]);
  t.equal((await served.send("/stats/summary", { accept: "text/plain" })).status, 406);
  const { text } = await served.send("/metrics");
  const count = (labels: string): string => `kubelet_http_requests_total{long_running="false",${labels}} `;
  t.match(text, `${count('method="GET",path="metrics/cadvisor",server_type="readonly"')}1\n`);
  t.match(text, `${count('method="other",path="",server_type="readonly"')}1\n`);
  t.match(
    text,
    'kubelet_http_inflight_requests{long_running="false",method="GET",path="metrics",server_type="readonly"} 1\n',
  );
});
