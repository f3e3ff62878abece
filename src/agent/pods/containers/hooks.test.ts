import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import t, { type Test } from "tap";
import type { HTTPGetAction } from "../../../api/core/container/probe.ts";
import { FakeRuntime } from "../../../testing/agent/fake-runtime.ts";
import { testPod } from "../../../testing/agent/pod-harness.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { RuntimeError } from "../../runtime/runtime.ts";
import { runHook } from "./hooks.ts";

/** Runs an HTTP hook against a server without TLS; returns its requests, the events and the error. */
async function runHttpHook(t: Test, action: Omit<HTTPGetAction, "port">, status = 200) {
  const requests: string[] = [];
  const events: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.url} ${request.headers.authorization ?? ""} ${request.headers["x-a"] ?? ""}`);
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => server.close());
  const clock = new FakeClock();
  const { runtime } = new FakeRuntime(clock);
  const { port } = server.address() as AddressInfo;
  const hook = runHook(
    { httpGet: { ...action, port } },
    {
      pod: testPod("web"),
      events: {
        recordPodEvent: (_, ...event) => void events.push(event.join(" ")),
        recordContainerEvent: () => undefined,
      },
      runtime,
      clock,
      container: { name: "c" },
      containerId: "1",
      podIp: "127.0.0.1",
      signal: new AbortController().signal,
      userAgent: "kube-lifecycle/1.33",
    },
  );
  const failure = await hook.then(() => undefined, String);
  return { requests, events, failure };
}

t.test("runHook() succeeds with any HTTP response, and fails without one", async (t) => {
  for (const status of [200, 404, 500])
    t.match(await runHttpHook(t, { path: "/x" }, status), { failure: undefined, events: [] });
  const refused = await runHttpHook(t, { host: "127.0.0.2", path: "/x" });
  t.match(refused, {
    requests: [],
    failure:
      /HTTP lifecycle hook \(\/x\) for Container "c" in Pod ".+" failed - error: Get "http:.* connection refused$/,
  });
});

t.test("runHook() falls back to HTTP without the Authorization header, and records an event", async (t) => {
  const httpHeaders = [
    { name: "Authorization", value: "Bearer hush" },
    { name: "X-A", value: "b" },
  ];
  t.same(await runHttpHook(t, { scheme: "HTTPS", path: "/bye", httpHeaders }), {
    requests: ["/bye  b"],
    events: [
      "Warning LifecycleHTTPFallback request to HTTPS lifecycle hook got HTTP response, retry with HTTP succeeded",
    ],
    failure: undefined,
  });
});

for (const { name, result, error } of [
  {
    name: "a command that fails",
    result: { exitCode: 5, stdout: "out\n", stderr: 'why "not"' },
    error: `command 'sh -c exit 5' exited with 5: why "not", message: "out\\nwhy \\"not\\""`,
  },
  {
    name: "a command that fails without output",
    result: { exitCode: 5 },
    error: `command 'sh -c exit 5' exited with 5: , message: ""`,
  },
  {
    name: "a command that cannot run",
    result: new RuntimeError("UNKNOWN", "no such file"),
    error: 'rpc error: code = Unknown desc = no such file, message: ""',
  },
]) {
  t.test(`runHook() rejects with Kubernetes' text for ${name}`, async (t) => {
    const clock = new FakeClock();
    const fake = new FakeRuntime(clock);
    const stdout = Buffer.from("stdout" in result ? result.stdout : "");
    const stderr = Buffer.from("stderr" in result ? result.stderr : "");
    const execSync = async () => {
      if (result instanceof Error) throw result;
      return { exitCode: result.exitCode, stdout, stderr };
    };
    const hook = runHook(
      { exec: { command: ["sh", "-c", "exit 5"] } },
      {
        pod: testPod("web"),
        events: { recordPodEvent: () => undefined, recordContainerEvent: () => undefined },
        runtime: { ...fake.runtime, execSync },
        clock,
        container: { name: "c" },
        containerId: "1",
        podIp: "127.0.0.1",
        signal: new AbortController().signal,
        userAgent: "kube-lifecycle/1.33",
      },
    );
    const start =
      'Exec lifecycle hook ([sh -c exit 5]) for Container "c" in Pod "web_default(uid-web)" failed - error: ';
    await t.rejects(hook, { message: start + error });
  });
}

t.test("runHook() rejects an HTTP hook of a pod on the host's network that names no host", async (t) => {
  const clock = new FakeClock();
  const options = {
    pod: testPod("web"),
    events: { recordPodEvent: () => undefined, recordContainerEvent: () => undefined },
    runtime: new FakeRuntime(clock).runtime,
    clock,
    container: { name: "c" },
    containerId: "1",
    podIp: undefined,
    signal: new AbortController().signal,
    userAgent: "kube-lifecycle/1.33",
  };
  await t.rejects(runHook({ httpGet: { port: 80 } }, options), /failed - error: failed to find networking container$/);
  await t.rejects(runHook({ httpGet: { port: 1, host: "127.0.0.1" } }, options), /connect: connection refused$/);
});
