import { existsSync, readFileSync } from "node:fs";
import t from "tap";
import { parseYaml } from "../../schema/yaml/yaml.ts";
import { caBundle, reviewResponse, startTestWebhook } from "../../testing/admission/webhook-fixture.ts";
import { readLines, startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { defaultConfig } from "../config/default-config.ts";

const SHARED = process.env.SVC_SHARED ?? new URL("../../../../shared", import.meta.url).pathname;

async function metrics(server: TestServer, path = "/metrics"): Promise<readonly string[]> {
  return (await server.send(`GET ${path}`)).text.split("\n");
}

const counted = (all: readonly string[], name: string): readonly string[] =>
  all.filter((line) => line.startsWith(`${name}{`));

t.test("requests are counted by verb, resource, scope and code", async (t) => {
  await using server = await startTestServer();
  const object = { metadata: { name: "a" } };
  await server.send("POST /api/v1/namespaces/default/configmaps?dryRun=All", { body: object });
  await server.send("GET /apis/apps/v1/namespaces/default/deployments");
  await server.send("GET /apis/apps/v1/deployments/none/x/y");
  const apply = { "content-type": "application/apply-patch+yaml" };
  const body = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", ...object });
  await server.send("PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m", { body, headers: apply });
  await server.send("GET /api/v1/namespaces/default/configmaps/none");
  await server.send("GET /api/v1/breads");
  await server.send("GET /livez");
  const found = counted(await metrics(server), "apiserver_request_total");
  const total = (...labels: readonly string[]): string => {
    const names = ["code", "component", "dry_run", "group", "resource", "scope", "subresource", "verb", "version"];
    return `apiserver_request_total{${names.map((name, index) => `${name}="${labels[index]}"`).join(",")}} 1`;
  };
  t.same([...found].sort(), [
    total("200", "apiserver", "", "", "", "", "/livez", "GET", ""),
    total("200", "apiserver", "", "apps", "deployments", "namespace", "", "LIST", "v1"),
    total("201", "apiserver", "", "", "configmaps", "resource", "", "APPLY", "v1"),
    total("201", "apiserver", "All", "", "configmaps", "resource", "", "POST", "v1"),
    total("404", "apiserver", "", "", "configmaps", "resource", "", "GET", "v1"),
  ]);
});

t.test("active watches and their events are counted", async (t) => {
  await using server = await startTestServer();
  const lasting = async () => counted(await metrics(server), "apiserver_longrunning_requests");
  const leaving = new AbortController();
  const watch = await server.open("GET /api/v1/namespaces?watch=1", { signal: leaving.signal });
  t.match(await lasting(), [/verb="WATCH".* 1$/]);
  t.equal(counted(await metrics(server), "apiserver_request_total").length, 1, "the watch has not ended");
  const seen = (await readLines(watch, 2)).length;
  t.match(await lasting(), [/ 0$/]);
  const all = await metrics(server);
  const events = Number(counted(all, "apiserver_watch_events_total")[0]?.split(" ")[1]);
  t.ok(events >= seen);
  t.match(counted(all, "apiserver_request_total").join("\n"), /verb="WATCH"/);
  t.notMatch(counted(all, "apiserver_request_sli_duration_seconds_count").join("\n"), /WATCH/);
});

t.test("rejected and aborted requests are counted", async (t) => {
  const limits = { ...defaultConfig.limits, inFlight: { readOnly: 1, mutating: 1, shared: false } };
  await using server = await startTestServer({ limits, authorizationModes: ["AlwaysAllow"] });
  const body = { metadata: { name: "a" } };
  const path = "/api/v1/namespaces/default/configmaps";
  const [first, second] = await Promise.all([0, 1].map(() => server.send(`POST ${path}`, { body, user: "jo" })));
  t.same([first?.status, second?.status].sort(), [201, 429]);
  const leaving = new AbortController();
  const left = server.send(`DELETE ${path}/a`, { signal: leaving.signal });
  leaving.abort(new Error("gone"));
  await left.catch(() => {});
  const all = await metrics(server);
  t.match(counted(all, "apiserver_request_terminations_total").join("\n"), /code="429".*verb="POST".* 1$/);
  t.match(counted(all, "apiserver_request_aborts_total").join("\n"), /resource="configmaps".*verb="DELETE".* 1$/);
});

t.test("bodies, filters, field validation and requests of API servers are measured", async (t) => {
  await using server = await startTestServer();
  const path = "/apis/apps/v1/namespaces/default/deployments";
  const headers = {
    "user-agent": "kube-apiserver/v1.33.0 (linux/amd64) kubernetes/abc",
    "content-type": "application/json",
  };
  const body = JSON.stringify({ apiVersion: "apps/v1", kind: "Deployment" });
  await server.send(`POST ${path}?fieldValidation=Strict`, { body, headers });
  await server.send(`DELETE ${path}?fieldValidation=none`);
  const all = await metrics(server);
  const labels = 'resource="deployments.apps",verb="create"';
  for (const line of [
    `apiserver_request_body_size_bytes_count{${labels}} 1`,
    `apiserver_request_body_size_bytes_sum{${labels}} ${body.length}`,
    'apiserver_request_body_size_bytes_count{resource="deployments.apps",verb="delete_collection"} 1',
    'apiserver_request_filter_duration_seconds_count{filter="authentication"} 3',
    'apiserver_request_filter_duration_seconds_count{filter="authorization"} 3',
    'apiserver_request_filter_duration_seconds_count{filter="priorityandfairness"} 3',
    'field_validation_request_duration_seconds_count{field_validation=""} 1',
    'field_validation_request_duration_seconds_count{field_validation="Strict"} 1',
    'apiserver_selfrequest_total{resource="deployments",subresource="",verb="POST"} 1',
    'apiserver_current_inqueue_requests{request_kind="mutating"} 0',
    "apiserver_tls_handshake_errors_total 0",
  ]) {
    t.ok(all.includes(line), line);
  }
});

t.test("lists from watch caches are counted by the index they used", async (t) => {
  await using server = await startTestServer();
  await server.send("GET /api/v1/namespaces");
  await server.send("GET /api/v1/pods?fieldSelector=spec.nodeName%3Dn1");
  const all = await metrics(server);
  const lists = counted(all, "apiserver_cache_list_total");
  t.ok(lists.includes('apiserver_cache_list_total{index="f:spec.nodeName",resource_prefix="/pods"} 1'), lists.join());
  t.ok(lists.some((line) => line.startsWith('apiserver_cache_list_total{index="",resource_prefix="/namespaces"}')));
  t.match(counted(all, "apiserver_cache_list_returned_objects_total").join("\n"), /"\/namespaces"\} [1-9]/);
  await server.send("GET /api/v1/pods?resourceVersion=0");
  t.same(
    counted(await metrics(server), "apiserver_watch_cache_consistent_read_total").filter((line) =>
      line.includes("pods"),
    ),
    ['apiserver_watch_cache_consistent_read_total{fallback="false",resource="pods",success="true"} 1'],
  );
  t.match(counted(all, "apiserver_storage_events_received_total").join("\n"), /resource="namespaces"\} [1-9]/);
});

