/**
 * What Prometheus does with its usual configuration for Kubernetes (`kubernetes_sd_configs`): lists and watches nodes,
 * services, endpoints, slices and pods with the rights of its usual ClusterRole, and scrapes the addresses found.
 */
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import {
  CoreV1Api,
  DiscoveryV1Api,
  type Informer,
  KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  makeInformer,
  type ObjectCache,
  type V1EndpointSlice,
  type V1Node,
  type V1Pod,
  type V1Service,
} from "@kubernetes/client-node";
import t, { type Test } from "tap";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement, programs, TestCluster } from "./cluster.ts";
import { exampleImage } from "./example-image.ts";

t.setTimeout(300_000);
const missing = findMissingRequirement();
const ACCOUNT = { name: "prometheus", namespace: "default" };
const LINE = /^(?:#.*|[a-zA-Z_:][\w:]*(?:\{.*\})? (?:[-+]?[\d.]+(?:e[-+]?\d+)?|[-+]?Inf|NaN)(?: \d+)?)$/;

function manifest(): string {
  const rbac = "rbac.authorization.k8s.io";
  const verbs = ["get", "list", "watch"];
  const metadata = { name: "prometheus" };
  const page = "HTTP/1.0 200 OK\\r\\nContent-Type: text/plain\\r\\n\\r\\nexample_requests_total 7\\n";
  const command = ["sh", "-c", `while :; do printf '${page}' | nc -l -p 9090; done`];
  const container = { name: "c", image: exampleImage, command, ports: [{ name: "web", containerPort: 9090 }] };
  const annotations = { "prometheus.io/scrape": "true", "prometheus.io/port": "9090" };
  const selector = { app: "web" };
  const items = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: ACCOUNT },
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRole",
      metadata,
      rules: [
        { apiGroups: [""], resources: ["nodes", "nodes/metrics", "services", "endpoints", "pods"], verbs },
        { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs },
        { apiGroups: ["networking.k8s.io"], resources: ["ingresses"], verbs },
        { nonResourceURLs: ["/metrics", "/metrics/cadvisor"], verbs: ["get"] },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: "ClusterRoleBinding",
      metadata,
      subjects: [{ kind: "ServiceAccount", ...ACCOUNT }],
      roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "prometheus" },
    },
    {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web", namespace: "default", labels: selector, annotations },
      spec: { terminationGracePeriodSeconds: 0, containers: [container] },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web", namespace: "default", annotations },
      spec: { selector, ports: [{ name: "web", port: 80, targetPort: "web" }] },
    },
  ];
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

/** The client of Prometheus: its service account's token, and nothing else. */
async function connect(cluster: TestCluster): Promise<KubeConfig> {
  const { stdout } = await cluster.kubectl(["create", "token", ACCOUNT.name]);
  const admin = new KubeConfig();
  admin.loadFromFile(cluster.kubeconfig);
  const config = new KubeConfig();
  config.loadFromClusterAndUser(admin.getCurrentCluster()!, { name: "prometheus", token: stdout.trim() });
  return config;
}

type Watched<T extends KubernetesObject> = Informer<T> & ObjectCache<T>;

/** Lists and watches like a role of the service discovery, until the test ends. */
async function watch<T extends KubernetesObject>(
  t: Test,
  config: KubeConfig,
  path: string,
  list: () => Promise<KubernetesListObject<T>>,
): Promise<Watched<T>> {
  const informer = makeInformer(config, path, list);
  t.teardown(() => informer.stop());
  await informer.start();
  return informer;
}

/** A target's page, whose lines have all the format of Prometheus. */
async function scrape(t: Test, url: string, { token = "", ca = "" } = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly [number, string]>();
  const headers = token === "" ? {} : { authorization: `Bearer ${token}` };
  const onResponse = (response: IncomingMessage): void => {
    text(response).then((body) => resolve([response.statusCode ?? 0, body]), reject);
  };
  const sent = url.startsWith("https:")
    ? request(url, { headers, agent: false, ca }, onResponse)
    : requestHttp(url, { agent: false }, onResponse);
  sent.on("error", reject).end();
  const [status, body] = await promise;
  t.equal(status, 200, `${url}: ${body.slice(0, 200)}`);
  const wrong = body.split("\n").filter((line) => line !== "" && !LINE.test(line));
  t.same(wrong, [], `lines of ${url}`);
  return body;
}

