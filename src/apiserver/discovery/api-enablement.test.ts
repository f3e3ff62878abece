import t from "tap";
import type { Kind } from "../../api/kind.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { defaultConfig } from "../config/default-config.ts";
import { type ApisConfig, selectServedApis } from "./api-enablement.ts";

const config = (runtimeConfig: ApisConfig["runtimeConfig"], more: Partial<ApisConfig> = {}): ApisConfig => ({
  ...defaultConfig.apis,
  runtimeConfig,
  ...more,
});
const names = (kinds: readonly Kind[]): readonly string[] =>
  kinds.map(({ group, version, plural }) => `${group}/${version}/${plural}`);
const served = (runtimeConfig: ApisConfig["runtimeConfig"], more?: Partial<ApisConfig>): readonly string[] =>
  names(selectServedApis(config(runtimeConfig, more)).kinds);

const METRICS = ["metrics.svc.io/v1beta1/nodes", "metrics.svc.io/v1beta1/pods"];
const CIDRS = "networking.svc.io/v1/servicecidrs";
const BETA_CIDRS = "networking.svc.io/v1beta1/servicecidrs";

t.test("selectServedApis() selects stable versions by default", async (t) => {
  const usual = served({});
  t.ok(usual.includes("apps/v1/deployments"));
  t.same(
    usual.filter((name) => /beta|alpha/.test(name)),
    METRICS,
    "metrics have no stable version",
  );
  t.ok(served({ "api/beta": "true" }).includes(BETA_CIDRS));
  t.ok(served({ "api/all": "true" }).includes(BETA_CIDRS));
  t.same(
    served({ "api/all": "false", "apps/v1": "true" })
      .map((name) => name.split("/")[0])
      .filter((group, at, all) => all.indexOf(group) === at),
    ["apps"],
  );
  t.throws(() => served({ "api/all": "false" }), /api\/all=false alone: no API is enabled/);
  t.same(served({ "api/ga": "false" }), METRICS, "what Kubernetes refuses is api/all=false alone");
  t.same(
    served({ "api/ga": "false", v1: "true" }).filter((name) => !name.startsWith("/v1/")),
    METRICS,
  );
});

t.test("selectServedApis() lets specific entries take precedence over general ones", async (t) => {
  const some = served({ "apps/v1/deployments": "false", "apps/v1": "true", "api/ga": "true" });
  t.notOk(some.includes("apps/v1/deployments"));
  t.ok(some.includes("apps/v1/daemonsets"));
  t.same(served({ "api/v1": "true" }), served({}), "the core group as in its paths");
  for (const prefix of ["v1", "api/v1"]) t.notOk(served({ [`${prefix}/pods`]: "false" }).includes("/v1/pods"), prefix);
  t.ok(served({}).includes("/v1/pods"));
  t.ok(served({ "batch/v1": "false", "batch/v1/jobs": "true" }).includes("batch/v1/jobs"), "without its version");
  const group = served({ "networking.k8s.io/v1": "false", "networking.k8s.io": "true" });
  t.ok(group.includes(BETA_CIDRS), "all versions of a group");
  t.notOk(group.includes(CIDRS), "but the version that another entry disables");
  t.notOk(served({ apps: "false" }).some((name) => name.startsWith("apps/")));
  for (const group of ["networking.k8s.io", "networking.svc.io"]) {
    t.notOk(served({ [`${group}/v1/ingresses`]: "false" }).includes("networking.svc.io/v1/ingresses"), group);
  }
});

t.test("versions that Kubernetes has and does not serve are accepted", async (t) => {
  const flowControl = "flowcontrol.apiserver";
  for (const key of [
    `${flowControl}.k8s.io/v1beta3`,
    `${flowControl}.svc.io/v1beta3`,
    "extensions/v1beta1/daemonsets",
    "authentication.k8s.io/v1alpha1",
    "apps/v1beta2",
  ]) {
    for (const value of ["true", "false"]) t.same(served({ [key]: value }), served({}), `${key}=${value}`);
  }
});

t.test("selectServedApis() rejects unknown groups, versions and resources", async (t) => {
  const cases: readonly [string, string, RegExp][] = [
    ["bakery.io/v1", "true", /--runtime-config=bakery.io\/v1=true: there is no API group "bakery.io"/],
    ["apps/v7", "false", /group "apps" has no version v7/],
    ["certificates.k8s.io/v1beta1/pods", "true", /certificates.k8s.io\/v1beta1 has no resource pods/],
    ["bakery.io", "true", /there is no API group "bakery.io"/],
    ["apps/v1/breads", "false", /apps\/v1 has no resource breads/],
  ];
  for (const [key, value, message] of cases) t.throws(() => served({ [key]: value }), message);
  t.doesNotThrow(() => served({ "authentication.k8s.io/v1alpha1": "false" }), "disabling is allowed");
  t.match(selectServedApis(config({ "api/legacy": "true" })).warnings, [/deprecated/]);
});

