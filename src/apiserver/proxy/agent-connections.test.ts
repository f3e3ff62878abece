import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer as createPlainServer } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import t from "tap";
import { createLocalConnection } from "../../http/local-connection.ts";
import { silentLogger } from "../../std/log/logger.ts";
import {
  CLIENT_AUTH,
  makeCertificate,
  makeServerCertificate,
  type TestCertificate,
} from "../../testing/http/test-certificates.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { defaultConfig } from "../config/default-config.ts";
import { AgentConnections } from "./agent-connections.ts";

const { ca, server } = await makeServerCertificate();
const signal = new AbortController().signal;
const client = (name: string): Promise<TestCertificate> =>
  makeCertificate({ subject: [{ CN: [name] }], issuer: ca, usages: [CLIENT_AUTH] });

t.test("AgentConnections reload their files, and responses in progress continue", async (t) => {
  const directory = t.testdir();
  const file = (name: string): string => join(directory, name);
  const hold = (pair: TestCertificate, authority: TestCertificate): void => {
    writeFileSync(file("client.key"), pair.key);
    writeFileSync(file("client.crt"), pair.cert);
    writeFileSync(file("ca.crt"), authority.cert);
  };
  hold(await client("one"), ca);
  const followers: (() => void)[] = [];
  const agent = createServer(
    { cert: server.cert, key: server.key, ca: ca.cert, requestCert: true },
    (request, answer) => {
      answer.write((request.socket as TLSSocket).getPeerCertificate().subject.CN);
      if (request.url === "/follow") followers.push(() => answer.end(" continues"));
      else answer.end();
    },
  );
  await once(agent.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => agent.close());
  const clock = new FakeClock();
  await using agents = await AgentConnections.open(
    {
      ...defaultConfig.agents,
      clientCertificate: { certFile: file("client.crt"), keyFile: file("client.key") },
      certificateAuthorityFile: file("ca.crt"),
      preferredAddressTypes: ["InternalIP"],
    },
    { clock, log: silentLogger },
  );
  const daemonEndpoints = { kubeletEndpoint: { Port: (agent.address() as AddressInfo).port } };
  const node = { status: { addresses: [{ type: "InternalIP", address: "127.0.0.1" }], daemonEndpoints } };
  const fetchBody = async (path: string) => (await agents.get(node, path, signal)).body;
  const who = async () => (await text(await fetchBody("/"))).trim();
  /** Files are read in real time: repeats the request until the response is as expected. */
  const becomes = async (wanted: string): Promise<string> => {
    await clock.advance(60_000);
    for (let tries = 0; ; tries++) {
      const found = await who().catch(String);
      if (found.includes(wanted) || tries === 1000) return found;
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  t.equal(await who(), "one");
  const read = text(await fetchBody("/follow"));

  hold(await client("two"), ca);
  t.equal(await becomes("two"), "two");
  for (const end of followers) end();
  t.equal(await read, "one continues");

  writeFileSync(file("client.crt"), "nonsense");
  await clock.advance(60_000);
  t.equal(await who(), "two", "an invalid file changes nothing");
  hold(await client("three"), (await makeServerCertificate()).ca);
  t.match(await becomes("StatusError"), /Get "https:.*(?:signature|verify)/, "the agent is not trusted any more");
});

t.test("followed logs keep no other request to their node waiting", { timeout: 60_000 }, async (t) => {
  const agent = createServer({ cert: server.cert, key: server.key }, (request, answer) => {
    answer.write("line");
    if (request.url !== "/follow") answer.end();
  });
  await once(agent.listen({ port: 0, host: "127.0.0.1", backlog: 1024 }), "listening");
  t.teardown(() => agent.close());
  const config = { ...defaultConfig.agents, preferredAddressTypes: ["InternalIP"] };
  const stop = new AbortController();
  await using agents = await AgentConnections.open(config, { clock: new FakeClock(), log: silentLogger });
  const daemonEndpoints = { kubeletEndpoint: { Port: (agent.address() as AddressInfo).port } };
  const node = { status: { addresses: [{ type: "InternalIP", address: "127.0.0.1" }], daemonEndpoints } };
  const followed = await Promise.all(Array.from({ length: 300 }, () => agents.get(node, "/follow", stop.signal)));
  t.equal(await text((await agents.get(node, "/", signal)).body), "line");
  for (const { body } of followed) (body as Readable).on("error", () => {});
  stop.abort();
});

t.test("AgentConnections reach the agent of this process without TLS, with the client's certificates", async (t) => {
  const directory = t.testdir({});
  const { key, cert } = await client("api");
  const files = { certFile: join(directory, "client.crt"), keyFile: join(directory, "client.key") };
  writeFileSync(files.certFile, cert);
  writeFileSync(files.keyFile, key);
  const local = createPlainServer((request, answer) => answer.end(`local ${request.url}`));
  const remote = createServer({ cert: server.cert, key: server.key }, (_, answer) => answer.end("remote"));
  await once(remote.listen(0, "127.0.0.1"), "listening");
  t.teardown(() => remote.close());
  const subjects: string[] = [];
  const opened: Socket[] = [];
  let isServing = true;
  const connect = (certificates: readonly Uint8Array[]) => {
    if (!isServing) return undefined;
    for (const each of certificates) subjects.push(new X509Certificate(each).subject);
    const [near, far] = createLocalConnection();
    local.emit("connection", far);
    opened.push(far);
    return near;
  };
  await using agents = await AgentConnections.open(
    { ...defaultConfig.agents, clientCertificate: files, preferredAddressTypes: ["InternalIP"] },
    { clock: new FakeClock(), log: silentLogger, localAgent: { nodeName: "n1", connect } },
  );
  const daemonEndpoints = { kubeletEndpoint: { Port: (remote.address() as AddressInfo).port } };
  const status = { addresses: [{ type: "InternalIP", address: "127.0.0.1" }], daemonEndpoints };
  const read = async (name: string) => text((await agents.get({ metadata: { name }, status }, "/pods", signal)).body);
  t.equal(await read("n1"), "local /pods");
  t.equal(await read("n1"), "local /pods");
  t.same(subjects, ["CN=api"], "the connection is kept alive");
  t.equal(await read("n2"), "remote");
  isServing = false;
  for (const each of opened) each.destroy();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(await read("n1"), "remote", "an agent that does not serve yet is reached by its address");
});

t.test("AgentConnections.open() rejects with the missing file", async (t) => {
  const deps = { clock: new FakeClock(), log: silentLogger };
  const missing = { ...defaultConfig.agents, certificateAuthorityFile: "/none/ca.crt" };
  await t.rejects(AgentConnections.open(missing, deps), {
    message: 'Cannot read --svclet-certificate-authority="/none/ca.crt": there is no such file',
  });
  const pair = { certFile: "/none/a.crt", keyFile: "/none/a.key" };
  await t.rejects(AgentConnections.open({ ...defaultConfig.agents, clientCertificate: pair }, deps), {
    message: /^Cannot read --svclet-client-certificate="\/none\/a\.crt"/,
  });
});
