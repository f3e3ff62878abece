import t from "tap";
import { ADMISSION, CONFIG_MAPS, startPolicyServer } from "../../testing/admission/policy-server.ts";

const POLICIES = `${ADMISSION}/v1alpha1/mutatingadmissionpolicies`;

const apply = (expression: string) => ({ patchType: "ApplyConfiguration", applyConfiguration: { expression } });
const patch = (expression: string) => ({ patchType: "JSONPatch", jsonPatch: { expression } });
const label = (name: string, value: string) =>
  apply(`Object{metadata: Object.metadata{labels: {'${name}': ${value}}}}`);

t.test("mutations change the object, each the one that the previous one left", async (t) => {
  await using f = await startPolicyServer();
  const variables = [{ name: "size", expression: "string(size(object.data))" }];
  await f.mutate("p", {
    variables,
    mutations: [
      label("size", "variables.size"),
      patch("[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a.b'), value: object.metadata.labels.size}]"),
      patch("[JSONPatch{op: 'test', path: '/data/x', value: 'other'}, JSONPatch{op: 'remove', path: '/data/x'}]"),
    ],
  });
  await f.validate("v", { validations: [{ expression: "object.metadata.labels.size == '1'" }] });
  const { json } = await f.createConfigMap("m", { x: "1" });
  t.match(json, { metadata: { labels: { size: "1" } }, data: { x: "1", "a.b": "1" } });
  t.notMatch(JSON.stringify(json.metadata.managedFields), "labels", "what policies set has no manager");
});

t.test("what a mutation cannot do rejects the request, unless the failure policy is Ignore", async (t) => {
  await using f = await startPolicyServer();
  const table = [
    [label("a", "object.data.none"), /resulted in error: no such key: none$/],
    [
      apply("Object{spec: Object.spec{}}"),
      /error applying patch: .* typed object: \.spec: field not declared in schema$/,
    ],
    [apply("Object{data: {'a': 1}}"), /\.data\.a: expected string, got &value\.valueUnstructured\{Value:1\}$/],
    [
      apply("Object{metadata: Object.other{}}"),
      /type mismatch: unexpected type name "Object\.other", expected "Object\.m/,
    ],
    [apply("Object{data: null}"), /typed object: \.data: expected map, got &\{NULL_VALUE\}$/],
    [
      patch("[JSONPatch{op: 'move', from: '/data/a~1b', path: '/data/c'}]"),
      /error in move for path: 'a\/b': Unable to/,
    ],
    [
      patch("[JSONPatch{op: 'add', path: '/data/b', value: quantity('1')}]"),
      /could not marshal to JSON: type conversion error from 'Quantity' to '\*structpb\.Value'$/,
    ],
    [patch("[JSONPatch{op: 'add', path: '/data/b', value: type(1)}]"), /type conversion not supported for 'type'$/],
    [
      patch("[JSONPatch{op: 'add', path: '/data', value: {1: 'b'}}]"),
      /unsupported type conversion from 'int' to string$/,
    ],
    [patch("[JSONPatch{op: 'remove', path: '/data/none'}]"), /JSON Patch: error in remove for path: '\/data\/none'/],
    [patch("[JSONPatch{op: 'other', path: '/data'}]"), /JSON Patch: Unexpected kind: other$/],
  ] as const;
  for (const [mutation, message] of table) {
    for (const failurePolicy of ["Fail", "Ignore"]) {
      await f.mutate("p", { mutations: [mutation], failurePolicy });
      const { status, json } = await f.createConfigMap("m", { a: "1" });
      t.equal(status, failurePolicy === "Fail" ? 403 : 201, `${message} ${failurePolicy}`);
      if (failurePolicy === "Fail") {
        t.match(json, { code: 403, reason: "Invalid", message: /^policy 'p' with binding 'p' denied request: / });
        t.match(json.message, message);
      } else await f.send(`DELETE ${CONFIG_MAPS}/m`);
      await f.send(`DELETE ${POLICIES}/p`);
      await f.send(`DELETE ${POLICIES.replace("policies", "policybindings")}/p`);
    }
  }
  await f.mutate("p", {
    mutations: [patch("[JSONPatch{op: 'add', path: '/none', value: 1}]")],
    failurePolicy: "Ignore",
  });
  const { json } = await f.createConfigMap("m");
  t.match(json, { code: 500, message: 'Internal error occurred: strict decoding error: unknown field "none"' });
});

