import { X509Certificate } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { Agent as HttpAgent, request as httpRequest } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import { Agent as HttpsAgent, request } from "node:https";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { connect, type TLSSocket } from "node:tls";
import t from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import { type KeyPair, writeKeyPair } from "../../auth/pki/key-pair.ts";
import { openSharedClient, SHARED_PATH, SHARED_PROTOCOL } from "../../http/tunnel/shared-connection.ts";
import { dialThroughTunnel } from "../../http/tunnel/tunnel-session.ts";
import { connectUpgrade } from "../../http/upgrade/connect-upgrade.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { podHarness } from "../../testing/agent/pod-harness.ts";
import type { ServerConfig } from "../agent-config.ts";
import { CertificateFiles } from "../certificates/certificate-files.ts";
import { defaultAgentConfig } from "../options.ts";
import { type AgentServerOptions, startAgentServer } from "./agent-server.ts";

const now = systemClock.now();
const ca = await createCa("ca", 1, now);
const issue = (commonName: string): Promise<KeyPair> =>
  issueCertificate(ca, { commonName, alternativeNames: ["127.0.0.1"], usages: ["server"], days: 1 }, now);

async function options(server: Partial<ServerConfig>): Promise<Omit<AgentServerOptions, "pods">> {
  const base = defaultAgentConfig("n1");
  const authorization = { ...base.server.authorization, mode: "AlwaysAllow" as const };
  return {
    config: {
      ...base,
      configz: { staticPodURLHeader: { authorization: ["secret"] } },
      server: { ...base.server, address: "127.0.0.1", port: 0, authorization, anonymousAuth: true, ...server },
    },
    client: undefined,
    clock: systemClock,
    log: silentLogger,
    ips: [],
    problems: () => [],
  };
}

async function servedCertificate(port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => resolve(socket));
  socket.on("error", reject);
  await promise;
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

t.test("startAgentServer() serves with the new certificate when its files change, not with a broken one", async (t) => {
  await using at = await podHarness();
  const directory = t.testdir({});
  const files = { certFile: join(directory, "tls.crt"), keyFile: join(directory, "tls.key") };
  const [first, second] = [await issue("first"), await issue("second")];
  await writeKeyPair(files, first);
  const tls = { tlsCertFile: files.certFile, tlsKeyFile: files.keyFile };
  await using server = await startAgentServer({ ...(await options(tls)), pods: at.manager });
  const port = server.address?.port ?? 0;
  const fingerprint = ({ cert }: KeyPair): string => new X509Certificate(cert).fingerprint256;
  t.equal(await servedCertificate(port), fingerprint(first));
  await writeKeyPair(files, { cert: second.cert, key: first.key });
  await systemClock.sleep(400);
  t.equal(await servedCertificate(port), fingerprint(first), "a certificate with another's key is not served");
  await writeKeyPair(files, second);
  for (let round = 0; round < 50 && (await servedCertificate(port)) !== fingerprint(second); round++) {
    await systemClock.sleep(100);
  }
  t.equal(await servedCertificate(port), fingerprint(second));
});

t.test("startAgentServer() serves the certificate signed by the cluster before the files of the flags", async (t) => {
  await using at = await podHarness();
  const directory = t.testdir({ pki: {} });
  const files = { certFile: join(directory, "tls.crt"), keyFile: join(directory, "tls.key") };
  const [configured, signed, next] = [await issue("configured"), await issue("signed"), await issue("next")];
  await writeKeyPair(files, configured);
  const base = await options({ tlsCertFile: files.certFile, tlsKeyFile: files.keyFile });
  const certificates = { ...base.config.certificates, rotateServing: true };
  const config = { ...base.config, certificates, certDir: join(directory, "pki") };
  const start = async () => await startAgentServer({ ...base, config, pods: at.manager });
  const fingerprint = ({ cert }: KeyPair): string => new X509Certificate(cert).fingerprint256;
  {
    await using server = await start();
    const port = server.address?.port ?? 0;
    t.equal(await servedCertificate(port), fingerprint(configured), "before the cluster has signed one");
    server.useCertificate(signed);
    await writeKeyPair(files, next);
    await systemClock.sleep(400);
    t.equal(await servedCertificate(port), fingerprint(signed), "a change of the files does not replace it");
  }
  await new CertificateFiles(config.certDir, "server").write(signed, now);
  await using server = await start();
  t.equal(await servedCertificate(server.address?.port ?? 0), fingerprint(signed), "after a restart");
});

t.test("startAgentServer() opens the read-only port alone, which serves no configuration and no logs", async (t) => {
  await using at = await podHarness();
  const readOnlyPort = 20_000 + (process.pid % 10_000);
  const started = { ...(await options({ enabled: false, readOnlyPort })), pods: at.manager };
  await using server = await startAgentServer(started);
  t.equal(server.address, undefined);
  const statuses: Record<string, number> = {};
  for (const path of ["/pods", "/healthz", "/configz", "/runningpods/", "/containerLogs/a/b/c"]) {
    const response = await fetch(`http://127.0.0.1:${readOnlyPort}${path}`);
    statuses[path] = response.status;
    t.notMatch(await response.text(), "secret", path);
  }
  const expected = { "/pods": 200, "/healthz": 200, "/configz": 404, "/runningpods/": 405 };
  t.same(statuses, { ...expected, "/containerLogs/a/b/c": 405 });
});

