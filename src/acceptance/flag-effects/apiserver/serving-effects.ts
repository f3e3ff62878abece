/** Effects of the flags for serving, network and TLS. */

import { X509Certificate } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { request as requestPlain } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "../../../testing/http/test-certificates.ts";
import { blockEventLoop } from "../../../testing/std/block-event-loop.ts";
import { freePort } from "../../../testing/std/free-port.ts";
import {
  type Effect,
  fetchStatus,
  file,
  handshake,
  type Name,
  pair,
  parseFlags,
  startAndClose,
  startServer,
  user,
} from "./support.ts";

export const servingEffects: Partial<Record<Name, Effect>> = {
  "bind-address": async (t) => {
    await using server = await startServer({ "bind-address": "127.0.0.4" });
    t.equal(server.running.address.host, "127.0.0.4");
    t.equal((await fetchStatus(server.port, { host: "127.0.0.4" })).status, 200);
    await t.rejects(fetchStatus(server.port), { code: "ECONNREFUSED" });
  },
  "secure-port": async (t) => {
    const port = String(await freePort());
    await using server = await startServer({ "secure-port": port });
    t.equal(String(server.port), port);
    t.equal((await fetchStatus(Number(port))).status, 200);
  },
  workers: async (t) => {
    const threads = (): number => {
      const names = readdirSync("/proc/self/task").map((id) => readFileSync(`/proc/self/task/${id}/comm`, "utf8"));
      return names.filter((name) => name.startsWith("svc-worker")).length;
    };
    await using server = await startServer({ workers: "3" });
    t.equal(threads(), 2, "beside the main thread");
    const statuses = await Promise.all(Array.from({ length: 16 }, () => fetchStatus(server.port)));
    t.same(new Set(statuses.map(({ status }) => status)), new Set([200]));
    t.throws(() => parseFlags({ workers: "65" }), /workers/);
  },
  "advertise-address": async (t) => {
    await using server = await startServer({ "advertise-address": "192.0.2.7" });
    const { json } = await server.send("GET /api");
    t.equal(json.serverAddressByClientCIDRs[0].serverAddress, `192.0.2.7:${server.port}`);
  },
  "external-hostname": async (t) => {
    await using server = await startServer({
      "advertise-address": "192.0.2.7",
      "external-hostname": "api.example.com",
    });
    const { json } = await server.send("GET /api");
    t.equal(json.serverAddressByClientCIDRs[0].serverAddress, `api.example.com:${server.port}`);
  },
  "cert-dir": async (t) => {
    const directory = join(t.testdir(), "made");
    await using _server = await startServer({ "tls-cert-file": "", "tls-private-key-file": "", "cert-dir": directory });
    t.ok(existsSync(join(directory, "apiserver.crt")));
  },
  "tls-cert-file": async (t) => {
    const settings = { "tls-cert-file": file("user.crt"), "tls-private-key-file": file("user.key") };
    await using server = await startServer(settings);
    t.equal((await handshake(server.port)).fingerprint, new X509Certificate(user.cert).fingerprint256);
  },
  "tls-private-key-file": async (t) => {
    await t.rejects(
      startAndClose({ "tls-private-key-file": file("user.key") }),
      "the key must be that of the certificate",
    );
  },
  "tls-min-version": async (t) => {
    await using server = await startServer({ "tls-min-version": "VersionTLS13" });
    t.equal((await handshake(server.port)).protocol, "TLSv1.3");
    await t.rejects(handshake(server.port, { maxVersion: "TLSv1.2" }));
  },
  "tls-cipher-suites": async (t) => {
    await using server = await startServer({ "tls-cipher-suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" });
    const old = { maxVersion: "TLSv1.2" };
    t.equal((await handshake(server.port, old)).cipher, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
    await t.rejects(handshake(server.port, { ...old, ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" }));
    const gone = startServer({ "tls-cipher-suites": "TLS_RSA_WITH_RC4_128_SHA" });
    await t.rejects(gone, /--tls-cipher-suites: TLS_RSA_WITH_RC4_128_SHA is not supported/);
  },
  "strict-transport-security-directives": async (t) => {
    await using server = await startServer({ "strict-transport-security-directives": "max-age=600,includeSubDomains" });
    const { headers } = await server.send("GET /livez");
    t.equal(headers["strict-transport-security"], "max-age=600; includeSubDomains");
  },
  "cors-allowed-origins": async (t) => {
    await using server = await startServer({ "cors-allowed-origins": "^https://ui\\.example\\.com$" });
    const from = (origin: string, method = "GET") => server.send(`${method} /livez`, undefined, { origin });
    const allowed = "access-control-allow-origin";
    t.equal((await from("https://ui.example.com")).headers[allowed], "https://ui.example.com");
    t.match(await from("https://ui.example.com", "OPTIONS"), { status: 204, headers: { [allowed]: /ui/ } });
    t.equal((await from("https://other.example.com")).headers[allowed], undefined);
  },
  "disable-http2-serving": async (t) => {
    await using server = await startServer({ "disable-http2-serving": "true" });
    t.equal((await handshake(server.port, { ALPNProtocols: ["h2", "http/1.1"] })).alpn, "http/1.1");
  },
  "http2-max-streams-per-connection": async (t) => {
    await using server = await startServer({ "http2-max-streams-per-connection": "7" });
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { rejectUnauthorized: false });
    const settings = await new Promise<{ maxConcurrentStreams?: number | undefined }>((resolve, reject) => {
      session.once("remoteSettings", resolve).once("error", reject);
    });
    t.equal(settings.maxConcurrentStreams, 7);
    session.destroy();
  },
  "permit-port-sharing": async (t) => {
    const shared = { "permit-port-sharing": "true", "secure-port": String(await freePort()) };
    await using first = await startServer(shared);
    await using second = await startServer(shared);
    t.equal(first.port, second.port);
    await t.rejects(startAndClose({ "secure-port": shared["secure-port"] }), { code: "EADDRINUSE" });
  },
  "tls-sni-cert-key": async (t) => {
    const created = (name: string) => makeCertificate({ subject: [{ CN: [name] }], names: [name] });
    const [first, second] = [await created("ui.example.com"), await created("next.example.com")];
    const directory = t.testdir({ "a.crt": first.cert, "a.key": first.key });
    const named = `${join(directory, "a.crt")},${join(directory, "a.key")}`;
    await using server = await startServer({ "tls-sni-cert-key": named, "tls-min-version": "VersionTLS12" });
    const shows = async (servername: string) => (await handshake(server.port, { servername })).fingerprint;
    const of = ({ cert }: { readonly cert: string }) => new X509Certificate(cert).fingerprint256;
    t.equal(await shows("ui.example.com"), of(first));
    t.equal(await shows("next.example.com"), of(pair));
    writeFileSync(join(directory, "a.key"), second.key);
    await server.clock.advance(200);
    t.equal(await shows("ui.example.com"), of(first), "a certificate without its key has no effect");
    writeFileSync(join(directory, "a.crt"), second.cert);
    await server.until("the new certificate", async () => (await shows("next.example.com")) === of(second));
  },
  "goaway-chance": async (t) => {
    await using server = await startServer({ "goaway-chance": "0.02" });
    const session = connectHttp2(`https://127.0.0.1:${server.port}`, { rejectUnauthorized: false });
    let requests = 0;
    let seen = false;
    session.on("goaway", () => {
      seen = true;
    });
    while (!seen && requests < 1000) {
      requests++;
      // Anonymous requests end their connection.
      const stream = session.request({ ":path": "/livez", ...server.admin });
      await new Promise((resolve) => stream.on("error", resolve).on("close", resolve).resume());
    }
    t.ok(seen, `${requests} requests`);
    session.destroy();
    t.throws(() => parseFlags({ "goaway-chance": "0.03" }), /--goaway-chance/);
  },
  "permit-address-sharing": async (t) => {
    const settings = { "permit-address-sharing": "true", "secure-port": String(await freePort()) };
    {
      await using server = await startServer(settings);
      await fetchStatus(server.port);
    }
    // Node.js always binds so: the flag has no other effect than a warning that says this.
    const again = { "secure-port": settings["secure-port"] };
    await using server = await startServer(again);
    t.equal((await fetchStatus(server.port)).status, 200, "sockets in TIME_WAIT do not prevent a new listener");
    t.match(parseFlags(settings).warnings, [/--permit-address-sharing changes nothing/]);
  },
  "service-cluster-ip-range": async (t) => {
    await using server = await startServer({ "service-cluster-ip-range": "10.7.0.0/24,fd00:7::/112" });
    const spec = { ipFamilyPolicy: "RequireDualStack", ports: [{ port: 80 }] };
    const { json } = await server.send("POST /api/v1/namespaces/default/services", { metadata: { name: "s" }, spec });
    t.match(json.spec, { ipFamilies: ["IPv4", "IPv6"], clusterIPs: [/^10\.7\.0\./, /^fd00:7::/] });
    const own = await server.send("GET /api/v1/namespaces/default/services/kubernetes");
    t.equal(own.json.spec.clusterIP, "10.7.0.1", "service kubernetes has the first address");
  },
  "service-node-port-range": async (t) => {
    await using server = await startServer({ "service-node-port-range": "31000-31001" });
    const spec = { type: "NodePort", ports: [{ port: 80 }] };
    const post = async (name: string) =>
      await server.send("POST /api/v1/namespaces/default/services", { metadata: { name }, spec });
    const ports = [await post("a"), await post("b")].map(({ json }) => json.spec.ports[0].nodePort);
    t.same(ports.sort(), [31000, 31001]);
    t.match(await post("c"), { status: 500, json: { message: /failed to allocate a nodePort: range is full/ } });
  },
  "svc-service-node-port": async (t) => {
    await using server = await startServer({ "svc-service-node-port": "30443" });
    const { json } = await server.send("GET /api/v1/namespaces/default/services/kubernetes");
    t.match(json.spec, { type: "NodePort", ports: [{ port: 443, nodePort: 30443, targetPort: server.port }] });
  },
  "endpoint-reconciler-type": async (t) => {
    const own = { "advertise-address": "192.0.2.7" };
    const path = "/api/v1/namespaces/default/endpoints/kubernetes";
    await using server = await startServer({ ...own, "endpoint-reconciler-type": "lease" });
    const expected = [{ addresses: [{ ip: "192.0.2.7" }], ports: [{ port: server.port }] }];
    t.match((await server.send(`GET ${path}`)).json.subsets, expected);
    await using other = await startServer({ ...own, "endpoint-reconciler-type": "none" });
    t.equal((await other.send(`GET ${path}`)).status, 404, "another component manages them");
  },
  "debug-socket-path": async (t) => {
    // The path of a socket must be short.
    const directory = await mkdtemp(join(tmpdir(), "svc-debug-"));
    t.teardown(() => rm(directory, { recursive: true }));
    const path = join(directory, "debug.sock");
    {
      await using _server = await startServer({ "debug-socket-path": path, profiling: "false" });
      t.equal(statSync(path).mode & 0o777, 0o600);
      const status = await new Promise((resolve, reject) => {
        const sent = requestPlain({ socketPath: path, path: "/debug/pprof/cmdline" }, (response) => {
          resolve(response.resume().statusCode);
        });
        sent.on("error", reject).end();
      });
      t.equal(status, 200);
    }
    t.notOk(existsSync(path), "the socket is removed with the server");
    await t.rejects(startAndClose({ "debug-socket-path": join(path, "x") }), /--debug-socket-path=/);
  },
  profiling: async (t) => {
    await using server = await startServer();
    t.match(await server.send("GET /debug/pprof/"), { status: 200, json: /profile\?seconds=30/ });
    t.equal((await server.send("DELETE /metrics")).status, 200);
    await using without = await startServer({ profiling: "false" });
    t.equal((await without.send("GET /debug/pprof/")).status, 404);
    t.notMatch((await without.send("DELETE /metrics")).json, /metrics reset/);
  },
  "contention-profiling": async (t) => {
    await using server = await startServer({ "contention-profiling": "true" });
    await using without = await startServer();
    await blockEventLoop(100);
    t.match((await server.send("GET /debug/pprof/block?debug=1")).json, /event loop late by/);
    const empty = await without.send("GET /debug/pprof/block?debug=1");
    t.match(empty, { status: 200, json: "--- contention:" });
    t.notMatch(empty.json, /event loop late by/);
  },
};
