/** Rules for the content of objects, by the causes of a 422, by warnings and by what is stored. */
import t from "tap";
import type { TestServer } from "../../testing/apiserver/server-fixture.ts";
import { NAMESPACE, startTableServer } from "./table.ts";

const BATCH = "/apis/batch/v1/namespaces/default";
const APPS = "/apis/apps/v1/namespaces/default";
const REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

const QUALIFIED =
  "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  " +
  "or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

interface Cause {
  readonly field: string;
  readonly message: string;
}

/** The object that a dry run would store, or the causes of its 422: `FIELD: MESSAGE`. */
// biome-ignore lint/suspicious/noExplicitAny: tests read objects of every kind
async function dryRun(server: TestServer, path: string, body: object): Promise<any> {
  const { json, headers } = await server.send(`POST ${path}?dryRun=All`, { body });
  if (json.kind !== "Status") return { ...json, warning: headers.warning };
  return (json.details?.causes ?? []).map(({ field, message }: Cause) => `${field}: ${message}`);
}

const container = { name: "main", image: "a" };
const template = (labels?: object) => ({
  ...(labels === undefined ? {} : { metadata: { labels } }),
  spec: { restartPolicy: "Never", containers: [container] },
});

t.test("a job shares labels with its template only if it has none itself and the template has some", async (t) => {
  await using server = await startTableServer();
  const generated = [
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
  ];
  const labelsOf = async (labels?: object, own?: object): Promise<readonly string[]> => {
    const job = await dryRun(server, `${BATCH}/jobs`, {
      metadata: { name: "a", ...(own === undefined ? {} : { labels: own }) },
      spec: { template: template(labels) },
    });
    return Object.keys(job.metadata.labels).sort();
  };
  t.same(await labelsOf(), generated);
  t.same(await labelsOf({ a: "b" }), ["a", ...generated]);
  t.same(await labelsOf({ a: "b" }, { a: "b" }), ["a"]);
  const fieldsOf = async (labels?: object): Promise<readonly string[]> => {
    const causes = await dryRun(server, `${BATCH}/jobs`, {
      metadata: { name: "A b" },
      spec: { template: template(labels) },
    });
    return causes.map((text: string) => text.slice(0, text.indexOf(":")));
  };
  const invalid = ["metadata.name", "spec.template.labels", "spec.template.labels"];
  t.same(await fieldsOf(), invalid);
  t.same(await fieldsOf({ a: "b" }), ["metadata.name", "metadata.labels", "metadata.labels", ...invalid.slice(1)]);
});

t.test("names in messages are quoted as Go quotes them", async (t) => {
  await using server = await startTableServer();
  const body = { metadata: { name: 'a\t"b\\c\u0000' } };
  const { json } = await server.send(`POST ${NAMESPACE}/configmaps`, { body });
  t.match(json.message, /^ConfigMap "a\\t\\"b\\\\c\\x00" is invalid: metadata\.name: Invalid value: "a\\t/);
});

t.test("a new object may have a resourceVersion in a dry run, and one that is no number", async (t) => {
  await using server = await startTableServer();
  const statusOf = async (resourceVersion: string, query = ""): Promise<number> => {
    const body = { metadata: { generateName: "a-", resourceVersion } };
    return (await server.send(`POST ${NAMESPACE}/configmaps${query}`, { body })).status;
  };
  t.equal(await statusOf("5"), 500);
  t.equal(await statusOf("5", "?dryRun=All"), 201);
  for (const version of ["", "0", "-5", "five"]) t.equal(await statusOf(version), 201, version);
});

t.test("kinds whose names are not those of pods do not warn about names with dots", async (t) => {
  await using server = await startTableServer();
  const warns = async (plural: string): Promise<boolean> => {
    const labels = { a: "b" };
    const spec = { selector: { matchLabels: labels }, serviceName: "a", template: template(labels) };
    const pods = { ...spec, template: { ...spec.template, spec: { containers: [container] } } };
    const { warning = "" } = await dryRun(server, `${APPS}/${plural}`, { metadata: { name: "a.b" }, spec: pods });
    return String(warning).includes("a DNS label is recommended");
  };
  t.equal(await warns("deployments"), true);
  t.equal(await warns("replicasets"), true);
  t.equal(await warns("daemonsets"), false);
});

t.test("a daemon set without rolling updates stores zeros for the numbers that it does not set for them", async (t) => {
  await using server = await startTableServer();
  const strategyOf = async (updateStrategy: object) => {
    const labels = { a: "b" };
    const pods = { metadata: { labels }, spec: { containers: [container] } };
    const spec = { selector: { matchLabels: labels }, template: pods, updateStrategy };
    return (await dryRun(server, `${APPS}/daemonsets`, { metadata: { name: "a" }, spec })).spec.updateStrategy;
  };
  t.same(await strategyOf({ type: "OnDelete" }), { type: "OnDelete" });
  const rollingUpdate = { maxUnavailable: 0, maxSurge: 0 };
  t.same(await strategyOf({ type: "OnDelete", rollingUpdate: {} }), { type: "OnDelete", rollingUpdate });
});