t.test("startAgentServer() serves volumes only where clients are authenticated", async (t) => {
  await using at = await podHarness();
  const files = { certFile: join(t.testdir({}), "tls.crt"), keyFile: join(t.testdir({}), "tls.key") };
  await writeKeyPair(files, await issue("agent"));
  const statusOf = async (anonymousAuth: boolean): Promise<number> => {
    const settings = { tlsCertFile: files.certFile, tlsKeyFile: files.keyFile, anonymousAuth };
    await using server = await startAgentServer({ ...(await options(settings)), pods: at.manager });
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const path = "/localVolumes/pvc-1/remove";
    const target = { host: "127.0.0.1", port: server.address?.port, path, method: "POST", rejectUnauthorized: false };
    request(target, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    })
      .on("error", reject)
      .end();
    return await promise;
  };
  t.equal(await statusOf(true), 404);
  t.equal(await statusOf(false), 401);
});

t.test("connect() opens a connection whose certificates are verified as after a handshake", async (t) => {
  await using at = await podHarness();
  const directory = t.testdir({});
  const files = { certFile: join(directory, "tls.crt"), keyFile: join(directory, "tls.key") };
  await writeKeyPair(files, await issue("agent"));
  const clientCaFile = join(directory, "ca.crt");
  await writeFile(clientCaFile, ca.cert);
  const settings = { tlsCertFile: files.certFile, tlsKeyFile: files.keyFile, anonymousAuth: false, clientCaFile };
  const server = await startAgentServer({ ...(await options(settings)), pods: at.manager });
  const client = (issuer: typeof ca): Promise<KeyPair> =>
    issueCertificate(issuer, { commonName: "api", alternativeNames: [], usages: ["client"], days: 1 }, now);
  const get = async (certificates: readonly Uint8Array[]): Promise<string> => {
    class LocalAgent extends HttpAgent {
      override createConnection(): Duplex | undefined {
        return server.connect(certificates);
      }
    }
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    httpRequest({ agent: new LocalAgent(), host: "agent", path: "/pods" }, (response) => {
      text(response).then((body) => resolve(`${response.statusCode} ${body}`), reject);
    })
      .on("error", reject)
      .end();
    return await promise;
  };
  const chain = async (issuer: typeof ca) => [new X509Certificate((await client(issuer)).cert).raw];
  t.match(await get(await chain(ca)), /^200 .*"PodList"/);
  t.match(await get(await chain(await createCa("other", 1, now))), /^401 /);
  t.match(await get([]), /^401 /);
  const closed = (socket: Duplex | undefined) =>
    new Promise((resolve) => socket?.on("error", () => undefined).once("close", () => resolve("closed")));
  const idle = closed(server.connect([]));
  await server[Symbol.asyncDispose]();
  t.equal(await idle, "closed", "a server that stops closes it");
  t.equal(await closed(server.connect([])), "closed");
});

t.test("a connection carries further ones of its client, with its certificates, and these carry none", async (t) => {
  await using at = await podHarness();
  const { host, port } = { host: "127.0.0.1", port: 0 };
  const clientCaFile = join(t.testdir({ "ca.crt": ca.cert }), "ca.crt");
  const base = await options({ clientCaFile, anonymousAuth: false, port });
  await using server = await startAgentServer({ ...base, pods: at.manager });
  const pair = await issueCertificate(ca, { commonName: "api", usages: ["client"], days: 1 }, now);
  const { signal } = new AbortController();
  const open = async (agent: HttpsAgent | HttpAgent, secure: boolean) =>
    await connectUpgrade({
      method: "GET",
      secure,
      host,
      port: server.address?.port ?? 0,
      path: SHARED_PATH,
      headers: { upgrade: SHARED_PROTOCOL },
      agent,
      signal,
    });
  const anonymous = await open(new HttpsAgent({ rejectUnauthorized: false }), true);
  t.equal(anonymous.status, 401);
  const result = await open(new HttpsAgent({ rejectUnauthorized: false, cert: pair.cert, key: pair.key }), true);
  if (!("socket" in result)) throw new Error(`status ${result.status}`);
  const session = openSharedClient(result.socket);
  const inner = new InnerAgent(session);
  const answer = await new Promise<string>((resolve, reject) => {
    httpRequest({ host, path: "/pods", agent: inner }, (response) => resolve(text(response)))
      .on("error", reject)
      .end();
  });
  t.equal(JSON.parse(answer).kind, "PodList", "with the certificate of the connection");
  t.equal((await open(inner, false)).status, 400);
  session.destroy();
});

class InnerAgent extends HttpAgent {
  readonly #session: ClientHttp2Session;

  constructor(session: ClientHttp2Session) {
    super();
    this.#session = session;
  }

  override createConnection(_: object, onConnection: (error: Error | null, socket: Duplex) => void): undefined {
    void dialThroughTunnel(this.#session, systemClock).then((stream) => onConnection(null, stream));
  }
}
