/** Every group under both aliases: discovery, OpenAPI documents, lists, tables, objects, watches. */
import t from "tap";
import { createDefinition, crontabs, v1 } from "../../testing/apiserver/extensions-fixture.ts";
import { readLines, startTestServer } from "../../testing/apiserver/server-fixture.ts";

interface Version {
  readonly groupVersion: string;
}
interface Resource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
}

t.test("responses have the group alias of the request", async (t) => {
  await using server = await startTestServer({
    authorizationModes: ["Node", "RBAC"],
    groupAliases: { served: true, listed: true },
  });
  const { groups } = (await server.send("GET /apis")).json as { groups: { name: string; versions: Version[] }[] };
  const names = groups.map(({ name }) => name);
  for (const name of names.filter((one) => one.endsWith(".k8s.io"))) {
    t.ok(names.includes(name.replace(/k8s\.io$/, "svc.io")), `${name} has its other alias`);
  }
  const { paths } = (await server.send("GET /openapi/v3")).json as { paths: Record<string, unknown> };
  for (const { groupVersion } of groups.flatMap(({ versions }) => versions)) {
    t.ok(paths[`apis/${groupVersion}`], `${groupVersion} has a document`);
    const page = (await server.send(`GET /apis/${groupVersion}`)).json as {
      readonly groupVersion: string;
      readonly resources: readonly Resource[];
    };
    t.equal(page.groupVersion, groupVersion);
    for (const { name, kind, verbs } of page.resources.filter(({ verbs }) => verbs.includes("list"))) {
      const path = `/apis/${groupVersion}/${name}`;
      const list = (await server.send(`GET ${path}`)).json;
      t.match(list, { kind: `${kind}List`, apiVersion: groupVersion }, path);
      for (const domain of ["meta.k8s.io", "meta.svc.io"]) {
        const accept = `application/json;as=Table;v=v1;g=${domain}`;
        const table = (await server.send(`GET ${path}`, { headers: { accept } })).json;
        t.match(table, { kind: "Table", apiVersion: `${domain}/v1` }, `${path} as a table of ${domain}`);
      }
      const [first] = list.items as { metadata: { name: string } }[];
      if (first === undefined || !verbs.includes("watch")) continue;
      const stop = new AbortController();
      const watch = await server.open(`GET ${path}?watch=1`, { signal: stop.signal });
      t.match(
        await readLines(watch, 1),
        [{ type: "ADDED", object: { kind, apiVersion: groupVersion } }],
        `${path}, watched`,
      );
      stop.abort();
    }
  }
});

t.test("objects and managedFields have the alias of the request", async (t) => {
  await using server = await startTestServer();
  const base = "namespaces/default/leases";
  for (const [mine, other] of [
    ["svc.io", "k8s.io"],
    ["k8s.io", "svc.io"],
  ] as const) {
    const name = `of-${mine.replace(".", "-")}`;
    const body = { apiVersion: `coordination.${mine}/v1`, kind: "Lease", metadata: { name }, spec: {} };
    const created = (await server.send(`POST /apis/coordination.${mine}/v1/${base}`, { body })).json;
    t.equal(created.apiVersion, `coordination.${mine}/v1`);
    const seen = (await server.send(`GET /apis/coordination.${other}/v1/${base}/${name}`)).json;
    t.equal(seen.apiVersion, `coordination.${other}/v1`);
    t.equal(seen.metadata.uid, created.metadata.uid, "one object");
    const missing = (await server.send(`GET /apis/coordination.${mine}/v1/${base}/none`)).json;
    t.match(missing, {
      message: `leases.coordination.${mine} "none" not found`,
      details: { group: `coordination.${mine}` },
    });
    const review = { apiVersion: `authorization.${mine}/v1`, kind: "SelfSubjectAccessReview" };
    const spec = { resourceAttributes: { group: `coordination.${mine}`, resource: "leases", verb: "get" } };
    const path = `/apis/authorization.${mine}/v1/selfsubjectaccessreviews`;
    t.match((await server.send(`POST ${path}`, { body: { ...review, spec } })).json, { ...review, spec });
  }
});

t.test("custom resources are listed under the group of their definition", async (t) => {
  for (const group of ["stable.example.com", "stable.x-k8s.io", "stable.example.k8s.io", "stable.example.svc.io"]) {
    await using server = await startTestServer();
    const definition = crontabs(v1);
    const spec = { ...definition.spec, group };
    // Groups of Kubernetes' domains need it.
    const annotations = { "api-approved.kubernetes.io": "unapproved, a test" };
    const metadata = { name: `crontabs.${group}`, annotations };
    const custom = { ...definition, metadata, spec };
    await createDefinition(server, custom);
    const aggregated = { accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" };
    const { groups } = (await server.send("GET /apis")).json as { groups: readonly { name: string }[] };
    const { items } = (await server.send("GET /apis", { headers: aggregated })).json as {
      items: readonly { metadata: { name: string } }[];
    };
    const services = (await server.send("GET /apis/apiregistration.k8s.io/v1/apiservices")).json.items as {
      spec: { group?: string };
    }[];
    const { paths } = (await server.send("GET /openapi/v3")).json as { paths: Record<string, unknown> };
    const { definitions } = (await server.send("GET /openapi/v2")).json;
    const document = (await server.send(`GET /openapi/v3/apis/${group}/v1`)).json.components.schemas;
    const isStable = (name: string): boolean => name.includes("stable.");
    t.same(groups.map(({ name }) => name).filter(isStable), [group]);
    t.same(items.map(({ metadata: { name } }) => name).filter(isStable), [group]);
    t.same(services.map(({ spec: { group = "" } }) => group).filter(isStable), [group]);
    t.same(Object.keys(paths).filter(isStable), [`apis/${group}`, `apis/${group}/v1`]);
    for (const schemas of [definitions, document]) {
      const [, crontab] = Object.entries(schemas).find(([name]) => name.endsWith(".CronTab")) ?? [];
      t.match(crontab, {
        "x-kubernetes-group-version-kind": [{ group, kind: "CronTab", version: "v1" }],
        "x-kubernetes-selectable-fields": [{ fieldPath: "spec.image" }],
      });
    }
  }
});
