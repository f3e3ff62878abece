/**
 * Compares discovery with that of a Kubernetes 1.33 server that serves every built-in version
 * (`shared/oracles/api-discovery`): each version, under both group names, aggregated and not.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { decodeEnvelope } from "../../schema/protobuf/envelope.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { defaultConfig } from "../config/default-config.ts";

const shared = process.env.SVC_SHARED ?? fileURLToPath(new URL("../../../../shared", import.meta.url));
const folder = `${shared}/oracles/api-discovery/`;
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

interface Named {
  readonly name: string;
}
interface Group extends Named {
  readonly versions: readonly { readonly groupVersion: string; readonly version: string }[];
}
interface Resource extends Named {
  readonly storageVersionHash?: string;
  readonly verbs: readonly string[];
}
interface AggregatedGroup {
  readonly metadata: { readonly name?: string };
  readonly versions: readonly { readonly version: string; readonly resources: readonly unknown[] }[];
}

/** All built-in versions, as on the recorded server, and both names of each group in the lists. */
const EVERYTHING = {
  apis: { ...defaultConfig.apis, runtimeConfig: { "api/all": "true" } },
  groupAliases: { served: true, listed: true },
};

/** Streams and proxies, which may be absent. */
const STREAMED: ReadonlySet<string> = new Set([
  "nodes/proxy",
  "pods/attach",
  "pods/exec",
  "pods/portforward",
  "pods/proxy",
  "services/proxy",
]);

/** Not part of Kubernetes' own server. */
const METRICS_GROUP = /^metrics\.(?:k8s|svc)\.io$/;

function isServed(name: string, found: readonly Named[]): boolean {
  return !STREAMED.has(name) || found.some((resource) => resource.name === name);
}

/** A recorded document with the groups' domain replaced. */
function recorded(name: string, suffix: string): unknown {
  return JSON.parse(readFileSync(`${folder}${name}.json`, "utf8").replaceAll(".k8s.io", suffix));
}

/** The storage version hash depends on the group's name, so that the project's groups have their own. */
function svcHashes(): ReadonlyMap<string, string> {
  const { kinds } = JSON.parse(readFileSync(`${shared}/facts/kinds.json`, "utf8")) as {
    readonly kinds: readonly { readonly storageVersionHash?: string; readonly svcStorageVersionHash?: string }[];
  };
  return new Map(
    Object.values(kinds).map(({ storageVersionHash = "", svcStorageVersionHash }) => [
      storageVersionHash,
      svcStorageVersionHash ?? storageVersionHash,
    ]),
  );
}

/** The order of verbs is not specified. */
function compared<R extends { readonly verbs: readonly string[] }>(resource: R): R {
  return { ...resource, verbs: [...resource.verbs].sort() };
}

function withoutShortNames(resource: unknown): unknown {
  const { shortNames: _short, categories: _categories, ...rest } = resource as Readonly<Record<string, unknown>>;
  return rest;
}

async function served(server: TestServer, suffix: string): Promise<readonly Group[]> {
  const { groups } = (await server.send("GET /apis")).json as { readonly groups: readonly Group[] };
  const isCompared = (name: string): boolean => !METRICS_GROUP.test(name);
  return groups.filter(({ name }) => isCompared(name) && (!name.includes(".") || name.endsWith(suffix)));
}

for (const suffix of [".k8s.io", ".svc.io"]) {
  t.test(`discovery of *${suffix} is that of Kubernetes`, async (t) => {
    if (!existsSync(folder)) {
      t.comment("shared/ is not present: the comparison with Kubernetes' discovery is left out");
      return;
    }
    await using server = await startTestServer(EVERYTHING);
    const groups = await served(server, suffix);
    const theirs = (recorded("apis", suffix) as { readonly groups: readonly Group[] }).groups;
    const names = groups.map(({ name }) => name);
    const common = theirs.filter(({ name }) => names.includes(name));
    t.same(
      names,
      common.map(({ name }) => name),
      "groups and their order",
    );
    for (const group of common) {
      const mine = groups.find(({ name }) => name === group.name);
      const versions = group.versions.filter(({ version }) => mine?.versions.some((one) => one.version === version));
      t.same(mine?.versions, versions, `${group.name}: versions and their order`);
    }
    const hashes = suffix === ".svc.io" ? svcHashes() : undefined;
    const paths = ["/api/v1", ...groups.flatMap(({ versions }) => versions.map((one) => `/apis/${one.groupVersion}`))];
    for (const path of paths) {
      const page = path.slice(1).replaceAll("/", "__").replaceAll(".svc.io", ".k8s.io");
      // The core group has no alias; its document contains Kubernetes' names of other groups.
      const { resources } = recorded(page, path === "/api/v1" ? ".k8s.io" : suffix) as {
        readonly resources: readonly Resource[];
      };
      const found = ((await server.send(`GET ${path}`)).json as { readonly resources: readonly Resource[] }).resources;
      const wanted = resources
        .filter(({ name }) => isServed(name, found))
        .map(({ storageVersionHash: hash, ...rest }) =>
          compared({ ...rest, ...(hash === undefined ? {} : { storageVersionHash: hashes?.get(hash) ?? hash }) }),
        );
      t.same(found.map(compared), wanted, path);
    }
  });
}