t.test("selectServedApis() drops APIs that were introduced after the emulated version", async (t) => {
  const old = { emulatedVersion: "1.32" };
  t.notOk(served({}, old).includes(CIDRS));
  t.ok(served({ "networking.k8s.io/v1beta1": "true" }, old).includes(BETA_CIDRS));
  t.notOk(served({ "networking.k8s.io/v1beta1": "true" }, old).includes(CIDRS));
  const forward = { ...old, forwardCompatible: true };
  t.ok(served({ "networking.k8s.io/v1beta1": "true" }, forward).includes(CIDRS));
  t.notOk(served({}, forward).includes(CIDRS), "no beta version is served");
  t.throws(() => served({ [CIDRS]: "true" }, old), /it was introduced in 1.33/);
  t.ok(served({ [CIDRS]: "true" }, { ...old, runtimeConfigForwardCompatible: true }).includes(CIDRS));
  t.doesNotThrow(() => served({ "networking.k8s.io/v1": "true" }, old), "most of the version existed");
});

t.test("selectServedApis() disables the API of metrics", async (t) => {
  for (const key of ["metrics.k8s.io/v1beta1", "metrics.svc.io/v1beta1", "api/beta"]) {
    t.notOk(
      served({ [key]: "false" }).some((name) => METRICS.includes(name)),
      key,
    );
  }
  t.notOk(served({ "metrics.k8s.io/v1beta1/pods": "false" }).includes(METRICS[1]!));
  await using server = await startTestServer({ apis: config({ "metrics.k8s.io/v1beta1": "false" }) });
  t.notMatch((await server.send("GET /apis")).text, /metrics/);
  t.equal((await server.send("GET /apis/metrics.k8s.io/v1beta1/nodes")).status, 404);
  t.equal((await server.send("GET /apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io")).status, 404);
});

t.test("disabled APIs are absent from discovery and OpenAPI, and the server itself still uses them", async (t) => {
  const apis = config({ "batch/v1": "false", "networking.k8s.io/v1/servicecidrs": "false" });
  await using server = await startTestServer({ apis });
  const found = async (path: string) => (await server.send(`GET ${path}`)).text;
  t.notMatch(await found("/apis"), /"batch"/);
  t.notMatch(await found("/openapi/v3"), /batch/);
  t.notMatch(await found("/openapi/v2"), /io.k8s.api.batch.v1.Job"/);
  t.notMatch(await found("/apis/networking.svc.io/v1"), /servicecidrs/);
  t.notMatch(await found("/apis/apiregistration.k8s.io/v1/apiservices"), /v1\.batch/);
  t.equal((await server.send("GET /apis/networking.k8s.io/v1/servicecidrs")).status, 404);
  const spec = { ports: [{ port: 80 }] };
  const service = await server.send("POST /api/v1/namespaces/default/services", {
    body: { metadata: { name: "web" }, spec },
  });
  t.match(service.json.spec.clusterIP, /^10\.0\.0\./, "addresses are allocated from a disabled kind");
});

t.test("a beta version serves the objects of the stable version", async (t) => {
  await using server = await startTestServer({ apis: config({ "api/beta": "true" }) });
  const path = "/apis/networking.k8s.io/v1beta1/servicecidrs";
  const body = { apiVersion: "networking.k8s.io/v1beta1", kind: "ServiceCIDR", metadata: { name: "more" } };
  const made = await server.send(`POST ${path}`, { body: { ...body, spec: { cidrs: ["10.9.0.0/24"] } } });
  t.match(made, { status: 201, json: body });
  t.match((await server.send("GET /apis/networking.svc.io/v1/servicecidrs/more")).json, {
    apiVersion: "networking.svc.io/v1",
    spec: { cidrs: ["10.9.0.0/24"] },
  });
  const document = (await server.send("GET /openapi/v3/apis/networking.k8s.io/v1beta1")).text;
  t.match(document, /io\.k8s\.api\.networking\.v1beta1\.ServiceCIDRSpec":\{"description":/);
  t.notMatch(document, /io\.k8s\.api\.networking\.v1\./);
  const policies = "/apis/admissionregistration.k8s.io/v1beta1/validatingadmissionpolicies";
  const { headers } = await server.send(`GET ${policies}`);
  t.match(headers.warning, /ValidatingAdmissionPolicy is deprecated in v1\.31\+, unavailable in v1\.34\+/);
});

t.test("embedded controllers ignore disabled APIs", async (t) => {
  const apis = config({ "batch/v1": "false", "autoscaling/v2": "false" });
  await using server = await startTestServer({ apis, embeddedControllers: ["namespace", "garbage-collector"] });
  await server.send("POST /api/v1/namespaces", { body: { metadata: { name: "brief" } } });
  const scaleTargetRef = { kind: "Deployment", name: "web", apiVersion: "apps/v1" };
  const body = { metadata: { name: "web" }, spec: { maxReplicas: 3, scaleTargetRef } };
  const path = "/apis/autoscaling/v1/namespaces/brief/horizontalpodautoscalers";
  t.equal((await server.send(`POST ${path}`, { body })).status, 201);
  await server.send("DELETE /api/v1/namespaces/brief");
  let status = 0;
  for (let tries = 0; status !== 404 && tries < 500; tries++) {
    await server.clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve, 2));
    status = (await server.send("GET /api/v1/namespaces/brief")).status;
  }
  t.equal(status, 404, "objects of served versions are deleted");
});

