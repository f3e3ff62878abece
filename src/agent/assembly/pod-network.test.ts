import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createClient } from "../../client/api-client.ts";
import type { NetworkHost } from "../../pod-network/pod-network.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { formatMetrics } from "../../std/metrics/text-format.ts";
import { systemClock } from "../../std/time/clock.ts";
import { FakeApi } from "../../testing/agent/fake-api.ts";
import { createFakeRouteTools } from "../../testing/pod-network/fake-route-tools.ts";
import { until } from "../../testing/std/until.ts";
import type { PodNetworkConfig } from "../agent-config.ts";
import { defaultAgentConfig } from "../options.ts";
import type { Foundation } from "./foundation.ts";
import { openPodNetwork } from "./pod-network.ts";
import type { Reporting } from "./reporting.ts";

interface Fixture extends AsyncDisposable {
  readonly directory: string;
  readonly metrics: MetricRegistry;
  readonly api: FakeApi;
  readonly commands: readonly string[];
  readonly events: readonly string[];
  open(
    change: Partial<PodNetworkConfig>,
    host?: Partial<NetworkHost>,
    hasApi?: boolean,
  ): ReturnType<typeof openPodNetwork>;
}

/** An agent whose runtime reports the directory `net.d` below the directory. */
function createFixture(t: Test): Fixture {
  const directory = t.testdir({ "net.d": {}, root: {} });
  const base = defaultAgentConfig("n1");
  const commands: string[] = [];
  const events: string[] = [];
  const api = new FakeApi();
  const [stack, stop] = [new AsyncDisposableStack(), new AbortController()];
  const fixtureMetrics = new MetricRegistry();
  const config = JSON.stringify({ cni: { confDir: join(directory, "net.d") } });
  const reporting = { recordNodeEvent: (...event: readonly string[]) => void events.push(event.join(": ")) };
  for (const [name, podCIDR, address] of [
    ["n1", "10.244.0.0/24", "192.0.2.1"],
    ["n2", "10.244.1.0/24", "192.0.2.2"],
  ] as const) {
    const status = { addresses: [{ type: "InternalIP", address }] };
    api.put(`/api/v1/nodes/${name}`, { kind: "Node", metadata: { name }, spec: { podCIDR }, status });
  }
  return {
    directory,
    metrics: fixtureMetrics,
    api,
    commands,
    events,
    open: (change, host = {}, hasApi = true) => {
      const foundation = {
        config: {
          ...base,
          rootDir: join(directory, "root"),
          podNetwork: { ...base.podNetwork, clusterCidrs: ["10.244.0.0/16"], ...change },
        },
        client: hasApi ? createClient({ transport: api.transport }) : undefined,
        cri: { runtime: { status: async () => ({ info: { config } }) } },
        network: {
          tools: createFakeRouteTools(commands),
          nft: { apply: async (text: string) => void commands.push(text) },
          hasIptables: true,
          enableForwarding: async () => {},
          ...host,
        },
        metrics: fixtureMetrics,
        clock: systemClock,
        log: silentLogger,
        signal: stop.signal,
        stack,
      };
      return openPodNetwork(foundation as unknown as Foundation, reporting as unknown as Reporting);
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new DOMException("The test ends", "AbortError"));
      await stack.disposeAsync();
    },
  };
}

t.test("the configuration is written to the directory of the runtime", async (t) => {
  await using fixture = createFixture(t);
  const network = await fixture.open({ mode: "auto" });
  await network?.ready;
  t.match(readFileSync(join(fixture.directory, "net.d/10-svc.conflist"), "utf8"), '"subnet": "10.244.0.0/24"');
  await until("a route", () => fixture.commands.some((line) => line.startsWith("route replace 10.244.1.0/24 ")));
  t.ok(existsSync(join(fixture.directory, "root/pod-network")));
  t.match(formatMetrics([fixture.metrics], "prometheus"), 'svc_pod_network_routes{way="direct"} 1\n');
});

t.test("mode none removes what another mode has made, and otherwise does nothing", async (t) => {
  await using fixture = createFixture(t);
  const conflist = join(fixture.directory, "net.d/10-svc.conflist");
  t.equal(await fixture.open({ mode: "none" }), undefined);
  t.same(fixture.commands, []);
  await (await fixture.open({ mode: "vxlan" }))?.close({ removeRoutes: false, removeConfig: false });
  writeFileSync(join(fixture.directory, "root/pod-network"), "{}");
  mkdirSync(join(fixture.directory, "net.d"), { recursive: true });
  writeFileSync(conflist, "{}");
  t.equal(await fixture.open({ mode: "none" }), undefined);
  t.notOk(existsSync(conflist));
  t.notOk(existsSync(join(fixture.directory, "root/pod-network")));
  t.ok(fixture.commands.some((text) => text.includes("delete table ip svc-pod-network")));
});

t.test("an agent that must have the network does not start without what it needs", async (t) => {
  await using fixture = createFixture(t);
  await t.rejects(fixture.open({ mode: "auto" }, {}, false), { message: /^Cannot use --pod-network without --svcc/ });
  await t.rejects(fixture.open({ mode: "auto" }, { tools: undefined }), {
    message: /ip and bridge are not installed\. On Debian or Ubuntu, apt-get install iproute2$/,
  });
});

t.test("an agent that can do without starts, and reports what is missing", async (t) => {
  await using fixture = createFixture(t);
  await fixture.open({ mode: "auto", isOptional: true }, { tools: undefined });
  await until("an event", () => fixture.events.length > 0);
  t.match(fixture.events, [/^Warning: PodNetworkFailed: Cannot connect pods of different nodes: ip and bridge/]);
});