t.test(
  "aggregated discovery is that of Kubernetes, with short names and categories under Kubernetes' group names only",
  async (t) => {
    if (!existsSync(folder)) {
      t.comment("shared/ is not present: the comparison with Kubernetes' discovery is left out");
      return;
    }
    await using server = await startTestServer(EVERYTHING);
    const { items: theirs } = recorded("aggregated_v2", ".k8s.io") as { readonly items: readonly AggregatedGroup[] };
    const headers = { accept: AGGREGATED };
    const { items } = (await server.send("GET /apis", { headers })).json as { readonly items: AggregatedGroup[] };
    for (const { metadata, versions } of items) {
      // The recording does not include the core group.
      const { name } = metadata;
      if (name === undefined || METRICS_GROUP.test(name)) continue;
      const isOurs = name.endsWith(".svc.io");
      const group = theirs.find((one) => one.metadata.name === name.replace(/\.svc\.io$/, ".k8s.io"));
      for (const version of versions) {
        const wanted = group?.versions.find((one) => one.version === version.version);
        const resources = isOurs ? wanted?.resources.map(withoutShortNames) : wanted?.resources;
        t.same(version, { ...wanted, resources }, `${name} ${version.version}`);
      }
    }
  },
);

t.test("lists of discovery and APIServices have each group once, under Kubernetes' name", async (t) => {
  const namesOf = async (config: Partial<typeof EVERYTHING>) => {
    await using server = await startTestServer(config);
    const { groups } = (await server.send("GET /apis")).json as { readonly groups: readonly Group[] };
    const aggregated = await server.send("GET /apis", { headers: { accept: AGGREGATED } });
    const { items } = aggregated.json as { readonly items: readonly AggregatedGroup[] };
    const { items: services } = (await server.send("GET /apis/apiregistration.k8s.io/v1/apiservices")).json as {
      readonly items: readonly { readonly spec: { readonly group?: string } }[];
    };
    t.match((await server.send("GET /apis/events.svc.io")).json, { kind: "APIGroup", name: "events.svc.io" });
    t.match((await server.send("GET /apis/events.svc.io/v1")).json, { groupVersion: "events.svc.io/v1" });
    t.equal((await server.send("GET /apis/events.svc.io/v1/events")).json.apiVersion, "events.svc.io/v1");
    return {
      groups: groups.map(({ name }) => name),
      aggregated: items.map(({ metadata }) => metadata.name ?? ""),
      services: [...new Set(services.map(({ spec }) => spec.group ?? ""))],
    };
  };
  const isSvc = (name: string) => name.endsWith(".svc.io");
  const all = await namesOf(EVERYTHING);
  const once = await namesOf({ apis: EVERYTHING.apis });
  for (const list of ["groups", "aggregated", "services"] as const) {
    t.ok(all[list].some(isSvc), list);
    t.same(
      once[list],
      all[list].filter((name) => !isSvc(name)),
      list,
    );
  }
});

t.test("discovery in protobuf has the content of JSON", async (t) => {
  await using server = await startTestServer();
  const mediaType = "application/vnd.kubernetes.protobuf";
  for (const path of ["/api", "/apis", "/apis/apps", "/api/v1"]) {
    const { headers, bytes } = await server.send(`GET ${path}`, { headers: { accept: mediaType } });
    t.equal(headers["content-type"], mediaType, path);
    const { kind } = (await server.send(`GET ${path}`)).json as { readonly kind: string };
    t.match(decodeEnvelope(bytes), { magic: "k8s", apiVersion: "v1", kind }, path);
  }
  // The expected bytes: `policy/v1`, then its resource with the verbs as a separate message.
  const { bytes } = await server.send("GET /apis/policy/v1", { headers: { accept: mediaType } });
  const raw = Buffer.from(decodeEnvelope(bytes).raw);
  t.equal(raw.subarray(0, 11).toString("latin1"), "\n\x09policy/v1");
  t.ok(raw.includes('"\x43\n\x06create\n\x06delete\n\x10deletecollection\n\x03get\n\x04list\n\x05patch'));
  const accept = `${mediaType};${AGGREGATED.slice("application/json;".length)}`;
  for (const path of ["/api", "/apis"]) {
    const answer = await server.send(`GET ${path}`, { headers: { accept } });
    t.equal(answer.headers["content-type"], accept, path);
    t.match(decodeEnvelope(answer.bytes), { apiVersion: "apidiscovery.k8s.io/v2", kind: "APIGroupDiscoveryList" });
    const json = await server.send(`GET ${path}`, { headers: { accept: AGGREGATED } });
    t.equal(answer.headers.etag, json.headers.etag, "one ETag for all media types");
    t.equal(
      (await server.send(`GET ${path}`, { headers: { accept, "if-none-match": `${json.headers.etag}` } })).status,
      304,
    );
  }
  t.equal((await server.send("GET /api/v1", { headers: { accept } })).status, 406);
});
