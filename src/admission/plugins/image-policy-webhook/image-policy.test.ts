import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { podKind } from "../../../api/core/pod/kind.ts";
import type { Pod } from "../../../api/core/pod/schema.ts";
import { writeKubeconfig } from "../../../client/kubeconfig/kubeconfig.ts";
import { pluginDeps, rejectionOf, runPlugin } from "../../../testing/admission/admission-fixture.ts";
import {
  caBundle,
  type ReceivedReview,
  startTestWebhook,
  type TestWebhook,
  type WebhookAnswer,
} from "../../../testing/admission/webhook-fixture.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import type { PluginConfiguration } from "../../chain/factory.ts";
import { imagePolicyWebhook } from "./image-policy.ts";

const dir = mkdtempSync(join(tmpdir(), "image-policy-"));
t.teardown(() => rmSync(dir, { recursive: true }));

const configurationOf = (imagePolicy: object): PluginConfiguration => ({
  value: { imagePolicy },
  locationOf: (path) => `f:${path}`,
  duplicates: [],
});

const pod = (image: string, annotations: object = {}): Pod => ({
  metadata: { name: "web", namespace: "shop", annotations: annotations as Record<string, string> },
  spec: { containers: [{ name: "a", image }], initContainers: [{ name: "b", image: "init:1" }] },
});

/** A plugin with its own clock, connected to the webhook. */
async function plugin(testWebhook: Pick<TestWebhook, "url">, policy: object = {}) {
  const kubeConfigFile = join(dir, `${Math.random()}`);
  const ca = Buffer.from(caBundle, "base64").toString();
  await writeKubeconfig(kubeConfigFile, { server: testWebhook.url, cluster: "c", user: "u", token: "secret", ca });
  const stop = new AbortController();
  const clock = new FakeClock();
  const configuration = configurationOf({ kubeConfigFile, ...policy });
  const created = await imagePolicyWebhook(pluginDeps([], { clock, configuration, stopping: stop.signal }));
  return { created, clock, [Symbol.dispose]: () => stop.abort() };
}

function respond({ review }: Pick<ReceivedReview, "review">, status: object): object {
  return { ...review, status };
}

t.test("imagePolicyWebhook() sends all images of a pod and enforces the response", async (t) => {
  await using testWebhook = await startTestWebhook((received) => {
    const { containers } = received.review.spec;
    const bad = containers.some(({ image }: { image: string }) => image.startsWith("bad"));
    return respond(
      received,
      bad ? { allowed: false, reason: "bad is bad" } : { allowed: true, auditAnnotations: { seen: "1" } },
    );
  });
  using f = await plugin(testWebhook);
  const annotations = { "team.image-policy.k8s.io/ticket": "7", other: "x" };
  const allowed = await runPlugin(f.created, podKind, pod("good:1", annotations));
  t.same(allowed.annotations, { "imagepolicywebhook.image-policy.k8s.io/seen": "1" });
  t.match(testWebhook.received[0]?.headers, { authorization: "Bearer secret" });
  t.match(testWebhook.received[0]?.review, {
    apiVersion: "imagepolicy.k8s.io/v1alpha1",
    kind: "ImageReview",
    spec: {
      containers: [{ image: "good:1" }, { image: "init:1" }],
      annotations: { "team.image-policy.k8s.io/ticket": "7" },
      namespace: "shop",
    },
  });
  t.notOk(testWebhook.received[0]?.review.spec.annotations.other);
  t.equal(
    await rejectionOf(runPlugin(f.created, podKind, pod("bad:1"))),
    'pods "web" is forbidden: image policy webhook backend denied one or more images: bad is bad',
  );
  const debugged = { ...pod("good:2").spec, ephemeralContainers: [{ name: "d", image: "bad:2" }] } as Pod["spec"];
  const object = { ...pod("good:2"), spec: debugged };
  const through = { subresource: "ephemeralcontainers", oldObject: pod("good:2") };
  t.match(await rejectionOf(runPlugin(f.created, podKind, object, through)), /bad is bad$/);
  t.same(testWebhook.received.at(-1)?.review.spec.containers, [{ image: "bad:2" }]);
  t.notOk(f.created.handles({ operation: "UPDATE", kind: podKind, group: "", subresource: "status" } as never));
});

