/** The effect of each flag that the control plane programs have in common. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import type { Test } from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import type { ConnectionOptions } from "../../component/connection.ts";
import type {
  connectionFlags,
  leaderElectionFlags,
  loggingFlags,
  metricsFlags,
  servingFlags,
} from "../../component/flags.ts";
import type { LeaseOptions } from "../../component/lease-options.ts";
import { createMetrics } from "../../component/run-program.ts";
import { serveProgram } from "../../component/serve-program.ts";
import type { ParsedFlags } from "../../flags/flag.ts";
import { logOptions } from "../../flags/log-options.ts";
import { createLogger, silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { withoutWithheld } from "../../testing/flags/mutant.ts";
import { blockEventLoop } from "../../testing/std/block-event-loop.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { bufferedLogEffects } from "./buffered-log-effects.ts";

type CommonTable = typeof connectionFlags &
  ReturnType<typeof servingFlags> &
  ReturnType<typeof leaderElectionFlags> &
  typeof metricsFlags &
  typeof loggingFlags;
type CommonFlags = ParsedFlags<CommonTable>;
type CommonName = keyof CommonTable | "version" | "help";

export type Effects<N extends string> = Readonly<Record<N, (t: Test) => Promise<void>>>;

/** A gate whose value the options of a program contain. `needed` are the settings of other gates. */
export function showsGate<T>(
  options: (...argv: readonly string[]) => T,
  gate: string,
  read: (options: T) => unknown,
  needed: readonly string[] = [],
): (t: Test) => Promise<void> {
  const readWith = (value: boolean) => read(options(`--feature-gates=${[...needed, `${gate}=${value}`].join(",")}`));
  return async (t) => {
    t.equal(readWith(false), false);
    t.equal(readWith(true), true);
  };
}

/** A program whose flags are tested. */
export interface ComponentSubject {
  /** `controller-manager`: the first word of the command line. */
  readonly word: string;
  /** `kube-controller-manager` */
  readonly name: string;
  /** Throws for invalid flags. */
  readonly invoke: (...argv: readonly string[]) => {
    readonly flags: CommonFlags;
    readonly warnings: readonly string[];
  };
  readonly options: (...argv: readonly string[]) => {
    readonly connection: Omit<ConnectionOptions, "userAgent">;
    readonly contentType: string;
    readonly election: LeaseOptions | undefined;
  };
}

const root = fileURLToPath(new URL("../../../", import.meta.url));

export function componentEffects(subject: ComponentSubject): Effects<CommonName> {
  return {
    ...connectionEffects(subject),
    ...electionEffects(subject),
    ...servingEffects(subject),
    ...metricsEffects(subject),
    ...otherEffects(subject),
  };
}

function connectionEffects({ options }: ComponentSubject) {
  return {
    kubeconfig: async (t: Test) => {
      t.equal(options("--kubeconfig=/etc/svc/kc").connection.kubeconfig, "/etc/svc/kc");
    },
    master: async (t: Test) => {
      t.equal(options("--master=https://192.0.2.7:6443").connection.server, "https://192.0.2.7:6443");
    },
    "kube-api-qps": async (t: Test) => {
      t.equal(options("--kube-api-qps=7.5").connection.qps, 7.5);
    },
    "kube-api-burst": async (t: Test) => {
      t.equal(options("--kube-api-burst=99").connection.burst, 99);
    },
    "kube-api-content-type": async (t: Test) => {
      t.equal(options("--kube-api-content-type=application/json").contentType, "application/json");
    },
  };
}

