/** The managers of fields that the client did not send, and of the server's own objects. */
import t from "tap";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";

interface Answer {
  readonly metadata: { readonly managedFields?: readonly { readonly manager: string; readonly fieldsV1: unknown }[] };
}

const fieldsOf = (json: unknown): unknown => (json as Answer).metadata.managedFields?.[0]?.fieldsV1;

t.test("a required list that a created object lacks has no manager, an empty one has", async (t) => {
  await using server = await startTestServer();
  const metadata = { name: "a" };
  for (const [path, body, field, list] of [
    ["apis/storage.k8s.io/v1/csinodes", { spec: {} }, "spec", "drivers"],
    ["api/v1/namespaces/default/limitranges", { spec: {} }, "spec", "limits"],
    ["apis/discovery.k8s.io/v1/namespaces/default/endpointslices", { addressType: "IPv4" }, "", "endpoints"],
  ] as const) {
    const send = async (value: object) =>
      JSON.stringify(
        fieldsOf((await server.send(`POST /${path}?dryRun=All`, { body: { metadata, ...value } })).json),
      ) ?? "";
    t.notMatch(await send(body), `f:${list}`, path);
    const empty = { [list]: [] };
    t.match(await send(field === "" ? { ...body, ...empty } : { spec: empty }), `f:${list}`, path);
  }
});

t.test("objects that the server creates for itself are managed by kube-apiserver", async (t) => {
  await using server = await startTestServer();
  for (const [path, apiVersion] of [
    ["api/v1/namespaces/default", "v1"],
    ["apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical", "scheduling.k8s.io/v1"],
    ["apis/rbac.authorization.k8s.io/v1/clusterroles/view", "rbac.authorization.k8s.io/v1"],
    [
      "apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles/system:controller:token-cleaner",
      "rbac.authorization.k8s.io/v1",
    ],
    ["api/v1/namespaces/default/services/kubernetes", "v1"],
    ["apis/networking.k8s.io/v1/servicecidrs/kubernetes", "networking.k8s.io/v1"],
    ["apis/networking.k8s.io/v1/ipaddresses/10.0.0.1", "networking.k8s.io/v1"],
  ] as const) {
    const { json } = await server.send(`GET /${path}`);
    t.match(
      (json as Answer).metadata.managedFields?.[0],
      { manager: "kube-apiserver", operation: "Update", apiVersion },
      path,
    );
  }
});

t.test("values that Kubernetes converts or parses get its errors", async (t) => {
  await using server = await startTestServer();
  const pod = { spec: { containers: [{ name: "c", image: "i" }] }, metadata: { labels: { a: "b" } } };
  const daemons = (generation: string) => ({
    metadata: { name: "a", annotations: { "deprecated.daemonset.template.generation": generation } },
    spec: { selector: { matchLabels: { a: "b" } }, template: pod },
  });
  const cron = (timeZone: string) => ({
    metadata: { name: "a" },
    spec: {
      schedule: "* * * * *",
      timeZone,
      jobTemplate: { spec: { template: { spec: { ...pod.spec, restartPolicy: "Never" } } } },
    },
  });
  const revision = (data: unknown) => ({ metadata: { name: "a" }, revision: 1, data });
  const notObject = /data: Required value: data must be a valid JSON object/;
  for (const [path, body, code, text] of [
    ["apps/v1/namespaces/default/daemonsets", daemons("x"), 400, /strconv\.ParseInt: parsing \\"x\\": invalid syntax/],
    ["apps/v1/namespaces/default/daemonsets", daemons("9223372036854775808"), 400, /value out of range/],
    ["apps/v1/namespaces/default/daemonsets", daemons("9007199254740993"), 201, /"9007199254740993"/],
    ["batch/v1/namespaces/default/cronjobs", cron("America"), 422, /\\"America\\": is a directory/],
    ["batch/v1/namespaces/default/cronjobs", cron("America/New_York"), 201, /New_York/],
    ["apps/v1/namespaces/default/controllerrevisions", revision("text"), 422, notObject],
    ["apps/v1/namespaces/default/controllerrevisions", revision([1]), 422, notObject],
    ["apps/v1/namespaces/default/controllerrevisions", revision({}), 201, /ControllerRevision/],
  ] as const) {
    const response = await server.send(`POST /apis/${path}?dryRun=All`, { body });
    t.equal(response.status, code, path);
    t.match(response.text, text, path);
  }
});
