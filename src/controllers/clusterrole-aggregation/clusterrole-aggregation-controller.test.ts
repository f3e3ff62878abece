import t from "tap";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client, ClientWatchEvent } from "../../client/client.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { runClusterRoleAggregation } from "./clusterrole-aggregation-controller.ts";

async function* silent(signal: AbortSignal): AsyncGenerator<ClientWatchEvent<never>> {
  await new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** What is written of these roles; the first writes fail with the given codes. */
async function written(items: readonly ClusterRole[], failures: readonly number[] = []): Promise<ClusterRole[]> {
  const updates: ClusterRole[] = [];
  const left = [...failures];
  const client: Partial<Client> = {
    list: async () => ({ items: items as never[], resourceVersion: "1" }),
    watch: (_kind: unknown, _query: unknown, signal: AbortSignal) => silent(signal),
    update: async (_kind: unknown, object: unknown) => {
      const code = left.shift();
      if (code !== undefined) throw new StatusError(code, "", "no");
      updates.push(object as ClusterRole);
      return object as never;
    },
  };
  const clock = new FakeClock();
  const stop = new AbortController();
  const deps = { clock, random: seededRandom(1), log: silentLogger, kinds: [], signal: stop.signal };
  const running = runClusterRoleAggregation({ client: client as Client, observer: client as Client, ...deps });
  await clock.advance(5_000);
  stop.abort();
  await running;
  return updates;
}

const read = { apiGroups: [""], resources: ["pods"], verbs: ["get"] };
const write = { apiGroups: [""], resources: ["pods"], verbs: ["update"] };
const part = (
  name: string,
  rules: ClusterRole["rules"],
  labels: Record<string, string> = { to: "all" },
): ClusterRole => ({
  metadata: { name, labels },
  rules,
});
const whole = (rules?: ClusterRole["rules"]): ClusterRole => ({
  metadata: { name: "all", labels: { to: "all" } },
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: { to: "all" } }, { matchLabels: { also: "yes" } }] },
  rules,
});

t.test("runClusterRoleAggregation() gathers the rules of the roles selected, by name and each once", async (t) => {
  const parts = [part("b", [write, read]), part("a", [read]), part("other", [{ ...read, verbs: ["list"] }], {})];
  t.match(await written([whole(), ...parts]), [{ metadata: { name: "all" }, rules: [read, write] }]);
  t.same(await written([whole([read, write]), ...parts]), [], "nothing to write");
  t.same((await written([whole([read])])).at(0)?.rules, [], "a role does not gather itself");
});

t.test("runClusterRoleAggregation() tries again what failed", async (t) => {
  const roles = [whole(), part("a", [read])];
  t.equal((await written(roles, [409])).length, 1);
  t.equal((await written(roles, [500, 500])).length, 1);
});