t.test("kinds without a stable version are served in the versions that are enabled", async (t) => {
  const features = ["ClusterTrustBundle", "StorageVersionMigrator"].map((name) => {
    return { name, stage: "ALPHA", enabled: true } as const;
  });
  const observability = { ...defaultConfig.observability, features };
  const apis = config({ "api/all": "true" });
  const without = selectServedApis(apis);
  t.notOk(without.kinds.some(({ kind }) => kind === "ClusterTrustBundle"));
  t.match(without.warnings, [
    /certificates\.k8s\.io\/v1beta1\/clustertrustbundles is not served: the feature gate/,
    /certificates\.k8s\.io\/v1alpha1\/clustertrustbundles/,
    /storagemigration\.k8s\.io\/v1alpha1\/storageversionmigrations is not served: the feature gate/,
  ]);
  await using server = await startTestServer({ apis, observability });
  const cases: readonly [path: string, version: string, other: string | undefined, body: object, cell: string][] = [
    [
      "storage.k8s.io",
      "v1beta1/volumeattributesclasses",
      "v1alpha1",
      { driverName: "a.b", parameters: { a: "b" } },
      "a.b",
    ],
    [
      "coordination.k8s.io",
      "v1alpha2/namespaces/default/leasecandidates",
      "v1beta1",
      {
        spec: {
          leaseName: "web",
          binaryVersion: "1.33.0",
          emulationVersion: "1.33.0",
          strategy: "OldestEmulationVersion",
        },
      },
      "web",
    ],
    [
      "storagemigration.k8s.io",
      "v1alpha1/storageversionmigrations",
      undefined,
      { spec: { resource: { group: "apps", version: "v1", resource: "deployments" } } },
      "deployments.v1.apps",
    ],
    ["internal.apiserver.k8s.io", "v1alpha1/storageversions", undefined, { spec: {}, status: {} }, "<unset>"],
  ];
  for (const [group, path, other, body, cell] of cases) {
    const url = `/apis/${group}/${path}`;
    const made = await server.send(`POST ${url}`, { body: { metadata: { name: "apps.web" }, ...body } });
    t.match(made, { status: 201, json: body }, url);
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    const table = (await server.send(`GET ${url}`, { headers: { accept } })).json;
    t.equal(table.rows[0].cells[1], cell, url);
    if (other === undefined) continue;
    const same = url.replace(/v1[a-z]+\d/, other);
    t.match(await server.send(`GET ${same}/apps.web`), {
      status: 200,
      json: { apiVersion: `${group}/${other}`, ...body },
    });
  }
  t.match((await server.send("GET /apis/certificates.k8s.io/v1alpha1/clustertrustbundles")).json, { items: [] });
  t.match((await server.send("GET /openapi/v3/apis/coordination.k8s.io/v1beta1")).text, /v1beta1\.LeaseCandidateSpec/);
});

/** By entry: the versions of a beta or alpha group that it enables, and those of apps. */
const FORMS: readonly [entry: string, value: string, resource: readonly string[], apps: boolean][] = [
  ["api/all", "true", ["v1alpha3", "v1beta1", "v1beta2"], true],
  ["api/all", "false", [], false],
  ["api/beta", "true", ["v1beta1", "v1beta2"], true],
  ["api/alpha", "true", ["v1alpha3"], true],
  ["api/ga", "true", [], true],
  ["api/ga", "false", [], false],
  ["api/legacy", "true", [], true],
  ["api/v1", "true", [], true],
  ["resource.k8s.io", "true", ["v1alpha3", "v1beta1", "v1beta2"], true],
  ["resource.k8s.io/v1beta1", "true", ["v1beta1"], true],
  ["resource.k8s.io/v1alpha3/deviceclasses", "true", ["v1alpha3"], true],
  ["apps", "false", [], false],
  ["apps/v1", "false", [], false],
];

