/** Network policies of real pods on three nodes, one of them in another network, whatever restarts. */
import t from "tap";
import { findMissing } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement } from "./cluster.ts";
import { type NodeName, NodeNetwork } from "./node-network.ts";

const problem =
  findMissingRequirement() ?? ((await findMissing()).length > 0 ? `${await findMissing()} missing` : undefined);

t.setTimeout(600_000);

const policy = (name: string, spec: object): object => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name },
  spec,
});
const app = (name: string) => ({ matchLabels: { app: name } });
const PORTS = [
  { protocol: "TCP", port: 8080 },
  { protocol: "UDP", port: 8080 },
];

if (problem !== undefined) console.error(`Skipped: ${problem}.`);
else {
  t.test("network policies of pods on three nodes", async (t) => {
    await using network = await NodeNetwork.create();
    const pods: Readonly<Record<string, string>> = {
      web: await network.serve("web", "n1", { app: "web" }),
      near: await network.serve("near", "n1", { app: "client" }),
      next: await network.serve("next", "n2", { app: "client" }),
      far: await network.serve("far", "n3", { app: "client" }),
      other: await network.serve("other", "n2", { app: "other" }),
    };
    const dns = await network.get("service kube-dns -n kube-system", "{.spec.clusterIP}");
    /** Who gets an answer of the pod, by TCP and by UDP. */
    const reach = async (to: string, from: readonly string[]): Promise<readonly string[]> => {
      const answers = await Promise.all(
        from.flatMap((name) =>
          (["tcp", "udp"] as const).map(async (protocol) => {
            const answer = await network.open(name, protocol, pods[to] ?? to, 8080);
            return answer === to ? `${name} ${protocol}` : [];
          }),
        ),
      );
      return answers.flat();
    };
    const all = ["near", "next", "far", "other", "n1", "n2"];
    const both = (...names: readonly string[]) => names.flatMap((name) => [`${name} tcp`, `${name} udp`]);
    const untilReach = (to: string, from: readonly string[], expected: readonly string[]): Promise<unknown> =>
      until(
        `${expected.join()} reach ${to}`,
        async () => (await reach(to, from)).join() === expected.join() || undefined,
      );
    const tables = async (node: NodeName): Promise<string> =>
      (await network.nodes[node].run("nft", "list", "tables")).stdout;

    await t.test("without policies everything passes, and no node has rules", async (t) => {
      await untilReach("web", all, both(...all));
      for (const node of ["n1", "n2", "n3"] as const) t.notMatch(await tables(node), "svc-network-policy");
    });

    await t.test("clients of the same node, of the next and of another network", async (t) => {
      const spec = { podSelector: app("web"), ingress: [{ from: [{ podSelector: app("client") }], ports: PORTS }] };
      await network.apply(policy("web", spec));
      await untilReach("web", all, both("near", "next", "far", "n1"));
      t.match(await tables("n1"), "svc-network-policy");
      t.notMatch(await tables("n2"), "svc-network-policy", "a node without pods of the policy");
      await network.kubectl(["label", "pod", "far", "app=other", "--overwrite"]);
      await untilReach("web", all, both("near", "next", "n1"));
      await network.kubectl(["label", "pod", "far", "app=client", "--overwrite"]);
      await untilReach("web", all, both("near", "next", "far", "n1"));
    });

    await t.test("egress of clients, with and without DNS", async (t) => {
      const lookUp = () => network.lookUp("far", "kubernetes.default.svc.cluster.local", dns);
      await network.apply(policy("clients", { podSelector: app("client"), policyTypes: ["Egress"] }));
      await untilReach("web", all, both("n1"));
      t.same(await lookUp(), []);
      const kubeDns = { namespaceSelector: {}, podSelector: { matchLabels: { "k8s-app": "kube-dns" } } };
      const egress = [{ to: [kubeDns] }, { to: [{ podSelector: app("web") }], ports: PORTS.slice(0, 1) }];
      await network.apply(policy("clients", { podSelector: app("client"), policyTypes: ["Egress"], egress }));
      await untilReach("web", all, ["near tcp", "next tcp", "far tcp", ...both("n1")]);
      t.not((await lookUp()).length, 0);
      t.same(await reach("other", ["near", "next", "far"]), []);
      await network.kubectl(["delete", "networkpolicy", "clients"]);
      await untilReach("web", all, both("near", "next", "far", "n1"));
    });

    await t.test(
      "rules stay while the API server and the agent are away, and pods that start then are closed",
      async (t) => {
        const deny = policy("late", { podSelector: app("late"), policyTypes: ["Ingress"] });
        await network.apply(deny);
        await network.nodes.n1.killAgent();
        t.same(await reach("web", all), both("near", "next", "far", "n1"), "without agent");
        await network.cluster.stop();
        network.startAgent("n1");
        for (let attempt = 0; attempt < 5; attempt++) {
          t.same(await reach("web", ["near", "next", "other"]), both("near", "next"), "without API server");
        }
        await network.cluster.start();
        await network.untilReady();
        const late = await network.serve("late", "n1", { app: "late" });
        t.equal(await network.open("near", "tcp", late, 8080), "timeout");
        t.equal(await network.open("n1", "tcp", late, 8080), "late", "its own node");
        await untilReach("web", all, both("near", "next", "far", "n1"));
      },
    );

    await t.test("the last policy takes the rules with it", async () => {
      await network.kubectl(["delete", "networkpolicy", "--all"]);
      await untilReach("web", all, both(...all));
      for (const node of ["n1", "n2", "n3"] as const) {
        await until(
          `no rules on ${node}`,
          async () => !(await tables(node)).includes("svc-network-policy") || undefined,
        );
      }
    });
  });
}