t.test("a mutation cannot move an object to another namespace, and one without gets that of the request", async (t) => {
  await using f = await startPolicyServer();
  await f.mutate("p", { mutations: [apply("Object{metadata: Object.metadata{namespace: 'other'}}")] });
  const { json } = await f.createConfigMap("m");
  const message = "the namespace of the provided object does not match the namespace sent on the request";
  t.match(json, { code: 400, message });
  await f.send(`DELETE ${POLICIES}/p`);
  const value = "Object.metadata{name: 'm', labels: {'a': 'b'}}";
  await f.mutate("q", { mutations: [patch(`[JSONPatch{op: 'add', path: '/metadata', value: ${value}}]`)] });
  t.match((await f.createConfigMap("m")).json, { metadata: { namespace: "default", labels: { a: "b" } } });
});

t.test("an apply configuration has the types of the version's own OpenAPI document", async (t) => {
  await using f = await startPolicyServer();
  const resourceRules = [
    { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
    { apiGroups: [""], apiVersions: ["v1"], operations: ["UPDATE"], resources: ["replicationcontrollers/scale"] },
  ];
  const replicas = "has(request.subResource) ? Object{spec: Object.spec{replicas: 2}} : ";
  const seconds = "Object{spec: Object.spec{terminationGracePeriodSeconds: 5.5}}";
  await f.mutate("p", { matchConstraints: { resourceRules }, mutations: [apply(replicas + seconds)] });
  const spec = { containers: [{ name: "c", image: "i" }] };
  const pod = await f.server.send("POST /api/v1/namespaces/default/pods", { body: { metadata: { name: "p" }, spec } });
  t.match(
    pod.json.message,
    /unable to convert unstructured object to \/v1, Kind=Pod: cannot convert float64 to int64$/,
  );
  const path = "/api/v1/namespaces/default/replicationcontrollers";
  const template = { metadata: { labels: { a: "b" } }, spec };
  await f.server.send(`POST ${path}`, { body: { metadata: { name: "r" }, spec: { template } } });
  const body = { metadata: { name: "r", namespace: "default" }, spec: { replicas: 1 } };
  const scale = await f.server.send(`PUT ${path}/r/scale`, { body });
  t.match(scale.json.message, /typed object: no corresponding type for autoscaling\/v1, Kind=Scale$/);
});

t.test("an apply configuration cannot set parts of atomic values", async (t) => {
  await using f = await startPolicyServer();
  const resourceRules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }];
  const spec = "Object.spec{nodeSelector: {'a': 'b'}, containers: [Object.spec.containers{name: 'c', args: ['x']}]}";
  await f.mutate("p", { matchConstraints: { resourceRules }, mutations: [apply(`Object{spec: ${spec}}`)] });
  const pod = { metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "i" }] } };
  const { json } = await f.server.send("POST /api/v1/namespaces/default/pods", { body: pod });
  t.match(
    json.message,
    /may not mutate atomic arrays, maps or structs: \.spec\.containers\[0\]\.args, \.spec\.nodeSelector$/,
  );
});

t.test("policies with reinvocationPolicy IfNeeded run again after later changes", async (t) => {
  await using f = await startPolicyServer();
  const append = (text: string) => apply(`Object{data: {'log': object.data.log + '${text}'}}`);
  await f.mutate("a", { mutations: [append("a")], reinvocationPolicy: "IfNeeded" });
  await f.mutate("b", { mutations: [append("b")] });
  t.equal((await f.createConfigMap("m", { log: "" })).json.data.log, "aba");
});

t.test("parameters and match conditions select what a policy does", async (t) => {
  await using f = await startPolicyServer();
  await f.send("POST /api/v1/namespaces/default/secrets", { metadata: { name: "team", labels: { team: "x" } } });
  const paramRef = { name: "team", parameterNotFoundAction: "Allow" };
  const matchConditions = [{ name: "m", expression: "request.name.startsWith('team')" }];
  const paramKind = { apiVersion: "v1", kind: "Secret" };
  const mutations = [label("team", "params.metadata.labels.team")];
  await f.mutate("p", { paramKind, matchConditions, mutations }, { paramRef });
  t.match((await f.createConfigMap("team-a")).json.metadata.labels, { team: "x" });
  t.equal((await f.createConfigMap("other")).json.metadata.labels, undefined);
  await f.send("DELETE /api/v1/namespaces/default/secrets/team");
  t.equal((await f.createConfigMap("team-b")).json.metadata.labels, undefined);
});

t.test("without the feature gate the policies have no effect, and writes get a warning", async (t) => {
  await using f = await startPolicyServer({ mutating: false });
  const body = { metadata: { name: "p" }, spec: { policyName: "p" } };
  const { headers } = await f.send(`POST ${POLICIES.replace("policies", "policybindings")}`, body);
  t.match(String(headers.warning), /is not enforced: the feature gate MutatingAdmissionPolicy is off/);
});
