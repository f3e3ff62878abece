import { writeFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { connect } from "node:tls";
import t, { type Test } from "tap";
import { createCa, issueCertificate } from "../auth/pki/certificate-authority.ts";
import { invoke } from "../flags/program.ts";
import { silentLogger } from "../std/log/logger.ts";
import { MetricRegistry } from "../std/metrics/metrics.ts";
import { freePort } from "../testing/std/free-port.ts";
import { until } from "../testing/std/until.ts";
import { metricsFlags, servingFlags } from "./flags.ts";
import { serveProgram } from "./serve-program.ts";

const NAME = "kube-example";
const program = { name: "svc example", summary: "", flags: { ...servingFlags(0), ...metricsFlags } };

interface Answer {
  readonly status: number;
  readonly body: string;
}

type Pair = Readonly<Record<"cert" | "key", string>>;

async function serve(
  t: Test,
  ...argv: readonly string[]
): Promise<{ readonly port: number; readonly get: (path: string, pair?: Pair) => Promise<Answer> }> {
  const port = await freePort();
  const invocation = invoke(program, [`--secure-port=${port}`, "--bind-address=127.0.0.1", ...argv], { version: "v1" });
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  const parts = { program: NAME, configz: {}, metrics: new MetricRegistry(), election: undefined, log: silentLogger };
  const stop = new AbortController();
  const server = await serveProgram(invocation.flags, { ...parts, setVerbosity: () => {} }, stop.signal);
  t.teardown(async () => {
    stop.abort();
    await server[Symbol.asyncDispose]();
  });
  const get = (path: string, pair?: Pair): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, path, rejectUnauthorized: false, agent: false, ...pair };
      const call = httpsRequest(options, (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (chunk) => {
          body += chunk;
        });
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      });
      call.on("error", reject).end();
    });
  return { port, get };
}

async function createPair(commonName: string, use: "client" | "server"): Promise<Pair & { readonly ca: string }> {
  const now = Date.now();
  const ca = await createCa(`ca of ${commonName}`, 1, now);
  return { ...(await issueCertificate(ca, { commonName, usages: [use], days: 1 }, now)), ca: ca.cert };
}

function servedName(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

t.test("a serving certificate that is renewed in its files is served without a restart", async (t) => {
  const [certFile, keyFile] = [join(t.testdir(), "tls.crt"), join(t.testdirName, "tls.key")];
  const write = async (name: string): Promise<void> => {
    const { cert, key } = await createPair(name, "server");
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
  };
  await write("before");
  const { port } = await serve(t, `--tls-cert-file=${certFile}`, `--tls-private-key-file=${keyFile}`);
  t.equal(await servedName(port), "before");
  await write("after");
  t.ok(await until("the new certificate", async () => (await servedName(port)) === "after", { timeoutMs: 90_000 }));
});

t.test("a CA of clients that is replaced in its file is trusted without a restart", async (t) => {
  const [first, second] = [await createPair("eve", "client"), await createPair("mallory", "client")];
  const file = join(t.testdir(), "clients.crt");
  writeFileSync(file, first.ca);
  const { get } = await serve(t, `--client-ca-file=${file}`);
  t.match(await get("/metrics", first), { status: 403, body: /User "eve" cannot get path/ });
  t.match(await get("/metrics", second), { status: 401 });
  writeFileSync(file, second.ca);
  const isTrusted = async (): Promise<boolean> => (await get("/metrics", second)).status === 403;
  t.ok(await until("the new CA", isTrusted, { timeoutMs: 90_000 }));
  t.match(await get("/metrics", first), { status: 401 });
});

t.test(
  "/metrics/slis has the results of health checks, /metrics those of authentication and authorization",
  async (t) => {
    const { get } = await serve(t, "--authorization-always-allow-paths=/healthz,/metrics,/metrics/*");
    t.equal((await get("/healthz")).status, 200);
    t.equal((await get("/configz")).status, 403);
    const slis = (await get("/metrics/slis")).body;
    t.match(slis, 'kubernetes_healthcheck{name="ping",type="healthz"} 1');
    t.match(slis, 'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1');
    const { body } = await get("/metrics");
    t.match(body, 'authentication_attempts{result="success"} 4');
    t.match(body, 'authenticated_user_requests{username="other"} 4');
    t.match(body, 'authorization_attempts_total{result="allowed"} 3');
    t.match(body, 'authorization_attempts_total{result="no-opinion"} 1');
  },
);
