/** The effect of each flag of `svc up`. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Test } from "tap";
import { logOptions } from "../../flags/log-options.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { createLogger, silentLogger } from "../../std/log/logger.ts";
import { invokeMutant, withoutWithheld } from "../../testing/flags/mutant.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { agentConfig, serverConfig } from "../../up/cluster.ts";
import { cniDirectories, openRuntime } from "../../up/containerd/runtime.ts";
import { type upFlags, upProgram } from "../../up/flags.ts";
import { checkHost, inspectMachine } from "../../up/host/host.ts";
import { listArchives } from "../../up/images/import.ts";
import { serverNames, type UpOptions, upOptions } from "../../up/options.ts";
import type { Pki } from "../../up/pki/pki.ts";
import { reportText } from "../../up/report.ts";
import { bufferedLogEffects } from "./buffered-log-effects.ts";

type Name = keyof typeof upFlags;

const root = fileURLToPath(new URL("../../../", import.meta.url));
const eth0 = { address: "192.0.2.2", family: "IPv4", internal: false, netmask: "", mac: "", cidr: null } as const;

function options(...argv: readonly string[]): UpOptions {
  const invocation = invokeMutant(upProgram, argv, { version: "v1.33.0" });
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  return upOptions(invocation.flags, { hostname: "edge-1", interfaces: { eth0: [eth0] }, routes: undefined });
}

const pair = (name: string) => ({ certFile: `${name}.crt`, keyFile: `${name}.key` });
const pki = {
  caFile: "ca.crt",
  agentCaFile: "agent-ca.crt",
  apiServer: pair("apiserver"),
  agentClient: pair("agent-client"),
} as unknown as Pki;
const server = (...argv: readonly string[]) => serverConfig(options(...argv), pki, "v1.33.0");
const agent = (...argv: readonly string[]) => agentConfig(options(...argv), pki, "unix:///run/r.sock");

/** What the program prints. Throws when a mutant would start a cluster on this host instead. */
function program(...argv: readonly string[]): string {
  const words = withoutWithheld(argv);
  if (words.length < argv.length) throw new Error(`svc up ${words.join(" ")} starts a cluster`);
  return execFileSync(process.execPath, [join(root, "src/main.ts"), "up", ...words], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
  });
}

function captureLog(...argv: readonly string[]): string {
  const lines: string[] = [];
  const stderr = { write: (line: string) => lines.push(line), flushSync: () => {} };
  const log = createLogger(logOptions(parse(...argv)), { clock: new FakeClock(), stderr });
  log.info("hello");
  log.v(3)?.info("three");
  log.child("store").v(5)?.info("five");
  return lines.join("");
}

function parse(...argv: readonly string[]) {
  const invocation = invokeMutant(upProgram, argv, { version: "v1.33.0" });
  if (invocation.kind === "exit") throw new Error(invocation.stderr);
  return invocation.flags;
}

