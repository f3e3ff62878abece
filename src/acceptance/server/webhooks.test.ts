/** Admission webhooks with a whole server and TLS. */
import t from "tap";
import {
  caBundle,
  patchResponse,
  reviewResponse,
  startTestWebhook,
  type TestWebhook,
  type WebhookAnswer,
} from "../../testing/admission/webhook-fixture.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";

const REGISTRATION = "/apis/admissionregistration.k8s.io/v1";
type Type = "validating" | "mutating";

const mapRule = { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE", "UPDATE"], resources: ["configmaps"] };

async function register(server: TestServer, type: Type, hook: TestWebhook | string, more: object = {}): Promise<void> {
  const url = typeof hook === "string" ? hook : hook.url;
  const { name = "a.example.com", ...rest } = more as { readonly name?: string };
  const [first = ""] = name.split(".");
  const kind = type === "validating" ? "ValidatingWebhookConfiguration" : "MutatingWebhookConfiguration";
  const body = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind,
    metadata: { name: first },
    webhooks: [
      {
        name,
        clientConfig: { url, caBundle },
        rules: [mapRule],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        ...rest,
      },
    ],
  };
  const { status, text } = await server.send(`POST ${REGISTRATION}/${kind.toLowerCase()}s`, { body });
  if (status !== 201) throw new Error(text);
}

const MAPS = "/api/v1/namespaces/default/configmaps";
const map = (name: string, data: object = {}) => ({ body: { metadata: { name }, data } });

t.test("mutating webhooks run in the order of their names, before validating webhooks", async (t) => {
  await using server = await startTestServer();
  const add = (text: string) => (reviews: Parameters<typeof reviewResponse>[0]) => {
    const { data = {} } = reviews.review.request.object;
    return patchResponse(reviews, [
      { op: "add", path: "/data", value: { ...data, seen: `${data.seen ?? ""}${text}` } },
    ]);
  };
  await using first = await startTestWebhook(add("1"));
  await using second = await startTestWebhook(add("2"));
  await using checking = await startTestWebhook((reviews) => reviewResponse(reviews, { warnings: ["mind the map"] }));
  await register(server, "mutating", second, { name: "b.example.com" });
  await register(server, "mutating", first, { name: "a.example.com" });
  await register(server, "validating", checking);
  const { status, json, headers } = await server.send(`POST ${MAPS}`, map("m"));
  t.equal(status, 201);
  t.same(json.data, { seen: "12" });
  t.match(headers.warning, /299 - "mind the map"/);
  const { review, path, headers: sent } = checking.received[0]!;
  t.equal(path, "/hook?timeout=10s");
  t.match(sent, { "content-type": "application/json", "user-agent": "kube-apiserver-admission" });
  t.match(review, {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      kind: { group: "", version: "v1", kind: "ConfigMap" },
      resource: { group: "", version: "v1", resource: "configmaps" },
      requestKind: { group: "", version: "v1", kind: "ConfigMap" },
      requestResource: { group: "", version: "v1", resource: "configmaps" },
      name: "m",
      namespace: "default",
      operation: "CREATE",
      userInfo: { username: "admin", uid: "1", groups: ["system:masters"] },
      object: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" }, data: { seen: "12" } },
      oldObject: null,
      dryRun: false,
      options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
    },
  });
});

