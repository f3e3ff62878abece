import t from "tap";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";

t.test("authentication and authorization attempts are counted by result", async (t) => {
  await using server = await startTestServer({ authorizationModes: ["RBAC"] });
  await server.send("GET /api/v1/pods");
  await server.send("GET /api/v1/pods", { user: "jo@example.com" });
  await server.send("GET /api/v1/pods", { user: "", headers: { authorization: "Bearer wrong" } });
  const { text } = await server.send("GET /metrics");
  const value = (name: string, label: string): number =>
    Number(new RegExp(`^${name}\\{${label}\\} (.*)$`, "m").exec(text)?.[1]);
  t.equal(value("authenticated_user_requests", 'username="admin"'), 2, "including the scrape");
  t.equal(value("authenticated_user_requests", 'username="email_id"'), 1, "other users share a label value");
  t.equal(value("authentication_attempts", 'result="error"') + value("authentication_attempts", 'result="failure"'), 1);
  t.equal(value("authorization_attempts_total", 'result="no-opinion"'), 1);
  t.ok(value("authorization_attempts_total", 'result="allowed"') >= 2);
  await server.send("GET /version", { user: "jo@example.com" });
  const decisions = (await server.send("GET /metrics")).text;
  t.match(decisions, /^apiserver_authorization_decisions_total\{decision="allowed",name="rbac",type="RBAC"\} 1$/m);
  t.equal(value("authentication_duration_seconds_count", 'result="success"'), 3);
});

t.test("/metrics has the metrics of the process and the build", async (t) => {
  await using server = await startTestServer();
  const { text } = await server.send("GET /metrics");
  const value = (name: string): number => Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
  t.ok(value("process_resident_memory_bytes") > 1e7);
  t.ok(value("process_cpu_seconds_total") > 0);
  t.ok(value("process_open_fds") > 2);
  t.ok(value("process_max_fds") > value("process_open_fds"));
  t.ok(value("process_start_time_seconds") > 1.7e9);
  t.ok(value("nodejs_heap_size_used_bytes") > 1e6);
  t.match(text, /^kubernetes_build_info\{.*git_version="v1\.33\.0-svc".*minor="33".*\} 1$/m);
  t.match(text, new RegExp(`^nodejs_version_info\\{version="${process.version}"\\} 1$`, "m"));
});

t.test("/metrics negotiates OpenMetrics, and DELETE resets the metrics", async (t) => {
  await using server = await startTestServer();
  await server.send("GET /api/v1/pods");
  const accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
  const open = await server.send("GET /metrics", { headers: { accept } });
  t.match(open.headers["content-type"], /^application\/openmetrics-text; version=1\.0\.0/);
  t.match(open.text, /\n# EOF\n$/);
  const plain = await server.send("GET /metrics", { headers: { accept: "application/json" } });
  t.match(plain.headers["content-type"], /^text\/plain; version=0\.0\.4/, "the default format");
  await server.send("GET /readyz");
  const slis = (await server.send("GET /metrics/slis")).text;
  t.match(slis, 'kubernetes_healthcheck{name="ping",type="readyz"} 1\n');
  t.notMatch(slis, /apiserver_request_total/);
  t.match(await server.send("DELETE /metrics"), { status: 200, text: "metrics reset\n" });
  t.match((await server.send("GET /metrics")).text, /apiserver_request_total\{.*resource="pods".*\} 0\n/);
});