export const upEffects: Partial<Record<Name, (t: Test) => Promise<void>>> = {
  ...bufferedLogEffects(parse),
  "data-dir": async (t) => {
    t.same(server("--data-dir=/srv/c").storage.urls, ["level:///srv/c/kvstore"]);
    t.equal(agent("--data-dir=/srv/c").rootDir, "/srv/c/agent");
    t.equal(agent("--data-dir=/srv/c").svcconfig, "/srv/c/node.svcconfig");
  },
  "bind-address": async (t) => {
    t.equal(server("--bind-address=192.0.2.2").bindAddress, "192.0.2.2");
  },
  "service-cidr": async (t) => {
    t.same(server().services.clusterIpRanges, ["10.96.0.0/16"]);
    t.same(server("--service-cidr=10.98.0.0/20").services.clusterIpRanges, ["10.98.0.0/20"]);
    t.ok(serverNames(options("--service-cidr=10.98.0.0/20")).includes("10.98.0.1"));
    t.same(options("--service-cidr=10.98.0.0/20").clusterDns, ["10.98.0.10"]);
  },
  "cluster-cidr": async (t) => {
    t.same(agent().proxy?.clusterCidrs, ["10.244.0.0/16"]);
    t.same(agent("--cluster-cidr=10.250.0.0/16").proxy?.clusterCidrs, ["10.250.0.0/16"]);
  },
  "service-proxy": async (t) => {
    t.equal(agent().proxy?.table, "svc-proxy");
    t.equal(agent("--service-proxy=false").proxy, undefined);
  },
  "network-policy": async (t) => {
    t.same(agent().networkPolicy, { isEnabled: true, table: "svc-network-policy", isOptional: true });
    t.ok(server().agentFlags?.includes("--network-policy"));
    for (const flag of ["--network-policy=false", "--pod-network=none", "--cni-conf-dir=/etc/cni/net.d"]) {
      t.equal(agent(flag).networkPolicy.isEnabled, false, flag);
      t.notOk(server(flag).agentFlags?.includes("--network-policy"), flag);
    }
  },
  "serve-dns": async (t) => {
    t.same(agent().dns, { forward: [] });
    t.equal(agent("--serve-dns=false").dns, undefined);
  },
  "cluster-dns": async (t) => {
    t.same(agent("--cluster-dns=10.97.0.53,fd00::53").pods.clusterDns, ["10.97.0.53", "fd00::53"]);
  },
  "cluster-domain": async (t) => {
    t.equal(agent("--cluster-domain=corp.example").pods.clusterDomain, "corp.example");
    t.ok(serverNames(options("--cluster-domain=corp.example")).includes("kubernetes.default.svc.corp.example"));
  },
  "dns-forward": async (t) => {
    const server = { address: "192.0.2.53", port: 5353 };
    t.same(agent("--dns-forward=corp.example=192.0.2.53:5353").dns?.forward, [{ domain: "corp.example", server }]);
  },
  workers: async (t) => {
    t.equal(server("--workers=3").workers, 3);
  },
  "secure-port": async (t) => {
    t.equal(server("--secure-port=7443").securePort, 7443);
  },
  "kvstore-quota-bytes": async (t) => {
    t.equal(server().storage.quotaBytes, 2 ** 31);
    t.equal(server("--kvstore-quota-bytes=8388608").storage.quotaBytes, 8388608);
    t.equal(server("--kvstore-quota-bytes=-1").storage.quotaBytes, undefined);
  },
  "embedded-controllers": async (t) => {
    t.same(server("--embedded-controllers=scheduler").embeddedControllers, ["scheduler"]);
    t.same(server("--embedded-controllers=").embeddedControllers, []);
  },
  "feature-gates": async (t) => {
    const gates = "--feature-gates=WatchList=true,ImageVolume=true,ComponentFlagz=true";
    t.match([server().watchList, agent().volumes.images], [false, false]);
    t.match([server(gates).watchList, agent(gates).volumes.images], [true, true]);
    const features = server(gates)
      .observability.features.filter(({ enabled }) => enabled)
      .map(({ name }) => name);
    t.ok(features.includes("ComponentFlagz"), "the server reports the state");
    t.throws(() => options("--feature-gates=Nope=true"), /unknown feature gate Nope/);
    const warned = invokeMutant(upProgram, ["--feature-gates=APIServingWithRoutine=true,WatchList=true"], {
      version: "v1",
    });
    t.match(warned, { warnings: [/APIServingWithRoutine=true has no effect/] });
  },
  "runtime-config": async (t) => {
    const { apis } = server("--runtime-config=resource.k8s.io/v1beta1=true,api/alpha=false");
    t.same(apis.runtimeConfig, { "resource.k8s.io/v1beta1": "true", "api/alpha": "false" });
  },
  "node-name": async (t) => {
    t.equal(agent("--node-name=edge-7").nodeName, "edge-7");
    t.ok(serverNames(options("--node-name=edge-7")).includes("edge-7"));
  },
  "node-ip": async (t) => {
    t.same(agent("--node-ip=192.0.2.9").node.ips, ["192.0.2.9"]);
  },
  "container-runtime-endpoint": async (t) => {
    const clock = new FakeClock();
    const deps = { machine: { ...inspectMachine({}), uid: 0 }, clock, random: systemRandom, log: silentLogger };
    const endpoint = `unix://${join(t.testdir(), "mine.sock")}`;
    const chosen = options(`--container-runtime-endpoint=${endpoint}`, `--data-dir=${join(t.testdir(), "data")}`);
    // Without the flag, svc up starts a containerd on this host.
    t.equal(chosen.runtimeEndpoint, endpoint);
    if (chosen.runtimeEndpoint === undefined) return;
    let problem: unknown;
    const opening = openRuntime(chosen, deps).catch((error: unknown) => {
      problem = error;
    });
    for (let step = 0; step < 500 && problem === undefined; step++) {
      await clock.advance(1000);
      await setTimeout(5);
    }
    await opening;
    t.match(problem, { message: /no container runtime answers at unix:.*mine\.sock/ }, "no containerd is started");
  },
  "agent-port": async (t) => {
    t.equal(agent("--agent-port=20250").server.port, 20_250);
  },
  "pod-cidr": async (t) => {
    t.equal(options("--pod-cidr=10.9.8.0/24").podCidr, "10.9.8.0/24");
    t.same(server("--pod-cidr=10.9.8.0/24").controllerOptions?.nodeCidrs, { "edge-1": ["10.9.8.0/24"] });
    t.ok(serverNames(options("--pod-cidr=10.9.8.0/24")).includes("10.9.8.1"), "pods reach the server at the gateway");
  },
  "pod-network": async (t) => {
    t.equal(agent().podNetwork.mode, "auto");
    t.equal(agent("--pod-network=none").podNetwork.mode, "none");
    t.ok(server("--pod-network=vxlan").agentFlags?.includes("--pod-network=vxlan"), "nodes that join have the same");
    t.notMatch(server("--pod-network=none").agentFlags?.join(" "), "--pod-network");
  },
  "cni-conf-dir": async (t) => {
    const chosen = options("--cni-conf-dir=/etc/cni/net.d");
    t.equal(cniDirectories(chosen).confDir, "/etc/cni/net.d");
    t.equal(agent("--cni-conf-dir=/etc/cni/net.d").podNetwork.mode, "none");
  },
  "cni-bin-dir": async (t) => {
    const machine = { ...inspectMachine({}), uid: 0, isExecutable: (path: string) => !path.includes("/cni/") };
    t.throws(() => checkHost(machine, options().cniBinDir), { message: /CNI plugins .* are in none of/ });
    t.equal(checkHost(machine, options("--cni-bin-dir=/srv/plugins").cniBinDir).cniBinDir, "/srv/plugins");
  },
  "image-dir": async (t) => {
    const directory = join(t.testdir(), "images");
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, "app.tar"), "");
    t.same(await listArchives(options(`--image-dir=${directory}`).imageDir), [join(directory, "app.tar")]);
    if (process.getuid?.() !== 0) return;
    const missing = join(directory, "missing");
    t.throws(
      () => program(`--image-dir=${missing}`, `--data-dir=${join(directory, "data")}`),
      new RegExp(`Cannot use --image-dir: ${missing} is not a directory`),
    );
  },
  "stop-pods": async (t) => {
    t.equal(options("--stop-pods").stopPods, true);
    const report = (stopPods: boolean) =>
      reportText({
        server: "",
        nodeName: "",
        nodeIps: [],
        runtime: "",
        dataDir: "",
        svcconfig: "",
        controllers: [],
        stopPods,
        startedInMs: 1,
      });
    t.not(report(true), report(false), "the report states whether pods keep running");
    const whole = readFileSync(join(root, "src/acceptance/cluster/pod.test.ts"), "utf8");
    t.match(
      whole,
      /start\("--stop-pods"\)[\s\S]*remains\(\), \[\]/,
      "a test of a whole cluster checks that nothing is left",
    );
  },
  v: async (t) => {
    t.match(captureLog("-v=3"), /three/);
  },
  vmodule: async (t) => {
    t.match(captureLog("--vmodule=store=5"), /five/);
    t.throws(() => options("--vmodule=store=5", "--logging-format=json"), /only supported for the text log format/);
  },
  "logging-format": async (t) => {
    t.match(JSON.parse(captureLog("--logging-format=json")), { msg: "hello" });
  },
  "print-systemd-unit": async (t) => {
    t.match(program("--print-systemd-unit", "--secure-port=7443"), /^ExecStart=.* up --secure-port=7443$/m);
  },
  version: async (t) => {
    t.match(program("--version"), /^up v1\.33\./);
    t.match(invokeMutant(upProgram, ["--version=v1.33.9-site"], { version: "v1.33.0" }), { version: "v1.33.9-site" });
    t.equal(serverConfig(options(), pki, "v1.33.9-site").gitVersion, "v1.33.9-site");
  },
  help: async (t) => {
    t.match(program("--help"), /^Usage:\n {2}svc up \[flags\]$/m);
  },
};