function electionEffects({ options, name }: ComponentSubject) {
  return {
    "leader-elect": async (t: Test) => {
      t.equal(options("--leader-elect=false").election, undefined);
      t.equal(options().election?.name, name);
    },
    "leader-elect-lease-duration": async (t: Test) => {
      t.equal(options("--leader-elect-lease-duration=30s").election?.leaseDurationMs, 30_000);
      t.throws(() => options("--leader-elect-lease-duration=9s"), { message: /must be greater than/ });
    },
    "leader-elect-renew-deadline": async (t: Test) => {
      t.equal(options("--leader-elect-renew-deadline=12s").election?.renewDeadlineMs, 12_000);
    },
    "leader-elect-retry-period": async (t: Test) => {
      t.equal(options("--leader-elect-retry-period=3s").election?.retryPeriodMs, 3_000);
      t.throws(() => options("--leader-elect-retry-period=9s"), { message: /1\.2 times/ });
    },
    "leader-elect-resource-lock": async (t: Test) => {
      t.throws(() => options("--leader-elect-resource-lock=endpoints"), { message: /must be/ });
    },
    "leader-elect-resource-name": async (t: Test) => {
      t.equal(options("--leader-elect-resource-name=mine").election?.name, "mine");
    },
    "leader-elect-resource-namespace": async (t: Test) => {
      t.equal(options("--leader-elect-resource-namespace=default").election?.namespace, "default");
    },
  };
}

