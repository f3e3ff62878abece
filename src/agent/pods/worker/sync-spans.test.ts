import t from "tap";
import { createCriClient } from "../../../agent/runtime/cri-client.ts";
import { silentLogger } from "../../../std/log/logger.ts";
import { systemClock } from "../../../std/time/clock.ts";
import { podHarness } from "../../../testing/agent/pod-harness.ts";
import { ScriptedCri } from "../../../testing/agent/scripted-cri.ts";
import { startCollector } from "../../../testing/tracing/collector.ts";
import { Tracer } from "../../../tracing/tracer.ts";

t.test("a pod's syncs are spans that contain the calls of the runtime", async (t) => {
  const collector = await startCollector(t);
  const config = { endpoint: collector.endpoint, samplingRatePerMillion: 1_000_000 };
  const tracer = new Tracer(config, { clock: systemClock, log: silentLogger, resource: { "service.name": "svclet" } });
  await using harness = await podHarness();
  await using cri = new ScriptedCri(`/tmp/svc-spans-${process.pid}`, {
    runtime: harness.fake.runtime,
    images: harness.fake.images,
  });
  await cri.start();
  using client = createCriClient({ endpoint: cri.endpoint, requestTimeoutMs: 5000, clock: systemClock, tracer });
  await client.runtime.version({});
  await t.rejects(client.runtime.containerStatus({ containerId: "none" }));
  Object.assign(harness.services, { tracer });
  harness.manager.put({
    metadata: { name: "web", namespace: "default", uid: "u1" },
    spec: { containers: [{ name: "c", image: "i" }] },
  } as never);
  await harness.run(5);
  harness.manager.delete("u1");
  await harness.run(60);
  await tracer[Symbol.asyncDispose]();
  const names = new Set(collector.spans.map(({ name }) => name));
  t.ok(names.has("syncPod"));
  t.ok(names.has("syncTerminatingPod"));
  const calls = collector.spans.filter(({ kind }) => kind === 3);
  t.match(calls, [
    {
      service: "svclet",
      name: "runtime.v1.RuntimeService/Version",
      attributes: { "rpc.system": "grpc", "rpc.method": "Version", "rpc.grpc.status_code": 0 },
      status: 0,
    },
    { name: "runtime.v1.RuntimeService/ContainerStatus", attributes: { "rpc.grpc.status_code": 5 }, status: 2 },
  ]);
  t.match(collector.spans.find(({ name }) => name === "syncPod")?.attributes, {
    "k8s.pod.uid": "u1",
    "k8s.pod": "default/web",
    "k8s.pod.name": "web",
    "k8s.pod.update_type": "create",
    "k8s.namespace.name": "default",
  });
});
