/** Effects of the flags for lifecycle, limits and logging. */

import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { apiServerOptions } from "../../../apiserver/config/options.ts";
import { apiserverProgram } from "../../../apiserver/flags/flags.ts";
import { startApiServer } from "../../../apiserver/server.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { createMemoryStore } from "../../../storage/memory.ts";
import type { Store } from "../../../storage/store.ts";
import { invokeMutant } from "../../../testing/flags/mutant.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { freePort } from "../../../testing/std/free-port.ts";
import {
  advanceUntil,
  baseSettings,
  captureLog,
  captureServerLog,
  type Effect,
  fetchStatus,
  file,
  metricLines,
  type Name,
  PODS,
  parseFlags,
  pod,
  recordWrites,
  requestWithBlockedStore,
  type Settings,
  splitStreams,
  startAndClose,
  startServer,
} from "./support.ts";

export const lifecycleEffects: Partial<Record<Name, Effect>> = {
  "max-connection-bytes-per-sec": async (t) => {
    await using server = await startServer({ "max-connection-bytes-per-sec": "500" });
    for (let index = 0; index < 3; index++) await server.send(`POST ${PODS}`, pod(`p${index}`));
    let got = 0;
    const path = `${PODS}?watch=1&resourceVersion=0`;
    const sent = request({ host: "127.0.0.1", port: server.port, path, rejectUnauthorized: false }, (response) => {
      response.on("data", (chunk: Buffer) => {
        got += chunk.length;
      });
    });
    sent.on("error", () => {}).end();
    await server.until("the first chunk", () => got > 0);
    t.equal(got, 500);
    const began = server.clock.monotonic();
    await server.until("the other chunks", () => got > 2000);
    t.ok(server.clock.monotonic() - began >= 2900, "500 a second");
    sent.destroy();
  },
  "enable-priority-and-fairness": async (t) => {
    const crowded = { "max-mutating-requests-inflight": "1" };
    t.same(await requestWithBlockedStore({ ...crowded, "enable-priority-and-fairness": "false" }), {
      reads: 200,
      writes: 429,
    });
    t.same(
      await requestWithBlockedStore({ ...crowded, "max-requests-inflight": "0" }),
      { reads: 429, writes: 429 },
      "one seat for both",
    );
    for (const [value, isClassified] of [
      ["true", true],
      ["false", false],
    ] as const) {
      await using server = await startServer({ "enable-priority-and-fairness": value });
      const { headers } = await server.send("GET /version");
      t.equal(headers["x-kubernetes-pf-flowschema-uid"] !== undefined, isClassified);
    }
    const none = { "max-requests-inflight": "0", "max-mutating-requests-inflight": "0" };
    t.throws(() => parseFlags(none), /must be positive/);
  },
  "max-requests-inflight": async (t) => {
    const store: { list?: Store["list"] } = {};
    await using server = await startServer(
      { "enable-priority-and-fairness": "false", "max-requests-inflight": "1" },
      store,
    );
    store.list = () => new Promise<never>(() => {});
    void server.send("GET /readyz", undefined, {});
    await setTimeout(5);
    delete store.list;
    t.equal((await server.send(`GET ${PODS}`, undefined, {})).status, 429);
    t.equal((await server.send(`GET ${PODS}`)).status, 200, "system:masters is not limited");
  },
  "max-mutating-requests-inflight": async (t) => {
    const apart = { "enable-priority-and-fairness": "false" };
    const one = { ...apart, "max-mutating-requests-inflight": "1" };
    t.same(await requestWithBlockedStore(one), { reads: 200, writes: 429 });
    const unlimited = { ...apart, "max-mutating-requests-inflight": "0" };
    t.same(
      await requestWithBlockedStore(unlimited),
      { reads: 200, writes: 504 },
      "both writes are blocked by the store",
    );
  },
  "request-timeout": async (t) => {
    const store: { create?: Store["create"] } = {};
    await using server = await startServer({ "request-timeout": "3s" }, store);
    store.create = () => new Promise<never>(() => {});
    let status = 0;
    void server.send(`POST ${PODS}`, pod("web")).then((answer) => {
      status = answer.status;
    });
    await server.clock.advance(2900);
    t.equal(status, 0);
    await server.until("the timeout", () => status === 504);
    t.ok(server.clock.monotonic() < 60_000);
  },
  "min-request-timeout": async (t) => {
    await using server = await startServer({ "min-request-timeout": "5" });
    let ended = false;
    void server.send(`GET ${PODS}?watch=1`).then(() => {
      ended = true;
    });
    await server.clock.advance(4900);
    t.notOk(ended);
    await server.until("the watch has ended", () => ended);
    t.ok(server.clock.monotonic() <= 12_000);
  },
  "shutdown-delay-duration": async (t) => {
    await using server = await startServer({ "shutdown-delay-duration": "3s" });
    let closed = false;
    void server.running.close().then(() => {
      closed = true;
    });
    await server.clock.advance(2900);
    t.notOk(closed);
    t.equal((await server.send("GET /livez")).status, 200);
    t.equal((await server.send("GET /readyz")).status, 500);
    await server.until("it stops", () => closed);
  },
  "livez-grace-period": async (t) => {
    const whileStarting = async (grace: string): Promise<readonly number[]> => {
      const clock = new FakeClock();
      const port = String(await freePort());
      const { flags, gates, version } = parseFlags({
        ...baseSettings,
        "secure-port": port,
        "livez-grace-period": grace,
      });
      const config = apiServerOptions(flags, gates, version);
      const deps = { clock, log: silentLogger };
      const store = recordWrites(createMemoryStore({ ...deps, ...config.storage }), [], {
        create: () => new Promise<never>(() => {}),
      });
      const failed = startApiServer(config, { ...deps, store }).catch(() => {});
      const send = async (path: string) => (await fetchStatus(Number(port), { path }).catch(() => undefined))?.status;
      await advanceUntil(clock, "the server to listen", async () => (await send("/livez")) !== undefined);
      const statuses: number[] = [];
      for (const path of ["/livez", "/healthz", "/readyz", "/api/v1/pods"]) statuses.push((await send(path)) ?? 0);
      await clock.advance(20_000);
      statuses.push((await send("/livez")) ?? 0);
      let over = false;
      void failed.then(() => {
        over = true;
      });
      await advanceUntil(clock, "the start has failed", () => over);
      return statuses;
    };
    t.same(await whileStarting("0"), [500, 500, 500, 503, 500]);
    t.same(await whileStarting("15s"), [200, 500, 500, 503, 500]);
    t.same(await whileStarting("30s"), [200, 500, 500, 503, 200]);
  },
  "shutdown-send-retry-after": async (t) => {
    const store: { create?: Store["create"] } = {};
    await using server = await startServer({ "shutdown-send-retry-after": "true" }, store);
    const release = Promise.withResolvers<never>();
    let begun = false;
    store.create = () => {
      begun = true;
      return release.promise;
    };
    const headers = { "content-type": "application/json" };
    const late = new Promise<number>((resolve) => {
      const options = { host: "127.0.0.1", port: server.port, path: PODS, method: "POST", headers };
      const sent = request({ ...options, rejectUnauthorized: false, agent: false }, (response) =>
        resolve(response.resume().statusCode ?? 0),
      );
      sent.end(JSON.stringify(pod("web")));
    });
    using stack = new DisposableStack();
    stack.defer(() => release.reject(new Error("enough")));
    await server.until("the request is under way", () => begun);
    const closing = server.running.close();
    await setTimeout(5);
    const refused = await fetchStatus(server.port);
    t.equal(refused.status, 429);
    t.equal(refused.headers["retry-after"], "5");
    t.equal(refused.headers.connection, "close");
    stack.dispose();
    t.equal(await late, 500, "the pending request gets a response");
    let closed = false;
    void closing.then(() => {
      closed = true;
    });
    await server.until("it stops", () => closed);
  },
  "shutdown-watch-termination-grace-period": async (t) => {
    await using server = await startServer({ "shutdown-watch-termination-grace-period": "10s" });
    const ended: number[] = [];
    for (let index = 0; index < 20; index++) {
      const path = `${PODS}?watch=1`;
      const sent = request({ host: "127.0.0.1", port: server.port, path, rejectUnauthorized: false, agent: false });
      sent.on("error", () => {}).end();
      const response = await new Promise<IncomingMessage>((resolve) => sent.on("response", resolve));
      response.resume().on("end", () => ended.push(server.clock.monotonic()));
    }
    void server.running.close();
    await server.until("all have ended", () => ended.length === 20);
    t.ok(ended.at(-1)! - ended[0]! >= 50, "not all at once");
  },
  "emulated-version": async (t) => {
    await using server = await startServer({ "emulated-version": "1.32" });
    t.match((await server.send("GET /version")).json, {
      minor: "33",
      emulationMinor: "32",
      minCompatibilityMinor: "31",
    });
    t.equal((await server.send("GET /apis/networking.k8s.io/v1/servicecidrs")).status, 404, "new in 1.33");
    t.equal((await server.send("GET /apis/networking.k8s.io/v1/ingresses")).status, 200);
    const features = await metricLines(server, "kubernetes_feature_enabled");
    t.ok(
      features.some((line) => /name="WatchList",stage="BETA"\} 1$/.test(line)),
      "the behaviour of 1.32",
    );
    t.notOk(
      features.some((line) => /ContainerStopSignals/.test(line)),
      "not in 1.32",
    );
  },
  "emulation-forward-compatible": async (t) => {
    const old = { "emulated-version": "1.32", "runtime-config": "networking.k8s.io/v1beta1=true" };
    const path = "GET /apis/networking.k8s.io/v1/servicecidrs";
    await using without = await startServer(old);
    t.equal((await without.send(path)).status, 404);
    await using server = await startServer({ ...old, "emulation-forward-compatible": "true" });
    t.equal((await server.send(path)).status, 200, "enabled with the beta version");
  },
  "runtime-config-emulation-forward-compatible": async (t) => {
    const later = { "emulated-version": "1.32", "runtime-config": "networking.k8s.io/v1/servicecidrs=true" };
    await t.rejects(startAndClose(later), /it was introduced in 1.33/);
    await using server = await startServer({ ...later, "runtime-config-emulation-forward-compatible": "true" });
    t.equal((await server.send("GET /apis/networking.k8s.io/v1/servicecidrs")).status, 200);
  },
  "allow-metric-labels": async (t) => {
    await using server = await startServer({ "allow-metric-labels": "apiserver_request_total,code='200,404'" });
    await server.send("GET /api/v1/pods");
    await server.send(`POST ${PODS}`, { metadata: { name: "UPPER" } });
    const codes = (await metricLines(server, "apiserver_request_total")).map((line) => /code="(\w+)"/.exec(line)?.[1]);
    t.same([...new Set(codes)].sort(), ["200", "unexpected"]);
  },
  "allow-metric-labels-manifest": async (t) => {
    const path = join(t.testdir({ "labels.yaml": "apiserver_request_total,code: '201,404'\n" }), "labels.yaml");
    const codesOf = async (settings: Settings) => {
      await using server = await startServer({ "allow-metric-labels-manifest": path, ...settings });
      await server.send("GET /api/v1/pods");
      return (await metricLines(server, "apiserver_request_total")).map((line) => /code="(\w+)"/.exec(line)?.[1]);
    };
    t.same(await codesOf({}), ["unexpected"]);
    t.same(await codesOf({ "allow-metric-labels": "apiserver_request_total,code=200" }), ["200"]);
    await t.rejects(
      startAndClose({ "allow-metric-labels-manifest": file("tokens") }),
      /--allow-metric-labels-manifest=/,
    );
  },
  "disabled-metrics": async (t) => {
    const some = { "disabled-metrics": "apiserver_request_total", "show-hidden-metrics-for-version": "1.32" };
    await using server = await startServer(some);
    t.same(await metricLines(server, "apiserver_request_total"), []);
    t.match(await metricLines(server, "disabled_metrics_total"), [/ 1$/]);
  },
  "show-hidden-metrics-for-version": async (t) => {
    await using server = await startServer({ "show-hidden-metrics-for-version": "1.32" });
    await server.send("GET /api/v1/pods");
    t.not((await metricLines(server, "apiserver_request_slo_duration_seconds_count")).length, 0);
    await using without = await startServer();
    await without.send("GET /api/v1/pods");
    t.same(await metricLines(without, "apiserver_request_slo_duration_seconds_count"), []);
    t.throws(() => parseFlags({ "show-hidden-metrics-for-version": "1.31" }), /must be empty or 1.32/);
  },
  v: async (t) => {
    t.match(captureLog({ v: "3" }).err, /three/);
    t.notMatch(await captureServerLog({}), /HTTP.*\/pods/);
    t.match(await captureServerLog({ v: "3" }), /HTTP.*\/pods/, "the server logs requests");
  },
  vmodule: async (t) => {
    const { err } = captureLog({ vmodule: "store=5" });
    t.match(err, /five/);
    t.notMatch(err, /three/);
    t.match(await captureServerLog({ vmodule: "httplog=3" }), /HTTP.*\/pods/);
    t.notMatch(await captureServerLog({ vmodule: "other=3" }), /HTTP.*\/pods/);
  },
  "logging-format": async (t) => {
    t.match(captureLog({ "logging-format": "text" }).err, /^I\d{4} .*\] "?hello/);
    t.throws(() => parseFlags({ "logging-format": "json" }), /--logging-format="json": must be text/);
  },
  "log-text-split-stream": async (t) => {
    t.match(captureLog(splitStreams), { out: /hello/, err: /oh/ });
  },
  "log-text-info-buffer-size": async (t) => {
    t.equal(captureLog({ ...splitStreams, "log-text-info-buffer-size": "4Ki" }).clock.pending, 1, "a flush is due");
    t.equal(captureLog(splitStreams).clock.pending, 0);
  },
  "log-flush-frequency": async (t) => {
    const log = captureLog({ ...splitStreams, "log-text-info-buffer-size": "4Ki", "log-flush-frequency": "2s" });
    await log.clock.advance(1999);
    t.equal(log.flushes(), 0);
    await log.clock.advance(1);
    t.ok(log.flushes() > 0);
  },
  version: async (t) => {
    await using server = await startServer({ version: "v1.33.4-site.1" });
    t.equal((await server.send("GET /version")).json.gitVersion, "v1.33.4-site.1");
    t.match(invokeMutant(apiserverProgram, ["--version"], { version: "v1.33.0" }), { stdout: "apiserver v1.33.0\n" });
  },
  "feature-gates": async (t) => {
    await using server = await startServer({ "feature-gates": "ComponentStatusz=true" });
    const headers = { ...server.admin, accept: "text/plain" };
    t.equal((await server.send("GET /statusz", undefined, headers)).status, 200, "a page that is off by default");
  },
  help: async (t) => {
    t.match(invokeMutant(apiserverProgram, ["--help"], { version: "v1.33.0" }), { code: 0, stdout: /Usage:/ });
  },
};
