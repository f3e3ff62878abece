import t from "tap";
import { ADMISSION, CONFIG_MAPS, onConfigMaps, startPolicyServer } from "../../testing/admission/policy-server.ts";
import { cutAnnotation } from "./validating-admission-policy.ts";

const POLICIES = `${ADMISSION}/v1/validatingadmissionpolicies`;
const BINDINGS = `${ADMISSION}/v1/validatingadmissionpolicybindings`;
const notBad = { validations: [{ expression: "object == null || object.metadata.name != 'bad'" }] };

t.test("a change of a policy, a binding or a parameter has an effect on the next request", async (t) => {
  await using f = await startPolicyServer();
  const statusOf = async (name: string, data = {}) => (await f.createConfigMap(name, data)).status;
  t.equal(await statusOf("bad"), 201);
  await f.send(`DELETE ${CONFIG_MAPS}/bad`);
  await f.validate("p", notBad);
  t.equal(await statusOf("bad"), 422);
  await f.send(`PATCH ${POLICIES}/p`, { spec: { validations: [{ expression: "object.metadata.name != 'worse'" }] } });
  t.equal(await statusOf("worse"), 422);
  const matchResources = { objectSelector: { matchLabels: { none: "has" } } };
  await f.send(`PATCH ${BINDINGS}/p`, { spec: { matchResources } });
  t.equal(await statusOf("worse"), 201);
  await f.send(`DELETE ${POLICIES}/p`);
  await f.send("POST /api/v1/namespaces/default/secrets", { metadata: { name: "max" }, stringData: { n: "1" } });
  const params = {
    paramKind: { apiVersion: "v1", kind: "Secret" },
    validations: [{ expression: "size(object.data) <= int(string(size(params.data)))" }],
  };
  await f.validate("sized", params, { paramRef: { name: "max", parameterNotFoundAction: "Deny" } });
  t.equal(await statusOf("two", { a: "1", b: "2" }), 422);
  await f.send("PATCH /api/v1/namespaces/default/secrets/max", { stringData: { m: "1" } });
  t.equal(await statusOf("two", { a: "1", b: "2" }), 201);
  await f.send("DELETE /api/v1/namespaces/default/secrets/max");
  const missing = await f.createConfigMap("three");
  t.match(missing.json.message, /no params found for policy binding with `Deny` parameterNotFoundAction$/);
});

t.test("the actions of a binding reject, warn and annotate", async (t) => {
  await using f = await startPolicyServer();
  const validations = [{ expression: "false", message: "first", reason: "Forbidden" }, { expression: "false" }];
  await f.validate("p", { validations }, { validationActions: ["Warn", "Audit"] });
  const warned = await f.createConfigMap("a");
  t.equal(warned.status, 201);
  t.match(
    String(warned.headers.warning),
    /Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': first/,
  );
  await f.send(`PATCH ${BINDINGS}/p`, { spec: { validationActions: ["Deny", "Audit"] } });
  const denied = await f.createConfigMap("b");
  const text = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: first";
  t.match(denied.json, {
    code: 403,
    reason: "Forbidden",
    message: `configmaps "b" is forbidden: ${text}`,
    details: { name: "b", kind: "configmaps", causes: [{ message: text }] },
  });
  const metrics = (await f.server.send("GET /metrics")).text;
  for (const action of ["warn", "audit", "deny"]) {
    const labels = `enforcement_action="${action}",error_type="invalid_error",policy="p",policy_binding="p"`;
    t.match(metrics, `apiserver_validating_admission_policy_check_total{${labels}}`, action);
  }
});

