import t from "tap";
import { apiserverGates } from "../../flags/gate-tables/apiserver.ts";
import { FeatureGates } from "../../flags/gates.ts";
import { parseFlags } from "../../flags/parse.ts";
import { apiserverFlags } from "../flags/flags.ts";
import { apiServerOptions } from "./options.ts";

const options = (...argv: readonly string[]) =>
  apiServerOptions(parseFlags(apiserverFlags, argv), new FeatureGates(apiserverGates), "v1.33.0");

t.test("apiServerOptions() without flags returns the defaults of the specification", async (t) => {
  t.match(options(), {
    bindAddress: "0.0.0.0",
    securePort: 6443,
    serving: { certificate: undefined, certDir: "/var/run/svc", ciphers: undefined },
    authentication: { anonymous: false, clientCaFile: undefined },
    authorizationModes: ["AlwaysAllow"],
    storage: { urls: ["level:///var/lib/svc/kvstore"], prefix: "/registry", eventTtlMs: 3_600_000 },
    limits: { requestTimeoutMs: 60_000, minRequestTimeoutMs: 1_800_000 },
    groupAliases: { served: true, listed: false },
    garbageCollector: true,
    embeddedControllers: [],
  });
});

t.test("apiServerOptions() maps flags to the configuration", async (t) => {
  const cases: readonly (readonly [string, Parameters<typeof t.match>[1]])[] = [
    ["--bind-address=127.0.0.1", { bindAddress: "127.0.0.1" }],
    ["--tls-min-version=VersionTLS13", { serving: { minVersion: "TLSv1.3" } }],
    [
      "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
      { serving: { ciphers: /^TLS_AES_128_GCM_SHA256:.*:ECDHE-RSA-AES128-GCM-SHA256$/ } },
    ],
    ["--disable-http2-serving", { serving: { disableHttp2: true } }],
    ["--anonymous-auth=false", { authentication: { anonymous: false } }],
    ["--authorization-mode=RBAC", { authentication: { anonymous: true } }],
    ["--authorization-mode=RBAC,AlwaysAllow", { authentication: { anonymous: false } }],
    ["--authorization-config=/none", { authentication: { anonymous: true } }],
    ["--authorization-mode=Node,RBAC", { authorizationModes: ["Node", "RBAC"] }],
    ["--kvstore-servers=memory://", { storage: { urls: ["memory://"] } }],
    ["--storage-media-type=application/json", { storage: { mediaType: "application/json" } }],
    ["--event-ttl=10m", { storage: { eventTtlMs: 600_000 } }],
    ["--min-request-timeout=60", { limits: { minRequestTimeoutMs: 60_000 } }],
    ["--svclet-timeout=9s", { agents: { timeoutMs: 9000 } }],
    ["--enable-garbage-collector=false", { garbageCollector: false }],
    ["--delete-collection-workers=4", { deleteCollectionWorkers: 4 }],
  ];
  for (const [flag, expected] of cases) t.match(options(flag), expected, flag);
});

t.test("apiServerOptions() accepts several servers of a remote store only", async (t) => {
  const urls = ["https://192.0.2.1:2379", "https://192.0.2.2:2379"];
  t.same(options(`--kvstore-servers=${urls.join(",")}`).storage.urls, urls);
  const mixed = "--kvstore-servers=memory://,https://192.0.2.1:2379";
  t.throws(() => options(mixed), /only http:\/\/ and https:\/\/ servers form a store together/);
});

t.test("apiServerOptions() maps feature gates to the node authorizer", async (t) => {
  const of = (settings: Readonly<Record<string, boolean>>) => {
    const gates = new FeatureGates(apiserverGates, settings);
    return apiServerOptions(parseFlags(apiserverFlags, []), gates, "v1.33.0").authorization;
  };
  t.match(of({}), { selectors: true, nodeSelectors: true, nodeServiceAccounts: false });
  t.match(of({ AuthorizeNodeWithSelectors: false }), { nodeSelectors: false });
  t.match(of({ KubeletServiceAccountTokenForCredentialProviders: true }), { nodeServiceAccounts: true });
});