t.test("/metrics has Kubernetes' main metric families with their labels and buckets", async (t) => {
  interface Fact {
    readonly name: string;
    readonly type: string;
    readonly stability: string;
    readonly labels?: readonly string[];
    readonly buckets?: readonly (number | string)[];
    readonly main?: boolean;
  }
  let facts: readonly Fact[];
  try {
    facts = JSON.parse(readFileSync(`${SHARED}/facts/apiserver-http.json`, "utf8")).metrics;
  } catch {
    t.comment("facts are not here");
    return;
  }
  await using server = await startTestServer({ embeddedControllers: ["namespace"] });
  await using hook = await startTestWebhook((call) => reviewResponse(call, {}));
  const rules = [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] }];
  const more = { sideEffects: "None", admissionReviewVersions: ["v1"] };
  const webhooks = [{ name: "a.example.com", clientConfig: { url: hook.url, caBundle }, rules, ...more }];
  const registration = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
  await server.send(`POST ${registration}`, { body: { metadata: { name: "a" }, webhooks } });
  await server.send("GET /api/v1/componentstatuses");
  await server.send("POST /api/v1/namespaces/default/configmaps", { body: { metadata: { name: "a" } } });
  await server.send("GET /readyz");
  await readLines(await server.open("GET /api/v1/namespaces?watch=1"), 1);
  const { registry, slis } = server.parts.metrics;
  const families = new Map([...registry.all(), ...slis.all()].map((family) => [family.options.name, family]));
  const shown = await metrics(server);
  for (const { name, type, stability, labels = [], buckets = [], main } of facts) {
    const family = families.get(name);
    if (family === undefined) {
      if (main) t.fail(`there is no ${name}`);
      continue;
    }
    const textType = type.replace("TimingRatio", "").toLowerCase();
    if (type !== "Custom") t.equal(family.type, textType, name);
    t.equal(family.options.stability, stability, name);
    t.same([...family.labels].sort(), [...labels, ...(CONSTANT_LABELS[name] ?? [])].sort(), name);
    if ("bounds" in family && buckets.length > 0) t.same(family.bounds, buckets.map(Number), name);
    if (main) t.ok(shown.includes(`# TYPE ${name} ${textType}`), `${name} is shown`);
  }
});

t.test("the texts of metrics are those of Kubernetes' list", async (t) => {
  interface ListedMetric {
    readonly namespace?: string;
    readonly subsystem?: string;
    readonly name: string;
    readonly help?: string;
  }
  const file = `${SHARED}/oracles/metrics-list/documentation-list.yaml`;
  if (!existsSync(file)) {
    t.comment(`there is no ${file}`);
    return;
  }
  const listed = parseYaml(readFileSync(file, "utf8"))[0]?.value as readonly ListedMetric[];
  await using server = await startTestServer({ embeddedControllers: ["namespace"] });
  const { registry, slis } = server.parts.metrics;
  const families = new Map([...registry.all(), ...slis.all()].map((family) => [family.options.name, family]));
  for (const { namespace, subsystem, name, help = "" } of listed) {
    const full = [namespace, subsystem, name].filter((part) => part !== undefined).join("_");
    const family = families.get(full);
    if (family !== undefined && help !== "") t.equal(family.options.help.trim(), help.trim(), full);
  }
});

/** Labels with one value, which the facts do not name. */
const CONSTANT_LABELS: Readonly<Record<string, readonly string[]>> = {
  apiserver_flowcontrol_priority_level_seat_utilization: ["phase"],
};
