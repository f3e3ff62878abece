import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { CLIENT_AUTH, makeCertificate } from "../../testing/http/test-certificates.ts";
import { loadEgressConfiguration } from "./configuration.ts";

const folder = mkdtempSync(join(tmpdir(), "svc-egress-"));
t.teardown(() => rmSync(folder, { recursive: true }));
const ca = await makeCertificate({ subject: [{ CN: ["ca"] }], authority: {} });
const client = await makeCertificate({ subject: [{ CN: ["apiserver"] }], issuer: ca, usages: [CLIENT_AUTH] });
const write = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const files = {
  caBundle: write("ca.crt", ca.cert),
  clientCert: write("client.crt", client.cert),
  clientKey: write("client.key", client.key),
};

const API = "apiserver.svc.io/v1beta1";

function load(selections: readonly object[], apiVersion = API) {
  const config = { apiVersion, kind: "EgressSelectorConfiguration", egressSelections: selections };
  return loadEgressConfiguration(write("egress.json", JSON.stringify(config)));
}

const select = (connection: object, name = "cluster"): object => ({ name, connection });
const http = (transport?: object) => select({ proxyProtocol: "HTTPConnect", ...(transport && { transport }) });

t.test("each protocol and transport is read", async (t) => {
  const { connections, warnings } = load([
    select({ proxyProtocol: "Direct" }, "controlplane"),
    select({ proxyProtocol: "GRPC", transport: { uds: { udsName: "/run/k.sock" } } }, "Cluster"),
    select(
      { proxyProtocol: "HTTPConnect", transport: { tcp: { url: "https://proxy:8131", tlsConfig: files } } },
      "kvstore",
    ),
  ]);
  t.same(connections.get("controlplane"), { protocol: "direct" });
  t.same(connections.get("cluster"), { protocol: "grpc", path: "/run/k.sock" });
  t.match(connections.get("etcd"), {
    protocol: "http_connect",
    proxy: { kind: "tcp", tls: { ca: ca.cert, cert: client.cert, key: client.key } },
  });
  t.same(warnings, []);
});

t.test("Kubernetes' group and its earlier version are accepted, others are not", async (t) => {
  for (const version of ["apiserver.k8s.io/v1beta1", "apiserver.k8s.io/v1alpha1"]) {
    t.equal(load([select({ proxyProtocol: "Direct" })], version).connections.size, 1);
  }
  t.throws(() => load([], "apiserver.k8s.io/v1"), { message: /expected apiVersion/ });
});

t.test("the deprecated name is accepted with a warning", async (t) => {
  const { connections, warnings } = load([select({ proxyProtocol: "Direct" }, "master")]);
  t.ok(connections.has("controlplane"));
  t.same(warnings, ['The egress selection name "master" is deprecated; use "controlplane"']);
});

t.test("invalid selections are refused with Kubernetes' messages", async (t) => {
  const path = "egressSelections\\[0\\].connection";
  const tls = (config: object) => http({ tcp: { url: "https://proxy:1", tlsConfig: config } });
  const rows: readonly (readonly [object, string])[] = [
    [select({ proxyProtocol: "SOCKS" }), `proxyProtocol: Unsupported value: "SOCKS": supported values: "Direct", `],
    [select({}), `proxyProtocol: Unsupported value: "": supported values: "Direct", "HTTPConnect", "GRPC"`],
    [
      select({ proxyProtocol: "Direct", transport: {} }),
      `transport: Invalid value: "direct": Transport config should be absent for direct connect`,
    ],
    [http(), "transport: Required value: transport must be set for HTTPConnect"],
    [http({}), "transport.tcp: Required value: One of TCP or UDS must be set"],
    [http({ tcp: { url: "http://p" }, uds: { udsName: "/s" } }), "TCP and UDS cannot both be set"],
    [http({ uds: {} }), `udsName: Invalid value: "nil": UDSName should be present for UDS connections`],
    [
      http({ tcp: { url: "ftp://p" } }),
      `Invalid value: "ftp://p": supported connection protocols are http:// and https://`,
    ],
    [http({ tcp: { url: "http://" } }), `url: Invalid value: "http://": invalid proxy server url`],
    [
      http({ tcp: { url: "http://p", tlsConfig: files } }),
      `tlsConfig: Invalid value: "nil": TLSConfig config should not be present when using HTTP`,
    ],
    [http({ tcp: { url: "https://p" } }), "tlsConfig: Required value: TLSConfig must be present when using HTTPS"],
    [tls({ ...files, clientCert: "" }), `clientCert: Invalid value: "nil": Using TLS requires clientCert`],
    [tls({ ...files, clientKey: "" }), `clientKey: Invalid value: "nil": Using TLS requires requires clientKey`],
    [tls({ ...files, clientCert: "/none" }), `clientCert: Invalid value: "/none": TLS client cert does not exist`],
    [tls({ ...files, clientKey: "/none" }), `clientKey: Invalid value: "/none": TLS client key does not exist`],
    [tls({ ...files, caBundle: "/none" }), `caBundle: Invalid value: "/none": TLS config ca bundle does not exist`],
    [select({ proxyProtocol: "GRPC" }), "transport: Required value: transport must be set for GRPC"],
    [
      select({ proxyProtocol: "GRPC", transport: { tcp: { url: "http://p" } } }),
      "uds: Required value: UDS must be set with GRPC",
    ],
    [
      select({ proxyProtocol: "GRPC", transport: { uds: { udsName: "" } } }),
      `Invalid value: "nil": UDSName should be present for UDS connections`,
    ],
  ];
  for (const [selection, message] of rows) {
    const escaped = message.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
    t.throws(() => load([selection]), { message: new RegExp(`egress.json:1: ${path}\\..*${escaped}`) }, message);
  }
});

t.test("names are checked", async (t) => {
  const direct = { proxyProtocol: "Direct" };
  const name = "egressSelections\\[1\\].name";
  t.throws(() => load([select(direct, "nodes")]), {
    message: /Unsupported value: "nodes": supported values: "cluster", "controlplane", "etcd"/,
  });
  t.throws(() => load([select(direct), select(direct, "CLUSTER")]), {
    message: new RegExp(`${name}: Duplicate value: "cluster"`),
  });
  t.throws(() => load([select(direct, "etcd"), select(direct, "kvstore")]), { message: /Duplicate value: "kvstore"/ });
  t.throws(() => load([select(direct, "master"), select(direct, "controlplane")]), {
    message: /Forbidden: both egressSelection names 'master' and 'controlplane' are specified, only one is allowed/,
  });
});

t.test("files of TLS must be usable", async (t) => {
  const garbage = write("garbage", "nothing");
  const load1 = (config: object) => () =>
    load([http({ tcp: { url: "https://p", tlsConfig: { ...files, ...config } } })]);
  t.throws(load1({ caBundle: garbage }), {
    message: 'failed to create dialer for egressSelection "cluster": failed to append CA cert to the cert pool',
  });
  t.throws(load1({ clientKey: garbage }), {
    message: /^failed to create dialer for egressSelection "cluster": failed to read key pair \S+ & \S+garbage, got /,
  });
  t.throws(() => loadEgressConfiguration("/none"), {
    message:
      "failed to read egress selector config: unable to read egress selector configuration from " +
      '"/none" [open /none: no such file or directory]',
  });
});
