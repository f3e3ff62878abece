/** The effect of each feature gate that the API server reads. */
import { createPlugins } from "../../../admission/chain/create-plugins.ts";
import type { PluginDeps } from "../../../admission/chain/factory.ts";
import { plugins } from "../../../admission/plugins/built-in-plugins.ts";
import { createCertificateRequest } from "../../../auth/pki/certificate-signing.ts";
import { logOptions } from "../../../flags/log-options.ts";
import { makeRequest } from "../../../http/request.ts";
import { MetricRegistry } from "../../../std/metrics/metrics.ts";
import { createMemoryStore } from "../../../storage/memory.ts";
import { FakeClock } from "../../../testing/std/fake-clock.ts";
import { freePort } from "../../../testing/std/free-port.ts";
import { FakeKms } from "../../../testing/storage/fake-kms.ts";
import { controllerGateEffects } from "./controller-gate-effects.ts";
import { discoveryGateEffects } from "./discovery-gate-effects.ts";
import { writeProviders } from "./encryption-effects.ts";
import { fieldGateEffects } from "./field-gate-effects.ts";
import { configWith, type Gates, withGates } from "./gate-settings.ts";
import { peerGateEffects } from "./peer-effects.ts";
import {
  type Effect,
  file,
  type Name,
  PODS,
  parseFlags,
  pod,
  type Settings,
  startAndClose,
  startServer,
} from "./support.ts";
import { tracingTo } from "./tracing-effects.ts";

type Config = ReturnType<typeof configWith>;
type Method = (...args: readonly unknown[]) => unknown;

/** A gate whose value the configuration contains. */
function showsInConfig(gate: string, normal: boolean, read: (config: Config) => unknown): Effect {
  return async (t) => {
    t.equal(read(configWith({})), normal);
    t.equal(read(configWith({ [gate]: !normal })), !normal);
  };
}

/** A gate that a flag needs. */
function allowsFlag(gate: string, normal: boolean, name: Name, value: string): Effect {
  const needed = new RegExp(`--${name} needs feature gate ${gate}`);
  return async (t) => {
    parseFlags(withGates({ [gate]: true }, { [name]: value }));
    t.throws(() => parseFlags(withGates(normal ? { [gate]: false } : {}, { [name]: value })), needed);
  };
}

/** A gate that adds an admission plugin. */
function addsPlugin(gate: string, name: string): Effect {
  const created = async (gates: Gates) => {
    const parsed = parseFlags(withGates(gates)).gates;
    const deps = { isFeatureEnabled: (each: string) => parsed.has(each), metrics: new MetricRegistry() } as PluginDeps;
    const row = plugins.filter((each) => each.name === name);
    return (await createPlugins({ enabled: [], disabled: [], controlFile: undefined }, deps, row)).plugins.length;
  };
  return async (t) => {
    t.equal(await created({}), 0);
    t.equal(await created({ [gate]: true }), 1);
  };
}

/** A gate that adds a page. */
function addsPage(gate: string, path: string): Effect {
  return async (t) => {
    for (const [gates, status] of [
      [{}, 404],
      [{ [gate]: true }, 200],
    ] as const) {
      await using server = await startServer(withGates(gates));
      const headers = { ...server.admin, accept: "text/plain" };
      t.equal((await server.send(`GET ${path}`, undefined, headers)).status, status);
    }
  };
}

type Status = (gates: Gates) => Promise<number>;

/** A gate of NodeRestriction: the status of a node's request. */
function restrictsNode(gate: string, normal: boolean, statusOf: Status, whenOn: number, whenOff: number): Effect {
  return async (t) => {
    t.equal(await statusOf({}), normal ? whenOn : whenOff);
    t.equal(await statusOf({ [gate]: !normal }), normal ? whenOff : whenOn);
  };
}