t.test("imagePolicyWebhook() caches responses for the configured time", async (t) => {
  await using testWebhook = await startTestWebhook((received) => respond(received, { allowed: false }));
  using f = await plugin(testWebhook, { denyTTL: 10 });
  const send = async () => await rejectionOf(runPlugin(f.created, podKind, pod("a")));
  t.match(await send(), /: one or more images rejected by webhook backend$/);
  await f.clock.advance(9000);
  await send();
  t.equal(testWebhook.received.length, 1);
  await f.clock.advance(1000);
  await send();
  t.equal(testWebhook.received.length, 2);
  using never = await plugin(testWebhook, { denyTTL: -1 });
  await rejectionOf(runPlugin(never.created, podKind, pod("a")));
  await rejectionOf(runPlugin(never.created, podKind, pod("a")));
  t.equal(testWebhook.received.length, 4);
});

t.test("imagePolicyWebhook() retries, then fails open or closed as configured", async (t) => {
  let answer: WebhookAnswer = [503, ""];
  await using testWebhook = await startTestWebhook(() => answer);
  const runWithRetries = async (f: Awaited<ReturnType<typeof plugin>>) => {
    let done = false;
    const verdict = runPlugin(f.created, podKind, pod("a")).finally(() => {
      done = true;
    });
    verdict.catch(() => {});
    while (!done) {
      await new Promise((resolve) => setImmediate(resolve));
      await f.clock.advance(100);
    }
    return await verdict;
  };
  using closed = await plugin(testWebhook);
  t.equal(await rejectionOf(runWithRetries(closed)), 'pods "web" is forbidden: the webhook responded with 503');
  t.equal(testWebhook.received.length, 5);
  using open = await plugin(testWebhook, { defaultAllow: true });
  const { object, annotations } = await runWithRetries(open);
  t.match(object.metadata?.annotations, { "alpha.image-policy.k8s.io/failed-open": "true" });
  t.same(annotations, { "imagepolicywebhook.image-policy.k8s.io/failed-open": "true" });
  t.equal(testWebhook.received.length, 10, "mutate and validate share the result");
  answer = [200, '{"kind":"ImageReview","status":{"allowed":"yes"}}'];
  t.match(await rejectionOf(runWithRetries(closed)), /status.allowed: expected true or false$/);
  answer = { kind: "Pod" };
  t.match(await rejectionOf(runWithRetries(closed)), /the response of the webhook is not of kind ImageReview$/);
  t.equal(testWebhook.received.length, 12, "invalid responses are not retried");
});

t.test("imagePolicyWebhook() rejects an invalid configuration with file and line", async (t) => {
  const make = (imagePolicy: object) =>
    imagePolicyWebhook(pluginDeps([], { configuration: configurationOf(imagePolicy) }));
  const cases: readonly (readonly [object, string | RegExp])[] = [
    [{}, "Cannot use f:imagePolicy.kubeConfigFile: imagePolicy.kubeConfigFile: it is missing"],
    [
      { kubeConfigFile: "/nowhere", allowTTL: 1801 },
      /^Cannot use f:imagePolicy.allowTTL: .*allowTTL: it must be from 1 to 1800 seconds, or -1 for none, not 1801$/,
    ],
    [{ kubeConfigFile: "/nowhere", retryBackoff: -2 }, /retryBackoff: it must be from 1 to 300000 milliseconds/],
    [{ kubeConfigFile: "/nowhere", allowTtl: 1 }, /unknown field imagePolicy.allowTtl/],
    [
      { kubeConfigFile: "/nowhere" },
      /^Cannot use f:imagePolicy.kubeConfigFile: imagePolicy.kubeConfigFile="\/nowhere": /,
    ],
  ];
  for (const [policy, message] of cases) await t.rejects(make(policy), { message });
  const message = /--admission-control-config-file must name a file with the webhook's kubeConfigFile$/;
  await t.rejects(imagePolicyWebhook(pluginDeps([], { configuration: undefined })), { message });
});