function servingEffects(subject: ComponentSubject) {
  return {
    "bind-address": async (t: Test) => {
      await t.rejects(serve(subject, t, "--bind-address=192.0.2.7"), "no address of this host");
    },
    "secure-port": async (t: Test) => {
      const served = await serve(subject, t);
      t.same(await served.get("/healthz"), { status: 200, body: "ok" });
      t.equal((await serve(subject, t, "--secure-port=0")).port, 0);
    },
    "cert-dir": async (t: Test) => {
      const directory = t.testdir();
      await serve(subject, t, `--cert-dir=${directory}`);
      t.match(readFileSync(join(directory, `${subject.name}.crt`), "utf8"), /BEGIN CERTIFICATE/);
    },
    "tls-cert-file": async (t: Test) => {
      t.equal(await servedName(subject, t), "files.example.com");
    },
    "tls-private-key-file": async (t: Test) => {
      t.equal(await servedName(subject, t), "files.example.com");
    },
    "tls-min-version": async (t: Test) => {
      const { port } = await serve(subject, t, "--tls-min-version=VersionTLS13");
      await t.rejects(handshake(port, { maxVersion: "TLSv1.2" }));
    },
    "tls-cipher-suites": async (t: Test) => {
      const { port } = await serve(subject, t, "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
      const suite = (ciphers: string) => handshake(port, { maxVersion: "TLSv1.2", ciphers });
      await t.rejects(suite("ECDHE-ECDSA-AES128-GCM-SHA256"));
      await t.resolves(suite("ECDHE-ECDSA-AES256-GCM-SHA384"));
    },
    "tls-sni-cert-key": async (t: Test) => {
      const { certFile, keyFile } = await writePair(t, "other.example.com");
      const { port } = await serve(subject, t, `--tls-sni-cert-key=${certFile},${keyFile}:other.example.com`);
      t.equal(await handshake(port, { servername: "other.example.com" }), "other.example.com");
      t.equal(await handshake(port, {}), subject.name);
    },
    "disable-http2-serving": async (t: Test) => {
      const { port } = await serve(subject, t, "--disable-http2-serving");
      await t.rejects(streamsOffered(port));
    },
    "http2-max-streams-per-connection": async (t: Test) => {
      t.equal(await streamsOffered((await serve(subject, t)).port), 100);
      t.equal(await streamsOffered((await serve(subject, t, "--http2-max-streams-per-connection=7")).port), 7);
    },
    "permit-address-sharing": warns(subject, "--permit-address-sharing"),
    "permit-port-sharing": async (t: Test) => {
      const { port } = await serve(subject, t, "--permit-port-sharing");
      t.equal((await serve(subject, t, `--secure-port=${port}`, "--permit-port-sharing")).port, port);
    },
    "client-ca-file": async (t: Test) => {
      const now = Date.now();
      const ca = await createCa("clients", 1, now);
      const file = join(t.testdir(), "client-ca.crt");
      writeFileSync(file, ca.cert);
      const pair = await issueCertificate(ca, { commonName: "eve", usages: ["client"], days: 1 }, now);
      const { get } = await serve(subject, t, `--client-ca-file=${file}`);
      t.match((await get("/metrics", { pair })).body, /User "eve" cannot get path/);
    },
    "authentication-kubeconfig": async (t: Test) => {
      const { kubeconfig } = await startReviewer(t);
      const { get } = await serve(subject, t, `--authentication-kubeconfig=${kubeconfig}`);
      t.match((await get("/metrics", { token: "good" })).body, /User "eve" cannot get path/);
      t.equal((await get("/metrics", { token: "bad" })).status, 401);
    },
    "authentication-token-webhook-cache-ttl": async (t: Test) => {
      const { kubeconfig, requests } = await startReviewer(t);
      const argument = `--authentication-kubeconfig=${kubeconfig}`;
      const { get } = await serve(subject, t, argument, "--authentication-token-webhook-cache-ttl=0s");
      for (let count = 0; count < 2; count++) await get("/metrics", { token: "good" });
      t.same(requests, ["good", "good"]);
    },
    "authorization-kubeconfig": async (t: Test) => {
      const { kubeconfig } = await startReviewer(t);
      const { get } = await serve(subject, t, `--authorization-kubeconfig=${kubeconfig}`);
      t.equal((await get("/metrics")).status, 200);
      t.equal((await get("/configz")).status, 403);
    },
    "authorization-webhook-cache-authorized-ttl": async (t: Test) => {
      t.equal(await countReviews(subject, t, "/metrics", "--authorization-webhook-cache-authorized-ttl=0s"), 2);
      t.equal(await countReviews(subject, t, "/metrics"), 1);
    },
    "authorization-webhook-cache-unauthorized-ttl": async (t: Test) => {
      t.equal(await countReviews(subject, t, "/configz", "--authorization-webhook-cache-unauthorized-ttl=0s"), 2);
      t.equal(await countReviews(subject, t, "/configz"), 1);
    },
    "authorization-always-allow-paths": async (t: Test) => {
      const { get } = await serve(subject, t, "--authorization-always-allow-paths=/metrics,/debug/*");
      t.equal((await get("/metrics")).status, 200);
      t.equal((await get("/debug/pprof")).status, 200);
      t.equal((await get("/healthz")).status, 403);
    },
    "requestheader-client-ca-file": warns(subject, "--requestheader-client-ca-file=/etc/svc/ca.crt"),
    "authentication-skip-lookup": warns(subject, "--authentication-skip-lookup"),
    "authentication-tolerate-lookup-failure": warns(subject, "--authentication-tolerate-lookup-failure"),
    "requestheader-allowed-names": warns(subject, "--requestheader-allowed-names=front-proxy"),
    "requestheader-username-headers": warns(subject, "--requestheader-username-headers=x-remote-user"),
    "requestheader-uid-headers": warns(subject, "--requestheader-uid-headers=x-remote-uid"),
    "requestheader-group-headers": warns(subject, "--requestheader-group-headers=x-remote-group"),
    "requestheader-extra-headers-prefix": warns(subject, "--requestheader-extra-headers-prefix=x-remote-extra-"),
    "contention-profiling": async (t: Test) => {
      const everything = "--authorization-always-allow-paths=/*";
      const { get } = await serve(subject, t, everything, "--contention-profiling");
      const without = await serve(subject, t, everything);
      await blockEventLoop(100);
      t.match((await get("/debug/pprof/block?debug=1")).body, /event loop late by/);
      t.notMatch((await without.get("/debug/pprof/block?debug=1")).body, /event loop late by/);
    },
    profiling: async (t: Test) => {
      const everything = "--authorization-always-allow-paths=/*";
      t.equal((await (await serve(subject, t, everything)).get("/debug/pprof")).status, 200);
      t.equal((await (await serve(subject, t, everything, "--profiling=false")).get("/debug/pprof")).status, 404);
    },
  };
}

function metricsEffects({ invoke }: ComponentSubject) {
  const policy = async (...argv: readonly string[]) => (await createMetrics(invoke(...argv).flags)).policy;
  return {
    "allow-metric-labels": async (t: Test) => {
      const { allowedValues } = await policy("--allow-metric-labels=workqueue_depth,name=job,cronjob");
      t.same([...(allowedValues.get("workqueue_depth,name") ?? [])], ["job", "cronjob"]);
    },
    "allow-metric-labels-manifest": async (t: Test) => {
      const file = join(t.testdir(), "labels.yaml");
      writeFileSync(file, "workqueue_depth,name: job");
      const { allowedValues } = await policy(`--allow-metric-labels-manifest=${file}`);
      t.same([...(allowedValues.get("workqueue_depth,name") ?? [])], ["job"]);
    },
    "disabled-metrics": async (t: Test) => {
      t.ok((await policy("--disabled-metrics=workqueue_depth")).disabled.has("workqueue_depth"));
    },
    "show-hidden-metrics-for-version": async (t: Test) => {
      t.equal((await policy("--show-hidden-metrics-for-version=1.32")).showHidden, true);
      t.equal((await policy()).showHidden, false);
    },
  };
}

function otherEffects(subject: ComponentSubject) {
  return {
    ...bufferedLogEffects((...argv) => subject.invoke(...argv).flags),
    v: async (t: Test) => {
      t.match(captureLog(subject, "-v=3"), /three/);
    },
    vmodule: async (t: Test) => {
      t.match(captureLog(subject, "--vmodule=store=5"), /five/);
    },
    "logging-format": async (t: Test) => {
      t.equal(JSON.parse(captureLog(subject, "--logging-format=json")).msg, "hello");
    },
    version: async (t: Test) => {
      t.match(program(subject, "--version"), new RegExp(`^${subject.word} v1\\.33`));
    },
    help: async (t: Test) => {
      t.match(program(subject, "--help"), new RegExp(`Usage:\n  svc ${subject.word}`));
    },
  };
}

/** What the program prints. Throws when a mutant would start it instead. */
function program({ word }: ComponentSubject, ...argv: readonly string[]): string {
  const words = withoutWithheld(argv);
  if (words.length < argv.length) throw new Error(`svc ${word} ${words.join(" ")} starts`);
  return execFileSync(process.execPath, [join(root, "src/main.ts"), word, ...words], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
  });
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

interface ServedProgram {
  readonly port: number;
  readonly get: (path: string, init?: { readonly token?: string; readonly pair?: Pair }) => Promise<Answer>;
  readonly verbosity: () => number | undefined;
}

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** Serves with the flags on a free port of the loopback interface. */
async function serve({ invoke, name }: ComponentSubject, t: Test, ...argv: readonly string[]): Promise<ServedProgram> {
  const port = await freePort();
  let verbosity: number | undefined;
  const stop = new AbortController();
  const own = [`--secure-port=${port}`, "--bind-address=127.0.0.1"];
  const parts = {
    program: name,
    configz: {},
    metrics: new MetricRegistry(),
    election: undefined,
    log: silentLogger,
    setVerbosity: (level: number) => {
      verbosity = level;
    },
  };
  const server = await serveProgram(invoke(...own, ...argv).flags, parts, stop.signal);
  t.teardown(async () => {
    stop.abort();
    await server[Symbol.asyncDispose]();
  });
  const get: ServedProgram["get"] = async (path, { token, pair } = {}) => {
    const { request } = await import("node:https");
    return await new Promise((resolve, reject) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const call = request(
        { host: "127.0.0.1", port, path, rejectUnauthorized: false, headers, ...pair },
        (response) => {
          let body = "";
          response.setEncoding("utf8").on("data", (chunk) => {
            body += chunk;
          });
          response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
        },
      );
      call.on("error", reject).end();
    });
  };
  return { port: server.address?.port ?? 0, get, verbosity: () => verbosity };
}

