/** The effect of each flag of `svc controller-manager`. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { fileURLToPath } from "node:url";
import type { Test } from "tap";
import { createCa, issueCertificate } from "../../auth/pki/certificate-authority.ts";
import {
  concurrencyFlags,
  type controllerManagerFlags,
  controllerManagerProgram,
} from "../../controller-manager/flags.ts";
import { type ControllerManagerOptions, controllerManagerOptions } from "../../controller-manager/options.ts";
import { serveProgram } from "../../component/serve-program.ts";
import type { ParsedFlags } from "../../flags/flag.ts";
import { logOptions } from "../../flags/log-options.ts";
import { createLogger, silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { invokeMutant, withoutWithheld } from "../../testing/flags/mutant.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { freePort } from "../../testing/std/free-port.ts";

type Flags = ParsedFlags<typeof controllerManagerFlags>;
type Effects = Partial<Record<keyof typeof controllerManagerFlags, (t: Test) => Promise<void>>>;

const root = fileURLToPath(new URL("../../../", import.meta.url));

function invocation(...argv: readonly string[]) {
  const invoked = invokeMutant(controllerManagerProgram, argv, { version: "v1.33.0" });
  if (invoked.kind === "exit") throw new Error(invoked.stderr);
  return invoked;
}

const flags = (...argv: readonly string[]): Flags => invocation(...argv).flags;
const options = (...argv: readonly string[]): ControllerManagerOptions => controllerManagerOptions(flags(...argv));
const settings = (...argv: readonly string[]) => options(...argv).controllerOptions;

/** What the program prints. Throws when a mutant would start it instead. */
function program(...argv: readonly string[]): string {
  const words = withoutWithheld(argv);
  if (words.length < argv.length) throw new Error(`svc controller-manager ${words.join(" ")} starts`);
  return execFileSync(process.execPath, [join(root, "src/main.ts"), "controller-manager", ...words], {
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
async function serve(t: Test, ...argv: readonly string[]): Promise<ServedProgram> {
  const port = await freePort();
  let verbosity: number | undefined;
  const stop = new AbortController();
  const own = [`--secure-port=${port}`, "--bind-address=127.0.0.1"];
  const parts = {
    metrics: new MetricRegistry(),
    election: undefined,
    log: silentLogger,
    setVerbosity: (level: number) => {
      verbosity = level;
    },
  };
  const server = await serveProgram(flags(...own, ...argv), parts, stop.signal);
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

function captureLog(...argv: readonly string[]): string {
  const lines: string[] = [];
  const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
  const log = createLogger(logOptions(flags(...argv)), { clock: new FakeClock(), stderr });
  log.info("hello");
  log.v(3)?.info("three");
  log.child("store").v(5)?.info("five");
  return lines.join("");
}

/** Each changes nothing, and a warning says so. */
function warns(argument: string): (t: Test) => Promise<void> {
  return async (t) => {
    t.match(invocation(argument).warnings.join("\n"), /changes nothing/);
  };
}

const connectionEffects: Effects = {
  kubeconfig: async (t) => {
    t.equal(options("--kubeconfig=/etc/svc/kc").connection.kubeconfig, "/etc/svc/kc");
  },
  master: async (t) => {
    t.equal(options("--master=https://192.0.2.7:6443").connection.server, "https://192.0.2.7:6443");
  },
  "kube-api-qps": async (t) => {
    t.equal(options("--kube-api-qps=7.5").connection.qps, 7.5);
  },
  "kube-api-burst": async (t) => {
    t.equal(options("--kube-api-burst=99").connection.burst, 99);
  },
  "kube-api-content-type": async (t) => {
    t.equal(options("--kube-api-content-type=application/json").contentType, "application/json");
  },
};

const controllerEffects: Effects = {
  controllers: async (t) => {
    t.same(options("--controllers=deployment-controller,-job").controllers, ["deployment"]);
    const all = options("--controllers=*,bootstrapsigner,-cronjob-controller").controllers;
    t.ok(all.includes("bootstrapsigner") && all.includes("job"));
    t.notOk(all.includes("cronjob") || all.includes("tokencleaner") || all.includes("scheduler"));
    t.throws(() => options("--controllers=replicas"), { message: /there is no controller "replicas"/ });
  },
  "use-service-account-credentials": async (t) => {
    t.equal(options("--use-service-account-credentials").usesAccounts, true);
  },
  "root-ca-file": async (t) => {
    t.equal(options("--root-ca-file=/etc/svc/ca.crt").rootCaFile, "/etc/svc/ca.crt");
  },
  "service-account-private-key-file": async (t) => {
    t.equal(options("--service-account-private-key-file=/etc/svc/sa.key").accountKeyFile, "/etc/svc/sa.key");
  },
  "cluster-signing-cert-file": async (t) => {
    const { signing } = options("--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k");
    t.equal(signing?.clients.certFile, "/c");
  },
  "cluster-signing-key-file": async (t) => {
    const { signing } = options("--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k");
    t.equal(signing?.nodeServing.keyFile, "/k");
  },
  "cluster-signing-duration": async (t) => {
    const files = ["--cluster-signing-cert-file=/c", "--cluster-signing-key-file=/k"];
    t.equal(options(...files, "--cluster-signing-duration=1h").signing?.lifetimeMs, 3_600_000);
  },
  "cluster-name": warns("--cluster-name=edge"),
  "allocate-node-cidrs": async (t) => {
    t.same(settings("--cluster-cidr=10.244.0.0/16", "--allocate-node-cidrs").clusterCidrs, ["10.244.0.0/16"]);
    t.same(settings("--cluster-cidr=10.244.0.0/16").clusterCidrs, []);
  },
  "cluster-cidr": async (t) => {
    const dual = settings("--cluster-cidr=10.244.0.0/16,fd00:244::/48", "--allocate-node-cidrs");
    t.same(dual.clusterCidrs, ["10.244.0.0/16", "fd00:244::/48"]);
    t.throws(() => settings("--cluster-cidr=10.0.0.0/16,10.1.0.0/16"), { message: /must be one CIDR/ });
  },
  "service-cluster-ip-range": async (t) => {
    t.same(settings("--service-cluster-ip-range=10.96.0.0/12").serviceCidrs, ["10.96.0.0/12"]);
  },
  "node-cidr-mask-size": async (t) => {
    const single = settings("--cluster-cidr=10.0.0.0/8", "--allocate-node-cidrs", "--node-cidr-mask-size=20");
    t.same(single.nodeCidrMaskSizes, { ipv4: 20, ipv6: 64 });
  },
  "node-cidr-mask-size-ipv4": async (t) => {
    t.equal(settings("--node-cidr-mask-size-ipv4=22").nodeCidrMaskSizes?.ipv4, 22);
  },
  "node-cidr-mask-size-ipv6": async (t) => {
    t.equal(settings("--node-cidr-mask-size-ipv6=80").nodeCidrMaskSizes?.ipv6, 80);
  },
  "pvclaimbinder-sync-period": async (t) => {
    t.equal(settings("--pvclaimbinder-sync-period=5s").claimBinderSyncPeriodMs, 5_000);
  },
  "disable-force-detach-on-timeout": async (t) => {
    t.equal(settings("--disable-force-detach-on-timeout").disableForceDetachOnTimeout, true);
  },
  "disable-attach-detach-reconciler-sync": warns("--disable-attach-detach-reconciler-sync"),
  ...Object.fromEntries(
    Object.entries(concurrencyFlags).map(([name, controller]) => [
      name,
      async (t: Test) => {
        t.same(settings(`--${name}=37`).concurrentSyncs, { [controller]: 37 });
      },
    ]),
  ),
};

const electionEffects: Effects = {
  "leader-elect": async (t) => {
    t.equal(options("--leader-elect=false").election, undefined);
    t.equal(options().election?.name, "kube-controller-manager");
  },
  "leader-elect-lease-duration": async (t) => {
    t.equal(options("--leader-elect-lease-duration=30s").election?.leaseDurationMs, 30_000);
    t.throws(() => options("--leader-elect-lease-duration=9s"), { message: /must be greater than/ });
  },
  "leader-elect-renew-deadline": async (t) => {
    t.equal(options("--leader-elect-renew-deadline=12s").election?.renewDeadlineMs, 12_000);
  },
  "leader-elect-retry-period": async (t) => {
    t.equal(options("--leader-elect-retry-period=3s").election?.retryPeriodMs, 3_000);
    t.throws(() => options("--leader-elect-retry-period=9s"), { message: /1\.2 times/ });
  },
  "leader-elect-resource-lock": async (t) => {
    t.throws(() => options("--leader-elect-resource-lock=endpoints"), { message: /must be/ });
  },
  "leader-elect-resource-name": async (t) => {
    t.equal(options("--leader-elect-resource-name=mine").election?.name, "mine");
  },
  "leader-elect-resource-namespace": async (t) => {
    t.equal(options("--leader-elect-resource-namespace=default").election?.namespace, "default");
  },
};

const servingEffects: Effects = {
  "bind-address": async (t) => {
    await t.rejects(serve(t, "--bind-address=192.0.2.7"), "no address of this host");
  },
  "secure-port": async (t) => {
    const served = await serve(t);
    t.same(await served.get("/healthz"), { status: 200, body: "ok" });
    t.equal((await serve(t, "--secure-port=0")).port, 0);
  },
  "cert-dir": async (t) => {
    const directory = t.testdir();
    await serve(t, `--cert-dir=${directory}`);
    t.match(readFileSync(join(directory, "kube-controller-manager.crt"), "utf8"), /BEGIN CERTIFICATE/);
  },
  "tls-cert-file": async (t) => {
    t.equal(await servedName(t), "files.example.com");
  },
  "tls-private-key-file": async (t) => {
    t.equal(await servedName(t), "files.example.com");
  },
  "tls-min-version": async (t) => {
    const { port } = await serve(t, "--tls-min-version=VersionTLS13");
    await t.rejects(handshake(port, { maxVersion: "TLSv1.2" }));
  },
  "tls-cipher-suites": async (t) => {
    const { port } = await serve(t, "--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
    const suite = (ciphers: string) => handshake(port, { maxVersion: "TLSv1.2", ciphers });
    await t.rejects(suite("ECDHE-ECDSA-AES128-GCM-SHA256"));
    await t.resolves(suite("ECDHE-ECDSA-AES256-GCM-SHA384"));
  },
  "client-ca-file": async (t) => {
    const now = Date.now();
    const ca = await createCa("clients", 1, now);
    const file = join(t.testdir(), "client-ca.crt");
    writeFileSync(file, ca.cert);
    const pair = await issueCertificate(ca, { commonName: "eve", usages: ["client"], days: 1 }, now);
    const { get } = await serve(t, `--client-ca-file=${file}`);
    t.match((await get("/metrics", { pair })).body, /User "eve" cannot get path/);
  },
  "authentication-kubeconfig": async (t) => {
    const { kubeconfig } = await startReviewer(t);
    const { get } = await serve(t, `--authentication-kubeconfig=${kubeconfig}`);
    t.match((await get("/metrics", { token: "good" })).body, /User "eve" cannot get path/);
    t.equal((await get("/metrics", { token: "bad" })).status, 401);
  },
  "authentication-token-webhook-cache-ttl": async (t) => {
    const { kubeconfig, requests } = await startReviewer(t);
    const argument = `--authentication-kubeconfig=${kubeconfig}`;
    const { get } = await serve(t, argument, "--authentication-token-webhook-cache-ttl=0s");
    for (let count = 0; count < 2; count++) await get("/metrics", { token: "good" });
    t.same(requests, ["good", "good"]);
  },
  "authorization-kubeconfig": async (t) => {
    const { kubeconfig } = await startReviewer(t);
    const { get } = await serve(t, `--authorization-kubeconfig=${kubeconfig}`);
    t.equal((await get("/metrics")).status, 200);
    t.equal((await get("/configz")).status, 403);
  },
  "authorization-webhook-cache-authorized-ttl": async (t) => {
    t.equal(await countReviews(t, "/metrics", "--authorization-webhook-cache-authorized-ttl=0s"), 2);
    t.equal(await countReviews(t, "/metrics"), 1);
  },
  "authorization-webhook-cache-unauthorized-ttl": async (t) => {
    t.equal(await countReviews(t, "/configz", "--authorization-webhook-cache-unauthorized-ttl=0s"), 2);
    t.equal(await countReviews(t, "/configz"), 1);
  },
  "authorization-always-allow-paths": async (t) => {
    const { get } = await serve(t, "--authorization-always-allow-paths=/metrics,/debug/*");
    t.equal((await get("/metrics")).status, 200);
    t.equal((await get("/debug/pprof")).status, 200);
    t.equal((await get("/healthz")).status, 403);
  },
  "requestheader-client-ca-file": warns("--requestheader-client-ca-file=/etc/svc/ca.crt"),
  profiling: async (t) => {
    const everything = "--authorization-always-allow-paths=/*";
    t.equal((await (await serve(t, everything)).get("/debug/pprof")).status, 200);
    t.equal((await (await serve(t, everything, "--profiling=false")).get("/debug/pprof")).status, 404);
  },
};

const otherEffects: Effects = {
  "feature-gates": async (t) => {
    t.throws(() => options("--feature-gates=NoSuchGate=true"), { message: /unknown feature gate/ });
    t.match(invocation("--feature-gates=SidecarContainers=true").warnings.join(), /has no effect/);
  },
  v: async (t) => {
    t.match(captureLog("-v=3"), /three/);
  },
  vmodule: async (t) => {
    t.match(captureLog("--vmodule=store=5"), /five/);
  },
  "logging-format": async (t) => {
    t.equal(JSON.parse(captureLog("--logging-format=json")).msg, "hello");
  },
  version: async (t) => {
    t.match(program("--version"), /^controller-manager v1\.33/);
  },
  help: async (t) => {
    t.match(program("--help"), /Usage:\n {2}svc controller-manager/);
  },
};

export const controllerManagerEffects: Effects = {
  ...connectionEffects,
  ...controllerEffects,
  ...electionEffects,
  ...servingEffects,
  ...otherEffects,
};

async function countReviews(t: Test, path: string, ...argv: readonly string[]): Promise<number> {
  const { kubeconfig, requests } = await startReviewer(t);
  const { get } = await serve(t, `--authorization-kubeconfig=${kubeconfig}`, ...argv);
  for (let count = 0; count < 2; count++) await get(path);
  return requests.length;
}

/** The common name of the certificate of the flags. */
async function servedName(t: Test): Promise<string> {
  const now = Date.now();
  const ca = await createCa("ca", 1, now);
  const pair = await issueCertificate(ca, { commonName: "files.example.com", usages: ["server"], days: 1 }, now);
  const directory = t.testdir();
  const [certFile, keyFile] = [join(directory, "files.crt"), join(directory, "files.key")];
  writeFileSync(certFile, pair.cert);
  writeFileSync(keyFile, pair.key);
  const { port } = await serve(t, `--tls-cert-file=${certFile}`, `--tls-private-key-file=${keyFile}`);
  return await handshake(port, {});
}

/** Resolves with the common name of the server's certificate. */
function handshake(port: number, tls: { readonly maxVersion?: "TLSv1.2"; readonly ciphers?: string }): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...tls }, () => {
      const { CN } = socket.getPeerCertificate().subject;
      socket.end();
      resolve(String(CN));
    });
    socket.on("error", reject);
  });
}