t.test("rejections and failures of webhooks have Kubernetes' messages", async (t) => {
  const refused = (status: object): ((review: Parameters<typeof reviewResponse>[0]) => object) => {
    return (review) => reviewResponse(review, { allowed: false, status });
  };
  const calling = 'Internal error occurred: failed calling webhook "a.example.com": ';
  const ADMISSION_V1 = "admission.k8s.io/v1";
  const invalid = `${calling}received invalid webhook response: `;
  const cases: readonly [(review: Parameters<typeof reviewResponse>[0]) => WebhookAnswer, number, string | RegExp][] = [
    [refused({ code: 403, message: "no" }), 403, 'admission webhook "a.example.com" denied the request: no'],
    [refused({ reason: "Gone" }), 400, 'admission webhook "a.example.com" denied the request: Gone'],
    [refused({ code: 200 }), 400, 'admission webhook "a.example.com" denied the request without explanation'],
    [
      (review) => ({ ...review.review, response: { uid: "other", allowed: true } }),
      500,
      new RegExp(`^${invalid}expected response.uid="[0-9a-f-]{36}", got "other"$`),
    ],
    [
      ({ review }) => ({ ...review, kind: "Pod", response: { uid: review.request.uid, allowed: true } }),
      500,
      `${invalid}expected webhook response of ${ADMISSION_V1}, Kind=AdmissionReview, got ${ADMISSION_V1}, Kind=Pod`,
    ],
    [(review) => review.review, 500, `${invalid}webhook response was absent`],
    [
      (review) => reviewResponse(review, { patch: "W10=" }),
      500,
      `${invalid}validating webhook may not return response.patch`,
    ],
    [() => [404, "nowhere"], 500, `${calling}failed to call webhook: the server could not find the requested resource`],
    [
      () => [500, "broken"],
      500,
      `${calling}failed to call webhook: an error on the server ("broken") has prevented the request from succeeding`,
    ],
    [
      () => [302, ""],
      500,
      `${calling}failed to call webhook: the server answered with code 302: redirects are not followed`,
    ],
    [() => [200, "<html>"], 500, /failed to call webhook: .*couldn't get version\/kind; json parse error/],
  ];
  for (const [answer, code, message] of cases) {
    await using server = await startTestServer();
    await using hook = await startTestWebhook(answer);
    await register(server, "validating", hook);
    t.match((await server.send(`POST ${MAPS}`, map("m"))).json, { code, message });
  }
});

t.test("unreachable webhooks with failurePolicy Ignore are ignored", async (t) => {
  await using server = await startTestServer();
  await using gone = await startTestWebhook(() => ({}));
  const { url, port } = gone;
  await gone[Symbol.asyncDispose]();
  await register(server, "validating", url);
  const { json } = await server.send(`POST ${MAPS}`, map("m"));
  const why = `Post "${url}?timeout=10s": dial tcp 127.0.0.1:${port}: connect: connection refused`;
  t.match(json, {
    code: 500,
    reason: "InternalError",
    message: `Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: ${why}`,
  });
  await server.send(`DELETE ${REGISTRATION}/validatingwebhookconfigurations/a`);
  await register(server, "mutating", url, { failurePolicy: "Ignore" });
  t.equal((await server.send(`POST ${MAPS}`, map("m"))).status, 201);
  const metrics = (await server.send("GET /metrics")).text;
  t.match(metrics, 'apiserver_admission_webhook_fail_open_count{name="a.example.com",type="admit"} 1');
  t.match(metrics, /apiserver_admission_webhook_rejection_count\{.*calling_webhook_error.*\} 1/);
});

t.test("webhooks must respond within the timeout and have a trusted certificate", async (t) => {
  await using server = await startTestServer();
  await using silent = await startTestWebhook(() => "hang");
  await register(server, "validating", silent, { timeoutSeconds: 2 });
  const sending = server.send(`POST ${MAPS}`, map("m"));
  while (silent.received.length === 0) await new Promise(setImmediate);
  await server.clock.advance(2000);
  t.match((await sending).json, { code: 500, message: /\?timeout=2s": context deadline exceeded$/ });
  await server.send(`DELETE ${REGISTRATION}/validatingwebhookconfigurations/a`);
  await register(server, "validating", silent, { clientConfig: { url: silent.url } });
  t.match((await server.send(`POST ${MAPS}`, map("m"))).json, {
    code: 500,
    message: /tls: failed to verify certificate: x509: certificate signed by unknown authority$/,
  });
  await server.send(`DELETE ${REGISTRATION}/validatingwebhookconfigurations/a`);
  const url = `https://localhost:${silent.port}/`;
  await register(server, "validating", silent, { clientConfig: { url, caBundle } });
  t.match((await server.send(`POST ${MAPS}`, map("m"))).json, {
    code: 500,
    message: /certificate is not valid for any names, but wanted to match localhost$/,
  });
});

t.test("a webhook is called for requests that match its rules, selectors and match conditions", async (t) => {
  const expression = (text: string) => ({ matchConditions: [{ name: "c", expression: text }] });
  const cases: readonly [string, object, boolean | RegExp][] = [
    ["its rules", {}, true],
    ["another resource", { rules: [{ ...mapRule, resources: ["secrets"] }] }, false],
    ["subresources alone", { rules: [{ ...mapRule, resources: ["*/status"] }] }, false],
    ["everything", { rules: [{ ...mapRule, apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"] }] }, true],
    ["cluster-wide objects", { rules: [{ ...mapRule, resources: ["*"], scope: "Cluster" }] }, false],
    ["other operations", { rules: [{ ...mapRule, operations: ["DELETE"] }] }, false],
    ["a namespace's labels", { namespaceSelector: { matchLabels: { team: "a" } } }, true],
    ["another's labels", { namespaceSelector: { matchLabels: { team: "b" } } }, false],
    ["the object's labels", { objectSelector: { matchLabels: { app: "web" } } }, true],
    ["another object's", { objectSelector: { matchExpressions: [{ key: "app", operator: "DoesNotExist" }] } }, false],
    ["an expression", expression("object.data.a == 'b' && request.userInfo.username == 'admin'"), true],
    ["one that is false", expression("oldObject != null"), false],
    ["what the authorizer says", expression("authorizer.requestResource.check('delete').allowed()"), true],
    [
      "requests of other users",
      expression("authorizer.serviceAccount('default', 'x').group('').resource('pods').check('get').allowed()"),
      true,
    ],
    [
      "one that fails",
      expression("object.data.missing == 'x'"),
      /expression 'object.data.missing == 'x'' resulted in error: no such key: missing/,
    ],
    ["one that fails, and is ignored", { ...expression("object.data.missing == 'x'"), failurePolicy: "Ignore" }, false],
  ];
  for (const [about, more, expected] of cases) {
    await using server = await startTestServer();
    await server.send("POST /api/v1/namespaces", { body: { metadata: { name: "n", labels: { team: "a" } } } });
    await using hook = await startTestWebhook((review) => reviewResponse(review, {}));
    await register(server, "validating", hook, more);
    const body = { metadata: { name: "m", labels: { app: "web" } }, data: { a: "b" } };
    const { status, json } = await server.send("POST /api/v1/namespaces/n/configmaps", { body });
    if (typeof expected === "boolean") {
      t.equal(status, 201, about);
      t.equal(hook.received.length > 0, expected, about);
    } else t.match(json, { code: 403, message: expected }, about);
    if (!("matchConditions" in more)) continue;
    const metrics = (await server.send("GET /metrics")).text;
    const labels = 'kind="webhook",name="a.example.com",operation="CREATE",type="validating"';
    const isCounted = (what: string) => metrics.includes(`apiserver_admission_match_condition_${what}{${labels}} 1`);
    t.ok(isCounted("evaluation_seconds_count"), about);
    t.equal(isCounted("exclusions_total"), about === "one that is false", about);
    t.equal(isCounted("evaluation_errors_total"), about.startsWith("one that fails"), about);
  }
});

t.test("a webhook receives objects in the version of its rule, and its changes are converted back", async (t) => {
  await using server = await startTestServer();
  await using hook = await startTestWebhook((review) =>
    patchResponse(review, [{ op: "replace", path: "/spec/targetCPUUtilizationPercentage", value: 50 }]),
  );
  const rule = { ...mapRule, apiGroups: ["autoscaling"], apiVersions: ["v1"], resources: ["horizontalpodautoscalers"] };
  await register(server, "mutating", hook, { rules: [rule] });
  const scaleTargetRef = { kind: "Deployment", name: "d", apiVersion: "apps/v1" };
  const path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
  const { status, json } = await server.send(`POST ${path}`, {
    body: { metadata: { name: "h" }, spec: { scaleTargetRef, maxReplicas: 3 } },
  });
  t.equal(status, 201, json.message);
  t.match(json.spec.metrics, [{ resource: { name: "cpu", target: { averageUtilization: 50 } } }]);
  t.match(hook.received[0]!.review.request, {
    kind: { group: "autoscaling", version: "v1" },
    resource: { version: "v1" },
    requestKind: { version: "v2" },
    requestResource: { version: "v2" },
    object: { apiVersion: "autoscaling/v1" },
  });
  await server.send(`DELETE ${REGISTRATION}/mutatingwebhookconfigurations/a`);
  await register(server, "mutating", hook, { rules: [rule], matchPolicy: "Exact" });
  await server.send(`POST ${path}`, { body: { metadata: { name: "i" }, spec: { scaleTargetRef, maxReplicas: 3 } } });
  t.equal(hook.received.length, 1);
});

t.test("a webhook receives the group alias of its rule", async (t) => {
  await using server = await startTestServer();
  await using hook = await startTestWebhook((review) => reviewResponse(review, {}));
  const rule = { ...mapRule, apiGroups: ["coordination.k8s.io"], resources: ["leases"] };
  await register(server, "validating", hook, { rules: [rule] });
  const body = { metadata: { name: "l" }, spec: {} };
  await server.send("POST /apis/coordination.svc.io/v1/namespaces/default/leases", { body });
  t.match(hook.received[0]!.review.request, {
    kind: { group: "coordination.k8s.io" },
    requestKind: { group: "coordination.svc.io" },
    object: { apiVersion: "coordination.k8s.io/v1" },
  });
});

t.test("a webhook with reinvocationPolicy IfNeeded is called again after later changes", async (t) => {
  await using server = await startTestServer();
  const labelled = (key: string) => (review: Parameters<typeof reviewResponse>[0]) => {
    const { labels = {} } = review.review.request.object.metadata;
    return patchResponse(review, [{ op: "add", path: "/metadata/labels", value: { ...labels, [key]: "x" } }]);
  };
  await using first = await startTestWebhook(labelled("a"));
  await using second = await startTestWebhook(labelled("b"));
  await register(server, "mutating", first, { name: "a.example.com", reinvocationPolicy: "IfNeeded" });
  await register(server, "mutating", second, { name: "b.example.com" });
  t.match((await server.send(`POST ${MAPS}`, map("m"))).json.metadata.labels, { a: "x", b: "x" });
  t.equal(first.received.length, 2);
  t.equal(second.received.length, 1);
  t.match(first.received[1]!.review.request.object.metadata.labels, { b: "x" });
});

t.test("invalid patches of webhooks are rejected", async (t) => {
  const cases: readonly [readonly object[], number, RegExp][] = [
    [
      [{ op: "remove", path: "/none" }],
      500,
      /^Internal error occurred: error in remove for path: '\/none': Unable to remove nonexistent key: none/,
    ],
    [[{ op: "leap", path: "/data" }], 500, /^Internal error occurred: Unexpected kind: leap/],
    [
      [{ op: "replace", path: "/kind", value: "Pod" }],
      500,
      /^Internal error occurred: failed to convert object: converting \(v1.Pod\) to \(core.ConfigMap\): unknown/,
    ],
    [[{ op: "replace", path: "/kind", value: "Foo" }], 500, /no kind "Foo" is registered for version "v1" in scheme/],
    [
      [{ op: "add", path: "/data", value: 7 }],
      500,
      /^Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type map/,
    ],
    [[{ op: "add", path: "/metadata/labels", value: { "-": "x" } }], 422, /metadata.labels: Invalid value/],
  ];
  for (const [operations, code, message] of cases) {
    await using server = await startTestServer();
    await using hook = await startTestWebhook((review) => patchResponse(review, operations));
    await register(server, "mutating", hook);
    t.match((await server.send(`POST ${MAPS}`, map("m"))).json, { code, message });
  }
});

t.test("dry runs call webhooks without side effects only", async (t) => {
  await using server = await startTestServer();
  await using hook = await startTestWebhook((review) => reviewResponse(review, {}));
  await register(server, "validating", hook, { sideEffects: "NoneOnDryRun" });
  t.equal((await server.send(`POST ${MAPS}?dryRun=All`, map("m"))).status, 201);
  t.equal(hook.received[0]!.review.request.dryRun, true);
});

t.test("webhooks are not called for webhook configurations and admission policies", async (t) => {
  await using server = await startTestServer();
  await using hook = await startTestWebhook((review) => reviewResponse(review, { allowed: false }));
  const all = { apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"] };
  await register(server, "validating", hook, { rules: [all] });
  await register(server, "mutating", hook, { rules: [all] });
  t.equal((await server.send(`POST ${MAPS}`, map("m"))).status, 400);
  t.equal((await server.send(`DELETE ${REGISTRATION}/validatingwebhookconfigurations/a`)).status, 200);
  t.equal((await server.send(`DELETE ${REGISTRATION}/mutatingwebhookconfigurations/a`)).status, 200);
  t.equal((await server.send(`POST ${MAPS}`, map("m"))).status, 201);
});

t.test("webhooks with v1beta1 reviews, for deletes, and with reused connections", async (t) => {
  await using server = await startTestServer();
  await using hook = await startTestWebhook(({ review }) => ({
    response: { allowed: review.request.name !== "kept" },
  }));
  const rules = [{ ...mapRule, operations: ["DELETE"] }];
  await register(server, "validating", hook, { rules, admissionReviewVersions: ["v9", "v1beta1"] });
  for (const name of ["kept", "gone"]) await server.send(`POST ${MAPS}`, map(name));
  t.match((await server.send(`DELETE ${MAPS}/kept`)).json, { code: 400, message: /denied the request without/ });
  t.equal((await server.send(`DELETE ${MAPS}/gone`)).status, 200);
  t.match(hook.received[1]!.review, {
    apiVersion: "admission.k8s.io/v1beta1",
    request: {
      operation: "DELETE",
      object: null,
      oldObject: { metadata: { name: "gone" } },
      options: { kind: "DeleteOptions" },
    },
  });
  t.equal(hook.connections(), 1);
});