async function discover(t: Test, cluster: TestCluster): Promise<void> {
  const config = await connect(cluster);
  const core = config.makeApiClient(CoreV1Api);
  const slicesOf = config.makeApiClient(DiscoveryV1Api);
  const token = config.getCurrentUser()?.token ?? "";
  const serverCa = Buffer.from(config.getCurrentCluster()?.caData ?? "", "base64").toString();
  const published = ["-n", "kube-public", "get", "configmap", "cluster-info", "-o", "jsonpath={.data.agent-ca\\.crt}"];
  const { stdout: agentCa } = await cluster.kubectl(published);

  const nodes = await watch<V1Node>(t, config, "/api/v1/nodes", () => core.listNode());
  const [node] = await until("the node", () => (nodes.list().length === 1 ? nodes.list() : undefined));
  const address = node?.status?.addresses?.find(({ type }) => type === "InternalIP")?.address;
  const agent = `https://${address}:${node?.status?.daemonEndpoints?.kubeletEndpoint?.Port}`;
  t.match(await scrape(t, `${agent}/metrics`, { token, ca: agentCa }), /^kubelet_running_pods \d+$/m, "role node");
  const page = await scrape(t, `${agent}/metrics/cadvisor`, { token, ca: agentCa });
  t.match(page, /^container_memory_working_set_bytes\{container="c",.*pod="web"\} \d/m);

  const path = "/apis/discovery.k8s.io/v1/endpointslices";
  const slices = await watch<V1EndpointSlice>(t, config, path, () => slicesOf.listEndpointSliceForAllNamespaces());
  const targetsOf = (service: string): readonly string[] =>
    slices
      .list()
      .filter(({ metadata }) => metadata?.labels?.["kubernetes.io/service-name"] === service)
      .flatMap(({ endpoints, ports }) =>
        (endpoints ?? []).flatMap(({ addresses }) => addresses.map((each) => `${each}:${ports?.[0]?.port}`)),
      );
  const [server] = await until("the API server's endpoint", () => {
    const found = targetsOf("kubernetes");
    return found.length > 0 ? found : undefined;
  });
  const metrics = await scrape(t, `https://${server}/metrics`, { token, ca: serverCa });
  t.match(metrics, /^apiserver_request_total\{.*\} \d/m, "role endpointslice, kept by default/kubernetes/https");

  const services = await watch<V1Service>(t, config, "/api/v1/services", () => core.listServiceForAllNamespaces());
  const web = services.list().find(({ metadata }) => metadata?.name === "web");
  t.equal(web?.metadata?.annotations?.["prometheus.io/scrape"], "true");
  t.match(await scrape(t, `http://${web?.spec?.clusterIP}:80/`), "example_requests_total 7", "role service");

  const pods = await watch<V1Pod>(t, config, "/api/v1/pods", () => core.listPodForAllNamespaces());
  const kept = (): readonly string[] =>
    pods
      .list()
      .filter(({ metadata }) => metadata?.annotations?.["prometheus.io/scrape"] === "true")
      .map(({ metadata, status }) => `${status?.podIP}:${metadata?.annotations?.["prometheus.io/port"]}`);
  t.equal(kept().length, 1);
  t.match(await scrape(t, `http://${kept()[0]}/metrics`), "example_requests_total 7", "role pod");
  t.same(targetsOf("web"), kept());
  await cluster.kubectl(["delete", "pod", "web"]);
  await until("the target to go", () => kept().length === 0 && targetsOf("web").length === 0);
}

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("targets are discovered as by Prometheus, and can be scraped", { timeout: 300_000 }, async (t) => {
    const { SVC_PROGRAM: program = "sources" } = process.env;
    const command = programs[program as keyof typeof programs];
    // Targets are reached by the node's address.
    await using cluster = await TestCluster.create({ program: command, flags: ["--bind-address=0.0.0.0"] });
    await cluster.start("--stop-pods");
    const applied = await cluster.kubectl(["apply", "-f", "-"], { input: manifest() });
    t.equal(applied.code, 0, applied.stderr);
    t.match(await cluster.kubectl(["wait", "--for=condition=Ready", "pod/web", "--timeout=90s"]), { code: 0 });
    await discover(t, cluster);
    t.equal(await cluster.stop(), 0);
  });
}
