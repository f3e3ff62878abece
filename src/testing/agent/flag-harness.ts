/**
 * An agent in this process, configured by flags or by a file, with a fake runtime and a fake API server, for the tests
 * of flags.
 */

import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { type RunningAgent, startAgent } from "../../agent/agent.ts";
import type { AgentConfig } from "../../agent/agent-config.ts";
import { toSlicePath } from "../../agent/cgroups/systemd-slices.ts";
import { toJson } from "../../agent/config/fields.ts";
import type { EffectiveConfig } from "../../agent/config/load.ts";
import { agentFlags } from "../../agent/flags.ts";
import type { Iptables } from "../../agent/node/network/iptables-chains.ts";
import { toAgentConfig } from "../../agent/options.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { PodSpec } from "../../api/core/pod-spec/schema.ts";
import type { Transport } from "../../client/client.ts";
import type { Flag } from "../../flags/flag.ts";
import { logOptions } from "../../flags/log-options.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { encodeYaml } from "../../schema/yaml/write-yaml.ts";
import { createLogger, silentLogger } from "../../std/log/logger.ts";
import { conditionTimeout, loadMutant } from "../flags/mutant.ts";
import { createFakeRouteTools } from "../pod-network/fake-route-tools.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { freePort } from "../std/free-port.ts";
import { until } from "../std/until.ts";
import { FakeApi } from "./fake-api.ts";
import { FakeLogind } from "./fake-logind.ts";
import { FakeRuntime } from "./fake-runtime.ts";
import { mountAll } from "./mount-all.ts";

export type AgentFlagName = keyof typeof agentFlags;
/** Flag values as the command line has them. */
export type Settings = Readonly<Partial<Record<AgentFlagName, string>>>;

/** Settings of every agent; those of the test override them. */
const base: Settings = {
  "hostname-override": "n1",
  "authorization-mode": "AlwaysAllow",
  "fail-swap-on": "false",
  "fail-cgroupv1": "false",
  "read-only-port": "0",
  "healthz-port": "0",
  "enable-server": "false",
  "node-ip": "192.0.2.1",
};

/** An agent and its environment. */
export interface TestAgent extends AsyncDisposable {
  readonly config: AgentConfig;
  readonly effective: EffectiveConfig;
  readonly directory: string;
  readonly api: FakeApi;
  readonly fake: FakeRuntime;
  readonly clock: FakeClock;
  /** Where the agent serves DNS, in place of 53. */
  readonly dnsPort: number;
  /** The lines that the agent has logged, if the flags set a verbosity. */
  logged(): string;
  /** Calls to systemd. */
  readonly systemd: readonly { readonly method: string; readonly args: readonly string[] }[];
  /** The iptables chains and rules. */
  readonly iptables: ReadonlySet<string>;
  /** The transactions of the service proxy. */
  readonly nft: readonly string[];
  /** Announces the shutdown of the machine. */
  readonly logind: FakeLogind;
  /** The commands of `ip` and `bridge` that change something. */
  readonly network: readonly string[];
  /** A file of the cgroup v1 tree: `cpu/kubepods/cpu.shares`; empty when it does not exist. */
  readCgroup(path: string): string;
  /** The Node object as registered. */
  getNode(): {
    readonly metadata: Readonly<Record<string, unknown>>;
    readonly spec?: unknown;
    readonly status?: unknown;
  };
  start(): Promise<{ readonly port: number }>;
  /** Stops the agent; containers keep running. */
  stop(): Promise<void>;
  /** Creates a pod with one container on the node. */
  createPod(name: string, spec?: Partial<PodSpec>): Pod;
  /** Advances the clock until the condition holds; rejects after a timeout. */
  until(what: string, holds: () => boolean): Promise<void>;
  untilRunning(name: string): Promise<void>;
}