for (const [entry, value, resource, apps] of FORMS) {
  t.test(`--runtime-config=${entry}=${value}`, async (t) => {
    // The core group stays, since a server needs one.
    const kinds = served({ v1: "true", [entry]: value });
    const versions = kinds.filter((name) => name.startsWith("resource.svc.io/")).map((name) => name.split("/")[1]!);
    t.same([...new Set(versions)].sort(), resource);
    t.equal(kinds.includes("apps/v1/deployments"), apps);
    t.ok(kinds.includes("/v1/pods"));
  });
}

t.test("a version of resource.k8s.io serves the objects of the others", async (t) => {
  await using server = await startTestServer({ apis: config({ "resource.k8s.io": "true" }) });
  const claims = (version: string) => `/apis/resource.k8s.io/${version}/namespaces/default/resourceclaims`;
  const request = { name: "gpu", deviceClassName: "gpu.example.com", adminAccess: true };
  const spec = { devices: { requests: [request] } };
  const made = await server.send(`POST ${claims("v1beta1")}`, { body: { metadata: { name: "c" }, spec } });
  const exactly = { deviceClassName: "gpu.example.com", allocationMode: "ExactCount", count: 1 };
  t.strictSame([made.status, made.json.spec], [201, { devices: { requests: [{ name: "gpu", ...exactly }] } }]);
  const stored = (await server.send(`GET ${claims("v1beta2")}/c`)).json;
  t.strictSame(stored.spec, { devices: { requests: [{ name: "gpu", exactly }] } }, "adminAccess needs its gate");
  t.match(await server.send(`GET ${claims("v1alpha3")}/c`), { status: 200, json: { spec: made.json.spec } });
  const changed = { devices: { requests: [{ ...request, deviceClassName: "other" }] } };
  const invalid = await server.send(`PUT ${claims("v1beta1")}/c`, { body: { ...made.json, spec: changed } });
  t.match(invalid, { status: 422, json: { message: /spec: Invalid value: .*: field is immutable/ } });
  const result = { request: "gpu", driver: "gpu.example.com", pool: "n1", device: "gpu-0" };
  const status = {
    allocation: { devices: { results: [result] } },
    reservedFor: [{ resource: "pods", name: "p", uid: "u" }],
  };
  const allocated = await server.send(`PUT ${claims("v1beta1")}/c/status`, { body: { ...made.json, status } });
  t.match(allocated, { status: 200, json: { status } });
  const slices = "/apis/resource.k8s.io/v1alpha3/resourceslices";
  const slice = {
    driver: "gpu.example.com",
    pool: { name: "n1", generation: 1, resourceSliceCount: 1 },
    nodeName: "n1",
    devices: [{ name: "gpu-0", basic: { capacity: { memory: "1Gi" } } }],
  };
  t.equal((await server.send(`POST ${slices}`, { body: { metadata: { name: "s" }, spec: slice } })).status, 201);
  const found = await server.send("GET /apis/resource.k8s.io/v1beta2/resourceslices?fieldSelector=spec.nodeName%3Dn1");
  t.match(found.json.items, [{ spec: { devices: [{ name: "gpu-0", capacity: { memory: { value: "1Gi" } } }] } }]);
});

t.test("administrative access to devices needs its gate and a label of the namespace", async (t) => {
  const features = [{ name: "DRAAdminAccess", stage: "ALPHA", enabled: true }] as const;
  const observability = { ...defaultConfig.observability, features };
  await using server = await startTestServer({ apis: config({ "resource.k8s.io": "true" }), observability });
  const exactly = { deviceClassName: "gpu.example.com", adminAccess: true };
  const body = { metadata: { name: "c" }, spec: { devices: { requests: [{ name: "gpu", exactly }] } } };
  const post = (namespace: string) =>
    server.send(`POST /apis/resource.k8s.io/v1beta2/namespaces/${namespace}/resourceclaims`, { body });
  t.match(await post("default"), {
    status: 422,
    json: { message: /requires the `resource.k8s.io\/admin-access: true`/ },
  });
  const labels = { "resource.k8s.io/admin-access": "true" };
  await server.send("POST /api/v1/namespaces", { body: { metadata: { name: "admins", labels } } });
  t.match(await post("admins"), { status: 201, json: { spec: { devices: { requests: [{ exactly }] } } } });
});