async function startRestricted(gates: Gates, settings: Settings = {}) {
  const server = await startServer(withGates(gates, { ...settings, "enable-admission-plugins": "NodeRestriction" }));
  const user = { name: "system:node:n1", uid: "", groups: ["system:nodes", "system:authenticated"], extra: {} };
  return { server, headers: { authorization: `Bearer ${server.running.loopbackToken(user)}` } };
}

async function requestForeignCertificate(gates: Gates): Promise<number> {
  const { server, headers } = await startRestricted(gates);
  await using _ = server;
  const subject = { commonName: "system:node:other", organizations: ["system:nodes"] };
  const { request } = await createCertificateRequest(subject);
  const signerName = "kubernetes.io/kube-apiserver-client-kubelet";
  const spec = { request: Buffer.from(request).toString("base64"), signerName, usages: ["client auth"] };
  const path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
  return (await server.send(`POST ${path}`, { metadata: { name: "r" }, spec }, headers)).status;
}

async function writeAllocatedResources(gates: Gates): Promise<number> {
  const { server, headers } = await startRestricted(gates);
  await using _ = server;
  const claims = "/api/v1/namespaces/default/persistentvolumeclaims";
  const resources = { requests: { storage: "1Gi" } };
  await server.send(`POST ${claims}`, { metadata: { name: "c" }, spec: { accessModes: ["ReadWriteOnce"], resources } });
  const patch = { status: { allocatedResources: { storage: "1Gi" } } };
  const all = { ...headers, "content-type": "application/merge-patch+json" };
  return (await server.send(`PATCH ${claims}/c/status`, patch, all)).status;
}

async function requestUnusedAudience(gates: Gates): Promise<number> {
  // Without an authorizer that grants the node every audience.
  const { server, headers } = await startRestricted(gates, { "authorization-mode": "Node,RBAC" });
  await using _ = server;
  await server.send("POST /api/v1/namespaces/default/serviceaccounts", { metadata: { name: "a" } });
  const web = pod("web");
  const spec = { ...web.spec, nodeName: "n1", serviceAccountName: "a" };
  const { uid } = (await server.send(`POST ${PODS}`, { ...web, spec })).json.metadata;
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "web", uid };
  const body = { spec: { audiences: ["elsewhere"], boundObjectRef } };
  return (await server.send("POST /api/v1/namespaces/default/serviceaccounts/a/token", body, headers)).status;
}

async function createInUserNamespace(gates: Gates): Promise<number> {
  await using server = await startServer(withGates(gates));
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  await server.send("POST /api/v1/namespaces", { metadata: { name: "strict", labels } });
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
  const spec = {
    hostUsers: false,
    securityContext: { runAsUser: 0, seccompProfile: { type: "RuntimeDefault" } },
    containers: [{ name: "c", image: "i", securityContext }],
  };
  return (await server.send("POST /api/v1/namespaces/strict/pods", { metadata: { name: "p" }, spec })).status;
}

/** The response to an upgrade to WebSocket, for a pod on a node that nothing can reach. */
async function upgrade(gates: Gates, subresource: string, protocol: string) {
  await using server = await startServer(withGates(gates));
  const address = { type: "InternalIP", address: "127.0.0.2" };
  const status = { addresses: [address], daemonEndpoints: { kubeletEndpoint: { Port: await freePort() } } };
  const { json: node } = await server.send("POST /api/v1/nodes", { metadata: { name: "n1" } });
  await server.send("PUT /api/v1/nodes/n1/status", { ...node, status });
  const web = pod("web");
  await server.send(`POST ${PODS}`, { ...web, spec: { ...web.spec, nodeName: "n1" } });
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-protocol": protocol,
  };
  const [path = "", query = ""] = subresource.split("?");
  const stop = new AbortController();
  const sent = { path: `${PODS}/web/${path}`, query, headers, signal: stop.signal };
  const request = { ...makeRequest(sent), upgradable: true };
  return (await server.running.handler(request).finally(() => stop.abort())).status;
}

