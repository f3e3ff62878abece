import t from "tap";
import { createClient } from "../../client/api-client.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { MetricRegistry } from "../../std/metrics/metrics.ts";
import { startTestServer, type TestServer } from "../../testing/apiserver/server-fixture.ts";
import { runElectedControllers } from "./elected-controllers.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/apiserver-embedded-controllers";
const admin = { name: "system:apiserver", uid: "", groups: ["system:masters"], extra: {} };

class Servers {
  /** The names of those that run controllers. */
  readonly running: string[] = [];
  readonly #server: TestServer;
  #started = 0;

  constructor(server: TestServer) {
    this.#server = server;
  }

  start(name: string, registry = new MetricRegistry()): AsyncDisposable {
    const { parts, clock } = this.#server;
    const headers = { authorization: `Bearer ${parts.server.loopbackToken(admin)}` };
    return runElectedControllers({
      client: createClient({ transport: parts.server.handler, headers, userAgent: name }),
      clock,
      random: seededRandom(++this.#started),
      log: silentLogger,
      registry,
      run: async (own) => {
        own.gauge({ name: "controllers", help: "Of a test." }).with().set(1);
        this.running.push(name);
        return {
          [Symbol.asyncDispose]: async () => {
            this.running.splice(this.running.indexOf(name), 1);
          },
        };
      },
    });
  }

  async advanceUntil(expected: readonly string[]): Promise<void> {
    for (let second = 0; second < 120 && this.running.join() !== expected.join(); second++)
      await this.#server.clock.advance(1000);
    t.same(this.running, expected);
  }
}

t.test("one of several servers runs the controllers, and another one takes over", async (t) => {
  await using server = await startTestServer();
  const servers = new Servers(server);
  const registry = new MetricRegistry();
  const one = servers.start("one", registry);
  await servers.advanceUntil(["one"]);
  const shown = (): boolean => registry.collect().some(({ options }) => options.name === "controllers");
  t.ok(shown());
  await using _two = servers.start("two");
  await server.clock.advance(60_000);
  t.same(servers.running, ["one"]);
  await one[Symbol.asyncDispose]();
  t.notOk(shown());
  t.equal((await server.send(`GET ${LEASE}`)).json.spec.holderIdentity, "", "the lease is released");
  await servers.advanceUntil(["two"]);
});

t.test("a server that loses the lease stops its controllers, and may run them again", async (t) => {
  await using server = await startTestServer();
  const servers = new Servers(server);
  await using _one = servers.start("one");
  await servers.advanceUntil(["one"]);
  const { json } = await server.send(`GET ${LEASE}`);
  const renewTime = new Date(server.clock.now()).toISOString().replace("Z", "000Z");
  const spec = { ...json.spec, holderIdentity: "another", renewTime };
  t.equal((await server.send(`PUT ${LEASE}`, { body: { ...json, spec } })).status, 200);
  await servers.advanceUntil([]);
  await servers.advanceUntil(["one"]);
});
