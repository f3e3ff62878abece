/** The service proxies of nodes that joined svc up: from the node, from outside, and while the API server is away. */
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import t from "tap";
import { findMissing } from "../../testing/agent/private-containerd.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { until } from "../../testing/std/until.ts";
import { command, findMissingRequirement, programs, root, TestCluster } from "./cluster.ts";
import { Machine, Network } from "./machine.ts";

const problem =
  findMissingRequirement() ?? ((await findMissing()).length > 0 ? `${await findMissing()} missing` : undefined);

t.setTimeout(240_000);

/** Answers with its name. */
async function serve(name: string, host: string): Promise<Server & { readonly number: number }> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.end(`${name}\n`);
  });
  const number = await freePort();
  await new Promise<void>((resolve) => server.listen(number, host, resolve));
  return Object.assign(server, { number });
}

if (problem !== undefined) console.error(`Skipped: ${problem}.`);
else {
  t.test("services work on nodes that joined, also while the API server is away", async (t) => {
    await using network = await Network.create();
    const [one, two] = [await serve("one", network.gateway), await serve("two", network.gateway)];
    t.teardown(() => [one, two].map((server) => server.close()));
    await using cluster = await TestCluster.create({ program: programs.sources, flags: ["--bind-address=0.0.0.0"] });
    await cluster.start();
    const apply = async (...items: readonly object[]): Promise<void> => {
      const input = JSON.stringify({ apiVersion: "v1", kind: "List", items });
      const { code, stderr } = await cluster.kubectl(["apply", "-f", "-"], { input });
      t.equal(code, 0, stderr);
    };
    const endpoints = (...servers: readonly { readonly number: number }[]): readonly object[] =>
      [one, two].map((server, index) => ({
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { name: `web-${index}`, labels: { "kubernetes.io/service-name": "web" } },
        addressType: "IPv4",
        ports: [{ name: "", port: server.number }],
        endpoints: servers.includes(server) ? [{ addresses: [network.gateway] }] : [],
      }));
    const spec = { type: "NodePort", ports: [{ port: 80, nodePort: 30099 }] };
    await apply({ apiVersion: "v1", kind: "Service", metadata: { name: "web" }, spec }, ...endpoints(one, two));
    const clusterIp = (await cluster.kubectl(["get", "svc", "web", "-o", "jsonpath={.spec.clusterIP}"])).stdout;

    await using machine = await Machine.create(network, "s1", 11);
    const server = `--server=https://${network.gateway}:${cluster.port}`;
    const words = ["token", "create", `--svcconfig=${cluster.kubeconfig}`, server, "--ttl=10m"];
    const line = (await command("node", [join(root, "src/main.ts"), ...words])).stdout;
    t.match(line, "--service-proxy");
    machine.startAgent(line);
    const fromNode = async (port = 80): Promise<string> =>
      (await machine.run("timeout", "3", "busybox", "nc", clusterIp, String(port))).stdout.trim();
    const fromOutside = async (): Promise<string> =>
      (await command("timeout", ["3", "busybox", "nc", network.address(11), "30099"])).stdout.trim();
    const untilBoth = (connect: () => Promise<string>): Promise<boolean> => {
      const found = new Set<string>();
      return until("an answer of both endpoints", async () => {
        found.add(await connect());
        return (found.has("one") && found.has("two")) || undefined;
      }).catch((cause: unknown) => {
        throw new Error(`${[...found].join()}; the agent's log:\n${machine.log()}`, { cause });
      });
    };
    t.ok(await untilBoth(() => fromNode()), "the cluster IP on the node");
    t.ok(await untilBoth(fromOutside), "the node port from outside");

    await cluster.stop();
    t.ok(await untilBoth(() => fromNode()), "while the API server is away");
    await machine.killAgent();
    t.ok(await untilBoth(fromOutside), "while the agent is away");
    machine.startAgent(line);
    await cluster.start();
    await apply(...endpoints(two));
    await until("the change of endpoints on the node", async () => {
      const answers = new Set([await fromNode(), await fromNode(), await fromNode(), await fromNode()]);
      return (answers.size === 1 && answers.has("two")) || undefined;
    });
    await cluster.kubectl(["delete", "svc", "web"]);
    await until("the end of the service on the node", async () => ((await fromNode()) === "" ? true : undefined));
  });
}