t.test("an access review may have an unknown operator, and is checked after an error in its attributes", async (t) => {
  await using server = await startTableServer();
  const review = async (spec: object): Promise<unknown> =>
    await dryRun(server, REVIEWS, { spec: { user: "u", ...spec } });
  const selector = (requirement: object, rest: object = {}): object => ({
    resourceAttributes: { verb: "list", resource: "pods", labelSelector: { requirements: [requirement], ...rest } },
  });
  t.match(await review(selector({ key: "a", operator: "Near", values: ["b"] })), { kind: "SubjectAccessReview" });
  const at = "spec.resourceAttributes.labelSelector";
  t.same(await review({ user: "", ...selector({ key: "", operator: "In" }, { rawSelector: "a" }) }), [
    'spec.user: Invalid value: "": at least one of user or group must be specified',
    `${at}.rawSelector: Invalid value: "a": may not specified at the same time as requirements`,
    `${at}.requirements[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
    `${at}.requirements[0].key: Invalid value: "": name part must be non-empty`,
    `${at}.requirements[0].key: Invalid value: "": name part must consist of ${QUALIFIED}`,
  ]);
  const system = { uid: "x", creationTimestamp: "2021-01-01T00:00:00Z", selfLink: "/x", deletionGracePeriodSeconds: 5 };
  const sent = { metadata: system, spec: { user: "u", nonResourceAttributes: { path: "/", verb: "get" } } };
  t.match((await dryRun(server, REVIEWS, sent)).metadata, { uid: undefined, selfLink: undefined });
});

t.test("a data source of another kind stays beside a dataSourceRef, which it must match", async (t) => {
  await using server = await startTableServer();
  const claim = (sources: object): object => ({
    metadata: { name: "a" },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, ...sources },
  });
  const other = { apiGroup: "example.com", kind: "Image", name: "a" };
  const path = `${NAMESPACE}/persistentvolumeclaims`;
  t.same((await dryRun(server, path, claim({ dataSource: other }))).spec.dataSource, undefined);
  const both = await dryRun(server, path, claim({ dataSource: other, dataSourceRef: other }));
  t.match(both.spec, { dataSource: other, dataSourceRef: other });
  const [cause] = await dryRun(server, path, claim({ dataSource: other, dataSourceRef: { ...other, name: "b" } }));
  t.match(cause, /^spec: Invalid value: .*: must match dataSourceRef$/);
});

t.test("a service with an external name stores no internal traffic policy, but checks it", async (t) => {
  await using server = await startTableServer();
  const named = async (internalTrafficPolicy: string) =>
    await dryRun(server, `${NAMESPACE}/services`, {
      metadata: { name: "a" },
      spec: { type: "ExternalName", externalName: "a.example.com", internalTrafficPolicy },
    });
  t.equal((await named("Local")).spec.internalTrafficPolicy, undefined);
  t.match(await named("Near"), [/^spec\.internalTrafficPolicy: Unsupported value/]);
});

t.test("quantities keep the texts that Kubernetes takes for canonical, and wrap beyond 64 bits", async (t) => {
  await using server = await startTableServer();
  const storageOf = async (storage: unknown) => {
    const hostPath = { path: "/a" };
    const spec = { capacity: { storage }, accessModes: ["ReadWriteOnce"], hostPath };
    const found = await dryRun(server, "/api/v1/persistentvolumes", { metadata: { name: "a" }, spec });
    return found.spec?.capacity.storage ?? found;
  };
  for (const text of ["+1Gi", "1e0", "1.", "007"]) t.equal(await storageOf(text), text);
  t.equal(await storageOf("9223372036854775807"), "9223372036854775807");
  t.equal(await storageOf("8Ei"), "9223372036854775807");
  t.same(await storageOf("9223372036854775808"), [
    "spec.capacity[storage]: Invalid value: -9223372036854775808: must be a valid resource quantity",
  ]);
  t.same(await storageOf("Ki"), ['spec.capacity[storage]: Invalid value: "0": must be greater than zero']);
});

t.test("a scheduling gate puts the time into the condition of a new pod", async (t) => {
  await using server = await startTableServer();
  const spec = { containers: [container], schedulingGates: [{ name: "a" }] };
  const { status, metadata } = await dryRun(server, `${NAMESPACE}/pods`, { metadata: { name: "a" }, spec });
  t.match(status.conditions, [{ type: "PodScheduled", lastTransitionTime: metadata.creationTimestamp }]);
});

t.test("other embedded objects are one managed field", async (t) => {
  await using server = await startTableServer();
  const body = { metadata: { name: "a" }, revision: 1, data: { spec: { x: 1 } } };
  const { metadata } = await dryRun(server, `${APPS}/controllerrevisions`, body);
  t.same(metadata.managedFields[0].fieldsV1, { "f:data": {}, "f:revision": {} });
});

t.test("labels for Pod Security are checked where they are valid labels", async (t) => {
  await using server = await startTableServer();
  const causesOf = async (version: string) => {
    const labels = { "pod-security.kubernetes.io/enforce-version": version };
    const causes = await dryRun(server, "/api/v1/namespaces", { metadata: { name: "a", labels } });
    return causes.map((text: string) => text.slice(0, text.indexOf(":")));
  };
  t.same(await causesOf("old"), ["metadata.labels[pod-security.kubernetes.io/enforce-version]"]);
  t.same(await causesOf("*"), ["metadata.labels"]);
});

t.test("a patch that removes the version makes every field unknown", async (t) => {
  await using server = await startTableServer();
  const patch = async (fieldValidation: string) => {
    const headers = { "content-type": "application/merge-patch+json" };
    const line = `PATCH ${NAMESPACE}/configmaps/a?dryRun=All&fieldValidation=${fieldValidation}`;
    const { status, json, headers: found } = await server.send(line, { body: { apiVersion: null }, headers });
    return [status, json.message, [found.warning ?? []].flat().length];
  };
  const unnamed = "the name of the object (default based on URL) was undeterminable: name must be provided";
  t.same(await patch("Warn"), [400, unnamed, 2]);
  t.same(await patch("Ignore"), [400, unnamed, 0]);
  const [status, message] = await patch("Strict");
  t.equal(status, 422);
  t.match(message, /: strict decoding error: unknown field "data", unknown field "metadata"$/);
});
