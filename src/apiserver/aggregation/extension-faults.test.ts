/** Extension servers with wrong certificates, redirects and hostile documents, and those that do not respond. */
import { readFileSync, writeFileSync } from "node:fs";
import t from "tap";
import { textResponse } from "../../http/respond.ts";
import { API_SERVICES, SAMPLE_GROUP, startAggregatedCluster } from "../../testing/aggregation/aggregated-cluster.ts";
import { makeCertificate, SERVER_AUTH } from "../../testing/http/test-certificates.ts";
import { until } from "../../testing/std/until.ts";

const GROUP_VERSION = `/apis/${SAMPLE_GROUP}/v1alpha1`;
const FLUNDERS = `${GROUP_VERSION}/namespaces/default/flunders`;
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

t.test("the certificate of an extension server is verified", async (t) => {
  const wrongCa = await makeCertificate({ subject: [{ CN: ["other"] }], authority: {} });
  const pem = (text: string) => Buffer.from(text).toString("base64");
  await using cluster = await startAggregatedCluster({ extension: { intercept: async () => textResponse(200, "{}") } });
  const cases: readonly (readonly [spec: object, status: number, text: RegExp])[] = [
    [{ caBundle: pem(wrongCa.cert) }, 503, /^error trying to reach service: tls: .* signed by unknown authority\n$/],
    [{ caBundle: pem("x") }, 500, /^unable to load root certificates: unable to parse bytes as PEM block\n$/],
    [{ insecureSkipTLSVerify: true }, 200, /^\{\}$/],
  ];
  for (const [index, [spec, status, text]] of cases.entries()) {
    const group = `case${index}.example.com`;
    await cluster.register(spec, `v1.${group}`);
    await cluster.waitForAvailability("True", `v1.${group}`);
    const response = await cluster.server.send(`GET /apis/${group}/v1/things`);
    t.equal(response.status, status, response.text);
    t.match(response.text, text);
  }
});

t.test("names in the certificate are those of the service", async (t) => {
  const ca = await makeCertificate({ subject: [{ CN: ["own"] }], authority: {} });
  const make = (names: readonly string[]) =>
    makeCertificate({ subject: [{ CN: ["sample.default.svc"] }], issuer: ca, usages: [SERVER_AUTH], names });
  for (const [names, text] of [
    [["other.default.svc"], /certificate is valid for other.default.svc, not sample.default.svc\n$/],
    [[], /certificate relies on legacy Common Name field, use SANs instead\n$/],
  ] as const) {
    await using cluster = await startAggregatedCluster({ extension: { certificate: await make(names) } });
    await cluster.register({ caBundle: Buffer.from(ca.cert).toString("base64") });
    await cluster.waitForAvailability("True");
    const response = await cluster.server.send(`GET ${FLUNDERS}`);
    t.equal(response.status, 503);
    t.match(response.text, text);
    const metrics = await cluster.server.send("GET /metrics");
    t.match(metrics.text, new RegExp(`x509_missing_san_total ${names.length === 0 ? "[1-9]" : 0}`));
  }
});

t.test("the CA of an extension server may have the name of its certificate", async (t) => {
  const subject = [{ CN: ["sample.default.svc"] }];
  const [ca, other] = [
    await makeCertificate({ subject, authority: {} }),
    await makeCertificate({ subject, authority: {} }),
  ];
  const names = ["sample.default.svc"];
  const certificate = await makeCertificate({ subject, issuer: ca, usages: [SERVER_AUTH], names });
  await using cluster = await startAggregatedCluster({
    extension: { certificate, intercept: async () => textResponse(200, "{}") },
  });
  const send = async () => (await cluster.server.send(`GET ${FLUNDERS}`)).status;
  await cluster.register({ caBundle: Buffer.from(ca.cert).toString("base64") });
  await cluster.waitForAvailability("True");
  await send();
  t.equal(await send(), 200, "but for the first request");
  await cluster.register({ caBundle: Buffer.from(other.cert).toString("base64") }, "v1.other.example.com");
  await cluster.waitForAvailability("True", "v1.other.example.com");
  const fail = async () => (await cluster.server.send("GET /apis/other.example.com/v1/things")).text;
  await fail();
  t.match(await fail(), /signed by unknown authority/);
});

t.test("the client certificate of the proxy is reloaded", async (t) => {
  await using cluster = await startAggregatedCluster();
  const { server, certificates } = cluster;
  await cluster.register();
  await cluster.waitForAvailability("True");
  t.equal((await server.send(`GET ${FLUNDERS}`)).status, 200);
  const { certFile, keyFile } = certificates.proxyClient;
  const [before, beforeKey] = [readFileSync(certFile), readFileSync(keyFile)];
  const unknownPair = await makeCertificate({ subject: [{ CN: ["unknown"] }] });
  writeFileSync(keyFile, unknownPair.key);
  writeFileSync(certFile, unknownPair.cert);
  const status = async () => (await server.send(`GET ${FLUNDERS}`)).status;
  const wait = async () => {
    await cluster.wait();
    await server.clock.advance(1000);
  };
  await until("a rejected certificate", async () => (await status()) === 401 || undefined, { wait });
  writeFileSync(keyFile, beforeKey);
  writeFileSync(certFile, before);
  await until("an accepted certificate", async () => (await status()) === 200 || undefined, { wait });
});