/** An API server that answers reviews: the token `good` is of eve, who may read everything but /configz. */
async function startReviewer(t: Test): Promise<{ readonly kubeconfig: string; readonly requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      const { spec } = JSON.parse(body) as { spec: { token?: string; nonResourceAttributes?: { path: string } } };
      requests.push(spec.token ?? spec.nonResourceAttributes?.path ?? "");
      const user = { username: "eve", groups: ["system:authenticated"] };
      const status =
        spec.token === undefined
          ? { allowed: spec.nonResourceAttributes?.path !== "/configz" }
          : { authenticated: spec.token === "good", user };
      response.setHeader("content-type", "application/json");
      response.statusCode = 201;
      response.end(JSON.stringify({ ...JSON.parse(body), status }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const cluster = `clusters: [{name: c, cluster: {server: "http://127.0.0.1:${port}"}}]`;
  const file = join(t.testdir(), `reviewer-${port}`);
  const context = "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x";
  writeFileSync(file, `apiVersion: v1\nkind: Config\n${cluster}\n${context}\n`);
  return { kubeconfig: file, requests };
}

function captureLog({ invoke }: ComponentSubject, ...argv: readonly string[]): string {
  const lines: string[] = [];
  const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
  const log = createLogger(logOptions(invoke(...argv).flags), { clock: new FakeClock(), stderr });
  log.info("hello");
  log.v(3)?.info("three");
  log.child("store").v(5)?.info("five");
  return lines.join("");
}

/** Each changes nothing, and a warning says so. */
export function warns({ invoke }: Pick<ComponentSubject, "invoke">, argument: string): (t: Test) => Promise<void> {
  return async (t) => {
    t.match(invoke(argument).warnings.join("\n"), /changes nothing/);
  };
}

async function countReviews(
  subject: ComponentSubject,
  t: Test,
  path: string,
  ...argv: readonly string[]
): Promise<number> {
  const { kubeconfig, requests } = await startReviewer(t);
  const { get } = await serve(subject, t, `--authorization-kubeconfig=${kubeconfig}`, ...argv);
  for (let count = 0; count < 2; count++) await get(path);
  return requests.length;
}

/** The common name of the certificate of the flags. */
async function servedName(subject: ComponentSubject, t: Test): Promise<string> {
  const { certFile, keyFile } = await writePair(t, "files.example.com");
  const { port } = await serve(subject, t, `--tls-cert-file=${certFile}`, `--tls-private-key-file=${keyFile}`);
  return await handshake(port, {});
}

async function writePair(
  t: Test,
  commonName: string,
): Promise<{ readonly certFile: string; readonly keyFile: string }> {
  const now = Date.now();
  const ca = await createCa("ca", 1, now);
  const pair = await issueCertificate(ca, { commonName, usages: ["server"], days: 1 }, now);
  const directory = t.testdir();
  const [certFile, keyFile] = [join(directory, "files.crt"), join(directory, "files.key")];
  writeFileSync(certFile, pair.cert);
  writeFileSync(keyFile, pair.key);
  return { certFile, keyFile };
}

/** How many requests at once the server offers on a connection. */
function streamsOffered(port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    session.on("error", reject).on("remoteSettings", ({ maxConcurrentStreams }) => {
      session.destroy();
      resolve(maxConcurrentStreams);
    });
  });
}

interface Handshake {
  readonly maxVersion?: "TLSv1.2";
  readonly ciphers?: string;
  readonly servername?: string;
}

/** Resolves with the common name of the server's certificate. */
function handshake(port: number, tls: Handshake): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...tls }, () => {
      const { CN } = socket.getPeerCertificate().subject;
      socket.end();
      resolve(String(CN));
    });
    socket.on("error", reject);
  });
}
