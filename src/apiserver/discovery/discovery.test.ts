import t from "tap";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

t.test("/api and /apis list groups and versions", async (t) => {
  await using server = await startTestServer();
  t.match((await server.send("GET /api")).json, {
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ serverAddress: "192.0.2.1:6443" }],
  });
  const { groups } = (await server.send("GET /apis")).json;
  const names = groups.map((group: { name: string }) => group.name);
  for (const name of ["apps", "coordination.k8s.io"]) t.ok(names.includes(name), name);
  t.ok(names.indexOf("apps") < names.indexOf("coordination.k8s.io"), "in Kubernetes' order");
  t.match((await server.send("GET /apis/coordination.k8s.io")).json, {
    kind: "APIGroup",
    preferredVersion: { groupVersion: "coordination.k8s.io/v1", version: "v1" },
  });
});

t.test("a group version lists its resources as Kubernetes does", async (t) => {
  await using server = await startTestServer();
  const { resources } = (await server.send("GET /api/v1")).json;
  const byName = new Map(resources.map((resource: { name: string }) => [resource.name, resource]));
  t.match(byName.get("pods"), {
    singularName: "pod",
    namespaced: true,
    kind: "Pod",
    shortNames: ["po"],
    categories: ["all"],
    storageVersionHash: "xPOwRZ+Yhw8=",
  });
  t.match(byName.get("pods/binding"), { kind: "Binding", verbs: ["create"] });
  t.match(byName.get("bindings"), { kind: "Binding", verbs: ["create"] });
  const token = { kind: "TokenRequest", group: "authentication.k8s.io", version: "v1", verbs: ["create"] };
  t.match(byName.get("serviceaccounts/token"), token);
  t.match(byName.get("pods/exec"), { kind: "PodExecOptions", verbs: ["create", "get"] });
  const lease = (await server.send("GET /apis/coordination.k8s.io/v1")).json.resources[0];
  t.equal(lease.storageVersionHash, "gqkMMb/YqFM=");
});

t.test("aggregated discovery contains all resources, with an ETag", async (t) => {
  await using server = await startTestServer();
  const headers = { accept: `${AGGREGATED},application/json` };
  const answer = await server.send("GET /apis", { headers });
  t.equal(answer.headers["content-type"], AGGREGATED);
  const { items } = answer.json;
  const leases = items.find((item: { metadata: { name: string } }) => item.metadata.name === "coordination.k8s.io");
  t.match(leases.versions[0], { version: "v1", freshness: "Current", resources: [{ scope: "Namespaced" }] });
  const etag = String(answer.headers.etag);
  t.equal((await server.send("GET /apis", { headers: { ...headers, "if-none-match": etag } })).status, 304);
  const core = (await server.send("GET /api", { headers })).json.items[0].versions[0].resources;
  const pods = core.find((resource: { resource: string }) => resource.resource === "pods");
  t.match(pods.subresources[1], { subresource: "binding", responseKind: { kind: "Binding" } });
  t.equal((await server.send("GET /api/v1", { headers: { accept: AGGREGATED } })).status, 406);
  t.match((await server.send("GET /api", { headers: { accept: "application/yaml" } })).text, /^kind: APIVersions/m);
});

t.test("/openapi/v3 links to a document for each group version", async (t) => {
  await using server = await startTestServer();
  const { paths } = (await server.send("GET /openapi/v3")).json;
  for (const path of ["api/v1", "apis/apps/v1", "apis/events.k8s.io/v1"]) t.ok(paths[path], path);
  const url: string = paths["api/v1"].serverRelativeURL;
  const document = await server.send(`GET ${url}`);
  t.match(document.headers["cache-control"], /immutable/);
  const patch = document.json.paths["/api/v1/namespaces/{namespace}/pods/{name}"].patch;
  t.ok(patch.parameters.some(({ name }: { name: string }) => name === "fieldValidation"));
  t.ok(document.json.components.schemas["io.k8s.api.core.v1.PodSpec"].properties.containers);
  t.equal((await server.send("GET /openapi/v3/apis/none/v1")).status, 404);
});

t.test("/openapi/v2 is served in JSON and in protobuf for old clients", async (t) => {
  await using server = await startTestServer();
  const json = (await server.send("GET /openapi/v2")).json;
  t.equal(json.swagger, "2.0");
  t.ok(json.definitions["io.k8s.api.core.v1.Pod"]);
  const accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
  const { bytes, headers } = await server.send("GET /openapi/v2", { headers: { accept } });
  t.equal(headers["content-type"], "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  t.same([...bytes.subarray(0, 5)], [0x0a, 3, 0x32, 0x2e, 0x30], "field 1 is the version 2.0");
  t.equal((await server.send("GET /openapi/v2", { headers: { accept: "text/html" } })).status, 406);
});

t.test("/ lists the paths, and /version has the API level", async (t) => {
  await using server = await startTestServer({ gitVersion: "v1.33.9-site.1" });
  const { paths } = (await server.send("GET /")).json;
  for (const path of ["/api/v1", "/readyz/ping", "/openapi/v2", "/version"]) t.ok(paths.includes(path), path);
  t.match((await server.send("GET /version")).json, { major: "1", minor: "33", gitVersion: "v1.33.9-site.1" });
});