t.test("the deletion of a namespace deletes objects of extension servers, and waits for those servers", async (t) => {
  await using cluster = await startAggregatedCluster({ config: { embeddedControllers: ["namespace"] } });
  const { server } = cluster;
  await cluster.register();
  await cluster.waitForAvailability("True");
  const namespaces = "/api/v1/namespaces";
  const gone = async () => (await server.send(`GET ${namespaces}/doomed`)).status === 404;
  const wait = async () => {
    await cluster.wait();
    await server.clock.advance(1000);
  };
  await server.send(`POST ${namespaces}`, { body: { metadata: { name: "doomed" } } });
  const flunders = `${GROUP_VERSION}/namespaces/doomed/flunders`;
  t.equal((await server.send(`POST ${flunders}`, { body: { metadata: { name: "a" } } })).status, 201);
  await cluster.register({ service: { namespace: "default", name: "none" } }, "v1.absent.example.com");
  await server.send(`DELETE ${namespaces}/doomed`);
  const failure = await until(
    "a condition",
    async () => {
      const { conditions = [] } = (await server.send(`GET ${namespaces}/doomed`)).json.status;
      return conditions.find(({ type }: { type: string }) => type === "NamespaceDeletionDiscoveryFailure");
    },
    { wait },
  );
  t.match(failure, {
    status: "True",
    reason: "DiscoveryFailed",
    message:
      "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: " +
      "absent.example.com/v1: stale GroupVersion discovery: absent.example.com/v1",
  });
  t.same((await server.send(`GET ${flunders}`)).json.items, []);
  await server.send(`DELETE ${API_SERVICES}/v1.absent.example.com`);
  await until("no namespace", gone, { wait });
});

t.test("redirects are forwarded when --aggregator-reject-forwarding-redirect is off", async (t) => {
  const redirect = async (path: string) =>
    path.endsWith("/move") ? { ...textResponse(302, ""), headers: { location: "/elsewhere" } } : undefined;
  await using cluster = await startAggregatedCluster({
    config: { rejectsExtensionRedirects: false },
    extension: { intercept: ({ request }) => redirect(request.path) },
  });
  await cluster.register();
  await cluster.waitForAvailability("True");
  const { status, headers } = await cluster.server.send(`GET ${GROUP_VERSION}/move`);
  t.same([status, headers.location], [302, `https://localhost:${cluster.extension.port}/elsewhere`]);
});

t.test("hostile extension servers are bounded", async (t) => {
  let mode = "";
  const huge = Buffer.alloc(2 ** 20, " ");
  async function* endless() {
    for (;;) yield huge;
  }
  await using cluster = await startAggregatedCluster({
    extension: {
      intercept: async ({ request: { path } }) => {
        if (path.startsWith(GROUP_VERSION) && !path.endsWith("/hang")) return undefined;
        if (mode === "hang" || path.endsWith("/hang")) return await new Promise(() => {});
        const type = { "content-type": path.startsWith("/apis") ? AGGREGATED : "application/json" };
        if (mode === "huge") return { status: 200, headers: type, body: endless() };
        if (mode === "garbage")
          return { ...textResponse(200, '{"items":[{"versions":7},3],"paths":[]}'), headers: type };
        if (mode === "deep") return { ...textResponse(200, "[".repeat(100_000)), headers: type };
        return undefined;
      },
    },
  });
  const { server } = cluster;
  for (mode of ["huge", "garbage", "deep"]) {
    const name = `v1alpha1.${SAMPLE_GROUP}`;
    await cluster.register({}, name);
    await cluster.waitForAvailability("True", name);
    for (let count = 0; count < 20; count++) await cluster.wait();
    const { items } = (await server.send("GET /apis", { headers: { accept: AGGREGATED } })).json;
    t.ok(items.length > 10, `${mode}: aggregated discovery`);
    t.ok((await server.send("GET /openapi/v2")).json.paths["/api/v1/pods"], `${mode}: OpenAPI v2`);
    const { paths } = (await server.send("GET /openapi/v3")).json;
    t.same([paths["api/v1"] !== undefined, paths[GROUP_VERSION.slice(1)]], [true, undefined], `${mode}: OpenAPI v3`);
    await server.send(`DELETE ${API_SERVICES}/${name}`);
    await until("no group", async () => (await server.send(`GET /apis/${SAMPLE_GROUP}`)).status === 404, {
      wait: cluster.wait,
    });
  }
  mode = "hang";
  await cluster.register();
  await cluster.waitForAvailability("True");
  let isAnswered = false;
  const paths = ["/openapi/v2", `${GROUP_VERSION}/namespaces/x/hang`];
  const answers = Promise.all(paths.map((path) => server.send(`GET ${path}`))).finally(() => {
    isAnswered = true;
  });
  await until("answers", () => isAnswered, {
    wait: async () => {
      await cluster.wait();
      await server.clock.advance(1000);
    },
  });
  const [v2, hung] = await answers;
  t.equal(v2?.status, 200, "OpenAPI without the server that hangs");
  t.match([hung?.status, hung?.json.message], [504, /Timeout: request did not complete/]);
});