export const gateEffects: Readonly<Record<string, Effect>> = {
  ...fieldGateEffects,
  ...discoveryGateEffects,
  ...controllerGateEffects,
  ContextualLogging: async (t) => {
    for (const value of [true, false]) {
      const { flags, gates } = parseFlags(withGates(value ? {} : { ContextualLogging: false }));
      t.equal(logOptions(flags, gates.enabled("ContextualLogging")).isContextual, value);
    }
  },
  ...peerGateEffects,
  AllAlpha: async (t) => {
    t.equal(configWith({}).cbor, false);
    // Peers need certificates.
    t.equal(configWith({ AllAlpha: true, UnknownVersionInteroperabilityProxy: false }).cbor, true);
  },
  AllBeta: async (t) => {
    t.equal(configWith({}).authorization.selectors, true);
    t.equal(configWith({ AllBeta: false }).authorization.selectors, false);
  },
  AllowUnsafeMalformedObjectDeletion: async (t) => {
    const path = "/api/v1/namespaces/default/secrets/lost";
    const option = "ignoreStoreReadErrorWithClusterBreakingPotential=true";
    for (const value of [false, true]) {
      const store = createMemoryStore({ clock: new FakeClock() });
      await store.create("/registry/secrets/default/lost", Buffer.from("k8s:enc:aesgcm:v1:k1:ciphertext"));
      const own = { get: store.get, scan: store.scan, delete: store.delete, watch: store.watch, create: store.create };
      const methods = Object.entries({ ...own, list: store.list, update: store.update, current: store.current });
      const bound = Object.fromEntries(methods.map(([name, method]) => [name, (method as Method).bind(store)]));
      await using server = await startServer(withGates({ AllowUnsafeMalformedObjectDeletion: value }), bound);
      t.equal((await server.send(`DELETE ${path}?${option}`)).status, value ? 200 : 500);
      t.equal((await server.send(`GET ${path}`)).status, value ? 404 : 500);
    }
  },
  AllowInsecureSvcletCertificateSigningRequests: restrictsNode(
    "AllowInsecureSvcletCertificateSigningRequests",
    false,
    requestForeignCertificate,
    201,
    403,
  ),
  AllowParsingUserUIDFromCertAuth: showsInConfig(
    "AllowParsingUserUIDFromCertAuth",
    true,
    ({ authentication }) => authentication.certificateUids,
  ),
  AnonymousAuthConfigurableEndpoints: async (t) => {
    const forbidden = (gates: Gates) =>
      configWith(gates, { "authentication-config": file("tokens") }).authentication.structured?.anonymousForbidden;
    t.equal(forbidden({}), undefined);
    t.match(forbidden({ AnonymousAuthConfigurableEndpoints: false }), /anonymous is not supported/);
  },
  AuthorizeNodeWithSelectors: showsInConfig("AuthorizeNodeWithSelectors", true, (c) => c.authorization.nodeSelectors),
  AuthorizeWithSelectors: showsInConfig("AuthorizeWithSelectors", true, (c) => c.authorization.selectors),
  CBORServingAndStorage: showsInConfig("CBORServingAndStorage", false, ({ cbor }) => cbor),
  APIServerTracing: async (t) => {
    const settings = tracingTo(t, "127.0.0.1:1");
    await using _server = await startServer(settings);
    await t.rejects(startAndClose(withGates({ APIServerTracing: false }, settings)), {
      message: "APIServerTracing feature is not enabled, but --tracing-config-file was provided",
    });
  },
  ClusterTrustBundle: addsPlugin("ClusterTrustBundle", "ClusterTrustBundleAttest"),
  ComponentFlagz: addsPage("ComponentFlagz", "/flagz"),
  ComponentStatusz: addsPage("ComponentStatusz", "/statusz"),
  ExternalServiceAccountTokenSigner: allowsFlag(
    "ExternalServiceAccountTokenSigner",
    false,
    "service-account-signing-endpoint",
    "/run/signer.sock",
  ),
  MutatingAdmissionPolicy: addsPlugin("MutatingAdmissionPolicy", "MutatingAdmissionPolicy"),
  KMSv1: async (t) => {
    await using plugin = await FakeKms.start();
    const providers = [{ kms: { apiVersion: "v1", name: "p", endpoint: plugin.endpoint } }];
    const path = writeProviders(t, providers);
    await t.rejects(startAndClose({ "encryption-provider-config": path }), /Set --feature-gates=KMSv1=true to use/);
    await using server = await startServer(withGates({ KMSv1: true }, { "encryption-provider-config": path }));
    const body = { metadata: { name: "a" }, stringData: { password: "sesame" } };
    await server.send("POST /api/v1/namespaces/default/secrets", body);
    const written = server.writes.findLast(({ key }) => key.endsWith("/secrets/default/a"));
    t.match(Buffer.from(written?.value ?? []).toString("latin1"), /^k8s:enc:kms:v1:p:/);
  },
  LoggingAlphaOptions: allowsFlag("LoggingAlphaOptions", false, "log-text-split-stream", "true"),
  PodLogsQuerySplitStreams: async (t) => {
    const status = async (gates: Gates) => {
      await using server = await startServer(withGates(gates));
      await server.send(`POST ${PODS}`, pod("web"));
      return (await server.send(`GET ${PODS}/web/log?stream=Stdout`)).status;
    };
    t.equal(await status({}), 422);
    t.equal(await status({ PodLogsQuerySplitStreams: true }), 204);
  },
  PodTopologyLabelsAdmission: addsPlugin("PodTopologyLabelsAdmission", "PodTopologyLabels"),
  PortForwardWebsockets: async (t) => {
    const status = (gates: Gates) => upgrade(gates, "portforward?ports=80", "SPDY/3.1+none");
    t.equal(await status({}), 400, "no such tunnel");
    t.not(await status({ PortForwardWebsockets: false }), 400, "no tunnel at all");
  },
  RecoverVolumeExpansionFailure: restrictsNode(
    "RecoverVolumeExpansionFailure",
    true,
    writeAllocatedResources,
    200,
    403,
  ),
  RemoteRequestHeaderUID: async (t) => {
    const uids = (gates: Gates) => {
      const settings = { "requestheader-client-ca-file": file("ca.crt"), "requestheader-uid-headers": "X-Remote-Uid" };
      return configWith(gates, settings).authentication.requestHeader?.uids;
    };
    t.same(uids({}), ["X-Remote-Uid"]);
    t.throws(() => uids({ RemoteRequestHeaderUID: false }), /needs feature gate RemoteRequestHeaderUID/);
  },
  ServiceAccountNodeAudienceRestriction: restrictsNode(
    "ServiceAccountNodeAudienceRestriction",
    true,
    requestUnusedAudience,
    403,
    201,
  ),
  StructuredAuthenticationConfiguration: allowsFlag(
    "StructuredAuthenticationConfiguration",
    true,
    "authentication-config",
    "/etc/authn.yaml",
  ),
  SvcletServiceAccountTokenForCredentialProviders: showsInConfig(
    "SvcletServiceAccountTokenForCredentialProviders",
    false,
    ({ authorization }) => authorization.nodeServiceAccounts,
  ),
  TranslateStreamCloseWebsocketRequests: async (t) => {
    const status = (gates: Gates) => upgrade(gates, "exec?command=id&stdout=true", "v5.channel.k8s.io");
    t.equal(await status({}), 101, "the server translates");
    t.not(await status({ TranslateStreamCloseWebsocketRequests: false }), 101, "the agent would");
  },
  UserNamespacesPodSecurityStandards: async (t) => {
    t.equal(await createInUserNamespace({}), 403);
    t.equal(await createInUserNamespace({ UserNamespacesPodSecurityStandards: true }), 201);
  },
  WatchList: showsInConfig("WatchList", false, ({ watchList }) => watchList),
};
