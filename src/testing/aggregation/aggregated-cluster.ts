/** An API server in memory with an extension server of the sample kinds. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiServerConfig } from "../../apiserver/config/config.ts";
import { startTestServer, type TestServer } from "../apiserver/server-fixture.ts";
import { makeCertificate, SERVER_AUTH, type TestCertificate } from "../http/test-certificates.ts";
import { until } from "../std/until.ts";
import { type ExtensionServer, type ExtensionServerOptions, startExtensionServer } from "./extension-server.ts";
import { fischerKind, flunderKind } from "./sample-kinds.ts";

export const SAMPLE_GROUP = "wardle.example.com";
export const SAMPLE_VERSION = "v1alpha1";
export const SAMPLE_API = `${SAMPLE_VERSION}.${SAMPLE_GROUP}`;
export const API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices";

/** The certificates of an extension server and of the API server's front proxy, in files. */
export interface AggregationCertificates extends Disposable {
  readonly proxyCa: TestCertificate;
  readonly proxyClient: { readonly certFile: string; readonly keyFile: string };
  readonly serverCa: TestCertificate;
  /** For `sample.default.svc`. */
  readonly server: TestCertificate;
}

export async function makeAggregationCertificates(): Promise<AggregationCertificates> {
  const folder = mkdtempSync(join(tmpdir(), "svc-aggregation-"));
  const [proxyCa, serverCa] = await Promise.all(
    ["front-proxy-ca", "extension-ca"].map((name) => makeCertificate({ subject: [{ CN: [name] }], authority: {} })),
  );
  const client = await makeCertificate({ subject: [{ CN: ["front-proxy"] }], issuer: proxyCa! });
  const server = await makeCertificate({
    subject: [{ CN: ["sample"] }],
    issuer: serverCa!,
    usages: [SERVER_AUTH],
    names: ["sample.default.svc"],
  });
  const proxyClient = { certFile: join(folder, "client.crt"), keyFile: join(folder, "client.key") };
  writeFileSync(proxyClient.certFile, client.cert);
  writeFileSync(proxyClient.keyFile, client.key);
  return {
    proxyCa: proxyCa!,
    proxyClient,
    serverCa: serverCa!,
    server,
    [Symbol.dispose]: () => rmSync(folder, { recursive: true }),
  };
}

export interface AggregatedCluster extends AsyncDisposable {
  readonly server: TestServer;
  readonly extension: ExtensionServer;
  readonly certificates: AggregationCertificates;
  /** Creates the API service of the sample kinds, or of another group. */
  register(spec?: object, name?: string): Promise<void>;
  /** Waits until the condition Available of the API service has the status. */
  waitForAvailability(status: string, name?: string): Promise<{ readonly reason: string; readonly message: string }>;
  /** Waits while checks, which take real time, and the timers of the server run. */
  wait(): Promise<void>;
}

export interface AggregatedClusterOptions {
  readonly config?: Partial<ApiServerConfig>;
  readonly extension?: Partial<ExtensionServerOptions>;
}

export async function startAggregatedCluster(options: AggregatedClusterOptions = {}): Promise<AggregatedCluster> {
  await using owned = new AsyncDisposableStack();
  const certificates = owned.use(await makeAggregationCertificates());
  const { proxyClient: proxyClientCertificate, proxyCa, server: certificate, serverCa } = certificates;
  const extension = owned.use(
    await startExtensionServer({
      kinds: [flunderKind, fischerKind],
      certificate,
      proxyCa: proxyCa.cert,
      ...options.extension,
    }),
  );
  const server = owned.use(await startTestServer({ proxyClientCertificate, ...options.config }));
  const service = {
    metadata: { name: "sample" },
    spec: { type: "ExternalName", externalName: "localhost", ports: [{ port: extension.port }] },
  };
  const created = await server.send("POST /api/v1/namespaces/default/services", { body: service });
  if (created.status !== 201) throw new Error(created.text);
  const caBundle = Buffer.from(serverCa.cert).toString("base64");
  const wait = async (): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    await server.clock.advance(20);
  };
  const resources = owned.move();
  return {
    server,
    extension,
    certificates,
    async register(spec = {}, name = SAMPLE_API) {
      const [version = "", ...group] = name.split(".");
      const own = {
        group: group.join("."),
        version,
        groupPriorityMinimum: 2000,
        versionPriority: 200,
        service: { namespace: "default", name: "sample", port: extension.port },
        ...("insecureSkipTLSVerify" in spec ? {} : { caBundle }),
        ...spec,
      };
      const response = await server.send(`POST ${API_SERVICES}`, { body: { metadata: { name }, spec: own } });
      if (response.status !== 201) throw new Error(response.text);
    },
    async waitForAvailability(status, name = SAMPLE_API) {
      let last = "";
      return await until(
        () => `API service ${name} with Available=${status}, not ${last}`,
        async () => {
          const { text, json } = await server.send(`GET ${API_SERVICES}/${name}`);
          last = text;
          const [found] = json.status?.conditions ?? [];
          return found?.status === status ? found : undefined;
        },
        { wait, timeoutMs: 10_000 },
      );
    },
    wait,
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