/** With source `file`, settings with a field in the configuration file are set there, others by flags. */
export async function createTestAgent(
  source: "flag" | "file",
  settings: Settings,
  /** Connects to an API server in place of the fake one. */
  transport?: Transport,
): Promise<TestAgent> {
  const directory = await mkdtemp(join(tmpdir(), "svc-flags-"));
  const baseline: Settings = {
    ...base,
    "root-dir": join(directory, "root"),
    "cert-dir": join(directory, "pki"),
    "container-runtime-endpoint": `unix://${join(directory, "runtime.sock")}`,
  };
  const words = await toCommandLine(source, directory, { ...baseline, ...settings });
  const effective = loadMutant(words, await toCommandLine("flag", directory, baseline));
  const options = toAgentConfig(effective);
  const podNetwork = { ...options.podNetwork, confDir: join(directory, "cni") };
  const config = { ...options, podLogsDir: join(directory, "logs"), podNetwork };
  const clock = new FakeClock(Date.now());
  const api = new FakeApi();
  const fake = new FakeRuntime(clock);
  const lines: string[] = [];
  const sink = { write: (line: string) => lines.push(line), flushSync: () => {} };
  const isLogging = settings.v !== undefined || settings.vmodule !== undefined;
  const log = isLogging
    ? createLogger(logOptions(effective.flags), { clock, stdout: sink, stderr: sink })
    : silentLogger;
  const cgroupHierarchy = join(directory, "cgroup");
  const sysRoot = join(directory, "sys");
  const systemd: { readonly method: string; readonly args: readonly string[] }[] = [];
  for (const name of controllers) await mkdir(join(cgroupHierarchy, name), { recursive: true });
  const dnsPort = await freePort();
  const iptables = new Set<string>();
  const nft: string[] = [];
  const network: string[] = [];
  const logind = new FakeLogind();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  let attempt = 0;
  const wait = async (): Promise<void> => {
    attempt++;
    // Files and sockets take real time, which does not depend on the clock of the test.
    if (attempt % 8 === 0) await setTimeout(1);
    await clock.advance(attempt % 16 === 0 ? 100 : 0);
  };
  const untilHolds = async (
    what: string,
    holds: () => boolean,
    timeoutMs = conditionTimeout(TIMEOUT_MS),
  ): Promise<void> => {
    await until(what, holds, { timeoutMs, wait });
  };
  const path = (name: string): string => `/api/v1/namespaces/default/pods/${name}`;
  let running: RunningAgent | undefined;
  const stop = async (): Promise<void> => {
    let closed = running === undefined;
    const closing = running?.close().finally(() => {
      closed = true;
    });
    await untilHolds("the agent has stopped", () => closed, TIMEOUT_MS);
    await closing;
  };
  stack.defer(stop);
  const owned = stack.move();
  return {
    config,
    effective,
    directory,
    api,
    fake,
    clock,
    dnsPort,
    logged: () => lines.join(""),
    systemd,
    iptables,
    nft,
    network,
    logind,
    readCgroup: (path) => {
      const file = join(cgroupHierarchy, path);
      return existsSync(file) ? readFileSync(file, "utf8") : "";
    },
    getNode: () => api.objects.get(`/api/v1/nodes/${config.nodeName}`) ?? { metadata: {} },
    async start() {
      const agent = await startAgent(config, {
        clock,
        log,
        transport: transport ?? api.transport,
        runtime: fake,
        cgroupHierarchy,
        ...(existsSync(sysRoot) ? { sysRoot } : {}),
        iptables: createFakeIptables(iptables),
        dnsPort,
        shutdownNotices: logind,
        nft: { apply: async (commands) => void nft.push(commands) },
        network: {
          tools: createFakeRouteTools(network),
          nft: { apply: async (commands) => void nft.push(commands) },
          hasIptables: true,
          enableForwarding: async () => {},
        },
        async callSystemd(method, _signature, args) {
          systemd.push({ method, args });
          const path = toSlicePath(args[0] ?? "");
          for (const name of controllers) await mkdir(join(cgroupHierarchy, name, path), { recursive: true });
        },
      });
      running = agent;
      let ready = false;
      await Promise.race([
        agent.ready().then(() => {
          ready = true;
        }),
        untilHolds("the node is ready", () => ready),
      ]);
      return { port: agent.address?.port ?? 0 };
    },
    stop,
    createPod: (name, spec = {}) =>
      api.put(
        path(name),
        mountAll({
          kind: "Pod",
          metadata: { name, namespace: "default" },
          spec: {
            nodeName: config.nodeName,
            containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "IfNotPresent" }],
            ...spec,
          },
        }),
      ) as Pod,
    until: untilHolds,
    untilRunning: (name) => untilHolds(`${name} runs`, () => api.objects.get(path(name))?.status?.phase === "Running"),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** iptables with these chains and rules, each as program, table, and chain or rule. */
export function createFakeIptables(existing: Set<string>): Iptables {
  return async (program, [, table = "", option = "", ...rest]) => {
    const what = [program, table, ...rest].join(" ");
    if (option !== "-S" && option !== "-C") existing.add(what);
    else if (!existing.has(what)) throw new Error("No chain/target/match by that name.");
  };
}

const controllers = ["cpu", "memory", "pids"];
/** Timeout of conditions, on the host's clock. */
const TIMEOUT_MS = 10_000;

export async function toCommandLine(source: "flag" | "file", directory: string, settings: Settings): Promise<string[]> {
  const args: string[] = [];
  let file: Readonly<Record<string, unknown>> = {
    apiVersion: "svclet.config.svc.io/v1beta1",
    kind: "SvcletConfiguration",
  };
  for (const [name, text] of Object.entries(settings)) {
    const row: Flag = agentFlags[name as AgentFlagName];
    if (source === "flag" || row.config === undefined) args.push(`--${name}=${text}`);
    else file = withField(file, row.config.split("."), toJson(row, row.type.parse(text)));
  }
  if (source === "flag") return args;
  const path = join(directory, "agent.yaml");
  await writeFile(path, encodeYaml(file));
  return [...args, `--config=${path}`];
}

function withField(tree: unknown, [first = "", ...rest]: readonly string[], value: unknown): Record<string, unknown> {
  const own = isPlainObject(tree) ? tree : {};
  return { ...own, [first]: rest.length === 0 ? value : withField(own[first], rest, value) };
}
