/** Three nodes, one of them in another network: pods, services of every type, host ports and DNS, whatever fails. */
import t from "tap";
import { findMissing } from "../../testing/agent/private-containerd.ts";
import { until } from "../../testing/std/until.ts";
import { findMissingRequirement } from "./cluster.ts";
import { EXTERNAL_IP, NODE_NAMES, type NodeName, NodeNetwork } from "./node-network.ts";

const problem =
  findMissingRequirement() ?? ((await findMissing()).length > 0 ? `${await findMissing()} missing` : undefined);

t.setTimeout(600_000);

const PROTOCOLS = ["tcp", "udp"] as const;
/** Kubernetes waits 40 s before a node counts as dead. */
const NODE_DEATH_MS = 120_000;

type Target = readonly [name: string, address: string, port: number];

/** The services of the test, each with the pods `w1` to `w3` of the nodes behind it. */
class Services {
  readonly #network: NodeNetwork;
  readonly pods: Readonly<Record<NodeName, string>>;
  #clusterIp = "";
  dns = "";

  private constructor(network: NodeNetwork, pods: Services["pods"]) {
    this.#network = network;
    this.pods = pods;
  }

  static async create(network: NodeNetwork): Promise<Services> {
    const labels = { app: "web" };
    const pods = {
      n1: await network.serve("w1", "n1", labels),
      n2: await network.serve("w2", "n2", labels),
      n3: await network.serve("w3", "n3", labels),
    };
    const services = new Services(network, pods);
    const service = (name: string, port: number, spec: object): object => ({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name },
      spec: {
        selector: labels,
        ports: PROTOCOLS.map((protocol) => ({
          name: protocol,
          protocol: protocol.toUpperCase(),
          port,
          targetPort: 8080,
          ...(name === "ports" ? { nodePort: 30080 } : {}),
        })),
        ...spec,
      },
    });
    await network.apply(
      service("cluster", 80, {}),
      service("ports", 80, { type: "NodePort" }),
      service("balancer", 8081, { type: "LoadBalancer" }),
      service("external", 8082, { externalIPs: [EXTERNAL_IP] }),
      service("headless", 8080, { clusterIP: "None" }),
    );
    services.#clusterIp = await network.get("service cluster", "{.spec.clusterIP}");
    services.dns = await network.get("service kube-dns -n kube-system", "{.spec.clusterIP}");
    await until("addresses of the load balancer", async () => {
      const ips = await network.get("service balancer", "{.status.loadBalancer.ingress[*].ip}");
      return NODE_NAMES.every((node) => ips.includes(network.address(node)));
    });
    return services;
  }

  /** From a pod, a node or the client, to nodes that are alive. */
  targets(from: string, alive: readonly NodeName[]): readonly Target[] {
    return [
      ...(from === "client" ? [] : [["the cluster IP", this.#clusterIp, 80] as const]),
      ...alive.map((node) => [`the node port of ${node}`, this.#network.address(node), 30080] as const),
      ...alive.map((node) => [`the load balancer at ${node}`, this.#network.address(node), 8081] as const),
      ["the external IP", EXTERNAL_IP, 8082] as const,
    ];
  }

  /** Every pod answers, and nothing else. Resolves with what does not hold. */
  async findFailures(alive: readonly NodeName[]): Promise<readonly string[]> {
    const expected = alive.map((node) => node.replace("n", "w"));
    const origins = [...alive, ...expected, "client"];
    const failures = await Promise.all(
      origins.map(async (from) => {
        const found: string[] = [];
        for (const [name, address, port] of this.targets(from, alive)) {
          for (const protocol of PROTOCOLS) {
            const answers = new Set<string>();
            for (let attempt = 0; attempt < 40 && answers.size < expected.length; attempt++) {
              answers.add(await this.#network.open(from, protocol, address, port));
            }
            const others = [...answers].filter((answer) => !expected.includes(answer));
            if (others.length > 0 || answers.size < expected.length) {
              found.push(`${from} to ${name} by ${protocol}: ${[...answers].join()}`);
            }
          }
        }
        for (const node of from === "client" ? [] : alive) {
          const answer = await this.#network.open(from, "tcp", this.pods[node], 8080);
          if (answer !== node.replace("n", "w")) found.push(`${from} to the pod of ${node}: ${answer}`);
        }
        return found;
      }),
    );
    return failures.flat();
  }

  /** Some pod answers, though the node of others is dead: at most so many attempts fail. */
  async findOutages(alive: readonly NodeName[]): Promise<readonly string[]> {
    const outages: string[] = [];
    for (const from of [...alive, ...alive.map((node) => node.replace("n", "w")), "client"]) {
      for (const [name, address, port] of this.targets(from, alive)) {
        const answers: string[] = [];
        while (answers.length < 12 && !/^w\d$/.test(answers.at(-1) ?? "")) {
          answers.push(await this.#network.open(from, "tcp", address, port));
        }
        if (!/^w\d$/.test(answers.at(-1) ?? "")) outages.push(`${from} to ${name}: ${answers.join()}`);
      }
    }
    return outages;
  }

  async findDnsFailures(
    alive: readonly NodeName[],
    endpoints: readonly NodeName[] = alive,
  ): Promise<readonly string[]> {
    const failures: string[] = [];
    for (const node of alive) {
      const pod = node.replace("n", "w");
      const cluster = await this.#network.lookUp(pod, "cluster.default.svc.cluster.local", this.dns);
      if (cluster.join() !== this.#clusterIp) failures.push(`${pod}: cluster: ${cluster.join()}`);
      const headless = await this.#network.lookUp(pod, "headless.default.svc.cluster.local", this.dns);
      const expected = endpoints.map((each) => this.pods[each]).sort();
      if (headless.join() !== expected.join()) failures.push(`${pod}: headless: ${headless.join()}`);
    }
    return failures;
  }
}

if (problem !== undefined) console.error(`Skipped: ${problem}.`);
else {
  t.test("three nodes", async (t) => {
    await using network = await NodeNetwork.create();
    const all = NODE_NAMES;

    await t.test("have ranges of their own, and ways to each other", async (t) => {
      const cidrs = (await network.get("nodes", "{.items[*].spec.podCIDR}")).split(" ");
      t.equal(new Set(cidrs).size, 4, cidrs.join());
      const cidr = (node: NodeName): Promise<string> => network.get(`node ${node}`, "{.spec.podCIDR}");
      const routes = await until("the routes of n1", async () => {
        const found = await network.ip("n1", "route", "show", "proto", "84");
        return found.trim().split("\n").length === 3 ? found : undefined;
      });
      t.match(routes, `${await cidr("n2")} via ${network.address("n2")} dev eth0`);
      t.match(routes, new RegExp(`${await cidr("n3")} via \\S+ dev svcx-\\S+ .*onlink`));
    });

    const services = await Services.create(network);
    await t.test("serve every type of service from pods, nodes and outside", async (t) => {
      const failures = await until("all services", async () => {
        const found = await services.findFailures(all);
        return found.length === 0 ? found : undefined;
      }).catch(() => services.findFailures(all));
      t.same(failures, []);
      t.same(await services.findDnsFailures(all), []);
    });

    await t.test(
      "have host ports by TCP and UDP, at all addresses or one, also after a restart of the agent",
      async (t) => {
        const port = (hostPort: number, protocol: string, hostIP?: string): object => ({
          name: `p${hostPort}${protocol.toLowerCase()}`,
          containerPort: 8080,
          hostPort,
          protocol,
          ...(hostIP === undefined ? {} : { hostIP }),
        });
        const address = network.address("n3");
        await network.serve("h3", "n3", {}, [
          port(18080, "TCP"),
          port(18080, "UDP"),
          port(18081, "TCP", address),
          port(18082, "TCP", "127.0.0.1"),
          port(18082, "UDP", "127.0.0.1"),
        ]);
        const check = async (when: string): Promise<void> => {
          for (const from of ["client", "n1", "n3", "w1", "w3", "h3"]) {
            for (const protocol of PROTOCOLS) {
              t.equal(await network.open(from, protocol, address, 18080), "h3", `${when}, from ${from} by ${protocol}`);
            }
            t.equal(await network.open(from, "tcp", address, 18081), "h3", `${when}, from ${from} to the address`);
            if (from !== "n3") {
              t.equal(
                await network.open(from, "tcp", address, 18082),
                "ECONNREFUSED",
                `${when}, from ${from}: loopback`,
              );
            }
          }
          t.equal(await network.open("n3", "tcp", "127.0.0.1", 18082), "h3", `${when}, loopback`);
          t.equal(await network.open("n3", "udp", "127.0.0.1", 18082), "h3", `${when}, loopback by udp`);
          t.equal(await network.open("n3", "tcp", "127.0.0.1", 18081), "ECONNREFUSED", `${when}, another address`);
        };
        await check("at first");
        await network.nodes.n3.killAgent();
        await check("without the agent");
        network.startAgent("n3");
        await network.untilReady();
        await check("after the restart");
        await network.kubectl(["delete", "pod", "h3", "--wait"]);
        await until("the end of the host ports", async () => {
          return (await network.open("client", "tcp", address, 18080)) === "ECONNREFUSED";
        });
      },
    );

    await t.test("go on when a node and then the API server die, and come back", async (t) => {
      const alive = ["n1", "n3"] as const;
      const stop = new AbortController();
      const sampling = (async () => {
        const failures: string[] = [];
        let samples = 0;
        for (; !stop.signal.aborted; samples++) {
          for (const pod of ["w1", "w3"]) {
            const found = await network.lookUp(pod, "cluster.default.svc.cluster.local", services.dns);
            if (found.length !== 1) failures.push(`${pod} at ${samples}: ${found.join()}`);
          }
          await new Promise((resolve) => setTimeout(resolve, 250));
        }
        return { failures, samples };
      })();
      try {
        await network.nodes.n2.setConnected(false);
        await network.nodes.n2.killAgent();
        t.same(await services.findOutages(alive), [], "while n2 counts as alive");
        await until("the endpoints without n2", async () => (await services.findDnsFailures(alive)).length === 0, {
          timeoutMs: NODE_DEATH_MS,
        });
        // The rules of each node follow the endpoints by themselves.
        let failures: readonly string[] = [];
        await until(
          () => `services without n2: ${failures.join("; ")}`,
          async () => {
            failures = await services.findFailures(alive);
            return failures.length === 0;
          },
        );

        await network.cluster.stop("SIGKILL");
        t.same(await services.findFailures(alive), [], "without the API server");
        t.same(await services.findDnsFailures(alive), [], "names without the API server");
        await network.nodes.n3.stopAgent();
        t.same(await services.findFailures(alive), [], "without the agent of n3");
        network.startAgent("n3");
        await until("names at n3", async () => (await services.findDnsFailures(["n3"], alive)).length === 0);
      } finally {
        stop.abort();
      }
      const { failures, samples } = await sampling;
      t.ok(samples > 10, `${samples} samples`);
      t.same(
        failures.filter((text) => text.startsWith("w1")),
        [],
        "names throughout",
      );

      await network.cluster.start();
      await network.nodes.n2.setConnected(true);
      // A link that goes down takes its routes with it, the default route too.
      await network.ip("n2", "route", "replace", "default", "via", network.near.gateway);
      network.startAgent("n2");
      await network.untilReady();
      await until("all endpoints", async () => (await services.findDnsFailures(all)).length === 0);
      t.same(await services.findFailures(all), [], "all nodes again");
    });
  });
}