t.test("expressions that fail reject requests, unless the failure policy is Ignore", async (t) => {
  await using f = await startPolicyServer();
  const deep = "[0,1,2,3,4,5,6,7,8,9]";
  const loops = (depth: number): string => (depth === 0 ? "true" : `${deep}.all(v${depth}, ${loops(depth - 1)})`);
  const expensive = { expression: loops(5), message: "x" };
  const table = [
    [{ validations: [{ expression: "object.data.none == '1'" }] }, /resulted in error: no such key: none$/],
    [{ validations: [{ expression: loops(6) }] }, /operation cancelled: actual cost limit exceeded$/],
    [
      { validations: Array.from({ length: 40 }, () => expensive) },
      /validation failed due to running out of cost budget, no further validation rules will be run$/,
    ],
    [
      {
        variables: [
          { name: "a", expression: "object.data.none" },
          { name: "b", expression: "variables.a + '!'" },
        ],
        validations: [{ expression: "variables.b == ''" }],
      },
      /composited variable "b" fails to evaluate: composited variable "a" fails to evaluate: no such key: none$/,
    ],
    [{ auditAnnotations: [{ key: "k", valueExpression: "string(object.data.none)" }] }, /no such key: none$/],
    [
      { auditAnnotations: [{ key: "k", valueExpression: "string(authorizer.path('/x').check('get').allowed())" }] },
      /resulted in error: no such attribute\(s\): authorizer$/,
    ],
    [{ ...notBad, matchConditions: [{ name: "m", expression: "object.data.none == ''" }] }, /no such key: none$/],
    [{ ...notBad, paramKind: { apiVersion: "x.io/v1", kind: "None" } }, /paramKind: 'x.io\/v1, Kind=None'$/],
  ] as const;
  for (const [index, [spec, message]] of table.entries()) {
    for (const failurePolicy of ["Fail", "Ignore"]) {
      const ref = "paramKind" in spec ? { paramRef: { name: "x", parameterNotFoundAction: "Deny" } } : {};
      await f.validate("p", { ...spec, failurePolicy }, ref);
      const { status, json } = await f.createConfigMap(`m${index}`, { a: "1" });
      t.equal(status, failurePolicy === "Fail" ? 422 : 201, `${message} ${failurePolicy}`);
      if (failurePolicy === "Fail") t.match(json.message, message);
      await f.send(`DELETE ${POLICIES}/p`);
      await f.send(`DELETE ${BINDINGS}/p`);
    }
  }
});

t.test("a value of an audit annotation has at most 10 KiB, counted in bytes", async (t) => {
  for (const length of [0, 5_000, 10_240]) t.equal(cutAnnotation("a".repeat(length)).length, length);
  t.equal(cutAnnotation("a".repeat(10_241)), "a".repeat(10_240));
  t.equal(cutAnnotation("\u00e9".repeat(6_000)), "\u00e9".repeat(5_120));
  for (const [text, left] of [
    ["\u20ac", 2],
    ["\u{1f600}", 3],
    ["\u{1f600}", 1],
  ] as const) {
    const start = "a".repeat(10_240 - left);
    t.equal(cutAnnotation(`${start}${text}b`), `${start}${"\ufffd".repeat(left)}`, "each byte that is left");
  }
});

t.test("a policy applies to other versions of a resource, unless its match policy is Exact", async (t) => {
  await using f = await startPolicyServer();
  const rule = { apiGroups: ["autoscaling"], apiVersions: ["v1"], operations: ["CREATE"] };
  const matchConstraints = { resourceRules: [{ ...rule, resources: ["horizontalpodautoscalers"] }] };
  const validations = [
    { expression: "false", messageExpression: "object.apiVersion + ' ' + request.requestKind.version" },
  ];
  const spec = { maxReplicas: 2, scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "d" } };
  const create = async (name: string) =>
    await f.server.send("POST /apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", {
      body: { metadata: { name }, spec },
    });
  await f.validate("p", { matchConstraints, validations });
  t.match((await create("a")).json.message, /denied request: autoscaling\/v1 v2$/);
  await f.send(`PATCH ${POLICIES}/p`, { spec: { matchConstraints: { ...matchConstraints, matchPolicy: "Exact" } } });
  t.equal((await create("a")).status, 201);
});

