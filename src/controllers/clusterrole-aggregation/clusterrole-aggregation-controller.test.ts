import t from "tap";
import type { ClusterRole } from "../../api/rbac/cluster-role/schema.ts";
import { StatusError } from "../../api/status.ts";
import type { Client, ClientWatchEvent } from "../../client/client.ts";
import { createSharedInformers } from "../../client/informer/shared-informers.ts";
import { seededRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { defaultControllerOptions } from "../controller-options.ts";
import { runClusterRoleAggregation } from "./clusterrole-aggregation-controller.ts";

async function* silent(signal: AbortSignal): AsyncGenerator<ClientWatchEvent<never>> {
  await new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Returns the updates that the controller makes; the first ones fail with the given codes. */
async function runAndCollect(items: readonly ClusterRole[], failures: readonly number[] = []): Promise<ClusterRole[]> {
  const updates: ClusterRole[] = [];
  const left = [...failures];
  const client: Partial<Client> = {
    list: async () => ({ items: items as never[], resourceVersion: "1" }),
    watch: (_kind: unknown, _query: unknown, signal: AbortSignal) => silent(signal),
    patch: async (_kind: unknown, _name: unknown, type: unknown, object: unknown) => {
      if (type !== "apply") throw new Error(`not applied: ${type}`);
      const code = left.shift();
      if (code !== undefined) throw new StatusError(code, "", "no");
      updates.push(object as ClusterRole);
      return object as never;
    },
  };
  const clock = new FakeClock();
  const stop = new AbortController();
  const deps = {
    clock,
    random: seededRandom(1),
    log: silentLogger,
    kinds: [],
    options: defaultControllerOptions,
    signal: stop.signal,
  };
  const informers = createSharedInformers({ client: client as Client, ...deps }, stop.signal);
  const running = runClusterRoleAggregation({
    client: client as Client,
    observer: client as Client,
    informers,
    ...deps,
  });
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

t.test(
  "runClusterRoleAggregation() aggregates the rules of the selected roles, sorted by role and without duplicates",
  async (t) => {
    const first = part("z", [write], { to: "all" });
    const second = part("a", [read], { also: "yes" });
    t.match(await runAndCollect([whole(), second, first]), [{ rules: [write, read] }], "selector by selector");
    const parts = [part("b", [write, read]), part("a", [read]), part("other", [{ ...read, verbs: ["list"] }], {})];
    t.match(await runAndCollect([whole(), ...parts]), [{ metadata: { name: "all" }, rules: [read, write] }]);
    t.same(await runAndCollect([whole([read, write]), ...parts]), [], "up to date");
    t.same((await runAndCollect([whole([read])])).at(0)?.rules, [], "a role does not aggregate itself");
  },
);

t.test("runClusterRoleAggregation() retries failed updates", async (t) => {
  const roles = [whole(), part("a", [read])];
  t.equal((await runAndCollect(roles, [409])).length, 1);
  t.equal((await runAndCollect(roles, [500, 500])).length, 1);
});
