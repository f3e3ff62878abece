import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t, { type Test } from "tap";
import { networkTransport } from "../client/transport.ts";
import { makeRequest } from "../http/request.ts";
import { systemClock } from "../std/clock.ts";
import { silentLogger } from "../std/log.ts";
import { type ApiServerConfig, defaultConfig } from "./config.ts";
import { startApiServer } from "./server.ts";

async function directory(t: Test): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "svc-apiserver-"));
  t.teardown(() => rm(dir, { recursive: true }));
  return dir;
}

const deps = { clock: systemClock, log: silentLogger };
const serving = (certDir: string): Pick<ApiServerConfig, "serving"> => ({
  serving: { ...defaultConfig.serving, certDir },
});

t.test("startApiServer() serves over TLS with a certificate that it makes once", async (t) => {
  const dir = await directory(t);
  const certFile = join(dir, "apiserver.crt");
  let first = "";
  for (const start of [1, 2]) {
    const server = await startApiServer({ ...defaultConfig, ...serving(dir) }, deps);
    const ca = await readFile(certFile, "utf8");
    if (start === 1) first = ca;
    t.equal(ca, first, "the second start uses the first's");
    const transport = networkTransport({ server: `https://127.0.0.1:${server.address.port}`, ca });
    const answer = await transport(makeRequest({ path: "/version" }));
    t.equal(answer.status, 200);
    t.equal(await server.healthy(), true);
    await transport[Symbol.asyncDispose]();
    await server.close();
    await server.close();
  }
  t.equal((await stat(join(dir, "apiserver.key"))).mode & 0o777, 0o600);
});

t.test("startApiServer() keeps its state in the embedded store", async (t) => {
  const dir = await directory(t);
  const storage = { ...defaultConfig.storage, url: `level://${join(dir, "kvstore")}` };
  const config = { ...defaultConfig, ...serving(dir), storage };
  let uid: string | undefined;
  for (const start of [1, 2]) {
    await using server = await startApiServer(config, deps);
    const token = server.loopbackToken({ name: "admin", uid: "", groups: ["system:masters"], extra: {} });
    const headers = { authorization: `Bearer ${token}` };
    const answer = await server.handler(makeRequest({ path: "/api/v1/namespaces/default", headers }));
    const body = JSON.parse(Buffer.concat(answer.body as readonly Uint8Array[]).toString());
    if (start === 1) uid = body.metadata.uid;
    t.equal(body.metadata.uid, uid);
  }
});

t.test("startApiServer() says in one sentence why it cannot start", async (t) => {
  const dir = await directory(t);
  const start = (config: Partial<ApiServerConfig>) =>
    startApiServer({ ...defaultConfig, ...serving(dir), ...config }, deps);
  await t.rejects(start({ authorizationModes: ["Nonsense"] }), { message: /mode "Nonsense" is unknown/ });
  await t.rejects(start({ storage: { ...defaultConfig.storage, url: "ftp://x" } }), { message: /Cannot use store/ });
  const certificate = { certFile: join(dir, "none.crt"), keyFile: join(dir, "none.key") };
  await t.rejects(start({ serving: { ...defaultConfig.serving, certificate } }), {
    message: /none\.crt .* does not exist/,
  });
  await writeFile(join(dir, "tokens"), "one,two\n");
  const authentication = { ...defaultConfig.authentication, tokenFile: join(dir, "tokens") };
  await t.rejects(start({ authentication }), { message: /tokens/ });
  await t.rejects(start({ embeddedControllers: ["nobody"] }), { message: /unknown controller "nobody"/ });
  const first = await start({});
  await t.rejects(start({ securePort: first.address.port }), { code: "EADDRINUSE" });
  await first.close();
});