t.test("parameters are custom resources, of a namespace or of the cluster, by name or by labels", async (t) => {
  await using f = await startPolicyServer();
  const schema = { type: "object", properties: { max: { type: "integer" } } };
  for (const [kind, scope] of [
    ["Limit", "Cluster"],
    ["Bound", "Namespaced"],
  ] as const) {
    const names = { plural: `${kind.toLowerCase()}s`, kind };
    const version = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } };
    await f.send("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata: { name: `${names.plural}.example.com` },
      spec: { group: "example.com", scope, names, versions: [version] },
    });
  }
  const isServed = async (plural: string) => (await f.server.send(`GET /apis/example.com/v1/${plural}`)).status === 200;
  for (const plural of ["limits", "bounds"]) {
    while (!(await isServed(plural))) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const body = (kind: string, name: string, max: number) => {
    return { apiVersion: "example.com/v1", kind, metadata: { name, labels: { use: "yes" } }, max };
  };
  await f.send("POST /apis/example.com/v1/limits", body("Limit", "l", 1));
  await f.send("POST /apis/example.com/v1/namespaces/default/bounds", body("Bound", "b1", 3));
  await f.send("POST /apis/example.com/v1/namespaces/default/bounds", body("Bound", "b2", 2));
  const validations = [
    { expression: "size(object.data) <= params.max", messageExpression: "params.kind + ' ' + string(params.max)" },
  ];
  const paramKind = (kind: string) => ({ apiVersion: "example.com/v1", kind });
  const ref = { parameterNotFoundAction: "Deny" };
  await f.validate("cluster", { paramKind: paramKind("Limit"), validations }, { paramRef: { ...ref, name: "l" } });
  const messageOf = async (data: Readonly<Record<string, string>>) => (await f.createConfigMap("m", data)).json.message;
  t.match(await messageOf({ a: "1", b: "2" }), /Limit 1$/);
  await f.send(`DELETE ${POLICIES}/cluster`);
  const selector = { matchLabels: { use: "yes" } };
  await f.validate("space", { paramKind: paramKind("Bound"), validations }, { paramRef: { ...ref, selector } });
  t.match(await messageOf({ a: "1", b: "2", c: "3" }), /Bound 2$/);
  await f.send("DELETE /apis/example.com/v1/namespaces/default/bounds");
  await f.send("DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/bounds.example.com");
  // The definition is deleted after its objects.
  while (await isServed("bounds")) await new Promise((resolve) => setTimeout(resolve, 1));
  t.match(await messageOf({}), /failed to find resource referenced by paramKind: 'example.com\/v1, Kind=Bound'$/);
  await f.send(`PATCH ${POLICIES}/space`, { spec: { failurePolicy: "Ignore" } });
  t.equal((await f.createConfigMap("m", { a: "1", b: "2", c: "3" })).status, 201);
});

t.test("expressions make authorization checks for the user of the request and for accounts", async (t) => {
  await using f = await startPolicyServer({ authorizationModes: ["RBAC"] });
  const may = "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()";
  const account = "authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('get').allowed()";
  await f.validate("p", { validations: [{ expression: may }, { expression: `!${account}` }] });
  t.equal((await f.createConfigMap("a")).status, 201);
  await f.send(`PATCH ${POLICIES}/p`, { spec: { validations: [{ expression: account, message: "account" }] } });
  t.match((await f.createConfigMap("b")).json.message, /denied request: account$/);
});

t.test("policies apply neither to policies and bindings nor to reviews", async (t) => {
  await using f = await startPolicyServer();
  const all = { resourceRules: [{ apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"] }] };
  await f.validate("p", { matchConstraints: all, validations: [{ expression: "false" }] });
  t.equal((await f.createConfigMap("a")).status, 422);
  const review = { spec: { nonResourceAttributes: { path: "/", verb: "get" } } };
  await f.send("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review);
  await f.send(`DELETE ${BINDINGS}/p`);
  await f.send(`DELETE ${POLICIES}/p`);
  t.equal((await f.createConfigMap("a")).status, 201);
});

t.test("of many policies only those for the resource apply", async (t) => {
  await using f = await startPolicyServer();
  const { resourceRules } = onConfigMaps;
  const onSecrets = { resourceRules: [{ ...resourceRules[0], resources: ["secrets"] }] };
  for (let index = 0; index < 100; index++) {
    const matchConstraints = index === 99 ? onConfigMaps : onSecrets;
    await f.validate(`p${index}`, { matchConstraints, validations: [{ expression: "false" }] });
  }
  t.match((await f.createConfigMap("a")).json.message, /'p99' with binding 'p99' denied request/);
});

t.test("the plugin can be disabled", async (t) => {
  await using f = await startPolicyServer({ disabledPlugins: ["ValidatingAdmissionPolicy"] });
  await f.validate("p", { validations: [{ expression: "false" }] });
  t.equal((await f.createConfigMap("a")).status, 201);
});
